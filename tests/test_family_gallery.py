"""Every family of the gallery: its answers are found again by brute force, and its draws are what they should be."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from brute_families import BRUTE, SMALL
from porism.cli.draw import family_mapping
from porism.errors import DataError
from porism.neighbors.definition import read_family
from porism.neighbors.family import Family
from porism.verify.compare import compare

FOLDER = Path(__file__).parent.parent / "examples" / "families"
FILES = sorted(FOLDER.glob("*.yaml"))
DRAWS = 40
SUBJECTS = {
    "combinatorics", "number theory", "algebra", "linear algebra", "probability", "analysis", "graph theory",
}  # fmt: skip


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def mapping(request: pytest.FixtureRequest) -> dict[str, Any]:
    return family_mapping(request.param)


def as_many(family: Family, seed: int) -> list[Any]:
    """DRAWS neighbors, or all there are."""
    for n in range(DRAWS, 0, -1):
        try:
            return family.draw(n, seed)
        except DataError as error:
            if "were asked for" not in str(error):
                raise
    return []


def settled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def test_the_gallery_is_whole() -> None:
    assert len(FILES) >= 25
    assert {path.stem for path in FILES} == set(BRUTE)
    found = {family_mapping(path)["subject"] for path in FILES}
    assert found >= SUBJECTS


def test_the_list_of_families_is_whole() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    for path in FILES:
        mapping = family_mapping(path)
        assert (
            f"| {mapping['subject']} | [`{path.stem}`]({path.name}) | {mapping['metadata']['method']} |"
            in text
        )
    assert text.count("\n| ") == len(FILES) + 1


def test_answers_by_brute_force(mapping: dict[str, Any]) -> None:
    name = mapping["name"]
    small = {**mapping, "constraints": [*mapping.get("constraints", []), SMALL[name]]}
    drawn = as_many(read_family(small), 1)
    assert len(drawn) >= 6
    family = read_family(mapping)
    for neighbor in drawn:
        values = {key: settled(value) for key, value in neighbor.provenance["parameters"].items()}
        known = BRUTE[name](**values)
        ruled = family.value(mapping["answer"], values)
        if isinstance(known, float):
            assert math.isclose(known, ruled, rel_tol=1e-9), values
        else:
            assert Fraction(known) == ruled, values
            if family.format is None:
                assert neighbor.answer == str(Fraction(known)), values


def test_draws(mapping: dict[str, Any]) -> None:
    family = read_family(mapping)
    drawn = family.draw(8, 3)
    assert drawn == family.draw(8, 3)
    assert drawn != family.draw(8, 4)
    assert len({neighbor.question for neighbor in drawn}) == 8
    assert len({neighbor.answer for neighbor in drawn}) > 2
    difficulties = [Fraction((neighbor.provenance or {})["difficulty"]) for neighbor in drawn]
    assert difficulties == sorted(difficulties)
    assert difficulties[0] < difficulties[-1]
    for neighbor in drawn:
        assert not re.search(r"<\w+>", neighbor.question)
        assert len(neighbor.answer) < 40


def test_the_verifier_reads_the_answers(mapping: dict[str, Any]) -> None:
    """An answer as a solver may write it is right, and another neighbor's is not."""
    drawn = read_family(mapping).draw(6, 5)
    answers = list(dict.fromkeys(neighbor.answer for neighbor in drawn))
    for right, other in zip(answers, answers[1:] + answers[:1], strict=True):
        written = re.sub(r"^(-?)(\d+)/(\d+)$", r"$\1\\frac{\2}{\3}$", right)
        assert compare(written, right, drawn[0].answer_type).kind == "correct"
        assert compare(other, right, drawn[0].answer_type).kind == "wrong"


def test_families_say_their_method(mapping: dict[str, Any]) -> None:
    assert len(mapping["metadata"]["method"]) > 20
    assert mapping["examples"]
