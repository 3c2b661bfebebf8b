"""Checks a neighborhood: runs what `rank` would run, or looks at the texts alone, and gathers what `check` weighs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from porism.neighbors.check import SWEET_SPOT, Neighborhood, Span, check, rates, texts
from porism.prepare import Problems, read, resolve
from porism.run import Ranked, RankWatch, run_problems, score, stored_plan
from porism.store import Store
from porism.types import Gold, Neighbor, Problem, Usage
from porism.verify.custom import is_custom
from porism.verify.extract import extract
from porism.verify.pool import Verifier


class CheckedNeighborhoods(Struct, frozen=True, kw_only=True):
    """Every problem's neighborhood as checked; the run folder and its cost where something was measured."""

    problems: tuple[Neighborhood, ...]
    run: str | None = None
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()
    stopped: str | None = None
    exit_code: int = 0


async def check_texts(problems: Sequence[Problem]) -> CheckedNeighborhoods:
    """What the texts alone say. Costs no token."""
    golds = await _golds(problems)
    return CheckedNeighborhoods(problems=tuple(check(p, texts(p, golds[p.id])) for p in problems))


async def check_run(
    path: Path, *, sweet_spot: Span = SWEET_SPOT, allow_code: bool = False
) -> CheckedNeighborhoods:
    """The neighborhoods of a run, by what its folder holds. Costs no token. allow_code: as for `porism.score`."""
    with Store(path, write=False) as store:
        problems, _ = stored_plan(store)
    return await _judge(problems, await score(path, allow_code=allow_code), sweet_spot, allow_code)


async def check_problems(
    problems: Problems,
    *,
    sweet_spot: Span = SWEET_SPOT,
    watch: RankWatch | None = None,
    confirm: Callable[[Sequence[str]], bool] | None = None,
    **settings: Any,
) -> CheckedNeighborhoods:
    """Asks what `rank` with the same settings would ask, in the same run folder. Candidates are not needed."""
    config = resolve(settings)
    chosen, name, warnings = read(problems, config.limit, candidates=False, allow_code=config.allow_code)
    ranked = await run_problems(chosen, name, config, warnings=warnings, watch=watch, confirm=confirm)
    return await _judge(chosen, ranked, sweet_spot, config.allow_code)


async def _judge(
    problems: Sequence[Problem], ranked: Ranked, sweet_spot: Span, allow_code: bool
) -> CheckedNeighborhoods:
    from porism.engine import replay

    golds = await _golds(problems)
    with Store(Path(ranked.run), write=False) as store:
        _, method = stored_plan(store)
        async with Verifier(allow_code=allow_code) as verifier:
            seen = await replay(store, verifier, problems, [method])
        tokens, rollouts = Counter[tuple[str, str | None]](), Counter[tuple[str, str | None]]()
        for row in store.rows.values():
            where = (row.cell.problem, row.cell.neighbor)
            tokens[where] += row.usage.completion
            rollouts[where] += 1
    found = []
    for problem, ranking in zip(problems, ranked.problems, strict=True):
        cost = {
            n.id: tokens[problem.id, n.id] / rollouts[problem.id, n.id]
            for n in problem.neighbors
            if rollouts[problem.id, n.id]
        }
        measured = rates(problem, method, seen.get((problem.id, method.name), []), ranking, cost)
        found.append(check(problem, texts(problem, golds[problem.id]), measured, sweet_spot=sweet_spot))
    return CheckedNeighborhoods(
        problems=tuple(found),
        run=ranked.run,
        usage=ranked.usage,
        warnings=ranked.warnings,
        stopped=ranked.stopped,
        exit_code=ranked.exit_code,
    )


async def _golds(problems: Sequence[Problem]) -> dict[str, dict[str, str | None]]:
    """Why each known answer cannot be checked against, by problem and neighbor id; None where it can."""
    async with Verifier() as verifier:
        return {p.id: {n.id: await _gold_fault(n, verifier) for n in p.neighbors} for p in problems}


async def _gold_fault(neighbor: Neighbor, verifier: Verifier) -> str | None:
    if is_custom(neighbor.answer_type):  # what its author's code accepts is the author's to say
        return None
    gold = Gold(neighbor.answer, neighbor.answer_type)
    own = extract(f"The answer is \\boxed{{{neighbor.answer}}}.").answer
    if own is None:
        return "its known answer cannot be found again in a box: braces that do not match?"
    verdict = await verifier.verify(own, gold)
    if verdict.kind != "correct":
        return f"the verifier does not take its known answer for equal to itself ({verdict.rule})"
    if neighbor.solution is not None and (end := extract(neighbor.solution).answer) is not None:
        verdict = await verifier.verify(end, gold)
        if verdict.kind == "wrong":
            return f"its solution ends in {end[:60]}, which is not its known answer"
    return None


__all__ = ["CheckedNeighborhoods", "check_problems", "check_run", "check_texts"]
