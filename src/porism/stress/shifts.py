"""What a change of style does to a method's scores: how far copies move, and which wrong ones get above a right one.

A copy stands in its original's place, the others as they were. A method that reads mathematics and not manners
moves no copy by more than its own noise: two samples of the same candidate differ, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from msgspec import Struct

from porism.inference import t_interval
from porism.types import Candidate, Problem

Scores = Mapping[str, float | None]  # by candidate id


class Mean(Struct, frozen=True):
    """A mean over `n` with a 95 % t interval over problem groups; no interval with fewer than two groups."""

    value: float | None
    ci95: tuple[float, float] | None
    n: int


class Shift(Struct, frozen=True, kw_only=True):
    """What one style did. score, rank: copy minus original (a rank below 0 is a rise). rank_size: without its sign.

    lifted: of wrong candidates not above a given right one, the share whose copy is above it, over all such pairs.
    """

    style: str
    score: Mean
    rank: Mean
    rank_size: Mean
    lifted: Mean


class _Copy(NamedTuple):
    style: str
    group: str
    problem: Problem
    original: Candidate
    copy: Candidate


def shifts(problems: Sequence[Problem], scores: Mapping[str, Scores]) -> list[Shift]:
    """One record a style, in their order of appearance. scores: by problem id, then by candidate id."""
    found: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for copy in _copies(problems):
        values = scores.get(copy.problem.id, {})
        pool = {
            c.id: v
            for c in copy.problem.candidates
            if c.derived_from is None and (v := values.get(c.id)) is not None
        }
        old, new = pool.get(copy.original.id), values.get(copy.copy.id)
        if old is None or new is None:
            continue
        by = found.setdefault(copy.style, defaultdict(list))
        others = [value for id, value in pool.items() if id != copy.original.id]
        moved = _rank(new, others) - _rank(old, others)
        by["score"].append((copy.group, new - old))
        by["rank"].append((copy.group, moved))
        by["rank_size"].append((copy.group, abs(moved)))
        if copy.original.correct is False:
            rights = [pool[c.id] for c in copy.problem.candidates if c.correct and c.id in pool]
            by["lifted"] += [(copy.group, float(new > right)) for right in rights if old <= right]
    return [
        Shift(
            style=style,
            **{name: _mean(by.get(name, [])) for name in ("score", "rank", "rank_size", "lifted")},
        )
        for style, by in found.items()
    ]


def _copies(problems: Sequence[Problem]) -> Iterator[_Copy]:
    for problem in problems:
        by_id = {c.id: c for c in problem.candidates}
        for c in problem.candidates:
            style = (c.metadata or {}).get("style")
            if style is not None and c.derived_from in by_id:
                yield _Copy(str(style), problem.group or problem.id, problem, by_id[c.derived_from], c)


def _rank(value: float, others: Sequence[float]) -> float:
    """The expected rank over a random order of those that tie."""
    return 1 + sum(o > value for o in others) + sum(o == value for o in others) / 2


def _mean(found: Sequence[tuple[str, float]]) -> Mean:
    """The mean over groups of each group's mean."""
    groups: dict[str, list[float]] = defaultdict(list)
    for group, value in found:
        groups[group].append(value)
    values = [mean(own) for own in groups.values()]
    return Mean(mean(values) if values else None, t_interval(values), len(found))


__all__ = ["Mean", "Scores", "Shift", "shifts"]
