"""Replicas on a real Ray cluster: the scores of one machine, and nothing lost when an actor, node or driver dies."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from porism.data import write_problems
from porism.store import Store
from ray_cluster import Nodes, ray_cluster
from samples import problem
from server import closed_port, serving

pytest.importorskip("ray", reason="Ray is not installed: make test-ray installs it")
pytestmark = [pytest.mark.ray, pytest.mark.timeout(1200)]

TOKEN = secrets.token_hex(32)
# Bytecode is kept: Ray starts many processes, and each would compile all of Ray again.
ENVIRONMENT = {
    **{
        name: value
        for name, value in os.environ.items()
        if not name.startswith("RAY_") and name != "PYTHONDONTWRITEBYTECODE"
    },
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": TOKEN,
    "RAY_USAGE_STATS_ENABLED": "0",
    # A machine may be busy.
    "RAY_raylet_start_wait_time_s": "60",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_health_check_timeout_ms": "120000",
}
IN_FLIGHT = 4  # at each replica


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    """One cluster of three nodes for all tests: starting it takes longer than they do."""
    with ray_cluster(3, environment=ENVIRONMENT) as cluster:
        yield cluster


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    file = tmp_path / "problems.jsonl"
    write_problems([problem(f"p{i}", candidates=4, neighbors=3) for i in range(3)], file)
    return file


def command(file: Path, run: Path, *flags: str) -> list[str]:
    return [sys.executable, "-m", "porism", "rank", str(file), "-o", str(run), "--max-tokens", "64", *flags]


def on(nodes: Nodes, replicas: int) -> tuple[str, ...]:
    return "--executor", "ray", "--address", nodes.address, "--replicas", str(replicas)


def at(url: str) -> tuple[str, ...]:
    return "--model", "generic/test-model", "--base-url", url, "--concurrency", str(IN_FLIGHT)


def done(arguments: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments, capture_output=True, text=True, timeout=1000, env={**ENVIRONMENT, **environment}
    )


def whole(arguments: list[str]) -> str:
    """Run to the end; what was said of replicas."""
    ended = done(arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


def rankings(run: Path) -> Any:
    return json.loads((run / "ranking.json").read_text())["problems"]


def rows(run: Path) -> dict[str, Any]:
    with Store(run, write=False) as store:
        return {id: (r.cell, r.finish, r.answer, r.rule, r.text_key) for id, r in store.rows.items()}


def stored(run: Path) -> list[str]:
    """Ids of whole index rows, in order."""
    try:
        lines = (run / "index.jsonl").read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    return [json.loads(line)["id"] for line in lines]


def answered(url: str) -> Counter[str]:
    with urllib.request.urlopen(f"{url}/stats") as answer:
        return Counter(json.load(answer)["answered"])


def asked_again(url: str, run: Path, probes: int) -> int:
    """Answers that the server gave out more than once, those of trials before the run left out."""
    keys = Counter(key.rpartition("-")[0] for key in answered(url) for _ in range(1))
    found = answered(url)
    trial = {key for key in keys if sum(n for k, n in found.items() if k.startswith(key)) <= 4 * probes}
    return sum(n - 1 for key, n in found.items() if key.rpartition("-")[0] not in trial)


def until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    started = time.monotonic()
    while not holds():
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() - started < 600
        time.sleep(0.05)


def test_scores_are_those_of_one_machine(nodes: Nodes, problems: Path, tmp_path: Path) -> None:
    flags = ("--model", "fake/tokens=30,truncate=0.1,blank=0.1,delay=0.02", "-n", "6")
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    whole(command(problems, alone, *flags))
    said = whole(command(problems, shared, *flags, *on(nodes, 3)))
    assert all(f"replica {i} on" in said for i in (1, 2, 3))
    assert rankings(shared) == rankings(alone)
    assert rows(shared) == rows(alone)
    ended = done(command(problems, shared, *flags, "--dry-run", *on(nodes, 3)))
    assert f"asked by           3 replicas with Ray on the cluster at {nodes.address}" in ended.stdout


def test_an_actor_and_a_node_are_killed(nodes: Nodes, problems: Path, tmp_path: Path) -> None:
    killed, calm = tmp_path / "killed", tmp_path / "calm"
    with serving(latency=0.4, refuses_n=True) as url:
        flags = command(problems, killed, "-n", "12", *at(url), *on(nodes, 3))
        with subprocess.Popen(flags, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
            until(lambda: len(stored(killed)) >= 60, process)
            assert nodes.tell("kill replica")
            until(lambda: len(stored(killed)) >= 160, process)
            assert nodes.tell("kill node")
            _, said = process.communicate(timeout=900)
        assert process.returncode == 0, said
        again = asked_again(url, killed, 3)
        # What ran on the actor and on the node: a replica each, or two where one was put beside another.
        assert again <= 3 * IN_FLIGHT
    assert said.count("was lost, and is replaced") >= 2
    ids = stored(killed)
    assert len(ids) == len(set(ids)) == 3 * (5 * 3 * 12 + 4)
    with serving(refuses_n=True) as url:
        whole(command(problems, calm, "-n", "12", *at(url)))
    assert rankings(killed) == rankings(calm)
    assert rows(killed) == rows(calm)
    nodes.tell("add")


def test_the_only_replica_is_replaced(nodes: Nodes, problems: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with serving(latency=0.3, refuses_n=True) as url:
        flags = command(problems, run, "-n", "4", *at(url), *on(nodes, 1))
        with subprocess.Popen(flags, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
            until(lambda: len(stored(run)) >= 20, process)
            nodes.tell("kill replica")
            _, said = process.communicate(timeout=900)
        assert asked_again(url, run, 1) <= IN_FLIGHT
    assert process.returncode == 0, said
    assert said.count("replica 1 on") == 3  # it runs, is lost, runs again
    assert len(stored(run)) == 3 * (5 * 3 * 4 + 4)


def test_the_driver_is_killed(nodes: Nodes, problems: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with serving(latency=0.4, refuses_n=True) as url:
        flags = command(problems, run, "-n", "8", *at(url), *on(nodes, 3))
        with subprocess.Popen(flags, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT) as process:
            until(lambda: len(stored(run)) >= 60, process)
            process.send_signal(signal.SIGKILL)
        before = stored(run)
        gone = time.monotonic()
        while nodes.tell("replicas"):
            assert time.monotonic() - gone < 120, "actors outlive their driver"
            time.sleep(0.5)
        at_kill = sum(answered(url).values())
        whole(flags)
        assert stored(run)[: len(before)] == before
        assert len(stored(run)) == len(set(stored(run))) == 3 * (5 * 3 * 8 + 4)
        assert asked_again(url, run, 6) <= 3 * IN_FLIGHT
        # The rest only: what was stored before was not asked for again.
        assert sum(answered(url).values()) - at_kill <= len(stored(run)) - len(before) + 4 * 3


def test_faults_of_the_user_are_told(nodes: Nodes, problems: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    closed = closed_port().removeprefix("http://")
    fake = ("--model", "fake/default")
    refused = {
        f"no Ray cluster answers at {closed}: Connection refused": (*fake, "--address", closed),
        "a replica needs 1 GPU on one machine": ("--model", "vllm/some-model", "--address", nodes.address),
        "a replica needs 99 CPUs on one machine": (*fake, "--cpus", "99", "--address", nodes.address),
        "GPUs and engine arguments are for vLLM": (*fake, "--gpus", "1", "--address", nodes.address),
        "porism runs on a machine of the cluster": (*fake, "--address", "ray://127.0.0.1:10001"),
    }
    for reason, flags in refused.items():
        ended = done(command(problems, run, *flags, "--executor", "ray"))
        assert ended.returncode == 2, ended.stderr
        assert reason in " ".join(ended.stderr.split())
    ended = done(command(problems, run, *fake, *on(nodes, 1)), RAY_AUTH_TOKEN=secrets.token_hex(32))
    assert ended.returncode == 2, ended.stderr
    assert "token" in ended.stderr
    assert "Traceback" not in ended.stderr
    ended = done(command(problems, run, "--model", "vllm/some-model", "--gpus", "0", *on(nodes, 1)))
    assert ended.returncode == 1
    assert "needs vLLM on the machines that serve it" in ended.stderr
