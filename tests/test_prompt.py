"""Templates: the built-in ones, and every way a user's own can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porism.errors import ConfigError
from porism.methods.prompt import SOLVE_FIELDS, UTILITY_FIELDS, check_template, load_template, render

GOOD = "{{ question }}|{{ candidate }}|{{ neighbor }}"


def test_the_built_in_templates_are_in_order() -> None:
    utility, solve = load_template(None, "utility"), load_template(None, "solve")
    assert check_template(utility, UTILITY_FIELDS) == []
    assert check_template(solve, SOLVE_FIELDS) == []
    text = render(utility, question="THE-TARGET", candidate="THE-CANDIDATE", neighbor="THE-NEIGHBOR")
    places = [text.index(part) for part in ("THE-TARGET", "THE-CANDIDATE", r"\boxed{", "THE-NEIGHBOR")]
    assert places == sorted(places)
    assert text.endswith("THE-NEIGHBOR")
    assert r"\boxed{" in render(solve, question="Q")


@given(st.text(), st.text(), st.text())
def test_what_is_inserted_comes_through_verbatim(question: str, candidate: str, neighbor: str) -> None:
    assert render(GOOD, question=question, candidate=candidate, neighbor=neighbor) == (
        f"{question}|{candidate}|{neighbor}"
    )


def test_template_marks_in_a_candidate_are_text() -> None:
    evil = "{{ 7*7 }} {% for x in y %} {# note #} <b>&amp;</b> ''' \\boxed{1}\r\n"
    text = render(load_template(None, "utility"), question="Q", candidate=evil, neighbor="N")
    assert evil in text
    assert "49" not in text


@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        ("{{ question }} {{ neighbor }}", r"add {{ candidate }}"),
        ("{{ question }} {{ candidate|length }} {{ neighbor }}", r"add {{ candidate }}"),
        ("{{ question|e }} {{ candidate }} {{ neighbor }}", r"add {{ question }}"),
        ("{% if false %}{{ question }}{% endif %} {{ candidate }} {{ neighbor }}", r"add {{ question }}"),
        ("{{ question }} {{ candidat }} {{ neighbor }}", r"did you mean {{ candidate }}"),
        ("{{ question }} {{ solution_text }} {{ neighbor }}", "may use question, candidate, neighbor"),
        ("{{ question }}\n{{ candidate }}\n{{ neighbor", "line 3"),
        ("{{ question.nothing.more }}", "nothing"),
        ("{{ question.__class__.__mro__ }}{{ candidate }}{{ neighbor }}", "unsafe"),
        ("{{ 1 / 0 }}{{ question }}{{ candidate }}{{ neighbor }}", "ZeroDivisionError"),
        ("{% include 'other' %}{{ question }}{{ candidate }}{{ neighbor }}", "no loader"),
    ],
)
def test_faults_of_a_template(template: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_template(template, UTILITY_FIELDS)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    "template",
    [
        "{{ neighbor }}|{{ question }}|{{ candidate }}",
        "{{ question }}|{{ neighbor }}|{{ candidate }}",
        "{{ neighbor|length }}|{{ question }}|{{ candidate }}|{{ neighbor }}",
    ],
)
def test_a_lost_shared_prefix_is_a_warning(template: str) -> None:
    (warning,) = check_template(template, UTILITY_FIELDS)
    assert "does not come last" in warning


def test_text_after_the_neighbor_is_fine() -> None:
    assert check_template(GOOD + "|{{ question }} again", UTILITY_FIELDS) == []


def test_an_undefined_field_is_an_error() -> None:
    with pytest.raises(ConfigError, match="undefined"):
        render(GOOD, question="Q")


def test_a_template_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.j2"
    path.write_text(GOOD, encoding="utf-8")
    assert load_template(path, "utility") == GOOD
    with pytest.raises(ConfigError, match=r"none\.j2"):
        load_template(tmp_path / "none.j2", "utility")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_template(path, "utility")
