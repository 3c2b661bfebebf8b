"""porism verify on files: shapes, exit codes, messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from porism.cli import app
from porism.errors import DataError, InputError


def run(path: Path, *options: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["verify", str(path), "--workers", "1", *options])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


ROWS = [
    {
        "id": "a",
        "gold": "2\\sqrt{2}",
        "response": "So \\boxed{\\sqrt{8}}.",
        "expected": True,
        "kind": "radical",
    },
    {
        "id": "b",
        "gold": "5",
        "response": "So \\boxed{6}. The sum was 5",
        "expected": False,
        "kind": "integer",
    },
    {"id": "c", "gold": "5", "response": "I do not know it", "expected": False, "kind": "integer"},
    {"id": "d", "gold": "5", "response": "The answer is", "truncated": True},
    {"id": "e", "gold": "3.14", "answer": "\\pi", "answer_type": "decimal"},
]


def test_misspelt_keys_and_unknown_types_are_told(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "gold": "5", "answer": "5", "anwser_type": "integer", "source": "a column of the user's"},
        {"id": "b", "gold": "5", "answer": "5", "answer_type": "intger"},
        {"id": "c", "gold": "5", "answer": "5", "answer_type": "intger"},
    ]
    code, _, err = run(write(tmp_path / "cases.jsonl", rows))
    assert code == 0
    assert [line.partition("cases.jsonl: ")[2] for line in err.splitlines() if "cases.jsonl" in line] == [
        "'anwser_type' is no key of a case and is ignored; did you mean 'answer_type'?",
        "b: answer_type: 'intger' is not known, and auto is used; did you mean 'integer'?",
    ]


def test_json(tmp_path: Path) -> None:
    code, out, _ = run(write(tmp_path / "cases.jsonl", ROWS), "--json")
    document = json.loads(out)
    assert code == 0
    assert [row["verdict"] for row in document["rows"]] == [
        "correct",
        "wrong",
        "no_answer",
        "no_answer",
        "correct",
    ]
    assert document["rows"][1]["suspicious"] == "the gold stands in the last lines"
    assert document["counts"] == {"correct": 2, "wrong": 1, "no_answer": 2}
    assert document["by_kind"]["integer"] == {
        "rows": 2, "right": 2, "false_correct": 0, "false_other": 0, "undecided": 0,
    }  # fmt: skip


def test_lines_and_table(tmp_path: Path) -> None:
    code, out, err = run(write(tmp_path / "cases.jsonl", ROWS))
    assert code == 0
    assert out.splitlines()[0].split("\t")[:2] == ["a", "correct"]
    assert "radical" in err
    assert "total" in err


def test_a_verdict_against_the_expectation_ends_with_1(tmp_path: Path) -> None:
    code, _, _ = run(write(tmp_path / "cases.jsonl", [{"gold": "5", "answer": "5", "expected": False}]))
    assert code == 1


def test_every_fault_of_a_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"gold": 5, "response": "x"}\nnot json\n{"gold": "5"}\n[]\n', "utf-8")
    with pytest.raises(DataError) as caught:
        run(path)
    assert [finding.split(":")[1] for finding in caught.value.findings] == ["1", "2", "3", "4"]


def test_a_missing_file_and_a_binary_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        run(tmp_path / "none.jsonl")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        run(tmp_path / "bytes")


def test_an_empty_file(tmp_path: Path) -> None:
    code, out, _ = run(write(tmp_path / "cases.jsonl", []), "--json")
    assert code == 0
    assert json.loads(out) == {"rows": [], "counts": {}}
