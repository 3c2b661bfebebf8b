"""Runs as polars frames: every observation, every score, the same columns for every kind of run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import porism
from porism.bench.config import read_config
from porism.bench.run import Benchmark, arun
from porism.blocking import blocking
from porism.data import write_problems
from porism.errors import ConfigError, StoreError
from porism.frames import LABELS, OBSERVATIONS, SCORES, observations, scores
from porism.progress import SilentWatch
from porism.run import Ranked
from samples import problem

FAKE = "fake/rate_right=1,rate_wrong=0"
BENCH = f"""
data = "set.jsonl"
[models.solver]
model = "{FAKE}"
[methods.utility]
model = "solver"
rollouts = 2
target_samples = 1
[methods.judge]
model = "solver"
calls = 2
[methods.length]
"""


@pytest.fixture
def ranked(tmp_path: Path) -> Ranked:
    return porism.rank(labelled(), model=FAKE, rollouts=2, target_samples=1, output=tmp_path / "run")


def labelled() -> porism.Problem:
    one = problem()
    marked = [replace(c, correct=i == 0, source="someone") for i, c in enumerate(one.candidates)]
    return replace(one, candidates=tuple(marked), answer="5")


def benchmark(tmp_path: Path) -> Benchmark:
    write_problems([labelled()], tmp_path / "set.jsonl")
    file = tmp_path / "bench.toml"
    file.write_text(BENCH)
    config = read_config(file).model_copy(update={"output": tmp_path / "bench"})
    return asyncio.run(arun(config, file, watch=SilentWatch()))


def test_every_rollout_of_a_ranking_is_a_row(ranked: Ranked) -> None:
    one = labelled()
    found = ranked.frame()
    assert found.columns == [*OBSERVATIONS, *LABELS]
    rows = (len(one.candidates) + 1) * len(one.neighbors) * 2 + 1  # with no example, and one own attempt
    assert len(found) == rows
    by_candidate = found.filter(pl.col("candidate") == one.candidates[0].id)
    assert by_candidate["correct"].to_list() == [True] * len(by_candidate)
    assert by_candidate["source"].unique().to_list() == ["someone"]
    assert found.filter(pl.col("candidate").is_null())["correct"].is_null().all()
    attempts = found.filter(pl.col("candidate").is_null() & pl.col("neighbor").is_null())
    assert len(attempts) == 1
    assert attempts["verdict"].to_list() == [None]  # a run never checks the target
    assert set(found["verdict"].drop_nulls()) <= {"correct", "wrong", "no_answer"}


def test_scores_are_those_of_the_ranking(ranked: Ranked) -> None:
    found = ranked.frame("scores")
    assert found.columns == [*SCORES, *LABELS]
    places = {p.candidate: p for p in ranked.problems[0].ranking}
    base = ranked.problems[0].no_example
    assert base is not None
    for row in found.iter_rows(named=True):
        if row["candidate"] is None:
            assert row["score"] == base.utility
            continue
        place = places[row["candidate"]]
        assert (row["score"], row["low"], row["high"]) == (place.utility, *place.ci95)
        assert row["solved"] == place.counts.correct
        assert row["decided"] == place.counts.decided
    assert len(found) == len(places) + 1


def test_a_solve_rate_from_the_frame_is_the_utility(ranked: Ranked) -> None:
    rates = (
        ranked.frame()
        .filter(pl.col("candidate").is_not_null())
        .group_by("candidate", "neighbor")
        .agg((pl.col("verdict") == "correct").mean().alias("rate"))
        .group_by("candidate")
        .agg(pl.col("rate").mean())
    )
    found = dict(rates.iter_rows())
    assert found == {p.candidate: pytest.approx(p.utility) for p in ranked.problems[0].ranking}


def test_a_benchmark_has_all_methods_in_the_same_columns(ranked: Ranked, tmp_path: Path) -> None:
    result = benchmark(tmp_path)
    found = result.frame()
    assert set(found["method"]) == {"utility", "judge"}  # length asks nothing
    judged = found.filter(pl.col("method") == "judge")
    assert judged["score"].is_not_null().all()
    assert judged["neighbor"].is_null().all()
    values = result.frame("scores")
    assert set(values["method"]) == {"utility", "judge", "length"}
    assert values.filter(pl.col("method") == "length")["decided"].is_null().all()
    assert len(pl.concat([found, ranked.frame()])) == len(found) + len(ranked.frame())


def test_a_frame_can_be_had_inside_a_running_loop(ranked: Ranked) -> None:
    async def cell() -> int:
        return len(ranked.frame()) + len(scores(Path(ranked.run)))

    assert asyncio.run(cell()) == len(observations(Path(ranked.run))) + len(ranked.frame("scores"))


def test_blocking_raises_what_was_raised_in_its_thread() -> None:
    async def fails() -> int:
        raise StoreError("no room")

    async def cell() -> int:
        return blocking(fails)

    with pytest.raises(StoreError, match="no room"):
        blocking(fails)
    with pytest.raises(StoreError, match="no room"):
        asyncio.run(cell())


def test_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no run here"):
        observations(tmp_path / "nowhere")
