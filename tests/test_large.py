"""A benchmark with 100,000 stored observations: scoring it stays fast and small."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest


def script() -> Any:
    path = Path(__file__).resolve().parents[1] / "benchmarks" / "score.py"
    spec = importlib.util.spec_from_file_location("score_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_hundred_thousand_observations_are_scored_in_ten_seconds_and_a_gigabyte(tmp_path: Path) -> None:
    # Processor time, because the clock also counts what else the machine does.
    benchmark = script()
    assert benchmark.make(tmp_path / "run") >= 100_000
    compared = benchmark.measure(tmp_path / "run", "score", "--json")
    assert compared.cpu < 10
    assert compared.megabytes < 1000
    benchmark.as_ranking(tmp_path / "run")
    ranked = benchmark.measure(tmp_path / "run", "score", "--json")
    assert ranked.cpu < 10
    assert ranked.megabytes < 1000
