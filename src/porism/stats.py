"""Statistics of solve rates: intervals, chances of being highest, what can be told apart.

A utility is the mean of a few binomial rates, one a cell (a solver on a neighbor), each from few rollouts
and often from none solved at all. So its interval is built from limits of the single rates, which know
what zero of eight means, and combined by MOVER (square and add; Zou and Donner 2008): averaged posteriors
look natural and miss a true rate of zero always. All of it is conditional on the neighbors at hand.

Values that decide order are Fractions of exact counts. Arrays have cells as their last axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from math import lcm
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from porism.types import Counts

Floats = NDArray[np.float64]

LEVEL = 0.05  # an interval misses at most about this share of the time
GRID = 256  # steps of a rate between 0 and 1
TAIL = 100  # draws of chance that lie beyond a level: 2,000 draws for 5 %


class Interval(NamedTuple):
    """A value and its limits. worst, best: the value if all that is open were wrong, or right.

    low belongs to worst and high to best, so the interval holds every way the open rollouts may turn out.
    """

    value: Fraction | None
    low: float
    high: float
    worst: float
    best: float


def limits(solved: Any, rollouts: Any, level: float = LEVEL) -> tuple[Floats, Floats]:
    """Limits (low, high) of a binomial rate; (0, 1) without rollouts. Arrays broadcast.

    Jeffreys limits, changed near the edges where they cover far too little (Brown, Cai and DasGupta
    2001): one solved reaches down to 0, and none solved, whose interval has one side only, reaches up to
    the exact one-sided limit 1 - level^(1/n) (the rule of three). The same from the other end.
    """
    from scipy.special import betaincinv

    x, n = np.broadcast_arrays(np.asarray(solved, dtype=np.float64), np.asarray(rollouts, dtype=np.float64))
    low = np.asarray(betaincinv(x + 0.5, n - x + 0.5, level / 2), dtype=np.float64)
    high = np.asarray(betaincinv(x + 0.5, n - x + 0.5, 1 - level / 2), dtype=np.float64)
    edge = level ** (1 / np.maximum(n, 1))
    low = np.where(x == n, edge, np.where(x <= 1, 0.0, low))
    high = np.where(x == 0, 1 - edge, np.where(x >= n - 1, 1.0, high))
    return np.where((n == 0) | (x == 0), 0.0, low), np.where((n == 0) | (x == n), 1.0, high)


def mover(
    least: Any, most: Any, rollouts: Any, level: float = LEVEL
) -> tuple[Floats, Floats, Floats, Floats]:
    """(worst, low, best, high) of the mean rate over the last axis.

    least and most: rollouts solved if all the open ones were wrong, or right. A cell without rollouts
    may be anything: 0 in worst, 1 in best.
    """
    least, most, n = (np.asarray(a, dtype=np.float64) for a in (least, most, rollouts))
    per = np.maximum(n, 1)
    lower, upper = least / per, np.where(n == 0, 1.0, most / per)
    down = lower - limits(least, n, level)[0]
    up = limits(most, n, level)[1] - upper
    cells = n.shape[-1]
    worst, best = lower.mean(axis=-1), upper.mean(axis=-1)
    low = np.clip(worst - np.sqrt((down**2).sum(axis=-1)) / cells, 0.0, 1.0)
    high = np.clip(best + np.sqrt((up**2).sum(axis=-1)) / cells, 0.0, 1.0)
    return worst, low, best, high


def exact_mean(cells: Sequence[Counts]) -> Fraction | None:
    """The mean solve rate over cells with a decided rollout, equally weighted; None where there is none."""
    decided = [c for c in cells if c.decided]
    if not decided:
        return None
    unit = lcm(*(c.decided for c in decided))
    return Fraction(sum(c.correct * (unit // c.decided) for c in decided), unit * len(decided))


def mean_rate(cells: Sequence[Counts], level: float = LEVEL) -> Interval:
    """The mean solve rate over cells, equally weighted, with its interval.

    The value is the mean over cells with a decided rollout (None if there is none). Undecided and
    missing rollouts, and cells with nothing decided, widen the limits instead.
    """
    if not cells:
        return Interval(None, 0.0, 1.0, 0.0, 1.0)
    least = [c.correct for c in cells]
    most = [c.correct + c.undecided + c.missing for c in cells]
    worst, low, best, high = mover(least, most, [c.total for c in cells], level)
    value = exact_mean(cells)
    if value is not None:  # the square root may end a rounding error inside the value
        low, high = np.minimum(low, float(value)), np.maximum(high, float(value))
    return Interval(value, float(low), float(high), float(worst), float(best))


def difference(a: Interval, b: Interval) -> Interval:
    """a minus b, for independent a and b (MOVER for a difference); limits within -1 .. 1."""
    value = None if a.value is None or b.value is None else a.value - b.value
    worst, best = a.worst - b.best, a.best - b.worst
    low = worst - float(np.hypot(a.worst - a.low, b.high - b.best))
    high = best + float(np.hypot(a.high - a.best, b.worst - b.low))
    return Interval(value, max(-1.0, low), min(1.0, high), worst, best)


def p_highest(rows: Sequence[Sequence[Counts]]) -> list[float]:
    """For each row, the posterior chance that its mean rate is the highest; they add up to 1.

    Rates are independent with Jeffreys priors, given these cells. By integration over a grid, not by draws: the
    chance that row i lies in a step of the grid and all others below it, who in the same step are spread evenly. Rows
    have equally many cells. Equal counts give equal chances, and the order of rows does not matter.
    """
    keys = [tuple(sorted((c.correct, c.decided) for c in row)) for row in rows]
    if not keys or not keys[0]:
        return [1 / len(keys) for _ in keys]
    kinds = sorted(set(keys))
    masses = np.stack([_sum_of_rates(kind) for kind in kinds])
    below = masses.cumsum(axis=1) - masses
    number = np.array([keys.count(kind) for kind in kinds])[:, None]
    found = np.zeros(len(kinds))
    for place, weight in zip(*_within_a_step(), strict=True):
        reached = np.clip(below + masses * place, 0.0, 1.0)
        own = reached ** (number - 1)
        upto = np.cumprod(np.vstack([np.ones(reached.shape[1]), (own * reached)[:-1]]), axis=0)
        after = np.cumprod(np.vstack([np.ones(reached.shape[1]), (own * reached)[:0:-1]]), axis=0)[::-1]
        found += weight * (masses * own * upto * after).sum(axis=1)
    chances = dict(zip(kinds, (found / (found @ number[:, 0])).tolist(), strict=True))
    return [chances[key] for key in keys]


@lru_cache(maxsize=4096)
def _rate(solved: int, decided: int) -> Floats:
    """The posterior mass of one rate in each step of the grid."""
    from scipy.special import betainc

    edges = np.linspace(0.0, 1.0, GRID + 1)
    return np.diff(np.asarray(betainc(0.5 + solved, 0.5 + decided - solved, edges), dtype=np.float64))


def _sum_of_rates(cells: Sequence[tuple[int, int]]) -> Floats:
    """The posterior mass of the sum of independent rates in each step of a grid with the same step."""
    size = len(cells) * GRID
    product = np.fft.rfft([_rate(*cell) for cell in cells], n=size, axis=1).prod(axis=0)
    return np.maximum(np.fft.irfft(product, n=size), 0.0)


@lru_cache(maxsize=1)
def _within_a_step() -> tuple[list[float], list[float]]:
    """Places in a step and their weights (Gauss-Legendre): exact for up to eight rows that tie in it."""
    places, weights = np.polynomial.legendre.leggauss(4)
    return ((places + 1) / 2).tolist(), (weights / 2).tolist()


def competition_ranks(values: Sequence[Fraction | None]) -> list[int | None]:
    """1 for the highest; equals share a rank and the next one counts them (1, 1, 3). None has no rank."""
    known = [v for v in values if v is not None]
    return [None if v is None else 1 + sum(w > v for w in known) for v in values]


def null_rates(rows: Sequence[Sequence[Counts]], seed: str, draws: int) -> Floats:
    """Mean rates of shape (draws, rows) as they would fall if all rows were equally good in every cell.

    Given how many decided rollouts each row has and how many were solved in each cell, the solved ones are
    dealt to the rows at random (the permutation distribution). Needs a decided rollout in every row.
    """
    sizes = np.array([[c.decided for c in row] for row in rows], dtype=np.int64)
    solved = np.array([sum(row[j].correct for row in rows) for j in range(sizes.shape[1])], dtype=np.int64)
    rng = _generator(seed, sizes.tolist(), solved.tolist())
    total = np.zeros((draws, len(rows)))
    for j, right in enumerate(solved):
        dealt = rng.multivariate_hypergeometric(sizes[:, j], right, size=draws, method="marginals")
        total += dealt / np.maximum(sizes[:, j], 1)
    return np.asarray(total / (sizes > 0).sum(axis=1), dtype=np.float64)


def rare(statistic: Floats, level: float = LEVEL) -> float:
    """The smallest drawn value that at most `level` of the draws reach; infinite where there is none."""
    values, counts = np.unique(np.round(statistic, 9), return_counts=True)
    reach = counts[::-1].cumsum()[::-1] / counts.sum()
    seldom = values[reach <= level]
    return float(seldom[0]) if seldom.size else float("inf")


def chance_gap(rows: Sequence[Sequence[Counts]], seed: str, level: float = LEVEL) -> float:
    """The gap between best and worst that equally good rows show at most `level` of the time.

    Infinite where chance alone may make any gap. Because it bounds the widest gap of all, every smaller
    claim (the best one above the second, or above any other) is wrong at most that often as well: picking
    the maximum is paid for, whatever the number of rows.
    """
    # Draws with equal margins are the same for any order of rows: sorting makes the stream so, too.
    ordered = sorted(rows, key=lambda row: [(c.decided, c.correct) for c in row])
    null = null_rates(ordered, seed, round(TAIL / level))
    return rare(null.max(axis=1) - null.min(axis=1), level)


def lift_gap(
    rows: Sequence[Sequence[Counts]], base: Sequence[Counts], seed: str, level: float = LEVEL
) -> float:
    """How far the best row gets above `base` at most `level` of the time when all are equally good."""
    ordered = sorted(rows, key=lambda row: [(c.decided, c.correct) for c in row])
    null = null_rates([base, *ordered], seed, round(TAIL / level))
    return rare(null[:, 1:].max(axis=1) - null[:, 0], level)


def _generator(*data: object) -> np.random.Generator:
    digest = blake2b(repr(data).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


__all__ = [
    "LEVEL",
    "Interval",
    "chance_gap",
    "competition_ranks",
    "difference",
    "exact_mean",
    "lift_gap",
    "limits",
    "mean_rate",
    "mover",
    "null_rates",
    "p_highest",
    "rare",
]
