"""Statistics over groups: hand-worked values, other libraries' values, and what simulations measure."""

from __future__ import annotations

import importlib.util
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from porism.inference import (
    bootstrap_t,
    detectable,
    groups_needed,
    holm,
    mean_interval,
    mean_limits,
    power,
    resample,
    sign_flip,
    t_interval,
)
from porism.stats import limits


def benchmark() -> Any:
    path = Path(__file__).resolve().parents[1] / "benchmarks" / "intervals.py"
    spec = importlib.util.spec_from_file_location("intervals_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


INTERVALS = benchmark()
shares = st.lists(st.integers(0, 20).map(lambda x: x / 20), min_size=2, max_size=40)
differences = st.lists(st.integers(-4, 4).map(lambda x: x / 4), min_size=1, max_size=9)


# Intervals of a mean


def test_yes_or_no_groups_get_the_limits_of_a_share() -> None:
    # 18 of 24: variance 24 / 23 * 3/16, so 23 effective groups, times (1.95996 / 2.06866)^2.
    found = mean_interval([1.0] * 18 + [0.0] * 6)
    m = 23 * (1.959964 / 2.068658) ** 2
    assert found == pytest.approx([float(side) for side in limits(0.75 * m, m)], abs=1e-5)


def test_agreement_is_not_certainty() -> None:
    # 12 groups all 1, t(11) = 2.20099: the rule of three at 12 * (1.95996 / 2.20099)^2 = 9.516.
    assert mean_interval([1.0] * 12) == pytest.approx((0.05 ** (1 / 9.51567), 1), abs=1e-4)
    assert mean_interval([0.0] * 12) == pytest.approx((0, 1 - 0.05 ** (1 / 9.51567)), abs=1e-4)
    low, high = mean_interval([0.5] * 12) or (0.5, 0.5)
    assert low < 0.3 < 0.7 < high
    assert t_interval([1.0] * 12) == (1, 1)
    for too_few in ([], [0.3]):
        assert mean_interval(too_few) is t_interval(too_few) is bootstrap_t(too_few) is None
    assert [float(x) for x in mean_limits([0.3], low=-1)] == [-1, 1]


def test_far_from_the_edges_it_is_students() -> None:
    x = np.random.default_rng(1).normal(0.5, 0.05, 70)
    assert mean_interval(list(x)) == pytest.approx(t_interval(list(x)), abs=2e-4)


def test_students_interval_is_scipys() -> None:
    from scipy import stats

    x = [0.2, 0.9, 0.4, 0.7, 0.55]
    expected = stats.t.interval(0.95, 4, loc=np.mean(x), scale=stats.sem(x))
    assert t_interval(x) == pytest.approx(expected)


@given(shares)
def test_the_interval_holds_the_mean_and_turns_round(x: list[float]) -> None:
    low, high = mean_interval(x) or (0, 0)
    assert 0 <= low <= np.mean(x) + 1e-12
    assert np.mean(x) - 1e-12 <= high <= 1
    back = mean_interval([1 - v for v in x]) or (0, 0)
    assert back == pytest.approx((1 - high, 1 - low), abs=1e-9)
    stretched = mean_interval([2 * v - 1 for v in x], low=-1) or (0, 0)
    assert stretched == pytest.approx((2 * low - 1, 2 * high - 1), abs=1e-9)
    wide = mean_interval(x, level=0.01) or (0, 0)
    assert wide[0] <= low + 1e-9
    assert high <= wide[1] + 1e-9


def test_limits_go_over_the_last_axis() -> None:
    x = np.random.default_rng(2).random((3, 4, 9))
    low, high = mean_limits(x)
    assert low.shape == high.shape == (3, 4)
    assert (float(low[1, 2]), float(high[1, 2])) == mean_interval(list(x[1, 2]))


def test_whole_groups_are_drawn() -> None:
    counts = resample(7, draws=500, seed=3)
    assert counts.shape == (500, 7)
    assert (counts.sum(axis=1) == 7).all()
    assert (counts == resample(7, draws=500, seed=3)).all()
    assert (counts != resample(7, draws=500, seed=4)).any()


def test_bootstrap_t_against_scipy() -> None:
    from scipy import stats

    x = np.random.default_rng(4).exponential(1, 40)
    low, high = bootstrap_t(list(x), draws=50_000) or (0, 0)
    t_low, t_high = t_interval(list(x)) or (0, 0)
    assert high - x.mean() > x.mean() - low  # skewed to the right, which Student's interval cannot be
    assert (low, high) == pytest.approx((t_low, t_high), abs=0.3)
    # The studentised bootstrap by hand from scipy's own resamples.
    rng = np.random.default_rng(5)
    drawn = rng.choice(x, (50_000, 40))
    t = (drawn.mean(axis=1) - x.mean()) / (drawn.std(axis=1, ddof=1) / np.sqrt(40))
    expected = x.mean() - np.quantile(t, [0.975, 0.025]) * stats.sem(x)
    assert (low, high) == pytest.approx(tuple(expected), abs=0.02)
    assert bootstrap_t([2.0] * 5) == (2, 2)


@pytest.mark.parametrize("name", ["auc .75", "auc .90", "auc difference .11", "acc difference .20"])
def test_coverage_from_24_groups_on(name: str) -> None:
    for groups in (24, 70):
        found = INTERVALS.coverage(INTERVALS.CASES[name], groups)
        assert found.covered == pytest.approx(0.95, abs=0.02), groups
    assert INTERVALS.coverage(INTERVALS.CASES[name], 12).covered >= 0.925


@pytest.mark.parametrize("name", ["acc .50", "acc .90", "acc .97", "acc .90, 2 problems a group"])
def test_yes_or_no_values_are_never_covered_less(name: str) -> None:
    """They jump from count to count, so coverage cannot be even; it errs upwards."""
    for groups in (12, 24, 70):
        assert INTERVALS.coverage(INTERVALS.CASES[name], groups).covered >= 0.93, groups


# Tests of a difference


@given(differences)
def test_sign_flips_by_enumeration(x: list[float]) -> None:
    sums = [
        abs(sum(s * v for s, v in zip(signs, x, strict=True))) for signs in product((1, -1), repeat=len(x))
    ]
    assert sign_flip(x) == pytest.approx(np.mean([s >= abs(sum(x)) - 1e-9 for s in sums]))


def test_sign_flips_are_exact_where_values_are_few() -> None:
    # 60 groups better and 40 worse by the same: the two-sided binomial test, though 2^100 flips are never drawn.
    from scipy.stats import binomtest

    assert sign_flip([1.0] * 60 + [-1.0] * 40) == pytest.approx(binomtest(60, 100).pvalue)
    assert sign_flip([0.0] * 5) == sign_flip([]) == 1


def test_sign_flips_are_drawn_where_values_are_many() -> None:
    from scipy import stats

    x = np.random.default_rng(6).normal(0.25, 1, 60)
    p = sign_flip(list(x), seed=1)
    assert p == sign_flip(list(x), seed=1)
    assert p == pytest.approx(stats.ttest_1samp(x, 0).pvalue, abs=0.01)
    assert sign_flip(list(x + 10)) == 1 / 20_001  # never 0


def test_no_difference_is_found_as_seldom_as_said() -> None:
    found = INTERVALS.false_finds(INTERVALS.CASES["auc difference 0"], 12, runs=1_000)
    assert 0.025 < found <= 0.065


def test_holm_by_hand() -> None:
    # Sorted .01, .02, .04 times 3, 2, 1: .03, .04, .04.
    assert holm([0.02, 0.01, 0.04]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.5, 0.6]) == [1, 1]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_only_raises_and_keeps_the_order(ps: list[float]) -> None:
    adjusted = holm(ps)
    assert all(p <= q <= min(1, len(ps) * p) + 1e-12 for p, q in zip(ps, adjusted, strict=True))
    for i, j in product(range(len(ps)), repeat=2):
        assert ps[i] > ps[j] or adjusted[i] <= adjusted[j]


# What an experiment could show


def test_power_is_scipys_noncentral_t() -> None:
    from scipy import stats

    for groups, effect in ((6, 0.5), (24, 0.6), (70, 0.2)):
        critical = stats.t.ppf(0.975, groups - 1)
        shift = effect * np.sqrt(groups)
        expected = stats.nct.sf(critical, groups - 1, shift) + stats.nct.cdf(-critical, groups - 1, shift)
        assert power(effect * 0.3, 0.3, groups) == pytest.approx(expected, abs=1e-8)
    assert power(0, 0.3, 10) == pytest.approx(0.05)
    assert power(6, 0.3, 24) == power(100, 0.3, 70) == power(0.1, 0, 6) == 1
    assert power(5, 0.3, 5) == power(0, 0, 6) == 0  # 2 / 2^5 is above .05


def test_the_smallest_difference_that_is_found() -> None:
    assert power(detectable(0.3, 24) or 0, 0.3, 24) == pytest.approx(0.8, abs=1e-4)
    assert (detectable(0.3, 24, level=0.01) or 0) > (detectable(0.3, 24) or 0)
    assert detectable(0.3, 5) is detectable(0, 24) is None
    needed = groups_needed(0.1, 0.3)
    assert needed == 73
    assert power(0.1, 0.3, 73) >= 0.8 > power(0.1, 0.3, 72)
    assert groups_needed(0, 0.3) is None
    assert groups_needed(5, 0.1) == 6


@settings(max_examples=20, deadline=None)
@given(st.floats(0.05, 1), st.integers(7, 100))
def test_needed_and_detectable_agree(sd: float, groups: int) -> None:
    size = detectable(sd, groups)
    assert size is not None
    assert groups_needed(size * 1.001, sd) == groups
