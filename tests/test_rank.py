"""`porism rank` as a user meets it: real processes, a real server, every kind of end."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import porism
from porism.data import write_problems
from porism.errors import ConfigError, DataError
from samples import problem
from server import closed_port, serving

FAKE = "fake/rate_right=0.9,rate_wrong=0.1"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "p.yaml"
    write_problems([problem()], path)
    return path


def run(*args: object, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "porism", *map(str, args)],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_rank_prints_a_ranking_and_a_sentence(file: Path, tmp_path: Path) -> None:
    done = run("rank", file, "-m", FAKE, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any("utility" in line for line in lines)
    assert any("no example" in line for line in lines)
    order = [line.split()[1] for line in lines if line.split()[:1] and line.split()[0].isdigit()]
    assert order[0] == "a"
    assert "runs/p-" in done.stdout + done.stderr


def test_json_is_one_document_of_the_contract(file: Path, tmp_path: Path) -> None:
    done = run("rank", file, "-m", FAKE, "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert {"run", "problems", "usage"} <= set(document)
    (one,) = document["problems"]
    assert {"id", "ranking", "no_example", "neighbors", "message"} <= set(one)
    for row in one["ranking"]:
        assert {"rank", "candidate", "utility", "ci95", "lift", "p_highest", "by_neighbor", "flags"} <= set(
            row
        )
        assert row["ci95"][0] <= row["utility"] <= row["ci95"][1]
    assert one["ranking"][0]["candidate"] == "a"
    assert abs(sum(row["p_highest"] for row in one["ranking"]) - 1) < 1e-9
    scored = run("score", document["run"], "--json", cwd=tmp_path)
    assert json.loads(scored.stdout)["problems"] == document["problems"]


def test_the_python_function_gives_the_same(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = porism.rank(file, model=FAKE)
    two = porism.rank([problem()], model=FAKE, output=tmp_path / "other")
    assert one.problems == two.problems

    async def inside_a_loop() -> porism.Ranked:
        return porism.rank(file, model=FAKE)  # as in a notebook

    assert asyncio.run(inside_a_loop()).problems == one.problems
    assert "no example" in str(one)


def test_dry_run_counts_exactly(file: Path, tmp_path: Path) -> None:
    planned = run("rank", file, "-m", "fake/max_n=1", "--dry-run", "--json", cwd=tmp_path)
    document = json.loads(planned.stdout)
    assert not (tmp_path / "runs").exists()
    ranked = json.loads(run("rank", file, "-m", "fake/max_n=1", "--json", cwd=tmp_path).stdout)
    assert ranked["usage"]["requests"] == document["requests"] == 4 * 2 * 8 + 4
    again = json.loads(run("rank", file, "-m", "fake/max_n=1", "--dry-run", "--json", cwd=tmp_path).stdout)
    assert again["requests"] == 0
    more = run("rank", file, "-m", "fake/max_n=1", "-n", 16, "--dry-run", "--json", cwd=tmp_path)
    assert json.loads(more.stdout)["requests"] == 4 * 2 * 8


def test_budget_ends_with_3_and_goes_on(file: Path, tmp_path: Path) -> None:
    model = "fake/max_n=1"
    done = run("rank", file, "-m", model, "--max-requests", 30, "--json", cwd=tmp_path)
    assert done.returncode == 3
    assert "--max-requests 30" in done.stderr
    assert "to go on: porism rank" in done.stderr
    rows = json.loads(done.stdout)["problems"][0]["ranking"]
    assert (
        len(
            {
                sum(
                    c["total"] if isinstance(c, dict) and "total" in c else 0
                    for c in r["by_neighbor"].values()
                )
                for r in rows
            }
        )
        == 1
    )
    whole = run("rank", file, "-m", model, "--json", cwd=tmp_path)
    assert whole.returncode == 0
    other = run("rank", file, "-m", model, "--json", "-o", "calm", cwd=tmp_path)
    assert json.loads(whole.stdout)["problems"] == json.loads(other.stdout)["problems"]


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_ends_with_130_and_the_resume_command(file: Path, tmp_path: Path, presses: int) -> None:
    model = f"fake/max_n=1,concurrency=2,delay={0.2 if presses == 1 else 30}"
    process = subprocess.Popen(
        [sys.executable, "-m", "porism", "rank", str(file), "-m", model],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    index = "index.jsonl" if presses == 1 else "run.json"
    while time.monotonic() < deadline and not list((tmp_path / "runs").glob(f"*/{index}")):
        time.sleep(0.05)
    time.sleep(0.5)
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130, said
    assert "to go on: porism rank" in said
    assert "Traceback" not in said


def test_other_settings_are_refused_and_shown(file: Path, tmp_path: Path) -> None:
    assert run("rank", file, "-m", FAKE, cwd=tmp_path).returncode == 0
    changed = run("rank", file, "-m", FAKE, "--temperature", 0.5, cwd=tmp_path)
    assert changed.returncode == 2
    assert "temperature" in changed.stderr
    assert "--accept-changes" in changed.stderr
    assert (
        run("rank", file, "-m", FAKE, "--temperature", 0.5, "--accept-changes", cwd=tmp_path).returncode == 0
    )


def test_more_candidates_extend_the_run(file: Path, tmp_path: Path) -> None:
    first = json.loads(run("rank", file, "-m", "fake/max_n=1", "--json", cwd=tmp_path).stdout)
    write_problems([problem(candidates=4)], file, force=True)
    more = json.loads(run("rank", file, "-m", "fake/max_n=1", "--json", cwd=tmp_path).stdout)
    assert more["run"] == first["run"]
    assert more["usage"]["requests"] - first["usage"]["requests"] == 2 * 8
    assert len(more["problems"][0]["ranking"]) == 4


def test_several_solvers_give_their_mean(file: Path, tmp_path: Path) -> None:
    other = "fake/rate_right=0.5,rate_wrong=0.3,seed=4"
    done = run("rank", file, "-m", FAKE, "-m", other, "--json", cwd=tmp_path)
    rows = json.loads(done.stdout)["problems"][0]["ranking"]
    assert rows[0]["candidate"] == "a"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["-m", "nonsense"], "provider/model-id"),
        (["-m", "opnai/gpt"], "openai"),
        (["-m", "local/no-such-model"], "qwen2.5-coder-0.5b"),
        (["-n", "0"], "rollouts"),
        (["-n", "1000000000"], "at most 100,000"),
        (["--method", "judge"], "utility"),
        (["--price", "1"], "--price"),
        (["--max-cost", "1"], "--price"),
        (["--template", "nowhere.j2"], "nowhere.j2"),
        (["--temperature", "-1"], "temperature"),
    ],
)
def test_bad_flags_are_one_message_and_exit_2(file: Path, tmp_path: Path, args: list[str], says: str) -> None:
    done = run("rank", file, *args, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_a_file_that_cannot_be_ranked(tmp_path: Path) -> None:
    bare = problem()
    path = tmp_path / "bare.yaml"
    write_problems([dataclasses.replace(bare, neighbors=())], path)
    done = run("rank", path, "-m", FAKE, cwd=tmp_path)
    assert done.returncode == 2
    assert "has no neighbors" in done.stderr
    assert not (tmp_path / "runs").exists()
    assert run("rank", tmp_path / "nowhere.yaml", "-m", FAKE, cwd=tmp_path).returncode == 2


def serve(file: Path, tmp_path: Path, *args: object, **faults: Any) -> subprocess.CompletedProcess[str]:
    with serving(**faults) as url:
        return run(
            "rank",
            file,
            "-m",
            "generic/test-model",
            "--base-url",
            url,
            "--max-tokens",
            64,
            *args,
            cwd=tmp_path,
        )


def test_a_server_that_fails_three_calls_in_ten(file: Path, tmp_path: Path) -> None:
    done = serve(file, tmp_path, "--json", limited=0.08, error=0.08, cut=0.07, garbage=0.07)
    assert done.returncode == 0, done.stderr
    calm = serve(file, tmp_path, "--json", "-o", "calm")
    assert json.loads(done.stdout)["problems"] == json.loads(calm.stdout)["problems"]
    assert json.loads(done.stdout)["missing"] == {}


def test_a_server_that_is_down_ends_within_a_minute(file: Path, tmp_path: Path) -> None:
    started = time.monotonic()
    done = run("rank", file, "-m", "generic/test-model", "--base-url", closed_port(), cwd=tmp_path)
    assert time.monotonic() - started < 60
    assert done.returncode == 1
    assert "no connection" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_endpoint_that_refuses_the_key(file: Path, tmp_path: Path) -> None:
    with serving(key="right-key") as url:
        done = run(
            "rank",
            file,
            "-m",
            "generic/test-model",
            "--base-url",
            url,
            cwd=tmp_path,
            env={"GENERIC_API_KEY": "wrong-key"},
        )
    assert done.returncode == 1
    assert "GENERIC_API_KEY" in done.stderr
    everything = (
        done.stdout
        + done.stderr
        + "".join(path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())
    )
    assert "wrong-key" not in everything


def test_a_model_the_server_does_not_have(file: Path, tmp_path: Path) -> None:
    done = serve(file, tmp_path, models="test-modell,other")
    assert done.returncode == 1
    assert "test-modell" in done.stderr


def test_a_candidate_longer_than_the_context(file: Path, tmp_path: Path) -> None:
    long = problem()
    longer = dataclasses.replace(long.candidates[1], text="word " * 2000)
    write_problems([dataclasses.replace(long, candidates=(long.candidates[0], longer))], file, force=True)
    done = serve(file, tmp_path, context_chars=4000)
    assert done.returncode == 1
    message = next(line for line in done.stdout.splitlines() if line.startswith("missing"))
    assert "16 rollouts of p/b" in message
    assert "context length" in message


def test_servers_without_seed_or_n_are_pointed_out(file: Path, tmp_path: Path) -> None:
    assert "seed" in serve(file, tmp_path, ignores_seed=True).stderr
    assert "identical" in serve(file, tmp_path, "-o", "other", identical=True).stderr
    done = serve(file, tmp_path, "-o", "third", ignores_n=True)
    assert done.returncode == 0
    assert "ignores n" in done.stderr


def test_a_file_where_the_folder_should_be(file: Path, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("in the way")
    done = run("rank", file, "-m", FAKE, "-o", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert "run: is a file, and a run is a folder" in done.stderr
    assert (tmp_path / "run").read_text() == "in the way"


@contextmanager
def mounted(path: Path, options: str) -> Iterator[Path]:
    """A small file system of its own; only root may have one."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("mounting a tmpfs needs root")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_a_full_disk_is_one_message_and_the_run_goes_on_with_room(file: Path, tmp_path: Path) -> None:
    model = "fake/tokens=200,max_n=1"
    with mounted(tmp_path / "small", "size=64k") as small:
        done = run("rank", file, "-m", model, "-o", small / "run", cwd=tmp_path)
        assert done.returncode == 1
        assert "No space left on device" in done.stderr
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) < 12
        subprocess.run(["mount", "-o", "remount,size=8m", str(small)], check=True)
        whole = run("rank", file, "-m", model, "-o", small / "run", "--json", cwd=tmp_path)
        assert whole.returncode == 0, whole.stderr
    calm = run("rank", file, "-m", model, "-o", "calm", "--json", cwd=tmp_path)
    assert json.loads(whole.stdout)["problems"] == json.loads(calm.stdout)["problems"]


def test_a_read_only_folder_is_found_before_anything_is_asked(file: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "locked", "size=64k,ro") as locked, serving() as url:
        done = run(
            *("rank", file, "-m", "generic/test-model", "--base-url", url, "-o", locked / "run"), cwd=tmp_path
        )
        assert done.returncode == 1
        assert "Read-only file system" in done.stderr
        assert "Traceback" not in done.stderr
        with urllib.request.urlopen(f"{url}/stats") as answer:
            assert json.load(answer)["requests"] == 0


def test_errors_of_the_python_function() -> None:
    with pytest.raises(ConfigError, match="rollouts"):
        porism.rank([problem()], rollout=3)
    with pytest.raises(DataError, match="no candidates"):
        porism.rank([problem(candidates=0)], model=FAKE)


def test_a_checker_of_the_users_own_runs_only_where_code_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def same(answer, gold):\n    return answer.strip() == gold\n")
    p = problem()
    own = tuple(dataclasses.replace(n, answer_type="python:mine:same") for n in p.neighbors)
    write_problems([dataclasses.replace(p, neighbors=own)], tmp_path / "p.yaml")
    refused = run("rank", "p.yaml", "-m", FAKE, cwd=tmp_path)
    assert refused.returncode == 2
    assert "--allow-code" in refused.stderr
    allowed = run("rank", "p.yaml", "-m", FAKE, "--allow-code", "--json", cwd=tmp_path)
    assert allowed.returncode == 0, allowed.stderr
    document = json.loads(allowed.stdout)
    first = document["problems"][0]["ranking"][0]
    assert first["candidate"] == "a"
    assert first["utility"] > 0.5
    assert run("score", document["run"], cwd=tmp_path).returncode == 2
    again = run("score", document["run"], "--allow-code", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["problems"] == document["problems"]
