"""How often the interval of a utility holds the true value, and how often a lead is claimed where there is none.

Simulated with known rates: python benchmarks/coverage.py. The first table is the coverage of the 95 % interval,
its least value over the rates in each setting, and its mean width against the same combination of
Clopper-Pearson limits. The second is the share of runs in which some candidate is said to be ahead of some other
although all are equally good, and the share in which one of two equally good best ones is said to be ahead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from porism.stats import LEVEL, chance_gap, mover
from porism.types import Counts

RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
NEIGHBORS = (1, 2, 3, 4, 5)
ROLLOUTS = (4, 8, 16, 32, 64)
RUNS = 2_000


class Coverage(NamedTuple):
    """One setting: the least coverage over all rates, the rates it fell on, mean widths, points left outside."""

    neighbors: int
    rollouts: int
    least: float
    where: tuple[float, ...]
    width: float
    exact_width: float
    outside: int


def patterns(neighbors: int) -> Iterator[tuple[float, ...]]:
    """True rates of the neighbors: all the same, some of them zero and the others not, and spread out."""
    for rate in RATES:
        yield (rate,) * neighbors
        for zeros in range(1, neighbors):
            if rate:
                yield (0.0,) * zeros + (rate,) * (neighbors - zeros)
    if neighbors > 1:
        yield tuple(float(r) for r in np.linspace(0, 0.5, neighbors))


def coverage(neighbors: int, rollouts: int, *, runs: int = RUNS, seed: int = 1) -> Coverage:
    """Simulate one setting over every pattern of rates."""
    rng = np.random.default_rng([seed, neighbors, rollouts])
    least, outside = 1.0, 0
    where: tuple[float, ...] = ()
    widths, exact_widths = [], []
    x = np.arange(rollouts + 1)
    down = x / rollouts - np.where(x == 0, 0, betaincinv(np.maximum(x, 0.5), rollouts - x + 1, LEVEL / 2))
    top = np.where(x == rollouts, 1, betaincinv(x + 1, np.maximum(rollouts - x, 0.5), 1 - LEVEL / 2))
    up = top - x / rollouts
    for rates in patterns(neighbors):
        solved = rng.binomial(rollouts, rates, (runs, neighbors))
        point, low, _, high = mover(solved, solved, np.full(solved.shape, rollouts))
        truth = float(np.mean(rates))
        covered = float(np.mean((low <= truth + 1e-12) & (truth <= high + 1e-12)))
        outside += int(np.sum((point < low) | (point > high)))
        widths.append(float(np.mean(high - low)))
        sides = np.sqrt((down[solved] ** 2).sum(axis=1)) + np.sqrt((up[solved] ** 2).sum(axis=1))
        exact_widths.append(float(np.mean(sides)) / neighbors)
        if covered < least:
            least, where = covered, rates
    width, exact = float(np.mean(widths)), float(np.mean(exact_widths))
    return Coverage(neighbors, rollouts, least, where, width, exact, outside)


def claims(rates: NDArray[np.float64], rollouts: int, *, runs: int, seed: int = 1) -> tuple[float, float]:
    """Shares of runs in which the first is told apart from some other, and from every other.

    rates: candidates x neighbors.
    """
    rng = np.random.default_rng([seed, rollouts, *rates.shape])
    some = every = 0
    for run in range(runs):
        solved = rng.binomial(rollouts, rates)
        rows = [[Counts(correct=int(x), wrong=rollouts - int(x)) for x in row] for row in solved]
        point = solved.mean(axis=1) / rollouts
        first = int(point.argmax())
        gap = chance_gap(rows, str(run))
        apart = [
            i
            for i in range(len(rows))
            if i != first
            and point[first] - point[i] + 1e-9 >= gap
            and point[first] - point[i] + 1e-9 >= chance_gap([rows[first], rows[i]], str(run))
        ]
        some += bool(apart)
        every += len(apart) == len(rows) - 1
    return some / runs, every / runs


def main() -> None:
    """Print both tables."""
    print("neighbors rollouts  least coverage  at rates                   width  Clopper-Pearson")
    for neighbors in NEIGHBORS:
        for rollouts in ROLLOUTS:
            c = coverage(neighbors, rollouts)
            at = " ".join(f"{r:.2f}" for r in c.where)
            row = f"{neighbors:9} {rollouts:8} {c.least:15.3f}  {at:25} {c.width:6.3f} {c.exact_width:16.3f}"
            print(row + (f"  {c.outside} points outside" if c.outside else ""))
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print(
        f"\nFalse claims of a lead, {runs} runs each (n = 8, three neighbors): above some other, above all others"
    )
    for count in (2, 5, 10):
        for rate in (0.05, 0.2, 0.5):
            some, every = claims(np.full((count, 3), rate), 8, runs=runs)
            print(f"{count:3} equal candidates at {rate:.2f}: {some:.3f} {every:.3f}")
    for count in (5, 10, 20):
        rates = np.zeros((count, 3))
        rates[:2] = 0.5
        print(
            f"two equal at 0.50 among {count}, the rest at 0: above all {claims(rates, 8, runs=runs)[1]:.3f}"
        )


if __name__ == "__main__":
    main()
