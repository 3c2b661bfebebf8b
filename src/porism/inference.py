"""Statistics over groups of problems: intervals of means, paired tests, what a comparison could have shown.

Problems of one group (variants of an original, a family) rise and fall together, so the group is the unit:
everything here takes one number a group, and resamples or flips whole groups. Values between known limits,
as all metrics are, get an interval that knows the limits: plain t intervals have no width where all groups
agree, and percentile bootstraps undercover at a dozen groups. benchmarks/intervals.py measures them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import inf, isnan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from porism.stats import LEVEL, limits

Floats = NDArray[np.float64]
Span = tuple[float, float]

DRAWS = 2_000
FLIPS = 20_000
EXACT_SUMS = 2**16  # some 20 ms of work; 17 groups reach it only if all their differences differ
POWER = 0.8


def mean_limits(
    values: Any, *, low: float = 0.0, high: float = 1.0, level: float = LEVEL
) -> tuple[Floats, Floats]:
    """Limits (low, high) of the mean over the last axis, for values between `low` and `high`.

    A share's limits at the effective number of groups: that number m for which a share with this mean
    would have the variance seen, times (z / t)^2 for the degrees of freedom (Korn and Graubard 1998, with
    the limits of stats.limits in place of Clopper and Pearson's). Where the mean is far from the edges or m is
    large these are t limits; at an edge they end there. Groups that all agree count as that many yes-or-no
    outcomes, so agreement of a few is never certainty. One group alone says nothing: (low, high).
    """
    from scipy.special import ndtri, stdtrit

    share = np.clip((np.asarray(values, dtype=np.float64) - low) / (high - low), 0.0, 1.0)
    groups = share.shape[-1]
    if groups < 2:
        return np.full(share.shape[:-1], low), np.full(share.shape[:-1], high)
    mean, variance = share.mean(axis=-1), share.var(axis=-1, ddof=1)
    mean = np.where(mean < 1e-12, 0.0, np.where(mean > 1 - 1e-12, 1.0, mean))  # rounding of sums
    spread = variance > 1e-12
    effective = np.where(spread, groups * mean * (1 - mean) / np.where(spread, variance, 1.0), groups)
    effective = effective * (ndtri(1 - level / 2) / stdtrit(groups - 1, 1 - level / 2)) ** 2
    down, up = limits(effective * mean, effective, level)
    # `limits` knows an outcome of none or all by exact comparison, which the product above may miss.
    edge = level ** (1 / effective)
    down = np.where(mean == 1, edge, np.where(mean == 0, 0.0, np.minimum(down, mean)))
    up = np.where(mean == 0, 1 - edge, np.where(mean == 1, 1.0, np.maximum(up, mean)))
    return low + (high - low) * down, low + (high - low) * up


def mean_interval(
    values: Sequence[float], *, low: float = 0.0, high: float = 1.0, level: float = LEVEL
) -> Span | None:
    """mean_limits of one sample as two numbers; None for fewer than two groups."""
    if len(values) < 2:
        return None
    down, up = mean_limits(values, low=low, high=high, level=level)
    return float(down), float(up)


def t_interval(values: Sequence[float], *, level: float = LEVEL) -> Span | None:
    """Student's interval of the mean, for values without limits; None for fewer than two groups."""
    from scipy.special import stdtrit

    if len(values) < 2:
        return None
    x = np.asarray(values, dtype=np.float64)
    half = float(stdtrit(len(x) - 1, 1 - level / 2) * x.std(ddof=1) / sqrt(len(x)))
    return float(x.mean()) - half, float(x.mean()) + half


def resample(groups: int, *, draws: int = DRAWS, seed: int = 0) -> NDArray[np.int64]:
    """How often each group is drawn in each bootstrap sample of whole groups: shape (draws, groups)."""
    rng = np.random.default_rng([seed, groups])
    return rng.multinomial(groups, np.full(groups, 1 / groups), size=draws)


def bootstrap_t(
    values: Sequence[float], *, draws: int = DRAWS, seed: int = 0, level: float = LEVEL
) -> Span | None:
    """The bootstrap-t interval of the mean (Efron 1982): t's quantiles taken from resampled groups.

    For skewed values without limits, such as a log loss. A limit is infinite where too many samples have no
    spread (mostly equal values). None for fewer than two groups.
    """
    if len(values) < 2:
        return None
    x = np.asarray(values, dtype=np.float64)
    n, mean = len(x), x.mean()
    error = x.std(ddof=1) / sqrt(n)
    if error <= 1e-12 * max(1.0, abs(float(mean))):
        return float(mean), float(mean)
    counts = resample(n, draws=draws, seed=seed)
    shift = counts @ (x - mean) / n
    variance = np.maximum(counts @ (x - mean) ** 2 / n - shift**2, 0) * n / (n - 1)
    errors = np.sqrt(variance / n)
    flat = errors <= 1e-9 * error
    t = shift / np.where(flat, 1.0, errors)
    t[flat] = np.where(np.abs(shift[flat]) <= 1e-9 * error, 0.0, np.copysign(inf, shift[flat]))
    least, most = np.quantile(t, [level / 2, 1 - level / 2], method="inverted_cdf")
    return float(mean - most * error), float(mean - least * error)


def sign_flip(differences: Sequence[float], *, draws: int = FLIPS, seed: int = 0) -> float:
    """The two-sided p value of a mean difference of zero, if each group's difference may as well be turned.

    Exact wherever the flipped sums can be counted: always up to 16 groups, and far beyond for metrics with
    few values; else from `draws` random flips, (1 + as extreme) / (1 + draws) (Phipson and Smyth 2010).
    Groups without a difference say nothing either way. 1 where there is no difference at all.
    """
    x = np.asarray(differences, dtype=np.float64)
    x = x[np.abs(x) > 1e-12]
    if not len(x):
        return 1.0
    x = x / np.abs(x).max()
    seen = abs(float(x.sum())) - 1e-9
    sums: Floats = np.zeros(1)
    weights: Floats = np.ones(1)
    for value in x:
        both = np.round(np.concatenate([sums + value, sums - value]), 11)
        sums, place = np.unique(both, return_inverse=True)
        weights = np.bincount(place, np.tile(weights / 2, 2)).astype(np.float64)
        if len(sums) > EXACT_SUMS:
            break
    else:
        return min(1.0, float(weights[np.abs(sums) >= seen].sum()))
    rng = np.random.default_rng([seed, len(x)])
    flipped = (2 * rng.integers(0, 2, (draws, len(x))) - 1) @ x
    return (1 + int((np.abs(flipped) >= seen).sum())) / (1 + draws)


def holm(ps: Sequence[float]) -> list[float]:
    """Adjusted p values in the given order: each below .05 holds at 5 % for the whole family (Holm 1979)."""
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    steps = accumulate(((len(ps) - k) * ps[i] for k, i in enumerate(order)), max)
    adjusted = [1.0] * len(ps)
    for i, p in zip(order, steps, strict=True):
        adjusted[i] = min(1.0, p)
    return adjusted


def power(difference: float, sd: float, groups: int, *, level: float = LEVEL) -> float:
    """The chance that the sign-flip test over so many groups finds a true mean difference.

    sd: the standard deviation of the groups' differences. By the noncentral t distribution, as the paired t test,
    which the flips follow closely; 0 for groups so few that no flip is rare: 5 at most for a level of .05.
    """
    from scipy.special import nctdtr, stdtrit

    if not can_find(groups, level):
        return 0.0
    if sd <= 0:
        return 1.0 if difference else 0.0
    critical = float(stdtrit(groups - 1, 1 - level / 2))
    shift = abs(difference) / sd * sqrt(groups)
    # The distribution function is nan where it is too small for its series.
    below, wrong_side = (
        0.0 if isnan(p) else float(p) for p in nctdtr(groups - 1, shift, [critical, -critical])
    )
    return 1 - below + wrong_side


def can_find(groups: int, level: float = LEVEL) -> bool:
    """Whether so many groups can give a p value of that level at all: the least is 2 / 2^groups."""
    return 2.0 ** (1 - groups) <= level


def detectable(sd: float, groups: int, *, chance: float = POWER, level: float = LEVEL) -> float | None:
    """The smallest true difference that would be found with that chance; None where nothing tells.

    It is a statement about the size of the experiment, from its spread alone: whether the difference at
    hand was found plays no part. None for groups too few to find anything, or without any spread.
    """
    if sd <= 0 or not can_find(groups, level):
        return None
    low, high = 0.0, 1.0
    while power(high * sd, sd, groups, level=level) < chance:
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle * sd, sd, groups, level=level) >= chance else (middle, high)
    return high * sd


def groups_needed(difference: float, sd: float, *, chance: float = POWER, level: float = LEVEL) -> int | None:
    """How many groups find a true mean difference with that chance; None for a difference of zero."""
    if not difference:
        return None
    low, high = 0, 1
    while power(difference, sd, high, level=level) < chance:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = power(difference, sd, middle, level=level) >= chance
        low, high = (low, middle) if enough else (middle, high)
    return high


__all__ = [
    "DRAWS",
    "FLIPS",
    "POWER",
    "Span",
    "bootstrap_t",
    "can_find",
    "detectable",
    "groups_needed",
    "holm",
    "mean_interval",
    "mean_limits",
    "power",
    "resample",
    "sign_flip",
    "t_interval",
]
