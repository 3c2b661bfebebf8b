"""How many neighbors and rollouts it takes to tell the best candidate apart, by simulation.

A design is a number of neighbors and of rollouts. Its pools are drawn from guessed solve rates or from those of a
pilot run, ranked, and put to the test that a ranking uses (stats.chance_gap). That test deals thousands of draws, so
it is run on a few pools of each design; for the others its threshold is scaled by the standard deviation of their
dealt rates, on which alone it depends but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from scipy.special import expit, logit

from porism.stats import chance_gap
from porism.types import Counts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Draw = Callable[
    [np.random.Generator, int], Floats
]  # neighbors -> true rates of shape (candidates, neighbors)

TESTED = 5  # pools of a design that are put to the test itself
RUNS = 300


class Design(Struct, frozen=True, kw_only=True):
    """What a design tells, as shares of simulated rankings.

    alone: the best candidate is first and told apart from every other. something: the first is told apart from some
    other. best_first: the best is first (ties count in part). rollouts: of every candidate and neighbor; total: of a
    problem, without the row that has no example.
    """

    neighbors: int
    rollouts: int
    total: int
    alone: float
    something: float
    best_first: float


class Power(Struct, frozen=True, kw_only=True):
    """Designs in the order of neighbors and rollouts, and the one with the fewest rollouts that reaches the target."""

    target: float
    runs: int
    designs: tuple[Design, ...]
    cheapest: Design | None
    message: str


def guess(best: float, others: float, candidates: int, *, spread: float = 0.5) -> Draw:
    """Pools in which one candidate solves neighbors at rate `best` and the rest at `others`, both for a middling one.

    spread: the standard deviation of the neighbors' difficulty in log odds, the same for all candidates.
    """
    odds = logit(np.clip([best, *[others] * (candidates - 1)], 1e-9, 1 - 1e-9))

    def draw(rng: np.random.Generator, neighbors: int) -> Floats:
        return np.asarray(expit(odds[:, None] + spread * rng.standard_normal(neighbors)[None, :]))

    return draw


def pilot(counts: Sequence[Sequence[Counts]]) -> Draw:
    """Pools like one that was run: counts by candidate and neighbor. Other neighbors are drawn from these.

    Observed rates spread wider than true ones, so they are drawn in to each neighbor's mean by the share of their
    variance that chance explains.
    """
    solved, decided = (
        np.array([[getattr(c, name) for c in row] for row in counts], dtype=np.float64)
        for name in ("correct", "decided")
    )
    rates = (solved + 0.5) / (decided + 1)
    mean = rates.mean(axis=0, keepdims=True)
    observed = solved / np.maximum(decided, 1)
    chance = float((mean * (1 - mean) / np.maximum(decided, 1)).mean())
    seen = float(observed.var(axis=0, ddof=1).mean())
    kept = max(0.0, 1 - chance / seen) if seen else 0.0
    rates = mean + kept * (rates - mean)

    def draw(rng: np.random.Generator, neighbors: int) -> Floats:
        return np.asarray(rates[:, rng.integers(rates.shape[1], size=neighbors)])

    return draw


def power(
    pools: Sequence[Draw],
    *,
    target: float,
    neighbors: Sequence[int],
    rollouts: Sequence[int],
    runs: int = RUNS,
    seed: int = 0,
) -> Power:
    """Every design, over pools of every kind in `pools`, `runs` of them for a design."""
    designs = tuple(_design(pools, j, n, runs, seed) for j in neighbors for n in rollouts)
    reached = [design for design in designs if design.alone >= target]
    cheapest = min(reached, key=lambda design: (design.total, design.neighbors), default=None)
    return Power(
        target=target, runs=runs, designs=designs, cheapest=cheapest, message=_message(target, cheapest)
    )


def _design(pools: Sequence[Draw], neighbors: int, rollouts: int, runs: int, seed: int) -> Design:
    rng = np.random.default_rng([seed, neighbors, rollouts])
    alone = something = first = 0.0
    sizes = []
    for draw in pools:
        each = -(-runs // len(pools))
        rates = np.stack([draw(rng, neighbors) for _ in range(each)])
        sizes.append(rates.shape[1])
        solved = rng.binomial(rollouts, rates)
        order = np.argsort(-solved.sum(axis=2) - rng.random(solved.shape[:2]) / 2, axis=1)
        true = rates.mean(axis=2)
        best = true >= true.max(axis=1, keepdims=True) - 1e-12
        right = np.take_along_axis(best, order, 1)[:, 0]
        solved = np.take_along_axis(solved, order[:, :, None], 1)
        apart = _apart(solved, rollouts, max(1, TESTED // len(pools)))
        alone += float((right & apart.all(axis=1)).mean()) / len(pools)
        something += float(apart.any(axis=1).mean()) / len(pools)
        first += float(right.mean()) / len(pools)
    return Design(
        neighbors=neighbors,
        rollouts=rollouts,
        total=round(neighbors * rollouts * float(np.mean(sizes))),
        alone=alone,
        something=something,
        best_first=first,
    )


def _apart(solved: Ints, rollouts: int, tested: int) -> NDArray[np.bool_]:
    """Whether each but the first candidate is told apart from it; candidates are in the order of their utilities."""
    utility = solved.mean(axis=2) / rollouts
    gap = utility[:, :1] - utility[:, 1:]
    every = _thresholds(solved, rollouts, tested)
    pairs = np.stack([solved[:, [0, i]] for i in range(1, solved.shape[1])], axis=1)
    flat = pairs.reshape(-1, 2, solved.shape[2])
    pair = _thresholds(flat, rollouts, tested).reshape(gap.shape)
    return np.asarray((gap + 1e-9 >= every[:, None]) & (gap + 1e-9 >= pair))


def _thresholds(solved: Ints, rollouts: int, tested: int) -> Floats:
    """The gap that chance_gap asks of each pool; exact for `tested` of them, scaled to the others."""
    rate = solved.mean(axis=1) / rollouts
    spread = np.sqrt((rate * (1 - rate)).sum(axis=1))
    ratios = []
    for i in np.linspace(0, len(solved) - 1, tested).astype(int):
        rows = [[Counts(correct=int(x), wrong=rollouts - int(x)) for x in row] for row in solved[i]]
        if spread[i] > 0:
            ratios.append(chance_gap(rows, str(i)) / spread[i])
    ratio = float(np.median(ratios)) if ratios else np.inf
    return np.where(spread > 0, ratio * np.maximum(spread, 1e-300), np.inf)


def _message(target: float, cheapest: Design | None) -> str:
    if cheapest is None:
        return f"No design here tells the best candidate apart {target:.0%} of the time: the differences are too small."
    many = f"{cheapest.neighbors} neighbor{'s' * (cheapest.neighbors > 1)} with {cheapest.rollouts} rollouts each"
    return (
        f"{many} tell the best candidate apart from all others {cheapest.alone:.0%} of the time, for "
        f"{cheapest.total:,} rollouts."
    )


__all__ = ["Design", "Draw", "Power", "guess", "pilot", "power"]
