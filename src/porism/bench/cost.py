"""What each method of a run has cost, as if it had run alone: work that several share counts for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from porism.store import Store, total
from porism.types import Generate, Method, Observation, Problem, Usage


def works(method: Method, problems: Sequence[Problem]) -> set[str]:
    """The ids of all rollouts that the method plans at first."""
    return {ask.work.id for p in problems for ask in method.plan(p, []) if isinstance(ask.work, Generate)}


def cost(
    method: Method,
    problems: Sequence[Problem],
    seen: Mapping[tuple[str, str], list[Observation]],
    store: Store,
) -> tuple[int, Usage]:
    """Stored rollouts and tokens of all that the method asked, whoever asked for them first.

    Later rounds may hang on what was seen: what could not be read is asked once more, and an allocation plans round by
    round.
    """
    ids = {id for p in problems for id in _asked(method, p, seen.get((p.id, method.name), []))}
    rows = [row for id in ids if (row := store.rows.get(id)) is not None]
    return len(rows), total([row.usage for row in rows])


def _asked(method: Method, problem: Problem, seen: list[Observation]) -> set[str]:
    ids: set[str] = set()
    given: list[Observation] = []
    while asks := method.plan(problem, given):
        fresh = {ask.work.id for ask in asks if isinstance(ask.work, Generate)} - ids
        if not fresh:
            break
        ids |= fresh
        rounds = {ask.cell.round for ask in asks}
        given = given + [o for o in seen if o.cell.round in rounds]
    return ids


__all__ = ["cost", "works"]
