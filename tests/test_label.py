"""porism label: walks on a real terminal and through pipes, what counts, agreement, and what is written."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from porism.data import read_problems, write_problems
from porism.labels import Judgement, agreements, in_order, items, kappa, labelled, standings
from porism.types import Candidate, Neighbor, Problem
from terminal import Session

SECRETS = ("gpt-secret", "method-error", "the-human-one")


def make(id: str = "p", candidates: int = 3, answer: str | None = "7") -> Problem:
    return Problem(
        id=id,
        question=f"What is {id}?",
        answer=answer,
        candidates=tuple(
            Candidate(
                id=f"the-human-one-{i}",
                text=f"Derivation {i} of {id}.\n\n    indented {i}\n\x1b[2Jend {i}",
                answer=str(i),
                kind="method-error",
                source="gpt-secret",
                human=True,
            )
            for i in range(candidates)
        ),
        neighbors=(Neighbor(id="n", question=f"And near {id}?", answer="8"),),
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "set.jsonl"
    write_problems([make()], path)
    return path


def label(file: Path, *words: object, lines: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "porism", "label", str(file), *map(str, words)],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        cwd=file.parent,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def rows(file: Path) -> list[dict[str, Any]]:
    log = file / "labels.jsonl" if file.is_dir() else file.with_name(file.name + ".labels.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_a_walk_on_a_terminal_is_left_and_taken_up_again(file: Path) -> None:
    with Session("label", file, "--rater", "ann", cwd=file.parent) as walk:
        walk.expect("What is p?")
        walk.expect("Known answer: 7")
        walk.expect("Candidate 1 of 3")
        walk.expect("    indented")
        walk.expect("Does the final answer match?")
        walk.type("y")
        walk.expect("Does the derivation hold?")
        walk.type("n  the sign is lost  in line 2")
        walk.expect("Candidate 2 of 3")
        walk.expect("Does the final answer match?")
        walk.type("maybe")
        walk.expect("Type one of y, n, u, s, b, q")
        walk.type("b")
        walk.expect("You said: answer yes, derivation no (the sign is lost in line 2)")
        walk.expect("match?")
        walk.type("yes")
        walk.expect("hold?")
        walk.type("back")
        walk.expect("match?")
        walk.type("no")
        walk.expect("hold?")
        walk.type("u")
        walk.expect("Candidate 2 of 3")
        walk.expect("match?")
        walk.type("q")
        assert walk.end() == 0
        assert "1 of 3 judged by ann" in walk.text
        assert f"porism label {file} --rater ann" in walk.text
        assert not [secret for secret in SECRETS if secret in walk.text]
        assert "\x1b[2J" not in walk.raw
    first, second = rows(file)
    assert (first["answer_matches"], first["derivation_holds"]) == ("yes", "no")
    assert first["note"] == "the sign is lost in line 2"
    assert (second["answer_matches"], second["derivation_holds"]) == ("no", "unsure")
    assert first["candidate"] == second["candidate"]
    assert set(first) >= {"rater", "time", "problem", "candidate", "text_hash"}

    with Session("label", file, "--rater", "ann", cwd=file.parent) as walk:
        walk.expect("Candidate 2 of 3")
        walk.press(b"\x03")
        assert walk.end() == 130
        assert "1 of 3 judged" in walk.text
        assert "To go on" in walk.text
        assert "Traceback" not in walk.text
    assert len(rows(file)) == 2


def test_a_pipe_serves_as_well_and_its_end_means_quit(file: Path) -> None:
    done = label(file, "--rater", "ann", lines="y\ny\ns\nn\n")
    assert "1 of 3 judged by ann" in done.stderr
    assert not done.stdout
    done = label(file, "--rater", "ann", lines="y\ny\ny\nu\n")
    assert "Candidate 2 of 3" in done.stderr
    assert "Candidate 1 of 3" not in done.stderr
    assert "3 of 3 judged by ann" in done.stderr
    assert "To go on" not in done.stderr
    assert len({row["candidate"] for row in rows(file)}) == 3
    assert "3 of 3" in label(file, "--rater", "ann").stderr


def test_skipped_ones_come_again_and_going_back_from_the_first_stays(file: Path) -> None:
    label(file, "--rater", "ann", lines="b\nb\ns\ns\ns\n")
    assert not rows(file)
    label(file, "--rater", "ann", lines="y\ny\nq\n")
    assert len(rows(file)) == 1


def test_without_a_known_answer_only_the_derivation_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "open.yaml"
    write_problems([make(answer=None, candidates=1)], path)
    done = label(path, "--rater", "ann", lines="y\n")
    assert "final answer match" not in done.stderr
    assert "answer_matches" in rows(path)[0]
    assert rows(path)[0]["answer_matches"] is None
    label(path, "--rater", "bob", lines="y\n")
    label(path, "--apply", tmp_path / "out.yaml")
    assert read_problems(tmp_path / "out.yaml")[0].candidates[0].correct is True


def test_a_folder_problem_holds_its_labels(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    subprocess.run([sys.executable, "-m", "porism", "new", str(folder)], check=True, capture_output=True)
    done = label(folder, "--rater", "ann", lines="y\nn\n")
    assert "2 of 2 judged" in done.stderr
    assert len(rows(folder)) == 2
    assert read_problems(folder)  # the log disturbs nothing


def test_a_changed_text_is_judged_again_and_it_is_said(file: Path) -> None:
    label(file, "--rater", "ann", lines="y\ny\n" * 3)
    problem = make()
    changed = replace(problem.candidates[1], text="A new derivation.")
    write_problems([replace(problem, candidates=(problem.candidates[0], changed))], file, force=True)
    done = label(file, "--rater", "ann", lines="n\nn\n")
    assert "no longer counting: 1 judgement, " in done.stderr
    assert "of candidates that this file does not hold: 1" in done.stderr
    assert "A new derivation." in done.stderr
    assert "Derivation 0" not in done.stderr
    assert "no longer counting" not in label(file, "--rater", "ann").stderr


def test_torn_lines_are_passed_over_and_the_next_line_is_whole(file: Path) -> None:
    label(file, "--rater", "ann", lines="y\ny\nq\n")
    log = file.with_name("set.jsonl.labels.jsonl")
    log.write_bytes(log.read_bytes() + b'{"rater": "ann", "ti')
    done = label(file, "--rater", "ann", lines="y\ny\nq\n")
    assert "1 line cannot be read" in done.stderr
    lines = log.read_text().splitlines()
    assert len(lines) == 3
    assert json.loads(lines[2])["rater"] == "ann"


def test_a_place_that_cannot_be_written_is_found_before_the_first_question(file: Path) -> None:
    file.with_name("set.jsonl.labels.jsonl").mkdir()
    done = label(file, "--rater", "ann", lines="y\n", code=2)
    assert "cannot be read" in done.stderr
    assert "What is p?" not in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--rater", " "], "--rater"),
        (["--summary", "--apply", "out.jsonl"], "give one of them"),
        (["--apply", "set.jsonl"], "exists already"),
        (["--apply", "out.txt"], "'.txt' is not written"),
    ],
)
def test_bad_flags_are_one_message(file: Path, words: list[str], says: str) -> None:
    assert says in label(file, *words, code=2).stderr


def judge(file: Path, rater: str, verdicts: dict[str, tuple[str, str]]) -> None:
    """Let a rater judge through a pipe, each candidate as told by its number, in the rater's own order."""
    order = in_order(items(read_problems(file)), rater)
    label(
        file,
        "--rater",
        rater,
        lines="".join("\n".join(verdicts[item.candidate.id[-1]]) + "\n" for item in order),
    )


def test_two_raters_agreement_disputes_and_labels(file: Path) -> None:
    judge(file, "ann", {"0": ("y", "y"), "1": ("y", "n gap"), "2": ("n", "n")})
    alone = json.loads(label(file, "--summary", "--json").stdout)
    assert alone["agreement"] == []
    assert alone["undecided"] == 3
    judge(file, "bob", {"0": ("y", "y"), "1": ("y", "y"), "2": ("n", "u")})
    found = json.loads(label(file, "--summary", "--json").stdout)
    assert (found["right"], found["wrong"], found["disputed"], found["unjudged"]) == (1, 1, 1, 0)
    correct = next(a for a in found["agreement"] if a["about"] == "correct")
    assert (correct["n"], correct["agree"], correct["few"]) == (3, 2, True)
    # shares right: ann 1/3, bob 2/3; chance 4/9, observed 2/3
    assert correct["kappa"] == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))
    holds = next(a for a in found["agreement"] if a["about"] == "derivation_holds")
    assert holds["n"] == 2  # bob was unsure of one
    (dispute,) = found["disagreements"]
    assert dispute["candidate"] == "the-human-one-1"
    shown = label(file, "--summary").stdout
    assert "too few to rely on" in shown
    assert "open: p/the-human-one-1" in shown
    assert "ann: answer yes, derivation no (gap)" in shown

    out = file.with_name("out.jsonl")
    done = label(file, "--apply", out)
    assert [c.correct for c in read_problems(out)[0].candidates] == [True, None, False]
    assert "left open: p/the-human-one-1" in done.stderr
    assert [c.correct for c in read_problems(file)[0].candidates] == [None] * 3

    done = label(file, "--rater", "ann", "--disputed", lines="y\ny convinced\n")
    assert "ann: answer yes, derivation no (gap)" in done.stderr
    assert "bob: answer yes, derivation yes" in done.stderr
    assert "Candidate 1 of 1" in done.stderr
    assert json.loads(label(file, "--summary", "--json").stdout)["disputed"] == 0
    assert "nothing to judge" in label(file, "--rater", "ann", "--disputed").stderr
    label(file, "--apply", out, "--force")
    assert [c.correct for c in read_problems(out)[0].candidates] == [True, True, False]
    assert out.with_name("out.jsonl.bak").exists()


def test_raters_see_different_orders_and_new_candidates_do_not_change_them() -> None:
    found = items([make("p", 8), make("q", 8), make("r", 8), make("s", 8)])
    orders = {rater: [item.key for item in in_order(found, rater)] for rater in ("ann", "bob", "cem")}
    assert len({tuple(order) for order in orders.values()}) == 3
    assert orders["ann"] != [item.key for item in found]
    fewer = [item for item in found if item.candidate.id != "the-human-one-3"]
    assert [item.key for item in in_order(fewer, "ann")] == [
        key for key in orders["ann"] if key[1] != "the-human-one-3"
    ]
    problems = [key[0] for key in orders["ann"]]
    assert all(len(set(problems[i : i + 8])) == 1 for i in range(0, 32, 8))  # one problem after another


def said(rater: str, item: Any, holds: str, matches: str | None = "yes") -> Judgement:
    return Judgement(
        rater=rater,
        time="t",
        problem=item.problem.id,
        candidate=item.candidate.id,
        text_hash=item.text_hash,
        answer_matches=matches,  # type: ignore[arg-type]
        derivation_holds=holds,  # type: ignore[arg-type]
    )


def test_what_two_agree_on_is_the_label_and_a_third_voice_can_dispute_it() -> None:
    problem = make("p", 4)
    labels = (True, False, None, True)
    problem = replace(
        problem,
        candidates=tuple(
            replace(c, correct=label) for c, label in zip(problem.candidates, labels, strict=True)
        ),
    )
    found = items([problem])
    log = [said(r, found[0], "no") for r in ("a", "b")]  # overturns a label
    log += [
        said("a", found[1], "yes"),
        said("b", found[1], "yes"),
        said("c", found[1], "no"),
    ]  # two against one
    log += [said("a", found[2], "yes"), said("b", found[2], "unsure")]  # one alone
    standing, stale, gone = standings(found, log)
    assert (stale, gone) == (0, 0)
    (result,), counts, overturned = labelled([problem], standing)
    assert [c.correct for c in result.candidates] == [False, None, None, True]
    assert dict(counts) == {"set": 1, "changed": 2, "unset": 1, "open": 1}
    assert overturned == [
        "p/the-human-one-0: was right, now wrong",
        "p/the-human-one-1: was wrong, now open",
    ]
    assert [c.correct for c in labelled([problem], standing, 1)[0][0].candidates] == [False, None, True, True]
    pairs = {(a.raters, a.about): a for a in agreements(standing)}
    assert pairs[("a", "b"), "correct"].n == 2
    assert pairs[("a", "c"), "correct"].agree == 0


def test_kappa() -> None:
    # the table 20 5 / 10 15: observed .7, chance .5
    pairs = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    assert kappa(pairs) == pytest.approx(0.4)
    assert kappa([(True, True)] * 9) is None
    assert kappa([]) is None
    assert kappa([(True, False), (False, True)]) == -1
    assert kappa([(True, True), (False, False)]) == 1
