"""How often a solver solves the targets by itself: the own attempts of a stored run, checked against known answers.

A run asks for these attempts anyway (`porism rank --target-samples`). Nothing is asked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from porism.engine import replay
from porism.run import stored_plan
from porism.store import Store
from porism.types import Gold, Problem
from porism.verify.pool import Verifier


async def solve_rates(run: Path, problems: Sequence[Problem]) -> dict[str, tuple[int, int]]:
    """By problem id: attempts that gave the known answer, and attempts decided; over all solvers of the run.

    Only for problems with a known answer that the run holds with the same question. Attempts that could not be decided
    count neither way; one without an answer is a failure. Raises ConfigError for a folder that is no run.
    """
    known = {problem.id: problem for problem in problems if problem.answer is not None}
    rates: dict[str, tuple[int, int]] = {}
    with Store(run, write=False) as store:
        chosen, method = stored_plan(store)
        async with Verifier() as checker:
            seen = await replay(store, checker, chosen, [method])
            for problem in chosen:
                target = known.get(problem.id)
                if target is None or target.answer is None or target.question != problem.question:
                    continue
                solved = decided = 0
                for attempt in method.attempts(problem, seen.get((problem.id, method.name), [])):
                    if attempt.answer is not None:
                        verdict = await checker.verify(attempt.answer, Gold(target.answer))
                        if verdict.kind not in ("correct", "wrong"):
                            continue
                        solved += verdict.kind == "correct"
                    decided += 1
                rates[problem.id] = (solved, decided)
    return rates


__all__ = ["solve_rates"]
