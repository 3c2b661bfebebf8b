"""Style robustness: copies keep the mathematics, and the report finds what was planted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import porism
from porism.data import read_problems, write_problems
from porism.methods.sentences import formulas, sentences
from porism.stress.make import by_model, by_rules, fault, request
from porism.stress.rules import restyle
from porism.stress.shifts import shifts
from porism.types import Candidate, Completion, Problem
from porism.verify.extract import extract
from samples import problem
from server import serving

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.yaml"))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("So $$ a. B $$ holds. Now $x=3.5$. Then", ["So $$ a. B $$ holds.", "Now $x=3.5$.", "Then"]),
        ("By \\[ p.\n\nQ \\] it ends.", ["By \\[ p.\n\nQ \\] it ends."]),
        ("See e.g. Lemma 2. Next", ["See e.g. Lemma 2.", "Next"]),
        ("About 3.14 of it\n\nnew paragraph", ["About 3.14 of it", "new paragraph"]),
        ("\\begin{align} a. \\\\ B. \\end{align} Done.", ["\\begin{align} a. \\\\ B. \\end{align} Done."]),
        ("", []),
    ],
)
def test_sentences(text: str, parts: list[str]) -> None:
    assert [s.text for s in sentences(text)] == parts


@given(st.text(alphabet="aB. $\\[]()\n1{}!?", max_size=80))
def test_sentences_lose_nothing(text: str) -> None:
    assert "".join(s.text + s.gap for s in sentences(text)) == text.strip()


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda f: f.stem)
def test_rules_keep_formulas_numbers_and_the_answer_of_every_example(file: Path) -> None:
    (p,) = read_problems(file)
    copies = [c for c in by_rules(p).candidates if c.derived_from]
    assert len(copies) > len(p.candidates)
    by_id = {c.id: c for c in p.candidates}
    for c in copies:
        assert c.derived_from is not None
        original = by_id[c.derived_from]
        assert formulas(c.text) == formulas(original.text), c.id
        assert extract(c.text).answer == extract(original.text).answer, c.id
        assert c.correct == original.correct
        assert c.text != original.text
        assert fault(original.text, c.text) is None, c.id


def test_rules_are_seeded_and_leave_what_they_cannot_change() -> None:
    text = "First $a=1$. Nothing here. Then $b$. So \\boxed{2}."
    assert restyle(text, "padding", seed="x") == restyle(text, "padding", seed="x")
    assert restyle(text, "padding", seed="x") != restyle(text, "padding", seed="y")
    assert restyle("Only $a=1$.", "terse", seed="x") is None
    assert restyle("No mathematics. None at all.", "terse", seed="x") is None
    assert restyle(text, "terse", seed="x") == "First $a=1$.\nThen $b$.\nSo \\boxed{2}."


def test_copies_are_made_once() -> None:
    once = by_rules(problem())
    assert by_rules(once) == once


@pytest.mark.parametrize(
    ("rewritten", "reason"),
    [
        ("Surely $x = 12$, and thus \\boxed{7}.", None),
        ("Surely \\( x=12 \\), hence \\fbox{7} \\boxed{7}.", None),
        ("Surely $x = 12$, and thus \\boxed{8}.", "another final answer"),
        ("Surely $x = 13$, from 12, and thus \\boxed{7}.", "a formula is missing or changed"),
        ("I cannot help with that.", "another final answer"),
    ],
)
def test_a_rewriting_must_be_the_same_mathematics(rewritten: str, reason: str | None) -> None:
    assert fault("We get $x = 12$. So \\boxed{7}.", rewritten) == reason


def test_copies_by_a_model_are_kept_or_counted() -> None:
    p = Problem(
        id="p", question="q", candidates=(Candidate(id="a", text="So $x=1$, \\boxed{1}."),), neighbors=()
    )
    answers = {
        ("a", "padding"): Completion(0, "Well, $x=1$ and so \\boxed{1}."),
        ("a", "terse"): Completion(0, "\\boxed{2}"),
        ("a", "confident"): Completion(0, "Sure: $x=1$, \\boxed{1}", "length"),
        ("a", "reformatted"): None,
    }
    made, refused = by_model(p, answers, "fake/m")
    assert [c.id for c in made.candidates] == ["a", "a+padding"]
    assert made.candidates[1].metadata == {"style": "padding", "restyled_by": "fake/m"}
    assert refused == Counter({"another final answer": 1, "cut off": 1, "no answer": 1})
    assert "So $x=1$" in request(p.candidates[0], "terse")


# What the report says


def stressed(values: dict[str, float], group: str = "g", id: str = "p") -> tuple[Problem, dict[str, float]]:
    """a, b right, c, d wrong, each with a padded copy."""
    base = [Candidate(id=i, text=i, correct=i in "ab") for i in "abcd"]
    copies = [
        Candidate(
            id=f"{c.id}+padding", text="", correct=c.correct, derived_from=c.id, metadata={"style": "padding"}
        )
        for c in base
    ]
    return Problem(id=id, group=group, question="q", candidates=(*base, *copies), neighbors=()), values


def test_planted_shifts_are_found() -> None:
    # c goes from .2 to .9: from rank 3 to rank 1, above a (.8) and b (.6); the others stay. d was below both.
    values = {"a": 0.8, "b": 0.6, "c": 0.2, "d": 0.1}
    values |= {"a+padding": 0.8, "b+padding": 0.6, "c+padding": 0.9, "d+padding": 0.1}
    p, scores = stressed(values)
    (shift,) = shifts([p], {"p": scores})
    assert shift.style == "padding"
    assert shift.score.value == pytest.approx(0.7 / 4)
    assert shift.rank.value == pytest.approx(-2 / 4)
    assert shift.rank_size.value == pytest.approx(2 / 4)
    assert shift.lifted.value == pytest.approx(2 / 4)  # of the pairs (c, a), (c, b), (d, a), (d, b)
    assert shift.lifted.n == 4
    assert shift.score.ci95 is None


def test_ties_count_half_a_place_and_groups_weigh_the_same() -> None:
    one, values = stressed(
        {"a": 0.5, "b": 0.5, "c": 0.0, "a+padding": 0.6, "b+padding": 0.5, "c+padding": 0.0}
    )
    two, same = stressed({"a": 0.5, "b": 0.4, "a+padding": 0.5, "b+padding": 0.4}, "h", "r")
    (shift,) = shifts([one, two], {"p": values, "r": same})
    assert shift.rank.value == pytest.approx((-0.5 / 3 + 0) / 2)
    assert shift.rank.ci95 is not None
    low, high = shift.rank.ci95
    assert low < -0.5 / 6 < high


# The command


def run(*args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "porism", *map(str, args)],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_make_rank_report(tmp_path: Path) -> None:
    write_problems([problem(candidates=4, helpful=2), problem("q", candidates=3)], tmp_path / "p.yaml")
    made = run(
        "stress", "p.yaml", "-o", "s.yaml", "--style", "padding", "--style", "reformatted", cwd=tmp_path
    )
    assert made.returncode == 0, made.stderr
    assert (
        sum(c.derived_from is not None for p in read_problems(tmp_path / "s.yaml") for c in p.candidates)
        == 14
    )
    ranked = run("rank", "s.yaml", "-m", "fake/rate_right=0.9,rate_wrong=0.1", "--json", cwd=tmp_path)
    assert ranked.returncode == 0, ranked.stderr
    report = run("stress", "--run", json.loads(ranked.stdout)["run"], "--json", cwd=tmp_path)
    assert report.returncode == 0, report.stderr
    found = json.loads(report.stdout)["methods"]["utility"]
    assert [shift["style"] for shift in found] == ["padding", "reformatted"]
    for shift in found:  # the fake solver looks for its mark and not at style
        assert abs(shift["score"]["value"]) < 0.2
        assert shift["lifted"]["value"] < 0.2
    table = run("stress", "--run", json.loads(ranked.stdout)["run"], cwd=tmp_path)
    assert "padding" in table.stdout


def test_a_model_that_answers_something_else_makes_no_copies(tmp_path: Path) -> None:
    write_problems([problem()], tmp_path / "p.yaml")
    with serving() as url:
        flags = ("--generator", "openai/test-model", "--base-url", url)
        done = run("stress", "p.yaml", "-o", "s.jsonl", *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    refused = [int(line.split()[0]) for line in done.stderr.splitlines() if "copies refused" in line]
    assert sum(refused) == 15
    assert "0 copies" in done.stderr
    assert read_problems(tmp_path / "s.jsonl") == read_problems(tmp_path / "p.yaml")


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ([], "give a problem file"),
        (["p.yaml", "--run", "r"], "give a problem file"),
        (["p.yaml"], "-o OUTPUT"),
        (["p.yaml", "-o", "s.yaml", "--style", "loud"], "styles are padding"),
        (["p.yaml", "-o", "p.yaml"], "exists already"),
    ],
)
def test_bad_requests_exit_2(tmp_path: Path, args: list[str], told: str) -> None:
    write_problems([problem()], tmp_path / "p.yaml")
    done = run("stress", *args, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_run_without_copies_says_so(tmp_path: Path) -> None:
    result = porism.rank(problem(), model="fake/rate=0.5", rollouts=2, output=tmp_path / "r")
    done = run("stress", "--run", result.run, cwd=tmp_path)
    assert done.returncode == 2
    assert "porism stress FILE" in done.stderr
