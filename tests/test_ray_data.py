"""Batches through Ray Data on a real Ray cluster: the answers of one machine, whatever fails or is killed."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from porism.data import write_problems
from ray_cluster import Nodes, ray_cluster
from samples import problem
from server import serving
from test_ray import ENVIRONMENT, answered, command, done, rankings, rows, stored, until, whole

for package in ("ray", "pandas", "pyarrow"):
    pytest.importorskip(package, reason=f"{package} is not installed: make test-ray installs it")
pytestmark = [pytest.mark.ray, pytest.mark.timeout(1200)]

OWED = 2 * (4 * 2 * 6 + 4)
TRIAL = 8  # rollouts of a trial before the run, at most


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    with ray_cluster(1, environment=ENVIRONMENT) as nodes:
        yield nodes


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    file = tmp_path / "problems.jsonl"
    write_problems([problem(f"p{i}", candidates=3, neighbors=2) for i in range(2)], file)
    return file


def at(url: str) -> tuple[str, ...]:
    return "--model", "generic/test-model", "--base-url", url, "-n", "6"


def batches(nodes: Nodes, *flags: str) -> tuple[str, ...]:
    return "--executor", "ray-data", "--address", nodes.address, "--replicas", "2", "--cpus", "0", *flags


def settled(url: str) -> int:
    """Answers of the server when none came for a while: Ray's workers outlive a killed driver by moments."""
    found = -1
    while found != (found := sum(answered(url).values())):
        time.sleep(5)
    return found


def calm(problems: Path, run: Path) -> Path:
    """The run without Ray."""
    with serving() as url:
        whole(command(problems, run, *at(url)))
    return run


def test_answers_are_those_of_one_machine(cluster: Nodes, problems: Path, tmp_path: Path) -> None:
    run, alone = tmp_path / "run", calm(problems, tmp_path / "alone")
    with serving(key="sk-secret-of-the-server", truncate=0.2) as url:
        refused = done(command(problems, run, *at(url), *batches(cluster)))
        assert "set GENERIC_API_KEY" in refused.stderr
    with serving() as url:
        said = whole(command(problems, run, *at(url), *batches(cluster)))
        assert OWED <= sum(answered(url).values()) <= OWED + TRIAL
    assert f"asked in batches by 2 replicas with Ray Data on the cluster at {cluster.address}" in said
    assert not [line for line in said.splitlines() if "INFO" in line or "Running" in line]  # Ray Data's talk
    assert len(stored(run)) == OWED
    assert rankings(run) == rankings(alone)
    assert rows(run) == rows(alone)


def test_rows_that_fail_are_asked_again(cluster: Nodes, problems: Path, tmp_path: Path) -> None:
    run, alone = tmp_path / "run", calm(problems, tmp_path / "alone")
    with serving(error=0.15, limited=0.05, html=0.05) as url:
        whole(command(problems, run, *at(url), *batches(cluster)))
    assert (run / "errors.jsonl").read_text().count("\n") >= 5
    assert rankings(run) == rankings(alone)
    assert rows(run) == rows(alone)


def test_the_driver_is_killed(cluster: Nodes, problems: Path, tmp_path: Path) -> None:
    run, alone = tmp_path / "run", calm(problems, tmp_path / "alone")
    with serving(latency=1) as url:
        flags = command(problems, run, *at(url), *batches(cluster, "--concurrency", "4"))
        with subprocess.Popen(flags, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
            until(lambda: len(stored(run)) >= 16, process)
            process.send_signal(signal.SIGKILL)
        before = stored(run)
        assert len(before) < OWED
        at_kill = settled(url)
        whole(flags)
        assert stored(run)[: len(before)] == before
        assert len(stored(run)) == len(set(stored(run))) == OWED
        # The rest only: what was stored before was not asked for again.
        assert sum(answered(url).values()) - at_kill <= OWED - len(before) + TRIAL
    assert rankings(run) == rankings(alone)
    assert rows(run) == rows(alone)
