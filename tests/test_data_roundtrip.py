"""Problems survive every format, alone and through all of them in turn."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from porism.data import check, data_hash, load, read_problems, write_problems
from porism.types import Candidate, Neighbor, Problem

FORMATS = (".jsonl", ".json", ".yaml", ".parquet")
SHARED = Path(__file__).parents[2] / "shared" / "data"

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
# Text that looks like something else in YAML, CSV or JSON, beside anything at all.
odd = st.sampled_from(
    [
        "no", "Yes", "null", "~", "0.10", "1e5", "1_000", "0x1F", "0o17", "2020-01-01", "1:30", ".5", "+1", "- a",
        "a: b", "# a", "a #b", "%x", "@", "'", '"', "&a", "*a", "!!int 5", "<<", "=", "---", "...", "|", ">",
        "$\\frac{1}{2}$", "\\boxed{3}\n", "a\n\n b\n", "\n a", " a", "a ", "a \nb", "\ta", "a\n\tb", "a\r\nb", "\r",
        "\u2028", "a\u2029b\n", "\x85", "\ufeff", "a\n\ufeffb", "é\U0001f40d\n≤", "\x07", "\x7f", "\ufffe", "a\n---\nb",
        "\n\n", "a\n\n", "a\nb: |\n  c",
    ]
)  # fmt: skip
text = odd | st.text(characters, max_size=40)
full = text.map(lambda s: f"x{s}" if not s.strip() else s)
optional = st.none() | text
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
free = st.none() | st.dictionaries(text, values, max_size=3)
kinds = st.sampled_from(
    ["right", "right-but-terse", "method-error", "slip", "gap", "wrong-but-helpful", None]
)

candidates = st.builds(
    Candidate,
    id=full,
    text=full,
    answer=optional,
    correct=st.none() | st.booleans(),
    kind=kinds,
    human=st.booleans(),
    derived_from=optional,
    source=optional,
    metadata=free,
)
neighbors = st.builds(
    Neighbor,
    id=full,
    question=full,
    answer=full,
    answer_type=optional,
    kind=optional,
    solution=optional,
    provenance=free,
    flags=st.lists(text, max_size=3).map(tuple),
    source=optional,
    metadata=free,
)


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


problems = st.builds(
    Problem,
    id=full,
    question=full,
    candidates=st.lists(candidates, max_size=3, unique_by=lambda c: c.id).map(tuple),
    neighbors=st.lists(neighbors, max_size=3, unique_by=lambda n: n.id).map(tuple),
    group=optional,
    answer=optional,
    solution=optional,
    subject=optional,
    metadata=free,
).filter(lambda p: all(_fold(n.question) != _fold(p.question) for n in p.neighbors))


def _examples() -> list[Problem]:
    """Every odd text in every place, so that no run depends on luck for them."""
    return [
        Problem(
            id=f"x{i}{word}",
            question=f"{word}q",
            candidates=(Candidate(id="c", text=f"{word}.", answer=word, source=word, metadata={word: word}),),
            neighbors=(Neighbor(id="n", question=f"{word}n", answer=f"{word}7", flags=(word, word)),),
            answer=word,
            solution=word,
            metadata={"null": None, "list": [None, True, 1, 1.5e300, -0.0, "1"], word: {}},
        )
        for i, word in enumerate(odd.elements)  # type: ignore[attr-defined]
    ]


@pytest.mark.parametrize("ending", FORMATS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(problems, min_size=1, max_size=3, unique_by=lambda p: p.id))
@example(_examples())
def test_a_format_keeps_everything(ending: str, written: list[Problem]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"problems{ending}"
        write_problems(written, path)
        read = read_problems(path)
    assert read == written
    assert repr(read) == repr(written)  # tells 1 from 1.0 and True


@pytest.mark.parametrize(
    "name", ["gsm8k_varbench", "gsm8k_rgym", "amc23_judgebench_varmath", "amps_judgebench"]
)
def test_joined_sets_survive_every_format(name: str, tmp_path: Path) -> None:
    source = SHARED / f"{name}.jsonl"
    if not source.exists():
        pytest.skip("the joined data sets are not beside this checkout")
    report = check(source)
    assert report.findings == ()
    start = report.problems[:60]
    write_problems(start, tmp_path / "0.jsonl")
    previous = tmp_path / "0.jsonl"
    for step, ending in enumerate((".yaml", ".parquet", ".json", ".jsonl")):
        path = tmp_path / f"{step}{ending}2{ending}"
        write_problems(load(previous).problems, path)
        previous = path
    assert read_problems(previous) == list(start)
    assert previous.read_bytes() == (tmp_path / "0.jsonl").read_bytes()


def test_defaults_and_nulls_are_left_out(tmp_path: Path) -> None:
    problem = Problem(
        id="a",
        question="q",
        candidates=(Candidate(id="c", text="t", metadata={}),),
        neighbors=(Neighbor(id="n", question="r", answer="1"),),
    )
    write_problems([problem], tmp_path / "a.jsonl")
    assert json.loads((tmp_path / "a.jsonl").read_text()) == {
        "schema": 1,
        "id": "a",
        "question": "q",
        "candidates": [{"id": "c", "text": "t", "metadata": {}}],
        "neighbors": [{"id": "n", "question": "r", "answer": "1"}],
    }


def test_yaml_is_written_for_people(tmp_path: Path) -> None:
    problem = Problem(
        id="a",
        question="Is $2 ≤ π$?",
        candidates=(Candidate(id="c", text="First.\n\nThen $\\frac{1}{2}$."),),
        neighbors=(Neighbor(id="n", question="r" * 200, answer="no"),),
    )
    write_problems([problem], tmp_path / "a.yaml")
    text = (tmp_path / "a.yaml").read_text()
    assert "question: Is $2 ≤ π$?\n" in text
    assert "    text: |-\n      First.\n\n      Then $\\frac{1}{2}$.\n" in text
    assert f"question: {'r' * 200}\n" in text
    assert "answer: 'no'\n" in text


def test_hash_is_of_ids_and_questions_alone() -> None:
    one = Problem(id="a", question="q", candidates=(), neighbors=())
    two = Problem(id="b", question="q", candidates=(), neighbors=())
    more = Problem(id="a", question="q", candidates=(Candidate(id="c", text="t"),), neighbors=(), answer="1")
    assert len(data_hash([one])) == 12
    assert data_hash([one, two]) == data_hash([two, more])
    assert data_hash([one]) != data_hash([two])
    moved = Problem(id="aq", question="", candidates=(), neighbors=())
    assert data_hash([one]) != data_hash([moved])
