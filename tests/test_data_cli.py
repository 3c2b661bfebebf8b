"""porism data check, porism data convert and porism new, as people type them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from porism.data import load, read_problems
from porism.neighbors.likeness import leaks

ROW = '{"id": "a", "question": "q", "candidates": [], "neighbors": [{"id": "n", "question": "r", "answer": "1"}]}'


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def porism(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "porism", *words], capture_output=True, text=True, check=False
    )


def test_new_makes_a_problem_that_holds() -> None:
    done = porism("new", "my question")
    assert (done.returncode, done.stderr) == (0, "")
    assert "porism data check 'my question'\n  porism rank 'my question'" in done.stdout
    report = load(Path("my question"))
    assert report.findings == ()
    assert report.counts == {"problems": 1, "candidates": 2, "right": 0, "wrong": 0, "neighbors": 3}
    assert [neighbor.answer for neighbor in report.problems[0].neighbors] == [
        str(sum(n % 3 != 0 and n % 7 != 0 for n in range(1, 2001))),
        str(sum(n % 4 != 0 and n % 6 != 0 for n in range(1, 1801))),
        str(sum(n % 2 != 0 and n % 3 != 0 and n % 5 != 0 for n in range(1, 901))),
    ]
    assert not any(leaks(report.problems[0]).values())  # its own check finds nothing to blame
    Path("my question/question.md").write_text("Mine?")
    done = porism("new", "my question")
    assert done.returncode == 2
    assert "my question: is not empty; add --force" in done.stderr
    assert Path("my question/question.md").read_text() == "Mine?"
    assert porism("new", "my question", "--force").returncode == 0
    assert Path("my question/question.md.bak").read_text() == "Mine?"
    assert load(Path("my question")).findings == ()


def test_check_prints_findings_and_a_summary() -> None:
    Path("a.jsonl").write_text(ROW + "\n" + ROW.replace('"a"', '"b"').replace("answer", "anwser"))
    done = porism("data", "check", "a.jsonl")
    assert done.returncode == 2
    assert done.stdout.splitlines() == [
        "a.jsonl:2: neighbors[0].anwser: unknown key; did you mean 'answer'?",
        "warning: a.jsonl:1: candidates: 1 problem has no candidates yet, and cannot be ranked without",
        "a.jsonl: 1 problem, 0 candidates (0 labelled right, 0 wrong), 1 neighbor; 1 error, 1 warning",
    ]
    done = porism("data", "check", "a.jsonl", "--json")
    assert done.returncode == 2
    document = json.loads(done.stdout)
    assert document["ok"] is False
    assert document["errors"] == [
        {
            "severity": "error",
            "file": "a.jsonl",
            "line": 2,
            "key": "neighbors[0].anwser",
            "message": "unknown key; did you mean 'answer'?",
        }
    ]
    assert document["counts"]["problems"] == 1
    Path("a.jsonl").write_text(ROW)
    assert porism("data", "check", "a.jsonl").returncode == 0


def test_convert_does_all_or_nothing() -> None:
    Path("a.jsonl").write_text(ROW)
    done = porism("data", "convert", "a.jsonl", "a.yaml")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[-1] == "a.yaml: 1 problem"
    assert read_problems(Path("a.yaml")) == read_problems(Path("a.jsonl"))
    Path("a.jsonl").write_text(ROW + "\n{")
    before = Path("a.yaml").read_bytes()
    done = porism("data", "convert", "a.jsonl", "a.yaml", "--force")
    assert done.returncode == 2
    assert "a.jsonl:2: not valid JSON" in done.stderr
    assert Path("a.yaml").read_bytes() == before
    assert sorted(path.name for path in Path().iterdir()) == ["a.jsonl", "a.yaml"]
