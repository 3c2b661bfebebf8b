"""The published numbers: whole, well-formed, and as the paper gives them."""

from __future__ import annotations

from collections import Counter

import pytest

from porism.metrics.formulas import METRICS
from porism.reference import published

COLUMNS = ("human_win", "mean_win", "acc@1", "recall@5", "auc")
# Typed anew from the table of the paper, row by row.
RANKING = {
    ("genrm", "Qwen3-235B"): (27.05, 77.05, 65.37, 71.72, 67.85),
    ("genrm", "Llama-49B"): (25.71, 31.43, 43.47, 55.36, 49.57),
    ("reward", "Qwen2.5-Math-72B"): (1.63, 27.87, 36.89, 40.98, 34.05),
    ("reward", "AceMath-72B"): (0.00, 12.86, 8.20, 29.85, 20.75),
    ("judge", "Qwen3-235B"): (67.14, 85.71, 62.59, 80.02, 69.48),
    ("judge", "Qwen3-30B"): (47.14, 75.71, 61.30, 72.40, 65.81),
    ("judge", "GPT-OSS-120B"): (48.57, 81.43, 67.21, 76.91, 71.42),
    ("judge", "GPT-OSS-20B"): (52.86, 82.86, 72.13, 72.06, 69.03),
    ("utility", "Qwen3-235B"): (81.43, 90.00, 73.42, 74.15, 71.38),
    ("utility", "Qwen3-30B"): (85.71, 90.00, 75.79, 78.37, 76.24),
    ("utility", "GPT-OSS-120B"): (82.86, 90.00, 76.27, 83.04, 79.63),
    ("utility", "GPT-OSS-20B"): (74.29, 75.71, 74.59, 82.46, 79.18),
}


def test_every_row_is_well_formed() -> None:
    rows = published()
    assert len(rows) == 77
    assert max(Counter((r.table, r.model, r.method, r.metric) for r in rows).values()) == 1
    for r in rows:
        assert r.table
        assert r.method in ("utility", "judge", "genrm", "reward", "both")
        assert (r.value is None) == (r.low is not None) == (r.high is not None), r
        if r.low is not None and r.high is not None:
            assert r.low < r.high
        top = {
            "percent": 100,
            "points": 100,
            "share": 1,
            "correlation": 1,
            "candidates": 112,
            "tokens": 16_384,
        }
        for number in (r.value, r.low, r.high):
            assert number is None or -7 <= number <= top[r.unit], r


def test_the_main_table_is_the_papers() -> None:
    found = {(r.method, r.model, r.metric): r.value for r in published("ranking")}
    typed = {(*row, m): v for row, values in RANKING.items() for m, v in zip(COLUMNS, values, strict=True)}
    assert found == typed
    assert set(COLUMNS) <= set(METRICS)
    assert {r.unit for r in published("ranking")} == {"percent"}


@pytest.mark.parametrize(
    ("table", "method", "metric", "span"),
    [
        ("calibration", "judge", "accuracy", (63, 67)),
        ("calibration", "both", "accuracy", (74, 80)),
        ("above-mean", "utility", "wrong above the pool's mean", (0.08, 0.14)),
        ("tokens", "judge", "tokens a generation", (2_900, 12_200)),
        ("judge-prompts", "judge", "spearman", (0.91, 0.96)),
    ],
)
def test_the_ranges(table: str, method: str, metric: str, span: tuple[float, float]) -> None:
    (row,) = (r for r in published(table) if r.method == method and r.metric == metric)
    assert (row.low, row.high) == span


def test_the_errors_of_the_judge() -> None:
    found = {r.metric: r.value for r in published("errors")}
    assert found == {
        "unjustified compression": 80,
        "incorrect reasoning": 77,
        "appeal to external references": 35,
        "candidates tagged": 112,
    }
    assert published("no such table") == ()
