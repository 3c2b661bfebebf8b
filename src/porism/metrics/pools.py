"""Pools: the scores that one method gave the candidates of one problem, beside their labels.

A Pool is plain data and knows nothing of runs. Scores decide ties by exact value: give Fractions or integers (counts
solved, sums of ratings) where there are any. A float stands for exactly the binary number it is, so two floats
that should be equal but were added up in another order are no tie: round such scores before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import isfinite, lcm
from typing import Literal

from msgspec import Struct

from porism.errors import InputError
from porism.metrics.formulas import Sides
from porism.types import Counts, Problem, Score

Value = Fraction | int | float
Human = Literal["right", "apart"]


class Scored(Struct, frozen=True, kw_only=True):
    """A candidate: its score (None: the method gave none) and its label (None: nobody knows).

    human: it is the human solution, taken as right unless its label says wrong.
    """

    id: str
    score: Value | None
    correct: bool | None
    human: bool = False


class Pool(Struct, frozen=True, kw_only=True):
    """The candidates of one problem under one method, higher scores better.

    group: what is resampled together. variant: where one problem is scored on several variants (neighbors)
    apart, which of them this pool is for. even: every candidate got the same rollouts; an adaptive run that
    starves some has their scores too rough for anything but the top of the order.
    """

    problem: str
    group: str
    candidates: tuple[Scored, ...]
    variant: str = ""
    even: bool = True


class Labelled(Struct, frozen=True):
    """The two sides of a pool, and how many candidates are on none: without a score, without a label."""

    sides: Sides
    unscored: int
    unlabelled: int


def pool(
    problem: Problem, scores: Mapping[str, Value | None], *, variant: str = "", even: bool = True
) -> Pool:
    """The pool of a problem's own candidates and labels; a candidate that `scores` lacks has no score."""
    found = tuple(
        Scored(id=c.id, score=scores.get(c.id), correct=c.correct, human=c.human) for c in problem.candidates
    )
    return Pool(
        problem=problem.id, group=problem.group or problem.id, candidates=found, variant=variant, even=even
    )


def exact(score: Score) -> Value | None:
    """A score's value from its counts, so that ties are ties: the mean over cells of correct / decided.

    The plain value where the method counts nothing.
    """
    rates = [Fraction(c.correct, c.decided) for c in score.cells.values() if c.decided]
    return sum(rates, Fraction()) / len(rates) if rates else score.value


def by_neighbor(problem: Problem, scores: Mapping[str, Score], *, even: bool = True) -> list[Pool]:
    """One pool a neighbor, from the counts of each (solver, neighbor) cell; equal weight to each solver.

    Scores without counts have no parts: then it is the one pool of their values.
    """
    if not any(score.cells for score in scores.values()):
        return [pool(problem, {i: score.value for i, score in scores.items()}, even=even)]
    longest = sorted((n.id for n in problem.neighbors), key=len, reverse=True)  # an id may end in another
    cells: dict[str, dict[str, dict[str, Counts]]] = {
        n.id: {i: {} for i in scores} for n in problem.neighbors
    }
    for i, score in scores.items():
        for name, counts in score.cells.items():
            neighbor = next((n for n in longest if name.endswith(f"/{n}")), None)
            if neighbor is None:
                raise InputError(
                    f"problem {problem.id!r}, candidate {i!r}: cell {name!r} names no neighbor of it"
                )
            cells[neighbor][i][name] = counts
    return [
        pool(
            problem,
            {i: exact(Score(value=None, low=0.0, high=1.0, cells=own)) for i, own in by_candidate.items()},
            variant=neighbor,
            even=even,
        )
        for neighbor, by_candidate in cells.items()
    ]


def averaged(pools: Sequence[Pool]) -> list[Pool]:
    """One pool a problem, each candidate with the mean of its scores over the problem's variants.

    A candidate that lacks a score on some variant has none: means over different variants do not compare.
    """
    found = []
    for variants in by_problem(pools).values():
        first = variants[0]
        if len(variants) == 1:
            found.append(first)
            continue
        scores: dict[str, list[Value | None]] = {c.id: [] for c in first.candidates}
        for variant in variants:
            if {c.id for c in variant.candidates} != scores.keys():
                raise InputError(
                    f"problem {first.problem!r}: variants {first.variant!r} and {variant.variant!r} "
                    "have different candidates, so their scores cannot be averaged"
                )
            for c in variant.candidates:
                scores[c.id].append(c.score)
        merged = tuple(
            Scored(id=c.id, score=_mean(scores[c.id]), correct=c.correct, human=c.human)
            for c in first.candidates
        )
        found.append(
            Pool(
                problem=first.problem,
                group=first.group,
                candidates=merged,
                even=all(v.even for v in variants),
            )
        )
    return found


def by_problem(pools: Iterable[Pool]) -> dict[str, list[Pool]]:
    """The pools of each problem, in order of first appearance.

    InputError where a problem has the same variant twice or two groups, where a candidate stands twice in a
    pool, or where a score is no finite number.
    """
    found: dict[str, list[Pool]] = {}
    for p in pools:
        others = found.setdefault(p.problem, [])
        if others and others[0].group != p.group:
            raise InputError(f"problem {p.problem!r} is in two groups: {others[0].group!r} and {p.group!r}")
        if any(other.variant == p.variant for other in others):
            raise InputError(f"problem {p.problem!r} has two pools for variant {p.variant!r}")
        if len({c.id for c in p.candidates}) < len(p.candidates):
            raise InputError(f"problem {p.problem!r}: a candidate stands twice in its pool")
        for c in p.candidates:
            if isinstance(c.score, float) and not isfinite(c.score):
                raise InputError(
                    f"problem {p.problem!r}, candidate {c.id!r}: the score {c.score} is no number"
                )
        others.append(p)
    return found


def label(pool: Pool, human: Human) -> Labelled:
    """A pool by its labels. human: whether the human solution counts among the right ones or stands apart."""
    right: list[int] = []
    wrong: list[int] = []
    people: list[int] = []
    unscored = unlabelled = 0
    known = {c.id: Fraction(c.score) for c in pool.candidates if c.score is not None}
    unit = lcm(*(score.denominator for score in known.values()))  # integers compare far faster than fractions
    for c in pool.candidates:
        if c.id not in known:
            unscored += 1
            continue
        score = int(known[c.id] * unit)
        if c.human and c.correct is not False:
            people.append(score)
            if human == "right":
                right.append(score)
        elif c.correct is None:
            unlabelled += 1
        else:
            (right if c.correct else wrong).append(score)
    return Labelled(Sides(right, wrong, people), unscored, unlabelled)


def _mean(scores: Sequence[Value | None]) -> Fraction | None:
    known = [Fraction(s) for s in scores if s is not None]
    return sum(known, Fraction()) / len(known) if len(known) == len(scores) else None


__all__ = [
    "Human",
    "Labelled",
    "Pool",
    "Scored",
    "Value",
    "averaged",
    "by_neighbor",
    "by_problem",
    "exact",
    "label",
    "pool",
]
