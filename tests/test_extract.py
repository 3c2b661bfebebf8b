"""Extraction: the rule that fires, and that nothing is found where nothing was given."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porism.verify.extract import extract

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "extract.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, str | None]) -> None:
    found = extract(str(case["text"]), truncated=bool(case.get("truncated")))
    assert found.answer == case["answer"], found.rule
    if "rule" in case:
        assert found.rule == case["rule"]


HOSTILE = [
    "\\boxed{" * 50_000, "{" * 500_000, "}" * 500_000, "$" * 500_001, "\\boxed{1} " * 20_000, "<think>" * 50_000,
    "answer: " * 50_000, "is " * 200_000, "**" * 200_000, "<answer>" * 50_000, "(" * 500_000, "1," * 300_000,
    " " * 500_000 + "x", "a\n" * 200_000, "the " * 200_000, "\\[" * 200_000, "the answer " * 50_000, "\\" * 500_000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=[repr(text[:8]) for text in HOSTILE])
@pytest.mark.parametrize("end", ["", ".", " is 1."])
def test_hostile_text_is_read_in_linear_time(text: str, end: str) -> None:
    start = time.process_time()
    extract(text + end)
    assert time.process_time() - start < 5


@given(st.text(max_size=300), st.booleans())
def test_never_raises(text: str, truncated: bool) -> None:
    found = extract(text, truncated=truncated)
    assert found.rule
    assert found.answer is None or found.answer.strip()


@given(st.text(alphabet="abc0123 .,$\n", max_size=80), st.integers(0, 10**6))
def test_a_last_box_is_the_answer(before: str, value: int) -> None:
    assert extract(f"{before}.\n\nThus \\boxed{{{value}}}.").answer == str(value)


@pytest.mark.parametrize(
    "text", [r"\boxed{}", r"Put the final answer in $\boxed{ }$.", r"The answer is \boxed{}"]
)
def test_an_empty_box_is_no_answer(text: str) -> None:
    assert r"\boxed" not in (extract(text).answer or "")


def test_an_empty_box_hides_no_answer_before_it() -> None:
    assert extract(r"so \boxed{7}. Put it in \boxed{}").answer == "7"
    assert extract(r"The final answer is 12. \boxed{}").answer == "12"
