"""Comparison: values are exact, and nothing unlike passes."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porism.verify.compare import compare, quick
from porism.verify.normalize import normal_form
from porism.verify.numbers import literal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234", 1234), ("-3.50", Fraction(-7, 2)), ("3/4", Fraction(3, 4)), (r"\frac{3}{4}", Fraction(3, 4)),
        (r"2\frac12", Fraction(5, 2)), ("3 1/2", Fraction(7, 2)), ("1.5e3", 1500), (r"3 \times 10^8", 3 * 10**8),
        (r"0.\overline{3}", Fraction(1, 3)), ("0.1(6)", Fraction(1, 6)), ("0.333...", Fraction(1, 3)), ("082", 82),
        ("50%", Fraction(1, 2)), (".5", Fraction(1, 2)), ("5.", 5), (r"-3 \frac{1}{2}", Fraction(-7, 2)),
    ],
)  # fmt: skip
def test_literals(text: str, value: Fraction) -> None:
    found = literal(text)
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize(
    "text", ["", "x", "1 2", "1,23", "3/0", r"\frac{1}{0}", r"2\frac{3}{2}", "1e99999", "9" * 5000]
)
def test_not_a_literal(text: str) -> None:
    assert literal(text) is None


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**12))
def test_fractions_equal_themselves_in_every_spelling(top: int, bottom: int) -> None:
    value = Fraction(top, bottom)
    spellings = [
        f"{top}/{bottom}",
        rf"\frac{{{top}}}{{{bottom}}}",
        rf"$\dfrac{{{top}}}{{{bottom}}}$",
        f"{3 * top}/{3 * bottom}",
    ]
    assert len({normal_form(text) for text in spellings}) == 1
    for text in spellings:
        verdict = quick(text, str(value))
        assert verdict is not None
        assert verdict.kind == "correct"


@given(st.fractions(), st.fractions())
def test_different_fractions_never_pass(left: Fraction, right: Fraction) -> None:
    verdict = quick(str(left), str(right))
    assert verdict is not None
    assert (verdict.kind == "correct") == (left == right)


@pytest.mark.parametrize(
    ("answer", "gold", "kind"),
    [
        ("x^2+2x+1", "(x+1)^2", "correct"),
        ("x^2+1", "(x+1)^2", "wrong"),
        (r"\sqrt{8}", r"2\sqrt{2}", "correct"),
    ],
)
def test_expressions(answer: str, gold: str, kind: str) -> None:
    assert compare(answer, gold).kind == kind
