"""How often a solver solves the targets by itself: attempts that a run folder holds, checked against known answers.

Of `porism rank` these are the solver's own attempts (`--target-samples`), of `porism sample` all solutions. Nothing is
asked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from porism.sample import own_attempts, question_hash
from porism.store import MISSING, Store
from porism.stored import stored_plan
from porism.types import Gold, Problem
from porism.verify.pool import Verifier

Attempt = tuple[str, str, str | None]  # problem id, hash of its question, final answer if there is one


async def solve_rates(run: Path, problems: Sequence[Problem]) -> dict[str, tuple[int, int]]:
    """By problem id: attempts that gave the known answer, and attempts decided; over all solvers of the run.

    Only for problems with a known answer that the run holds with the same question, and all of whose attempts have
    ended: short answers come first, and a part would not be a fair sample. Attempts that could not be decided count
    neither way; one without an answer is a failure. Raises ConfigError for a folder that is no run.
    """
    known = {problem.id: (question_hash(problem.question), problem.answer) for problem in problems}
    rates: dict[str, tuple[int, int]] = {}
    with Store(run, write=False) as store:
        sampled = own_attempts(store)
        async with Verifier() as checker:
            for id, question, answer in _of_rank(store) if sampled is None else sampled:
                hash, gold = known.get(id, ("", None))
                if gold is None or hash != question:
                    continue
                solved, decided = rates.get(id, (0, 0))
                if answer is None:
                    rates[id] = (solved, decided + 1)
                    continue
                verdict = await checker.verify(answer, Gold(gold))
                if verdict.kind in ("correct", "wrong"):
                    rates[id] = (solved + (verdict.kind == "correct"), decided + 1)
    return rates


def _of_rank(store: Store) -> Iterator[Attempt]:
    problems, method = stored_plan(store)
    for problem in problems:
        asks = [a for a in method.plan(problem, []) if a.cell.candidate is None and a.cell.neighbor is None]
        rows = [store.rows.get(ask.work.id) for ask in asks]
        if any(row is None for row in rows):
            continue
        for row in rows:
            if row is not None and row.finish != MISSING:
                yield problem.id, question_hash(problem.question), row.answer


__all__ = ["solve_rates"]
