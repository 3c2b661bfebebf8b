"""Statistics of solve rates: hand-worked values, properties, and coverage in simulation."""

from __future__ import annotations

import importlib.util
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from porism.stats import (
    chance_gap,
    competition_ranks,
    difference,
    lift_gap,
    limits,
    mean_rate,
    p_highest,
    rare,
)
from porism.types import Counts


def benchmark() -> Any:
    path = Path(__file__).resolve().parents[1] / "benchmarks" / "coverage.py"
    spec = importlib.util.spec_from_file_location("coverage_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


COVERAGE = benchmark()


def right(correct: int, of: int, *, undecided: int = 0, missing: int = 0) -> Counts:
    return Counts(correct=correct, wrong=of - correct, undecided=undecided, missing=missing)


counts = st.builds(
    Counts,
    correct=st.integers(0, 9),
    wrong=st.integers(0, 9),
    no_answer=st.integers(0, 3),
    undecided=st.integers(0, 3),
    missing=st.integers(0, 3),
)
cells = st.lists(counts, min_size=1, max_size=5)
decided = st.builds(lambda x, y: right(x, x + y + (x + y == 0)), st.integers(0, 6), st.integers(0, 6))
tables = st.integers(1, 4).flatmap(
    lambda m: st.lists(st.lists(decided, min_size=m, max_size=m), min_size=2, max_size=5)
)


# Limits and intervals


def test_limits_at_the_edges() -> None:
    low, high = limits([0, 1, 7, 8, 0], [8, 8, 8, 8, 0])
    assert list(low[[0, 1, 4]]) == [0, 0, 0]
    assert list(high[[2, 3, 4]]) == [1, 1, 1]
    assert high[0] == pytest.approx(1 - 0.05 ** (1 / 8))
    assert low[3] == pytest.approx(0.05 ** (1 / 8))


def test_limits_inside_are_jeffreys() -> None:
    # A 40th of the posterior Beta(5.5, 15.5) of 5 in 20 lies on either side, by plain summation.
    low, high = limits(5, 20)
    p = (np.arange(200_000) + 0.5) / 200_000
    density = p**4.5 * (1 - p) ** 14.5
    assert density[p < low].sum() / density.sum() == pytest.approx(0.025, abs=1e-4)
    assert density[p > high].sum() / density.sum() == pytest.approx(0.025, abs=1e-4)


@given(st.integers(1, 70), st.sampled_from([0.2, 0.05, 0.01]))
def test_limits_are_symmetric_monotone_and_hold_the_rate(n: int, level: float) -> None:
    x = np.arange(n + 1)
    low, high = limits(x, n, level)
    assert np.allclose(low, 1 - high[::-1])
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    assert ((low <= x / n) & (x / n <= high)).all()


def test_mover_by_hand() -> None:
    low, high = limits([2, 6], [8, 8])
    interval = mean_rate([right(2, 8), right(6, 8)])
    assert interval.value == Fraction(1, 2)
    assert interval.low == pytest.approx(0.5 - np.hypot(0.25 - low[0], 0.75 - low[1]) / 2)
    assert interval.high == pytest.approx(0.5 + np.hypot(high[0] - 0.25, high[1] - 0.75) / 2)


def test_open_rollouts_are_bounds() -> None:
    interval = mean_rate([right(3, 6, undecided=1, missing=1)])
    assert (interval.value, interval.worst, interval.best) == (Fraction(1, 2), 3 / 8, 5 / 8)
    assert interval.low == pytest.approx(float(limits(3, 8)[0]))
    assert interval.high == pytest.approx(float(limits(5, 8)[1]))


def test_a_cell_without_decision_may_be_anything() -> None:
    interval = mean_rate([right(8, 8), Counts(undecided=8)])
    assert interval.value == 1
    assert (interval.worst, interval.best, interval.high) == (0.5, 1.0, 1.0)
    assert interval.low < 0.5
    for nothing in ([], [Counts()], [Counts(missing=3), Counts()]):
        found = mean_rate(nothing)
        assert found.value is None
        assert (found.low, found.high) == (0, 1)


@given(cells)
def test_the_interval_holds_the_value_and_both_extremes(row: list[Counts]) -> None:
    found = mean_rate(row)
    assert 0 <= found.low <= found.worst <= found.best <= found.high <= 1
    if found.value is not None:
        assert found.worst - 1e-12 <= found.value <= found.best + 1e-12
        assert found.low <= float(found.value) <= found.high


@given(cells)
def test_intervals_nest(row: list[Counts]) -> None:
    wide, narrow = mean_rate(row, 0.01), mean_rate(row, 0.05)
    assert wide.low <= narrow.low + 1e-9
    assert narrow.high <= wide.high + 1e-9


@given(cells, st.randoms(use_true_random=False))
def test_more_right_answers_never_lower_a_utility(row: list[Counts], random: Any) -> None:
    i = random.randrange(len(row))
    before = mean_rate(row)
    c = row[i]
    if not c.decided:
        return
    row[i] = Counts(c.correct + 1, c.wrong, c.no_answer, c.undecided, c.missing)
    after = mean_rate(row)
    assert before.value is not None
    assert after.value is not None
    assert after.value >= before.value


@given(cells, cells)
def test_a_difference_turns_round(a: list[Counts], b: list[Counts]) -> None:
    there, back = difference(mean_rate(a), mean_rate(b)), difference(mean_rate(b), mean_rate(a))
    assert there.low == pytest.approx(-back.high)
    assert -1 <= there.low <= there.worst + 1e-12 <= there.best + 2e-12 <= there.high + 3e-12 <= 1 + 4e-12
    if there.value is not None and back.value is not None:
        assert there.value == -back.value
        assert there.low - 1e-12 <= there.value <= there.high + 1e-12


# Order


def test_ranks_of_ties() -> None:
    third = Fraction(1, 3)
    assert competition_ranks([third, Fraction(2, 6), Fraction(1, 10), None]) == [1, 1, 3, None]
    assert competition_ranks([]) == []


def test_ties_compare_exact_counts() -> None:
    # In floats, .1 + .2 + .3 and .3 + .2 + .1 differ.
    a = mean_rate([right(1, 10), right(2, 10), right(3, 10)])
    b = mean_rate([right(3, 10), right(2, 10), right(1, 10)])
    assert competition_ranks([a.value, b.value]) == [1, 1]


@settings(max_examples=25, deadline=None)
@given(tables, st.randoms(use_true_random=False))
def test_p_highest_knows_no_order_of_rows(rows: list[list[Counts]], random: Any) -> None:
    chances = p_highest(rows)
    assert sum(chances) == pytest.approx(1)
    order = list(range(len(rows)))
    random.shuffle(order)
    assert p_highest([rows[i] for i in order]) == [chances[i] for i in order]
    for i, row in enumerate(rows):
        for j, other in enumerate(rows):
            if row == other:
                assert chances[i] == chances[j]


def test_p_highest_against_a_known_chance() -> None:
    # Beta(1/2, 3/2) against Beta(3/2, 1/2): P(first higher) = 1/2 - 4 / pi^2 by integration.
    got = p_highest([[right(0, 1)], [right(1, 1)]])
    assert got[0] == pytest.approx(0.5 - 4 / np.pi**2, abs=1e-3)
    assert p_highest([]) == []
    assert p_highest([[Counts()]]) == [1]
    assert p_highest([[right(3, 4)]] * 12) == pytest.approx([1 / 12] * 12)


def test_p_highest_against_draws() -> None:
    rng = np.random.default_rng(0)
    rows = [
        [(8, 8), (0, 8)],
        [(7, 8), (3, 8)],
        [(4, 4), (1, 4)],
        [(0, 0), (0, 8)],
        [(8, 8), (0, 8)],
        [(64, 64), (5, 64)],
    ]
    sums = np.array([sum(rng.beta(0.5 + x, 0.5 + n - x, 400_000) for x, n in row) for row in rows])
    drawn = np.bincount(sums.argmax(axis=0), minlength=len(rows)) / sums.shape[1]
    found = p_highest([[right(x, n) for x, n in row] for row in rows])
    assert found == pytest.approx(drawn, abs=0.003)
    assert found[0] == found[4]


# What chance alone does


def test_chance_gap_by_hand() -> None:
    # Two rows of 4, 4 of 8 solved: one row gets all with probability 1/70, three or more with 17/70.
    rows = [[right(4, 4)], [right(0, 4)]]
    assert chance_gap(rows, "s", 0.05) == 1  # 2/70
    assert chance_gap(rows, "s", 0.02) == float("inf")
    assert chance_gap(rows, "s", 0.6) == 0.5  # 34/70
    assert chance_gap([[right(0, 4)], [right(0, 4)]], "s") == float("inf")
    # Two rows of 8, 8 of 16 solved: a gap of 6/8 or more has probability 130/12870, of 4/8 or more 1698/12870.
    assert chance_gap([[right(8, 8)], [right(0, 8)]], "s", 0.05) == 0.75


@settings(max_examples=25, deadline=None)
@given(tables, st.randoms(use_true_random=False))
def test_gaps_know_no_order_of_rows(rows: list[list[Counts]], random: Any) -> None:
    gap, lift = chance_gap(rows, "s"), lift_gap(rows[1:], rows[0], "s")
    mixed = random.sample(rows[1:], len(rows) - 1)
    assert chance_gap([*mixed, rows[0]], "s") == gap
    assert lift_gap(mixed, rows[0], "s") == lift


def test_rare() -> None:
    statistic = np.array([0.1] * 90 + [0.5] * 8 + [0.9] * 2)
    assert (rare(statistic, 0.1), rare(statistic, 0.05), rare(statistic, 0.01)) == (0.5, 0.9, float("inf"))


def test_a_clear_lead_is_seen() -> None:
    rows = [[right(7, 8)] * 3] + [[right(1, 8)] * 3] * 4
    assert chance_gap(rows, "s") < 0.75
    assert lift_gap(rows, [right(1, 8)] * 3, "s") < 0.75


# In simulation


@pytest.mark.parametrize(
    ("neighbors", "rollouts"), [(1, 4), (1, 32), (2, 8), (3, 8), (5, 4), (5, 8), (4, 64)]
)
def test_coverage_of_the_interval(neighbors: int, rollouts: int) -> None:
    found = COVERAGE.coverage(neighbors, rollouts)
    assert found.least >= 0.88, found
    assert found.outside == 0
    assert found.width < found.exact_width


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", COVERAGE.NEIGHBORS)
def test_coverage_of_the_interval_everywhere(neighbors: int) -> None:
    for rollouts in (*range(4, 17), 24, 32, 48, 64):
        found = COVERAGE.coverage(neighbors, rollouts)
        assert found.least >= 0.88, found
        assert found.outside == 0


def test_a_lead_among_equals_is_rarely_claimed() -> None:
    # 200 runs at a rate of .05 exceed .10 once in a thousand.
    for candidates, rate in ((2, 0.5), (5, 0.2)):
        some, every = COVERAGE.claims(np.full((candidates, 3), rate), 8, runs=200)
        assert some <= 0.1
        assert every <= some


def test_a_crowd_of_hopeless_candidates_makes_no_lead() -> None:
    rates = np.zeros((10, 3))
    rates[:2] = 0.5
    assert COVERAGE.claims(rates, 8, runs=200)[1] <= 0.1
