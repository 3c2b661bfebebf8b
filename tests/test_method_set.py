"""The method set: every answer found again by brute force, every label and rule what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from brute_families import BRUTE, SMALL
from porism.data import check, read_problems
from porism.neighbors.expression import evaluate
from porism.types import Problem
from porism.verify.compare import compare
from porism.verify.extract import extract

EXAMPLES = Path(__file__).parent.parent / "examples"
SET = EXAMPLES / "method-set.jsonl"
SOURCES = sorted((EXAMPLES / "method-set").glob("*.yaml"))
PROBLEMS = read_problems(SET)
WRONG = {"method-error", "slip", "gap", "wrong-but-helpful"}

each = pytest.mark.parametrize("p", PROBLEMS, ids=lambda p: p.id)


def brute(family: str, parameters: dict[str, Any]) -> Any:
    """The answer by enumeration, or None where that is not feasible."""
    settled = {name: tuple(v) if isinstance(v, list) else v for name, v in parameters.items()}
    return BRUTE[family](**settled) if evaluate(SMALL[family], settled) else None


def equal(one: str, other: str) -> bool:
    return compare(one, other).kind == "correct"


def test_the_set_is_made_from_its_sources() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "make_method_set.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_nothing_is_wrong_or_doubtful_but_what_slips_make_so() -> None:
    report = check(SET)
    assert [str(f) for f in report.findings] == []


def test_the_set_is_large_enough() -> None:
    assert len(PROBLEMS) >= 40
    assert len({p.group for p in PROBLEMS}) >= 25
    kinds = {c.kind for p in PROBLEMS for c in p.candidates}
    assert kinds == {"right", "right-but-terse", *WRONG}


def test_halves_are_split_by_family() -> None:
    halves: dict[str, set[str]] = {}
    for p in PROBLEMS:
        assert p.metadata is not None
        assert p.group is not None
        halves.setdefault(p.group, set()).add(p.metadata["half"])
    assert all(len(half) == 1 for half in halves.values())
    sizes = [sum(half == {name} for half in halves.values()) for name in ("tune", "report")]
    assert abs(sizes[0] - sizes[1]) <= 2
    assert {path.stem for path in SOURCES} == set(halves)


@each
def test_kinds_and_labels(p: Problem) -> None:
    kinds = [c.kind for c in p.candidates]
    assert sum(c.correct is True for c in p.candidates) >= 2
    assert sum(c.correct is False for c in p.candidates) >= 3
    assert kinds.count("right") >= 2
    for c in p.candidates:
        assert c.metadata is not None
        assert (c.kind in WRONG) == (c.correct is False)
        assert (c.kind in WRONG) <= ("misconception" in c.metadata)
        assert extract(c.text).answer == c.answer
        assert p.answer is not None
        assert c.answer is not None
        assert equal(c.answer, p.answer) == (c.correct is True or c.kind == "gap")
        agrees = c.metadata["agrees"]
        if c.kind == "wrong-but-helpful":
            assert agrees
        if c.correct or c.kind == "gap":
            assert len(agrees) == len(p.neighbors)
        if c.kind == "method-error":
            assert not agrees


@each
def test_right_methods_are_really_different(p: Problem) -> None:
    texts = [set(c.text.split()) for c in p.candidates if c.kind == "right"]
    for i, one in enumerate(texts):
        for other in texts[:i]:
            assert len(one & other) / len(one | other) < 0.6


@each
def test_style_and_length_tell_nothing(p: Problem) -> None:
    lengths = {
        c.id: len(c.text)
        for c in p.candidates
        if c.kind not in ("right-but-terse", "gap") and "style" not in (c.metadata or {})
    }
    assert max(lengths.values()) <= 2.5 * min(lengths.values())


@each
def test_answers_again_by_brute_force(p: Problem) -> None:
    assert p.metadata is not None
    assert p.answer is not None
    found = brute(p.metadata["family"], p.metadata["parameters"])
    known = [(n.answer, brute(p.metadata["family"], (n.provenance or {})["parameters"])) for n in p.neighbors]
    if found is not None:
        assert equal(str(found) if not isinstance(found, tuple) else p.answer, p.answer)
    for answer, again in known:
        if again is not None and not isinstance(again, tuple):
            assert equal(str(again), answer)


@each
def test_copying_never_pays(p: Problem) -> None:
    finals = {c.answer for c in p.candidates} | {p.answer}
    assert not finals & {n.answer for n in p.neighbors}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_sources_name_the_misconception_of_every_wrong_one(path: Path) -> None:
    source = yaml.safe_load(path.read_text("utf-8"))
    for entry in source["candidates"]:
        assert ("misconception" in entry) == (entry["kind"] in WRONG), entry["id"]
