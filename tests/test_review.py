"""porism neighbors review: on a real terminal with a real editor, left and taken up again, and what is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from porism.data import read_problems, write_problems
from porism.types import Candidate, Neighbor, Problem
from terminal import Session

PROBLEM = Problem(
    id="p",
    question="What is 1 + ... + 100?",
    candidates=(Candidate(id="c", text="Pair them."),),
    neighbors=(
        Neighbor(
            id="a", question="What is 1 + ... + 60?", answer="1830", provenance={"model": "m", "votes": 3}
        ),
        Neighbor(id="b", question="What is 2 + ... + 60?", answer="1830", flags=("too-easy",)),
        Neighbor(id="c", question="What is \\frac{1}{2} + 1?\n\nAs a fraction.", answer="3/2", source="book"),
    ),
)
# Each call makes the next of the changes, as a person would between opening and closing the file.
EDITOR = """\
import json, pathlib, sys
steps = pathlib.Path(sys.argv[1])
changes = json.loads(steps.read_text())
steps.write_text(json.dumps(changes[1:]))
file = pathlib.Path(sys.argv[2])
old, new = changes[0]
text = file.read_text()
assert old in text, text
file.write_text(text.replace(old, new))
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "set.jsonl"
    write_problems([PROBLEM], path)
    return path


def editor(folder: Path, *changes: tuple[str, str]) -> str:
    (folder / "editor.py").write_text(EDITOR)
    (folder / "steps.json").write_text(json.dumps(changes))
    return f"{sys.executable} '{folder / 'editor.py'}' '{folder / 'steps.json'}'"


def review(
    file: Path, *words: str, lines: str = "", code: int = 0, visual: str = "false"
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "porism", "neighbors", "review", str(file), *words],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "VISUAL": visual},
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def rows(file: Path) -> list[dict[str, Any]]:
    log = file / "review.jsonl" if file.is_dir() else file.with_name(file.name + ".review.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_a_walk_on_a_terminal_with_an_editor(file: Path) -> None:
    changes = editor(
        file.parent, ("answer:", "anwser:"), ("anwser: '1830'", "answer: 1829"), ("2 + ", "3 + ")
    )
    before = file.read_bytes()
    with Session("neighbors", "review", file, cwd=file.parent, VISUAL=changes) as walk:
        walk.expect("What is 1 + ... + 100?")
        walk.expect("Neighbor a, 1 of 3")
        walk.expect("provenance: model: m; votes: 3")
        walk.expect("Is it a good neighbor?")
        walk.type("a well chosen")
        walk.expect("Neighbor b, 2 of 3")
        walk.expect("flags: too-easy")
        walk.expect("good neighbor?")
        walk.type("e")
        walk.expect("neighbor.yaml:3: anwser: unknown key; did you mean 'answer'?")
        walk.type("e")
        walk.expect("Neighbor c, 3 of 3")
        walk.expect("good neighbor?")
        walk.type("b")
        walk.expect("Answer: 1829")
        walk.expect("You decided: edit")
        walk.type("e")
        walk.expect("Neighbor c, 3 of 3")
        walk.type("q")
        assert walk.end() == 0
        assert "2 of 3 decided" in walk.text
        assert f"porism neighbors review {file} --write" in walk.text
    assert file.read_bytes() == before
    assert [row["decision"] for row in rows(file)] == ["accept", "edit", "edit"]
    assert rows(file)[0]["note"] == "well chosen"

    with Session("neighbors", "review", file, cwd=file.parent) as walk:
        walk.expect("Neighbor c, 3 of 3")
        walk.type("r no new idea")
        assert walk.end() == 0
        assert "1 accepted, 1 edited, 1 rejected, 0 open" in walk.text
    (result,) = read_problems(file)
    a, b = result.neighbors
    assert a == replace(PROBLEM.neighbors[0], flags=("reviewed",))
    assert (b.question, b.answer) == ("What is 3 + ... + 60?", "1829")
    assert b.flags == ("too-easy", "reviewed", "edited")
    assert set(b.provenance or {}) == {"edited"}
    assert result.candidates == PROBLEM.candidates
    assert file.with_name("set.jsonl.bak").read_bytes() == before
    assert rows(file)[-1]["record"]["question"] == PROBLEM.neighbors[2].question  # nothing lost
    assert "holds every decision already" in review(file).stderr


def test_a_pipe_serves_as_well_and_write_takes_what_is_decided(file: Path) -> None:
    done = review(file, lines="x\ns\nr\n")
    assert "1 of 3 decided" in done.stderr
    assert "Type one of a, e, r, s, b, q" in done.stderr
    assert [n.id for n in read_problems(file)[0].neighbors] == ["a", "b", "c"]
    done = review(file, "--write")
    assert "0 accepted, 0 edited, 1 rejected, 2 open" in done.stderr
    assert [n.id for n in read_problems(file)[0].neighbors] == ["a", "c"]
    assert not done.stdout


def test_an_edit_that_is_dropped_unchanged_or_cannot_be_made(file: Path) -> None:
    bad = editor(file.parent, ("question:", "answer: 1\nquestion:"))
    done = review(file, lines="e\nd\nq\n", visual=bad)
    assert "the key 'answer' is given twice" in done.stderr
    done = review(file, lines="e\nq\n", visual="true")
    assert "Nothing was changed." in done.stderr
    assert "ended with 1" in review(file, lines="e\nq\n", visual="false").stderr
    assert "set EDITOR" in review(file, lines="e\nq\n", visual="no-such-editor-here").stderr
    done = review(file, lines="e\nd\nq\n", visual=editor(file.parent, ("answer:", "flags: [x]\nanswer:")))
    assert "flags: is not edited here" in done.stderr
    done = review(file, lines="e\nd\nq\n", visual=editor(file.parent, ("60", "100")))
    assert "repeats the problem's own question" in done.stderr
    assert not rows(file)


def test_accepting_what_an_edit_made_keeps_the_edit(file: Path) -> None:
    review(file, lines="e\nb\na\ns\ns\n", visual=editor(file.parent, ("60", "70")))
    assert [row["decision"] for row in rows(file)] == ["edit", "edit"]
    review(file, "--write")
    first = read_problems(file)[0].neighbors[0]
    assert first.question == "What is 1 + ... + 70?"
    assert first.provenance is not None
    assert first.provenance["votes"] == 3
    assert "You decided" not in review(file, lines="q\n").stderr  # it is decided, under its new text


def test_a_neighbor_changed_since_is_open_again(file: Path) -> None:
    review(file, lines="a\nr\ns\n")
    changed = tuple(replace(n, answer="1") for n in PROBLEM.neighbors[:2]) + PROBLEM.neighbors[2:]
    write_problems([replace(PROBLEM, neighbors=changed)], file, force=True)
    done = review(file, lines="q\n")
    assert "2 neighbors have changed since" in done.stderr
    assert "0 of 3 decided" in done.stderr
    assert "holds every decision already" in review(file, "--write").stderr


def test_what_was_changed_in_the_file_during_the_walk_stays(file: Path) -> None:
    with Session("neighbors", "review", file, cwd=file.parent) as walk:
        for line in ("a", "a"):
            walk.expect("good neighbor?")
            walk.type(line)
        walk.expect("good neighbor?")
        other = replace(PROBLEM, candidates=(*PROBLEM.candidates, Candidate(id="new", text="Another.")))
        write_problems([other], file, force=True)
        walk.type("a")
        assert walk.end() == 0
    (result,) = read_problems(file)
    assert [c.id for c in result.candidates] == ["c", "new"]
    assert all("reviewed" in n.flags for n in result.neighbors)


@pytest.mark.parametrize("ending", ["yaml", "json", "parquet"])
def test_every_format_that_is_written(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"set.{ending}"
    write_problems([PROBLEM, replace(PROBLEM, id="q", question="What is q?")], path)
    review(path, lines="a\nr\na\n" * 2)
    found = read_problems(path)
    assert [[n.id for n in p.neighbors] for p in found] == [["a", "c"]] * 2
    assert (tmp_path / f"set.{ending}.bak").exists()


def test_a_folder_keeps_its_files_and_its_ids(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    subprocess.run([sys.executable, "-m", "porism", "new", str(folder)], check=True, capture_output=True)
    question = (folder / "question.md").read_bytes()
    review(folder, lines="a\nr\na\n")
    assert [n.id for n in read_problems(folder)[0].neighbors] == ["n1", "n3"]
    assert (folder / "neighbors.yaml.bak").exists()
    assert (folder / "question.md").read_bytes() == question
    assert sorted(path.name for path in folder.rglob("*.bak")) == ["neighbors.yaml.bak"]
    review(folder, "--write")
    inner = tmp_path / "inner"
    inner.mkdir()
    folder.rename(inner / "mine")
    assert "holds every decision already" in review(inner / "mine").stderr
    review(inner, lines="r\nr\n")
    assert read_problems(inner)[0].neighbors == ()


def test_a_format_that_is_only_read_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_text("original question,variant question,variant answer\nWhat?,And?,1\n")
    assert "porism data convert" in review(path, lines="a\n", code=2).stderr
