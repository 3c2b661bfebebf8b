"""Every case in tests/cases: failures of checkers reported in public, and our own rows of the same kinds.

reported.jsonl and responses.jsonl: whole responses, `expected` says whether the answer is the gold.
compare.jsonl: answers, with the verdict and why. A false "correct" is the worst fault; `undecided` is allowed
only where a row says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from porism.verify.compare import compare
from porism.verify.extract import extract

CASES = Path(__file__).parent / "cases"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CASES / name).read_text("utf-8").splitlines()]


REPORTED, OWN, RESPONSES = rows("reported.jsonl"), rows("compare.jsonl"), rows("responses.jsonl")
# Not equal, and not proved different: a tower 250 levels high, a root of nothing, a gold that is a picture.
UNSURE = {"crash-closed-powers", "crash-bare-sqrt", "ext-gold-unparsable"}


@pytest.mark.parametrize("row", REPORTED, ids=[row["id"] for row in REPORTED])
def test_reported(row: dict[str, Any]) -> None:
    found = extract(row["response"])
    kind = "no_answer" if found.answer is None else compare(found.answer, row["gold"]).kind
    if row["expected"]:
        assert kind == "correct"
    else:
        assert kind in (("undecided",) if row["id"] in UNSURE else ("wrong", "no_answer"))


@pytest.mark.parametrize("row", RESPONSES, ids=[row["id"] for row in RESPONSES])
def test_responses(row: dict[str, Any]) -> None:
    found = extract(row["response"])
    kind = "no_answer" if found.answer is None else compare(found.answer, row["gold"]).kind
    assert (kind == "correct") == row["expected"], found


@pytest.mark.parametrize("row", OWN, ids=[row["id"] for row in OWN])
def test_own(row: dict[str, Any]) -> None:
    verdict = compare(row["answer"], row["gold"], row.get("answer_type"))
    if row["expected"] == "not correct":
        assert verdict.kind != "correct", verdict.rule
    else:
        assert verdict.kind == row["expected"], verdict.rule


@pytest.mark.parametrize("row", OWN, ids=[row["id"] for row in OWN])
def test_every_gold_accepts_itself(row: dict[str, Any]) -> None:
    assert compare(row["gold"], row["gold"], row.get("answer_type")).kind == "correct"


def test_there_are_rows_of_every_kind() -> None:
    assert len(OWN) >= 600
    assert len({row["id"] for row in OWN}) == len(OWN)
    assert all(row["why"] for row in OWN)
