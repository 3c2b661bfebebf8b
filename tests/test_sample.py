"""porism sample: candidates from fake models and a real server, added without touching what is there."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from porism.candidates import extend
from porism.data import read_problems, write_problems
from porism.types import Candidate, Completion, Problem
from samples import problem
from server import serving

FAKE = "fake/rate=0.5,max_n=1"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "set.jsonl"
    write_problems([problem("p"), problem("q"), problem("r", candidates=0, neighbors=0)], path)
    return path


def sample(file: Path, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "porism", "sample", str(file), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        cwd=file.parent,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def new(file: Path) -> list[list[Candidate]]:
    """The candidates that a model wrote, by problem."""
    return [[c for c in p.candidates if c.source] for p in read_problems(file)]


def test_candidates_are_added_and_what_is_there_stays(file: Path) -> None:
    before = file.read_bytes()
    old = read_problems(file)
    done = json.loads(sample(file, "-n", 4, "-g", FAKE, "--json").stdout)
    assert done["written"] == [str(file)]
    assert file.with_name("set.jsonl.bak").read_bytes() == before
    for was, now in zip(old, read_problems(file), strict=True):
        assert now.candidates[: len(was.candidates)] == was.candidates
        assert (now.neighbors, now.question) == (was.neighbors, was.question)
    for written in new(file):
        assert len(written) == 4
        assert len({c.text for c in written}) == 4
        assert {c.source for c in written} == {FAKE}
        assert all(c.text.endswith(f"\\boxed{{{c.answer}}}") for c in written)
        assert [c.metadata for c in written] == [{"rollout": k} for k in range(4)]
    again = json.loads(sample(file, "-n", 4, "-g", FAKE, "--json").stdout)
    assert again["usage"] == done["usage"]
    assert again["written"] == []
    assert [p["dropped"] for p in again["problems"]] == [{"same text": 4}] * 3
    more = sample(file, "-n", 6, "-g", FAKE)
    assert "p: 2 added, dropped 4: same text" in more.stderr
    assert [len(written) for written in new(file)] == [6] * 3
    ids = [c.id for c in read_problems(file)[0].candidates]
    assert len(set(ids)) == len(ids)


def test_a_new_file_leaves_the_old_one_alone(file: Path) -> None:
    before = file.read_bytes()
    out = file.with_name("out.yaml")
    sample(file, "-n", 2, "-g", FAKE, "-g", "fake/rate=1", "-o", out, "--limit", 2)
    assert file.read_bytes() == before
    assert [len(written) for written in new(out)] == [4, 4, 0]
    assert len({c.source for c in new(out)[0]}) == 2
    done = sample(file, "-n", 2, "-g", FAKE, "-o", out, code=2)
    assert "exists already; add --force" in done.stderr
    sample(file, "-n", 2, "-g", FAKE, "-o", out, "--force")
    assert out.with_name("out.yaml.bak").exists()
    assert "is not written" in sample(file, "-g", FAKE, "-o", "out.txt", code=2).stderr


def test_truncated_ones_are_marked_and_have_no_answer(file: Path) -> None:
    sample(file, "-n", 8, "-g", "fake/truncate=0.5,max_n=1", "--limit", 1)
    written = new(file)[0]
    cut = [c for c in written if (c.metadata or {}).get("truncated")]
    assert 0 < len(cut) < 8
    assert all(c.answer is None for c in cut)
    assert all(c.answer is not None for c in written if c not in cut)


def test_a_dry_run_asks_nothing_and_knows_what_is_stored(file: Path) -> None:
    plan = json.loads(sample(file, "-n", 4, "-g", FAKE, "--dry-run", "--json").stdout)
    assert (plan["rollouts"], plan["stored"], plan["requests"]) == (12, 0, 12)
    assert not (file.parent / "runs").exists()
    sample(file, "-n", 3, "-g", FAKE, "-o", "out.jsonl")
    plan = json.loads(sample(file, "-n", 4, "-g", FAKE, "--dry-run", "--json").stdout)
    assert (plan["rollouts"], plan["stored"], plan["requests"]) == (12, 9, 3)


def test_a_budget_stops_with_3_writes_nothing_and_goes_on(file: Path) -> None:
    before = file.read_bytes()
    done = sample(file, "-n", 4, "-g", FAKE, "--max-requests", 5, code=3)
    assert "--max-requests 5" in done.stderr
    assert "5 solutions are kept" in done.stderr
    assert "to go on: porism sample" in done.stderr
    assert file.read_bytes() == before
    assert sample(file, "-n", 4, "-g", FAKE, "--max-tokens-total", 100, code=3)
    whole = json.loads(sample(file, "-n", 4, "-g", FAKE, "--json").stdout)
    assert whole["usage"]["requests"] == 12
    assert [len(written) for written in new(file)] == [4] * 3


def test_ctrl_c_ends_with_130_and_the_same_command_goes_on(file: Path) -> None:
    before = file.read_bytes()
    words = ("sample", str(file), "-n", "4", "-g", "fake/rate=0.5,max_n=1,delay=0.2,concurrency=2")
    process = subprocess.Popen(
        [sys.executable, "-m", "porism", *words], cwd=file.parent, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not list((file.parent / "runs").glob("*/index.jsonl")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130, said
    assert "to go on: porism sample" in said
    assert file.read_bytes() == before
    sample(file, "-n", 4, "-g", "fake/rate=0.5,max_n=1,concurrency=2")
    assert [len(written) for written in new(file)] == [4] * 3


def test_a_server_with_faults_gives_the_same_candidates(file: Path) -> None:
    found: list[Any] = []
    for name, faults in (("calm", {}), ("rough", {"limited": 0.1, "error": 0.1, "cut": 0.1})):
        out = file.with_name(f"{name}.jsonl")
        with serving(**faults) as url:
            words = ("-n", 4, "-g", "generic/test-model", "--base-url", url, "--max-tokens", 64)
            sample(file, *words, "-o", out, "--run", file.parent / name)
        found.append([[c.text for c in written] for written in new(out)])
    assert found[0] == found[1]
    assert new(file.with_name("calm.jsonl"))[0][0].id == "test-model-1"


def test_a_prompt_of_ones_own_and_what_it_must_hold(file: Path) -> None:
    template = file.with_name("own.j2")
    template.write_text("Solve it: {{ question }} [[answer: 41]]")
    sample(file, "-n", 1, "-g", "fake/rate=1", "--template", template)
    assert [written[0].answer for written in new(file)] == ["41"] * 3
    template.write_text("Solve it")
    assert "question" in sample(file, "-n", 1, "-g", FAKE, "--template", template, code=2).stderr


def test_a_folder_gets_new_files_and_keeps_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    subprocess.run([sys.executable, "-m", "porism", "new", str(folder)], check=True, capture_output=True)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    sample(folder, "-n", 3, "-g", "fake/truncate=0.4,max_n=1")
    assert {path: path.read_bytes() for path in before} == before
    written = new(folder)[0]
    assert len(written) == 3
    assert all(isinstance((c.metadata or {})["rollout"], int) for c in written)
    assert any((c.metadata or {}).get("truncated") is True for c in written)
    sample(folder, "-n", 3, "-g", "fake/truncate=0.4,max_n=1")
    assert new(folder)[0] == written


def test_labels_made_while_models_write_stay(file: Path) -> None:
    words = ("sample", str(file), "-n", "2", "-g", "fake/max_n=1,delay=0.4,concurrency=1")
    process = subprocess.Popen(
        [sys.executable, "-m", "porism", *words], cwd=file.parent, stderr=subprocess.DEVNULL
    )
    while not list((file.parent / "runs").glob("*/index.jsonl")):
        assert process.poll() is None
        time.sleep(0.05)
    first, *rest = read_problems(file)
    labelled = tuple(dataclasses.replace(c, correct=False) for c in first.candidates)
    write_problems([dataclasses.replace(first, candidates=labelled), *rest], file, force=True)
    assert process.wait(timeout=30) == 0
    assert [c.correct for c in read_problems(file)[0].candidates] == [False] * 3 + [None] * 2


def extended(
    *texts: str, candidates: tuple[Candidate, ...] = (), **settings: bool
) -> tuple[list[Candidate], Any]:
    before = Problem(id="p", question="?", candidates=candidates, neighbors=())
    done = [
        Completion(i, text.removesuffix("|"), "length" if text.endswith("|") else "stop")
        for i, text in enumerate(texts)
    ]
    after, added = extend(before, [("vllm/lab/m 1", [*done, None])], **settings)
    return list(after.candidates[len(candidates) :]), added


def test_what_is_dropped_and_why() -> None:
    there = (Candidate(id="m-1-1", text="So \\boxed{4}"), Candidate(id="x", text="y"))
    found, added = extended(
        "So\n\n \\boxed{4}",
        "Thus \\boxed{4}",
        "<think>hm",
        "<think>hm</think> By parity \\boxed{5}\0",
        "By parity  \\boxed{5}",
        "and then|",
        candidates=there,
    )
    assert [(c.id, c.answer) for c in found] == [
        ("m-1-2", "4"),
        ("m-1-4", "5"),
        ("m-1-5", "5"),
        ("m-1-6", None),
    ]
    # the fifth differs from the fourth in its NUL, which became a mark of its own
    assert added.dropped == {"same text": 1, "no solution in the answer": 1, "never answered": 1}
    assert added.truncated == 1
    assert added.answers == 2
    assert found[1].text.startswith("By parity")
    assert "\0" not in found[1].text


def test_one_per_answer_keeps_the_first_of_each() -> None:
    there = (Candidate(id="x", text="t", answer="$4$"),)
    found, added = extended(
        "a \\boxed{4}", "b \\boxed{5}", "c \\boxed{5}", "d|", candidates=there, one_per_answer=True
    )
    assert [c.answer for c in found] == ["5"]
    assert added.dropped == {"same final answer": 2, "no final answer": 1, "never answered": 1}


def test_ids_never_clash() -> None:
    there = (Candidate(id="m-1-1", text="t"), Candidate(id="m-1-1-2", text="u"))
    found, _ = extended("a", candidates=there)
    assert [c.id for c in found] == ["m-1-1-3"]
