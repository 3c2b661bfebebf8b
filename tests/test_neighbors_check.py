"""`porism neighbors check`: what each neighbor is worth, found in its texts and in what rollouts say."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from porism.data import read_problems, write_problems
from porism.neighbors.check import Rates, check, texts
from porism.neighbors.discrimination import alike, intraclass
from porism.neighbors.likeness import duplicates, leaks, meaning, near
from porism.types import Candidate, Counts, Neighbor, Problem
from samples import problem

QUESTION = "How many necklaces of 6 beads in 3 colors are there, up to rotation?"


def neighborhood(
    *neighbors: Neighbor, candidates: tuple[Candidate, ...] = (), answer: str | None = None
) -> Problem:
    return Problem(id="p", question=QUESTION, candidates=candidates, neighbors=neighbors, answer=answer)


def asked(question: str, answer: str = "7", id: str = "n") -> Neighbor:
    return Neighbor(id=id, question=question, answer=answer)


def counts(correct: int, decided: int) -> Counts:
    return Counts(correct=correct, wrong=decided - correct)


# Texts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Find the order of $S_4$.", "What is the order of \\( S_4 \\)?"),
        ("Compute $2 \u00d7 3$.", "Please compute 2 \\times 3"),
        ("Evaluate\n\n$\\frac{1}{2}$", "evaluate $\\dfrac{1}{2}$"),
    ],
)
def test_layout_and_filler_words_do_not_change_a_question(one: str, other: str) -> None:
    assert meaning(one) == meaning(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Take 3 red and 4 blue balls.", "Take 4 red and 3 blue balls."),
        ("How many even words are there?", "How many odd words are there?"),
        ("Compute 2 + 3.", "Compute 2 - 3."),
        ("How many graphs on 5 vertices?", "How many graphs on 6 vertices?"),
    ],
)
def test_other_questions_stay_other(one: str, other: str) -> None:
    assert meaning(one) != meaning(other)


def test_duplicates_name_the_earlier_ones_and_the_target() -> None:
    p = neighborhood(
        asked("How many graphs on 5 vertices?", id="a"),
        asked("how many  graphs on $5$ vertices", id="b"),
        asked(QUESTION.replace("How many", "Compute the number of how many"), id="c"),
    )
    assert duplicates(p) == {"a": [], "b": ["a"], "c": ["the target"]}


def test_a_single_changed_word_is_near_and_no_duplicate() -> None:
    long = "Let n be 12 and consider all words of length n over an alphabet with four letters that contain an {} number"
    long += " of vowels and avoid every repeated pair of neighboring consonants"
    p = neighborhood(asked(long.format("even"), id="a"), asked(long.format("odd"), id="b"))
    assert duplicates(p)["b"] == []
    assert near(p)["b"] == ["a"]


def test_leaks_of_answers_and_statements() -> None:
    statement = "How many necklaces of 10 beads in 2 colors are there, up to rotation?"
    p = neighborhood(
        asked("Which?", "130", "target"),
        asked("What?", "$\\frac{22}{7}$", "final"),
        asked("Where?", "3571113", "inside"),
        asked(statement, "9", "stated"),
        asked("Harmless?", "6", "short"),
        candidates=(
            Candidate(id="x", text=f"6 beads. As in: {statement} we get 3571113 and so \\boxed{{22/7}}."),
        ),
        answer="130",
    )
    found = leaks(p)
    assert found["target"] == ["its answer is the target's answer"]
    assert found["final"] == ["its answer is the final answer of x"]
    assert found["inside"] == ["its answer stands in x"]
    assert found["stated"] == ["its statement stands in x"]
    assert found["short"] == []


# Rollouts


def test_intraclass_of_equal_and_of_split_candidates() -> None:
    equal = intraclass([counts(4, 8)] * 5)
    assert equal is not None
    assert equal.value == 0 == equal.low
    split = intraclass([counts(8, 8), counts(8, 8), counts(0, 8), counts(0, 8), counts(0, 8)])
    assert split is not None
    assert split.value > 0.95
    assert split.low > 0.3
    assert intraclass([counts(0, 8)] * 5) is None
    assert intraclass([counts(8, 8)] * 5) is None
    assert intraclass([counts(3, 8)]) is None


def test_intraclass_covers_the_truth() -> None:
    import numpy as np

    rng = np.random.default_rng(5)
    for rho in (0.1, 0.4):
        share = (1 - rho) / rho
        inside = 0
        for _ in range(300):
            rates = rng.beta(0.3 * share, 0.7 * share, 6)
            found = intraclass([counts(int(x), 16) for x in rng.binomial(16, rates)])
            inside += found is not None and found.low <= rho <= found.high
        assert inside >= 270


def test_alike_needs_five_candidates_and_variation() -> None:
    rows = [[counts(x, 8)] for x in (8, 6, 1, 0, 2)]
    other = [[counts(x, 8)] for x in (0, 1, 6, 8, 5)]
    assert alike({"a": rows, "b": rows, "c": other}) == {"a": [], "b": ["a"], "c": []}
    assert alike({"a": rows[:4], "b": rows[:4]}) == {"a": [], "b": []}
    flat = [[counts(0, 8)]] * 5
    assert alike({"a": flat, "b": flat}) == {"a": [], "b": []}


def test_neighbors_that_agree_are_named_and_kept() -> None:
    p = neighborhood(asked("How many?", id="a"), asked("How long?", id="b"))
    plain = Rates(
        no_example=0.2, no_example_ci95=(0.1, 0.4), decided=16, reference="x", shown=0.8, gap=None, gap_ci95=None,
        discrimination=0.5, discrimination_ci95=(0.2, 0.8),
    )  # fmt: skip
    said = texts(p, {"a": None, "b": None})
    found = check(p, said, {"a": plain, "b": msgspec.structs.replace(plain, alike=("a",))})
    assert [n.advice for n in found.neighbors] == ["keep", "keep"]
    assert found.neighbors[1].why == ("candidates do on it as on a",)


# The command


def run(*args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "porism", "neighbors", "check", *map(str, args)],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two honest neighbors, one that everybody solves and one that nobody can: its answer is another than all give."""
    p = problem(candidates=4, helpful=2)
    extra = (
        Neighbor(id="copy", question="and 1 of p? [[answer: 101]]", answer="101"),
        Neighbor(id="wrong-gold", question="And 9 of p? [[answer: 55]]", answer="56"),
    )
    path = tmp_path / "p.yaml"
    write_problems([dataclasses.replace(p, neighbors=p.neighbors + extra)], path)
    return path


def test_rollouts_and_texts_together(file: Path, tmp_path: Path) -> None:
    done = run(file, "-m", "fake/rate_right=0.9,rate_wrong=0.1", "-n", "16", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["problems"]
    by = {n["id"]: n for n in found["neighbors"]}
    assert by["n0"]["advice"] == "keep"
    assert by["n0"]["rates"]["discrimination"] > 0.3
    low, high = by["n0"]["rates"]["gap_ci95"]
    assert low < 0.8 < high + 0.1
    assert low > 0.3
    assert by["n0"]["rates"]["reference"] == "a, b"
    assert by["n0"]["rates"]["tokens"] > 1
    assert by["copy"]["advice"] == "drop"
    assert by["copy"]["flags"] == ["duplicate"]
    assert "Drop copy" in found["message"]
    assert "Add 1" in found["message"]


def test_a_wrong_known_answer_is_looked_at_before_it_is_dropped(file: Path, tmp_path: Path) -> None:
    done = run(file, "-m", "fake/rate=0.75", "--json", cwd=tmp_path)
    (found,) = json.loads(done.stdout)["problems"]
    by = {n["id"]: n for n in found["neighbors"]}
    assert by["wrong-gold"]["advice"] == "check"
    assert "suspect gold" in by["wrong-gold"]["flags"]
    assert "55" in " ".join(by["wrong-gold"]["why"])


def test_the_rollouts_are_those_of_rank(file: Path, tmp_path: Path) -> None:
    run(file, "-m", "fake/rate=0.5", cwd=tmp_path)
    again = run(file, "-m", "fake/rate=0.5", "--dry-run", "--json", cwd=tmp_path)
    plan = json.loads(again.stdout)
    assert plan["stored"] == plan["rollouts"] > 0
    by_run = run(file, "--run", plan["run"], "--json", cwd=tmp_path)
    assert by_run.returncode == 0, by_run.stderr
    assert json.loads(by_run.stdout)["run"] == plan["run"]


def test_easy_neighbors_are_dropped_and_harder_ones_wanted(file: Path, tmp_path: Path) -> None:
    done = run(file, "-m", "fake/rate=1", "--json", cwd=tmp_path)
    (found,) = json.loads(done.stdout)["problems"]
    by = {n["id"]: n for n in found["neighbors"]}
    assert by["n0"]["flags"] == ["too easy"]
    assert "Add 3 harder neighbors." in found["message"]


def test_few_rollouts_accuse_nobody(file: Path, tmp_path: Path) -> None:
    done = run(file, "-m", "fake/rate=1", "-n", "2", "--json", cwd=tmp_path)
    (found,) = json.loads(done.stdout)["problems"]
    assert {n["id"]: n["flags"] for n in found["neighbors"]}["n0"] == []
    assert "8 decided rollouts" in found["message"]


def test_without_candidates_only_the_row_without_example_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "bare.yaml"
    write_problems([problem(candidates=0, helpful=0)], path)
    done = run(path, "-m", "fake/rate=0.5", "-n", "16", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (found,) = document["problems"]
    assert document["usage"]["completion"] > 0
    assert all(n["rates"]["discrimination"] is None for n in found["neighbors"])
    assert all(n["advice"] == "keep" for n in found["neighbors"])


def test_texts_only_asks_nothing(file: Path, tmp_path: Path) -> None:
    done = run(file, "--texts-only", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "duplicate" not in done.stderr
    assert "asks the same as n1" in done.stdout
    assert "only the texts" in done.stdout
    assert not (tmp_path / "runs").exists()


def test_known_answers_that_cannot_be_checked_against(tmp_path: Path) -> None:
    path = tmp_path / "gold.yaml"
    neighbors = (
        Neighbor(id="fine", question="Which?", answer="$\\frac{1}{2}$", solution="So it is \\boxed{0.5}."),
        Neighbor(id="braces", question="Where?", answer="\\frac{1}{2"),
        Neighbor(id="other", question="Why?", answer="12", solution="Clearly \\boxed{13}."),
    )
    write_problems([dataclasses.replace(problem(), neighbors=neighbors)], path)
    done = run(path, "--texts-only", "--json", cwd=tmp_path)
    by = {n["id"]: n for n in json.loads(done.stdout)["problems"][0]["neighbors"]}
    assert by["fine"]["texts"].get("gold") is None
    assert by["braces"]["flags"] == ["gold not understood"]
    assert "13" in by["other"]["texts"]["gold"]


def test_a_family_whose_rule_is_code_needs_consent(tmp_path: Path) -> None:
    path = tmp_path / "code.yaml"
    (tmp_path / "my_rules.py").write_text("def square(n):\n    return n * n\n", encoding="utf-8")
    family = {
        "name": "squares",
        "question": "What is the square of $<n>$?",
        "parameters": {"n": {"type": "integer", "range": [2, 40]}},
        "answer": "python:my_rules:square",
    }
    path.write_text(
        json.dumps({"schema": 1, "id": "squares", "question": "What is the square of 50?", "family": family}),
        encoding="utf-8",
    )
    refused = run(path, "--texts-only", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--allow-code" in refused.stderr
    done = run(path, "-m", "fake/rate=0.5", "--allow-code", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (found,) = document["problems"]
    assert [n["id"] for n in found["neighbors"]] == [f"family-{i}" for i in range(1, 6)]
    assert all(n["rates"]["decided"] == 8 for n in found["neighbors"])
    again = run(path, "--run", document["run"], "--allow-code", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["problems"] == document["problems"]


def test_write_sets_flags_and_takes_old_ones_back(file: Path, tmp_path: Path) -> None:
    before = file.read_bytes()
    assert run(file, "--texts-only", "--write", cwd=tmp_path).returncode == 0
    (marked,) = read_problems(file)
    assert {n.id: n.flags for n in marked.neighbors}["copy"] == ("duplicate",)
    assert file.with_name("p.yaml.bak").read_bytes() == before
    mended = dataclasses.replace(
        marked,
        neighbors=tuple(
            dataclasses.replace(n, question="And 7? [[answer: 101]]", flags=(*n.flags, "mine"))
            if n.id == "copy"
            else n
            for n in marked.neighbors
        ),
    )
    write_problems([mended], file, force=True)
    assert run(file, "--texts-only", "--write", cwd=tmp_path).returncode == 0
    assert {n.id: n.flags for n in read_problems(file)[0].neighbors}["copy"] == ("mine",)


def test_flags_go_into_a_folder_problem_too(file: Path, tmp_path: Path) -> None:
    (p,) = read_problems(file)
    folder = tmp_path / "folder"
    (folder / "candidates").mkdir(parents=True)
    (folder / "question.md").write_text(p.question)
    neighbors = [{"id": n.id, "question": n.question, "answer": n.answer} for n in p.neighbors]
    (folder / "neighbors.yaml").write_text(json.dumps(neighbors))
    assert run(folder, "--texts-only", "--write", cwd=tmp_path).returncode == 0
    assert {n.id: n.flags for n in read_problems(folder)[0].neighbors}["copy"] == ("duplicate",)
    assert (folder / "neighbors.yaml.bak").is_file()


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--sweet-spot", "0.9,0.1"], "--sweet-spot"),
        (["--sweet-spot", "low"], "--sweet-spot"),
        (["--run", "nowhere"], "there is no run here"),
        (["--run", "nowhere", "--texts-only"], "exclude each other"),
    ],
)
def test_bad_requests_exit_2_with_a_reason(file: Path, tmp_path: Path, flags: list[str], told: str) -> None:
    done = run(file, *flags, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_budget_stops_with_3(file: Path, tmp_path: Path) -> None:
    done = run(file, "-m", "fake/rate=0.5", "--max-requests", "5", cwd=tmp_path)
    assert done.returncode == 3
    assert "goes on" in done.stderr
