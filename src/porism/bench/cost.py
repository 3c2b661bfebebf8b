"""What each method of a run has cost, as if it had run alone: work that several share counts for each."""

from __future__ import annotations

from collections.abc import Sequence

from porism.store import Store
from porism.types import Generate, Method, Problem, Usage


def works(method: Method, problems: Sequence[Problem]) -> set[str]:
    """The ids of all rollouts that the method plans at first."""
    return {ask.work.id for p in problems for ask in method.plan(p, []) if isinstance(ask.work, Generate)}


def cost(method: Method, problems: Sequence[Problem], store: Store) -> tuple[int, Usage]:
    """Stored rollouts and tokens of all that the method plans at first, whoever asked for them."""
    rows = [row for id in works(method, problems) if (row := store.rows.get(id)) is not None]
    return len(rows), Usage(
        sum(row.usage.prompt for row in rows),
        sum(row.usage.completion for row in rows),
        sum(row.usage.cached for row in rows),
        sum(row.usage.requests for row in rows),
        all(row.usage.counted for row in rows),
    )


__all__ = ["cost", "works"]
