"""Metrics over many pools, with intervals.

The mean has three steps: over the variants of a problem, over the problems of a group, over groups. So each
group weighs the same, however many variants it came with, and intervals and tests take one number a group.
A problem counts for a metric if the metric is defined on it; the others are dropped and counted, never
scored 0 or 1: a pool without a wrong candidate would give every method a perfect score.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from msgspec import Struct

from porism.metrics.formulas import BY_LEVEL, METRICS, Sides, chance, check, measure
from porism.metrics.pools import Human, Pool, averaged, by_problem, label

Estimand = Literal["rank-then-average", "average-then-rank"]
Number = Fraction | float
Span = tuple[float, float]


class Estimate(Struct, frozen=True, kw_only=True):
    """A metric's mean over groups; value is None where no problem counts, ci95 where fewer than two groups do.

    n: problems that count. dropped: problems left out because the metric is not defined on them (only right or only
    wrong candidates; for human_win: no human solution or no wrong candidate). uneven: problems left out because
    their rollouts were uneven. chance: what a blind order would get on the same pools.
    """

    value: float | None
    ci95: Span | None
    n: int
    groups: int
    dropped: int
    uneven: int
    chance: float | None


class Evaluation(Struct, frozen=True, kw_only=True):
    """All metrics of one method, what was chosen, and the candidates that no metric saw (summed over pools)."""

    metrics: dict[str, Estimate]
    estimand: Estimand
    human: Human
    unscored: int
    unlabelled: int


class Values(NamedTuple):
    """A metric's value of each problem by group, the same for a blind order, and how many had none."""

    by_group: dict[str, dict[str, Number]]
    blind: dict[str, dict[str, Number]]
    dropped: int
    uneven: int


def evaluate(
    pools: Sequence[Pool],
    *,
    metrics: Sequence[str] = METRICS,
    estimand: Estimand = "rank-then-average",
    human: Human = "right",
) -> Evaluation:
    """Each metric's mean over groups, with a 95 % interval (inference.mean_limits).

    estimand matters where problems come in variants: "rank-then-average" ranks by the score on each variant alone
    and averages the metric, as a user with one neighbor would fare; "average-then-rank" averages the scores and
    ranks once, as a user with all the neighbors would. human: "right" counts the human solution among the
    right ones, as the paper's pools do; "apart" keeps it for human_win only. InputError for an unknown metric,
    or pools that contradict each other.
    """
    ready = prepared(pools, estimand=estimand, human=human)
    seen = [label(p, human) for p in pools]
    return Evaluation(
        metrics={metric: _estimate(values(ready, metric)) for metric in metrics},
        estimand=estimand,
        human=human,
        unscored=sum(found.unscored for found in seen),
        unlabelled=sum(found.unlabelled for found in seen),
    )


class Ready(NamedTuple):
    """A problem for any metric: the two sides of each of its variants."""

    problem: str
    group: str
    even: bool
    variants: list[Sides]


def prepared(
    pools: Sequence[Pool], *, estimand: Estimand = "rank-then-average", human: Human = "right"
) -> list[Ready]:
    """The pools by problem and label, checked, and averaged over variants if the estimand says so."""
    kept = averaged(pools) if estimand == "average-then-rank" else pools
    return [
        Ready(problem, own[0].group, all(p.even for p in own), [label(p, human).sides for p in own])
        for problem, own in by_problem(kept).items()
    ]


def values(problems: Sequence[Ready], metric: str) -> Values:
    """The metric's value of each problem on which it is defined, the mean over its variants."""
    check(metric)
    by_group: dict[str, dict[str, Number]] = {}
    blind: dict[str, dict[str, Number]] = {}
    dropped = uneven = 0
    for problem, group, even, variants in problems:
        if metric in BY_LEVEL and not even:
            uneven += 1
            continue
        own = [found for sides in variants if (found := measure(metric, sides)) is not None]
        if not own:
            dropped += 1
            continue
        luck = [found for sides in variants if (found := chance(metric, sides)) is not None]
        by_group.setdefault(group, {})[problem] = mean(own)
        blind.setdefault(group, {})[problem] = mean(luck)
    return Values(by_group, blind, dropped, uneven)


def _estimate(found: Values) -> Estimate:
    from porism.inference import mean_interval

    means = [float(mean(list(own.values()))) for own in found.by_group.values()]
    blind = [float(mean(list(own.values()))) for own in found.blind.values()]
    return Estimate(
        value=sum(means) / len(means) if means else None,
        ci95=mean_interval(means),
        n=sum(len(own) for own in found.by_group.values()),
        groups=len(means),
        dropped=found.dropped,
        uneven=found.uneven,
        chance=sum(blind) / len(blind) if blind else None,
    )


def mean(found: Sequence[Number]) -> Number:
    """The mean, exact as long as the numbers are."""
    return sum(found[1:], found[0]) / len(found)


__all__ = [
    "Estimand",
    "Estimate",
    "Evaluation",
    "Ready",
    "Values",
    "evaluate",
    "mean",
    "prepared",
    "values",
]
