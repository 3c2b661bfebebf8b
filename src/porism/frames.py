"""A run folder as polars frames: one row an observation, or one row a score, for whatever nobody thought of.

Both are read from the folder alone, cost no token, and work for runs of `rank` and of `run`. Columns have the same
names and types whatever is in the run, so frames of several runs can be put on top of each other. docs/analyses.md
lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from porism.blocking import blocking
from porism.types import Candidate, Method, Observation, Problem, Score

if TYPE_CHECKING:
    import polars as pl

    from porism.stored import Seen

What = Literal["observations", "scores"]

OBSERVATIONS: dict[str, type] = {
    **dict.fromkeys(("problem", "group", "candidate", "neighbor", "against", "method", "solver"), str),
    **dict.fromkeys(("round", "rollout"), int),
    **dict.fromkeys(("verdict", "rule", "answer"), str),
    "score": float,
    "truncated": bool,
    "text_key": str,
}
SCORES: dict[str, type] = {
    **dict.fromkeys(("problem", "group", "candidate", "method"), str),
    **dict.fromkeys(("score", "low", "high"), float),
    **dict.fromkeys(("solved", "decided", "rollouts"), int),
    "flags": list[str],
}
LABELS: dict[str, type] = {"correct": bool, "kind": str, "human": bool, "derived_from": str, "source": str}


def frame(path: Path, what: What = "observations") -> pl.DataFrame:
    """`observations` or `scores` of a run folder. Raises ConfigError or StoreError where it is not whole."""
    return observations(path) if what == "observations" else scores(path)


def observations(path: Path) -> pl.DataFrame:
    """One row an observation of a completed round: its cell, its verdict or score, and the candidate's label.

    A row without a candidate is one without an example; one without a neighbor either, where the method has
    neighbors, is the solver's own attempt at the question.
    """
    problems, _, seen = _read(path)
    by_id = {p.id: p for p in problems}
    rows = (
        row
        for (problem, _), found in seen.items()
        for row in _observation_rows(by_id[problem], found)
    )  # fmt: skip
    return _frame(rows, OBSERVATIONS | LABELS)


def scores(path: Path) -> pl.DataFrame:
    """One row a method and candidate: the score, its 95 % interval, the counts under it, and the label.

    solved, decided, rollouts: sums over cells, empty for methods that count nothing. A row without a candidate is the
    utility without an example.
    """
    problems, methods, seen = _read(path)
    rows = (
        row
        for problem in problems
        for method in methods
        for row in _score_rows(problem, method, seen.get((problem.id, method.name), []))
    )
    return _frame(rows, SCORES | LABELS)


def _read(path: Path) -> tuple[list[Problem], list[Method], Seen]:
    from porism.stored import observed

    return blocking(lambda: observed(path))


def _observation_rows(problem: Problem, found: Sequence[Observation]) -> Iterator[tuple[Any, ...]]:
    labels = {c.id: _label(c) for c in problem.candidates}
    for o in found:
        cell, verdict = o.cell, o.verdict
        yield (
            *(problem.id, problem.group or problem.id, cell.candidate, cell.neighbor, cell.against),
            *(cell.method, cell.solver, cell.round, o.rollout),
            *((verdict.kind, verdict.rule) if verdict else (None, None)),
            *(o.answer, o.score, o.truncated, o.text_key or None),
            *labels.get(cell.candidate or "", (None,) * len(LABELS)),
        )


def _score_rows(
    problem: Problem, method: Method, found: list[Observation]
) -> Iterator[tuple[Any, ...]]:  # fmt: skip
    from porism.methods.utility import Utility

    by_id = {c.id: c for c in problem.candidates}
    rows: list[tuple[str | None, Score]] = [*method.score(problem, found).items()]
    if isinstance(method, Utility) and (base := method.baseline(problem, found)) is not None:
        rows.append((None, base))
    for id, score in rows:
        cells = score.cells.values()
        sums = (sum(c.correct for c in cells), sum(c.decided for c in cells), sum(c.total for c in cells))
        yield (
            *(problem.id, problem.group or problem.id, id, method.name, score.value, score.low, score.high),
            *(sums if cells else (None,) * 3),
            list(score.flags),
            *(_label(by_id[id]) if id is not None else (None,) * len(LABELS)),
        )


def _label(c: Candidate) -> tuple[Any, ...]:
    return c.correct, c.kind, c.human, c.derived_from, c.source


def _frame(rows: Iterator[tuple[Any, ...]], columns: dict[str, type]) -> pl.DataFrame:
    import polars as pl

    types: dict[type, Any] = {
        str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean, list[str]: pl.List(pl.String)
    }  # fmt: skip
    schema = {name: types[kind] for name, kind in columns.items()}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


__all__ = ["LABELS", "OBSERVATIONS", "SCORES", "What", "frame", "observations", "scores"]
