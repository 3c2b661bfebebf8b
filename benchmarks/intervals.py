"""How often the intervals over groups hold the true mean, and how often tests find a difference that is not there.

Simulated with known truth: python benchmarks/intervals.py [SIMULATIONS]. Each line is one kind of group value at 12, 24
and 70 groups: coverage of the 95 % interval in percent and its mean width, for the interval that porism reports
(inference.mean_limits), Student's, and the bootstrap-t. Then the sign-flip test where there is no difference,
and the power that inference.power promises against the power that is measured.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from porism.inference import bootstrap_t, detectable, mean_limits, sign_flip, t_interval

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Floats]  # simulations x groups

GROUPS = (12, 24, 70)
RUNS = 2_000
BOOTSTRAP_RUNS = 400  # of them; the bootstrap-t costs a thousand times more


class Case(NamedTuple):
    """A kind of group value: how to draw it, its true mean (None: from a large sample), and its limits."""

    draw: Draw
    truth: float | None = None
    low: float = 0.0
    high: float = 1.0


def shares(rate: float) -> Case:
    """One problem a group, right or wrong: Acc@1, or a win."""
    return Case(lambda rng, runs, groups: (rng.random((runs, groups)) < rate).astype(float), rate)


def few(rate: float, problems: int, similar: float) -> Case:
    """The mean of a few right-or-wrong problems whose rate differs between groups (beta, `similar` = a + b)."""
    a, b = similar * rate, similar * (1 - rate)
    return Case(
        lambda rng, runs, groups: rng.binomial(problems, rng.beta(a, b, (runs, groups))) / float(problems),
        rate,
    )


def _auc(rng: np.random.Generator, runs: int, groups: int, effect: float, spread: float) -> Floats:
    shift = effect + spread * rng.standard_normal((runs, groups, 1))
    right = shift + rng.standard_normal((runs, groups, 5))
    wrong = rng.standard_normal((runs, groups, 5))
    return np.asarray((right[..., :, None] > wrong[..., None, :]).mean(axis=(-1, -2)), dtype=np.float64)


def auc(effect: float, spread: float = 0.6) -> Case:
    """AUC of 5 right and 5 wrong candidates whose scores differ by `effect`, which varies between groups."""
    return Case(lambda rng, runs, groups: _auc(rng, runs, groups, effect, spread))


def paired(effect: float, other: float) -> Case:
    """The difference in AUC of two methods."""

    def draw(rng: np.random.Generator, runs: int, groups: int) -> Floats:
        return _auc(rng, runs, groups, effect, 0.6) - _auc(rng, runs, groups, other, 0.6)

    return Case(draw, None if effect != other else 0.0, low=-1.0)


def swaps(better: float, worse: float) -> Case:
    """The difference in Acc@1 where the first method alone is right, or the second alone."""

    def draw(rng: np.random.Generator, runs: int, groups: int) -> Floats:
        u = rng.random((runs, groups))
        gained, lost = u < better, (u >= better) & (u < better + worse)
        return np.asarray(gained.astype(float) - lost.astype(float), dtype=np.float64)

    return Case(draw, better - worse, low=-1.0)


CASES = {
    "auc .50": auc(0.0),
    "auc .75": auc(1.03),
    "auc .90": auc(1.98),
    "acc .50": shares(0.5),
    "acc .75": shares(0.75),
    "acc .90": shares(0.9),
    "acc .97": shares(0.97),
    "acc .75, 2 problems a group": few(0.75, 2, 3.0),
    "acc .90, 2 problems a group": few(0.9, 2, 3.0),
    "auc difference 0": paired(0.5, 0.5),
    "auc difference .11": paired(1.0, 0.5),
    "acc difference 0": swaps(0.15, 0.15),
    "acc difference .20": swaps(0.3, 0.1),
}


class Coverage(NamedTuple):
    """Share of intervals that hold the truth, and their mean width."""

    covered: float
    width: float


def truth(case: Case) -> float:
    """The true mean, from 700,000 groups where no formula gives it."""
    if case.truth is not None:
        return case.truth
    rng = np.random.default_rng(99)
    return float(np.mean([case.draw(rng, 1_000, 70).mean() for _ in range(10)]))


def coverage(case: Case, groups: int, *, runs: int = RUNS, method: str = "porism", seed: int = 1) -> Coverage:
    """Simulate one kind of value; method: porism, t, or bootstrap-t (limits cut to what is possible)."""
    values = case.draw(np.random.default_rng([seed, groups]), runs, groups)
    if method == "porism":
        low, high = mean_limits(values, low=case.low, high=case.high)
    else:
        one = t_interval if method == "t" else bootstrap_t
        spans = np.array([one(list(row)) for row in values])
        low, high = np.clip(spans, case.low, case.high).T
    at = truth(case)
    held = (low <= at + 1e-9) & (at <= high + 1e-9)
    return Coverage(float(held.mean()), float((high - low).mean()))


def false_finds(case: Case, groups: int, *, runs: int = RUNS, seed: int = 2) -> float:
    """Share of simulations in which the sign-flip test finds a difference at 5 %."""
    values = case.draw(np.random.default_rng([seed, groups]), runs, groups)
    return float(np.mean([sign_flip(list(row), draws=2_000, seed=i) <= 0.05 for i, row in enumerate(values)]))


def main() -> None:
    """Print the three tables."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    print("coverage in % / mean width".ljust(28) + "".join(f"{n:>12} groups".ljust(42) for n in GROUPS))
    print(" " * 28 + "porism      t           bootstrap-t       " * len(GROUPS))
    for name, case in CASES.items():
        line = name.ljust(28)
        for groups in GROUPS:
            for method in ("porism", "t", "bootstrap-t"):
                some = min(runs, BOOTSTRAP_RUNS) if method == "bootstrap-t" else runs
                found = coverage(case, groups, runs=some, method=method)
                line += f"{100 * found.covered:5.1f}/{found.width:.3f} "
            line += "      "
        print(line, flush=True)
    print("\nsign-flip test, true difference 0: found at 5 %")
    for name in ("auc difference 0", "acc difference 0"):
        print(name.ljust(28) + "  ".join(f"{false_finds(CASES[name], n, runs=runs):.3f}" for n in GROUPS))
    print(
        "\nthe difference that is found 4 times in 5 (sd 0.3): the test finds it in this share of simulations"
    )
    for groups in GROUPS:
        size = detectable(0.3, groups) or 0.0
        case = Case(lambda rng, r, n, size=size: rng.normal(size, 0.3, (r, n)))  # type: ignore[misc]
        print(f"{groups:3} groups: {size:.3f}  {false_finds(case, groups, runs=runs):.3f}")


if __name__ == "__main__":
    main()
