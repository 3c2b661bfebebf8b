"""porism data build: pools, filters, caps, the card, and files that data frames read."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from porism.data import read_problems, write_problems
from porism.data.build import Recipe, build
from porism.errors import ConfigError, DataError
from porism.types import Candidate, Neighbor, Problem


def make(id: str, right: int = 6, wrong: int = 7, **changes: Any) -> Problem:
    return Problem(
        **{
            "id": id,
            "question": f"What is {id}? [[answer: 4]]",
            "candidates": tuple(
                Candidate(
                    id=f"c{i}",
                    text=f"Way {i} of {id}.",
                    correct=i < right,
                    source=f"model-{i % 2}",
                    metadata={"license": "CC0-1.0", "temperature": 0.7} if i % 2 else None,
                )
                for i in range(right + wrong)
            ),
            "neighbors": (
                Neighbor(
                    id="n", question=f"Near {id}?", answer="8", provenance={"model": "m", "votes": [1, 2]}
                ),
            ),
            "answer": "4",
            "metadata": {"source": "a book", "license": "CC-BY-4.0", "page": int(id[1:]) if id[1:] else "?"},
        }
        | changes
    )


def porism(*words: object, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "porism", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def removed(steps: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    return {s["filter"]: (s["problems"], s["candidates"]) for s in steps if s["problems"] or s["candidates"]}


def test_a_set_with_its_card_in_both_formats(tmp_path: Path) -> None:
    write_problems([make("p1"), make("p2", right=3), make("p3", wrong=4)], tmp_path / "one.jsonl")
    unlabelled = Candidate(id="open", text="Who knows?")
    extra = make("p4")
    extra = replace(extra, candidates=(*extra.candidates, unlabelled))
    write_problems([extra, make("p5", question="What is p1?   [[answer: 4]]")], tmp_path / "two.yaml")
    words = ("data", "build", "one.jsonl", "two.yaml", "-o", "set.jsonl", "--parquet", "--json")
    done = json.loads(porism(*words, cwd=tmp_path).stdout)
    assert done["files"] == ["set.jsonl", "set.parquet", "set.md"]
    assert (done["problems"], done["candidates"]) == (2, 18)
    assert removed(done["removed"]) == {
        "the question stands in an earlier file or problem": (1, 13),
        "no label": (0, 1),
        "fewer than 4 right candidates": (1, 10),
        "fewer than 5 wrong candidates": (1, 10),
        "more than the pool takes": (0, 8),
    }
    assert done["read"]["candidates"] - sum(s["candidates"] for s in done["removed"]) == done["candidates"]

    found = read_problems(tmp_path / "set.jsonl")
    assert found == read_problems(tmp_path / "set.parquet")
    original = {p.id: p for p in (make("p1"), extra)}
    for problem in found:
        whole = original[problem.id]
        assert [c.correct for c in problem.candidates].count(True) == 4
        assert len(problem.candidates) == 9
        assert set(map(repr, problem.candidates)) <= set(map(repr, whole.candidates))
        assert replace(problem, candidates=whole.candidates) == whole

    card = (tmp_path / "set.md").read_text()
    for line in (
        "| problems | 2 |",
        "| of them wrong | 10 |",
        "| fewer than 4 right candidates | -1 | -10 |",
        "| problem | a book | CC-BY-4.0 | 2 |",
        'load_dataset("parquet", data_files="set.parquet", split="train")',
    ):
        assert line in card
    assert str(tmp_path) not in card
    before = (tmp_path / "set.jsonl").read_bytes()
    assert "exists already; add --force" in porism(*words, cwd=tmp_path, code=2).stderr
    porism(*words, "--force", cwd=tmp_path)
    assert (tmp_path / "set.jsonl").read_bytes() == before
    assert (tmp_path / "set.jsonl.bak").exists()


def test_columns_are_plain_and_the_same_in_every_row(tmp_path: Path) -> None:
    write_problems(
        [make("p1", metadata={"page": 3}), make("p2", metadata={"page": "iv", "x": [1]})],
        tmp_path / "a.jsonl",
    )
    porism("data", "build", "a.jsonl", "-o", "set.jsonl", "--parquet", cwd=tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "set.jsonl").read_text().splitlines()]
    shapes = {
        (tuple(row), tuple(row["candidates"][0]), tuple(row["neighbors"][0]))
        for row in rows
        for _ in row["candidates"]
    }
    assert len(shapes) == 1
    assert all(isinstance(row["metadata"], str) for row in rows)
    lines = pl.read_ndjson(tmp_path / "set.jsonl")
    table = pl.read_parquet(tmp_path / "set.parquet")
    assert lines.columns == table.columns
    assert lines.to_dicts() == table.to_dicts()
    candidates = table.explode("candidates").unnest("candidates", separator=".")
    assert candidates.schema["candidates.correct"] == pl.Boolean
    assert candidates.schema["candidates.metadata"] == pl.String
    assert candidates.height == 18


def test_json_text_as_metadata_is_read_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    row = {
        "id": "p",
        "question": "?",
        "candidates": [],
        "neighbors": [],
        "metadata": '{"page": 0.10, "x": [1, null]}',
    }
    path.write_text(json.dumps(row))
    assert read_problems(path)[0].metadata == {"page": 0.1, "x": [1, None]}
    for bad in ("plain words", "[1]", '{"a": 1, "a": 2}', "{"):
        path.write_text(json.dumps(row | {"metadata": bad}))
        with pytest.raises(DataError, match="keys and values"):
            read_problems(path)


def test_human_solutions() -> None:
    mine = Candidate(id="mine", text="By hand.", correct=True, human=True)
    wrong = Candidate(id="slip", text="By hand, wrongly.", correct=False, human=True)
    first, second, third = make("p1"), make("p2", solution="Known."), make("p3")
    first = replace(
        first, candidates=(*first.candidates, mine, wrong, replace(mine, id="other", text="Also by hand."))
    )
    second = replace(
        second, candidates=(*second.candidates, Candidate(id="human", text="A model.", correct=True))
    )
    built = build([("f", [first, second, third])], Recipe(human=True))
    assert [p.id for p in built.problems] == ["p1", "p2"]
    humans = [[c for c in p.candidates if c.human] for p in built.problems]
    assert [len(found) for found in humans] == [1, 1]
    assert humans[0][0].text in ("By hand.", "Also by hand.")
    assert (humans[1][0].id, humans[1][0].text, humans[1][0].correct) == ("human-2", "Known.", True)
    assert all(len(p.candidates) == 10 for p in built.problems)
    assert built.read[1] - sum(s.candidates for s in built.steps) == 20
    without = build([("f", [first])], Recipe())
    assert not [c for c in without.problems[0].candidates if c.human]
    assert {s.what: s.candidates for s in without.steps}["written by a person"] == 3


def test_repeated_texts_and_contradictory_labels() -> None:
    problem = make("p1", right=4, wrong=5)
    double = replace(problem.candidates[0], id="double", text="Way 0  of p1.\n")
    clash = replace(problem.candidates[8], id="clash", correct=True)
    built = build(
        [("f", [replace(problem, candidates=(*problem.candidates, double, clash))])], Recipe(wrong=4)
    )
    taken = {s.what: s.candidates for s in built.steps}
    assert taken["the same text with a right and a wrong label"] == 2
    assert taken["the same text as another candidate of the problem"] == 1
    assert {c.id for c in built.problems[0].candidates} == {f"c{i}" for i in range(8)}


def test_draws_depend_on_the_seed_and_on_nothing_else() -> None:
    problems = [make(f"p{i}", group=f"g{i // 4}") for i in range(12)]

    def ids(seed: int, chosen: list[Problem]) -> dict[str, list[str]]:
        built = build([("f", chosen)], Recipe(seed=seed, variants=2))
        return {p.id: [c.id for c in p.candidates] for p in built.problems}

    first = ids(0, problems)
    assert len(first) == 6
    assert all(sum(id in first for id in (f"p{i}" for i in range(4 * g, 4 * g + 4))) == 2 for g in range(3))
    assert ids(0, problems[::-1]) == first
    turned = [replace(p, candidates=p.candidates[::-1]) for p in problems]
    assert ids(0, turned) == first
    assert ids(1, problems) != first
    assert {id: pool for id, pool in first.items() if id in ("p0", "p1", "p2", "p3")} == ids(0, problems[:4])
    # Right ones stand anywhere in a pool.
    firsts = [int(pool[0][1:]) < 6 for pool in ids(0, [make(f"p{i}") for i in range(40)]).values()]
    assert 5 < sum(firsts) < 35


def test_one_id_for_two_questions_is_an_error() -> None:
    with pytest.raises(DataError, match=r"two\.jsonl: the id 'p1' is that of another question in one\.jsonl"):
        build([("one.jsonl", [make("p1")]), ("two.jsonl", [make("p1", question="Another?")])], Recipe())


def test_solve_rates_bound_the_set() -> None:
    problems = [make(f"p{i}") for i in range(5)]
    rates = {"p0": (0, 8), "p1": (1, 8), "p2": (4, 8), "p3": (5, 8), "p4": (0, 0)}
    built = build([("f", problems)], Recipe(solve_rate=(0.05, 0.5)), rates)
    assert [p.id for p in built.problems] == ["p1", "p2"]
    taken = {s.what: s.problems for s in built.steps if s.problems}
    assert taken == {
        "the solver's own solve rate is not known": 1,
        "the solver's own solve rate is not within 0.05 to 0.5": 2,
    }


@pytest.mark.parametrize("command", ["rank", "sample"])
def test_solve_rates_come_from_a_run(tmp_path: Path, command: str) -> None:
    problems = [make(f"p{i}") for i in range(6)]
    problems[5] = replace(problems[5], answer=None)
    write_problems(problems, tmp_path / "a.jsonl")
    model = "fake/rate=0.4,max_n=1"
    if command == "rank":
        words: tuple[object, ...] = (
            "rank",
            "a.jsonl",
            "-m",
            model,
            "-n",
            4,
            "--target-samples",
            4,
            "-o",
            "run",
        )
    else:
        words = ("sample", "a.jsonl", "-g", model, "-n", 8, "--run", "run", "-o", "sampled.jsonl")
    porism(*words, cwd=tmp_path)
    if command == "sample":
        answers = {
            p.id: [c.answer for c in p.candidates[13:]] for p in read_problems(tmp_path / "sampled.jsonl")
        }
        inside = {id for id, found in answers.items() if id != "p5" and 0.05 <= found.count("4") / 8 <= 0.5}
    else:
        rows = [json.loads(line) for line in (tmp_path / "run" / "index.jsonl").read_text().splitlines()]
        own = [r for r in rows if not r["cell"]["candidate"] and not r["cell"]["neighbor"]]
        found = {f"p{i}": [r.get("answer") for r in own if r["cell"]["problem"] == f"p{i}"] for i in range(5)}
        assert all(len(answers) == 4 for answers in found.values())
        inside = {id for id, answers in found.items() if 0.05 <= answers.count("4") / 4 <= 0.5}
    assert 0 < len(inside) < 5
    words = (
        "data",
        "build",
        "a.jsonl",
        "-o",
        "set.jsonl",
        "--solve-rate",
        ".05,.5",
        "--run",
        "run",
        "--json",
    )
    done = porism(*words, cwd=tmp_path)
    assert {p.id for p in read_problems(tmp_path / "set.jsonl")} == inside
    assert removed(json.loads(done.stdout)["removed"])["the solver's own solve rate is not known"][0] == 1
    many = 4 if command == "rank" else 8
    assert f"from {many} to {many} attempts a problem" in (tmp_path / "set.md").read_text()


def test_a_part_of_a_run_is_no_fair_sample(tmp_path: Path) -> None:
    write_problems([make(f"p{i}") for i in range(3)], tmp_path / "a.jsonl")
    model = "fake/rate=0.4,max_n=1,concurrency=1"
    words = ("data", "build", "a.jsonl", "-o", "set.jsonl", "--solve-rate", "0,1", "--run", "run")
    ask = ("sample", "a.jsonl", "-g", model, "-n", 4, "--run", "run", "-o", "sampled.jsonl")
    porism(*ask, "--max-requests", 5, cwd=tmp_path, code=3)
    assert "stopped before its end" in porism(*words, cwd=tmp_path, code=2).stderr
    porism(*ask, cwd=tmp_path)
    porism(*words, cwd=tmp_path)
    rank = ("rank", "a.jsonl", "-m", model, "-n", 2, "--target-samples", 2, "-o", "ranked")
    porism(*rank, "--max-requests", 20, cwd=tmp_path, code=3)
    done = porism(*words[:-1], "ranked", "--force", cwd=tmp_path, code=2)
    assert "-3 problems, -39 candidates: the solver's own solve rate is not known" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-o", "set.parquet"], "name a .jsonl file"),
        (["-o", "set.jsonl", "--solve-rate", ".05,.5"], "go together"),
        (["-o", "set.jsonl", "--run", "runs/x"], "go together"),
        (["-o", "set.jsonl", "--solve-rate", "half", "--run", "x"], "two numbers"),
        (["-o", "set.jsonl", "--solve-rate", ".5,.05", "--run", "x"], "lower first"),
        (["-o", "set.jsonl", "--solve-rate", ".05,.5", "--run", "x"], "there is no run here"),
        (["-o", "set.jsonl", "--right", "0"], "at least one right"),
        (["-o", "set.jsonl", "--variants-per-group", "0"], "at least one"),
        (["-o", "set.jsonl", "--right", "9"], "no problem is left"),
        (["nowhere.jsonl", "-o", "set.jsonl"], "nowhere.jsonl"),
    ],
)
def test_bad_input_is_one_message_and_writes_nothing(tmp_path: Path, words: list[str], says: str) -> None:
    write_problems([make("p1")], tmp_path / "a.jsonl")
    assert says in porism("data", "build", "a.jsonl", *words, cwd=tmp_path, code=2).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_numbers_that_no_set_can_have() -> None:
    for settings in ({"wrong": 0}, {"solve_rate": (0.5, 1.5)}, {"variants": 0}):
        with pytest.raises(ConfigError):
            Recipe(**settings)
