"""porism capacity: the arithmetic by hand, the command, and the simulation beside it."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from porism.capacity import FIGURES, Machine, Workload, need
from porism.data import write_problems
from porism.errors import ConfigError
from samples import problem

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PAPER = Workload(
    problems=192,
    candidates=10,
    neighbors=2,
    rollouts=64,
    completion_tokens=3000,
    prefix_tokens=4000,
    neighbor_tokens=300,
    no_example=False,
    target_samples=0,
)
MACHINE = Machine(replicas=8, gpus=2, throughput=1000.0)


def run(*args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "porism", *map(str, args)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_papers_run_by_hand() -> None:
    found = need(PAPER, MACHINE)
    assert found.rollouts == 245_760
    assert found.completion_tokens == 737_280_000
    assert found.replica_hours == pytest.approx(204.8)
    assert found.gpu_hours == pytest.approx(409.6)
    assert found.wall_hours == pytest.approx(25.6)
    assert found.prompt_tokens == {
        "none": 245_760 * 4300,
        "calls": 192 * 10 * 2 * 4300,
        "prefix": 192 * 10 * (4000 + 2 * 300),
    }


def test_the_example_of_the_arithmetic() -> None:
    """One candidate, 20 neighbors, 8 rollouts: 688,000 prompt tokens, 86,000 with calls, 10,000 with the prefix."""
    work = dataclasses.replace(PAPER, problems=1, candidates=1, neighbors=20, rollouts=8)
    assert need(work, MACHINE).prompt_tokens == {"none": 688_000, "calls": 86_000, "prefix": 10_000}


def test_prefill_counts_where_it_is_known() -> None:
    reading = dataclasses.replace(MACHINE, prefill=10_000.0)
    plain = need(PAPER, MACHINE).replica_hours
    for sharing, tokens in need(PAPER, MACHINE).prompt_tokens.items():
        hours = need(PAPER, reading, sharing=sharing).replica_hours
        assert hours == pytest.approx(plain + tokens / 10_000 / 3600)


def test_rows_without_example_own_attempts_and_adaptive_shares() -> None:
    work = dataclasses.replace(PAPER, no_example=True, target_samples=4)
    assert need(work, MACHINE).rollouts == 192 * (11 * 2 * 64 + 4)
    half = need(work, MACHINE, share=0.5)
    assert half.rollouts == 192 * (11 * 2 * 32 + 4)
    assert half.allocation == "adaptive (0.5 of the rollouts)"
    assert half.prompt_tokens["prefix"] == need(work, MACHINE).prompt_tokens["prefix"]


@pytest.mark.parametrize("share", [0, -1, 1.5, float("nan")])
def test_a_share_that_is_none(share: float) -> None:
    with pytest.raises(ConfigError, match="share of the uniform rollouts"):
        need(PAPER, MACHINE, share=share)


def test_numbers_that_are_none() -> None:
    with pytest.raises(ConfigError, match="problems: at least 1"):
        dataclasses.replace(PAPER, problems=0)
    with pytest.raises(ConfigError, match="completion tokens: a number"):
        dataclasses.replace(PAPER, completion_tokens=float("nan"))
    with pytest.raises(ConfigError, match="throughput: tokens a second above 0"):
        dataclasses.replace(MACHINE, throughput=0.0)
    with pytest.raises(ConfigError, match="replicas: at least 1"):
        dataclasses.replace(MACHINE, replicas=0)


def test_every_figure_says_where_it_is_from() -> None:
    assert all(figure.source and figure.tokens_per_second > 0 for figure in FIGURES.values())


def test_the_command_prints_and_answers_json(tmp_path: Path) -> None:
    line = (
        "capacity --problems 192 --candidates 10 --neighbors 2 -n 64 --tokens 3000,12000 --throughput 1000 "
        "--skip-no-example --target-samples 0 --replicas 8 --gpus 2 --adaptive 0.25 --price 2"
    )
    arguments = line.split()
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "737,280,000 tokens" in done.stdout
    assert "25.6 hours" in done.stdout
    assert "prefill is not in the hours" in done.stdout
    document = json.loads(run(*arguments, "--json", cwd=tmp_path).stdout)
    assert [row["allocation"].split()[0] for row in document["needs"]] == ["uniform", "adaptive"] * 2
    assert document["needs"][0]["gpu_hours"] == pytest.approx(409.6)
    assert document["needs"][0]["cost"] == pytest.approx(819.2)
    assert document["needs"][1]["rollouts"] == 61_440
    assert document["needs"][2]["completion_tokens"] == 4 * 737_280_000


def test_defaults_name_their_sources(tmp_path: Path) -> None:
    done = run("capacity", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the paper's range" in done.stdout
    assert "reported by" in done.stdout


def test_tokens_from_a_run(tmp_path: Path) -> None:
    write_problems([problem()], tmp_path / "p.yaml")
    ranked = run("rank", "p.yaml", "-m", "fake/max_n=1", "-o", "pilot", "--json", cwd=tmp_path)
    assert ranked.returncode == 0, ranked.stderr
    usage = json.loads(ranked.stdout)["usage"]
    done = run("capacity", "--run", "pilot", "--throughput", 10, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    work = json.loads(done.stdout)["needs"][0]["workload"]
    assert work["completion_tokens"] == pytest.approx(usage["completion"] / (4 * 2 * 8 + 4))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--tokens", "many"], "--tokens many"),
        (["--tokens", "1,2,3"], "--tokens 1,2,3"),
        (["--tokens", "5", "--run", "x"], "not both"),
        (["--throughput", "fast"], "qwen2.5-7b/a10g"),
        (["--throughput", "nan"], "throughput"),
        (["--adaptive", "2"], "share"),
        (["--problems", "0"], "problems"),
        (["--prefill", "0"], "prefill"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], told: str, tmp_path: Path) -> None:
    done = run("capacity", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_the_simulation_ends_and_is_ordered() -> None:
    """Scaled down: one replica is near its ideal, and trouble never helps; the same seed gives the same."""
    command = [sys.executable, str(BENCHMARKS / "scale.py"), "3"]
    one = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert one == subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in one.splitlines()[2:]]
    over = {tuple(row[:3]): float(row[4].rstrip("%")) for row in rows}
    hours = {tuple(row[:3]): float(row[3]) for row in rows}
    assert 0 < over["1", "uniform", "none"] < 5
    assert over["8", "uniform", "none"] < over["8", "uniform", "stragglers"]
    assert over["8", "uniform", "none"] <= over["8", "uniform", "failures"]
    assert hours["8", "uniform", "none"] < hours["1", "uniform", "none"] / 5
    assert hours["1", "halving", "none"] < 0.6 * hours["1", "uniform", "none"]
