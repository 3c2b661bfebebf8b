"""What must hold for every answer: equal to itself in any dress, unequal to what differs, never a crash."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from porism.verify.compare import compare
from porism.verify.normalize import clean, normal_form

NAMES = st.sampled_from(["x", "y", "n", "a", "\\alpha"])
NUMBERS = st.integers(0, 50).map(str) | st.tuples(st.integers(1, 20), st.integers(2, 9)).map(
    lambda pair: f"\\frac{{{pair[0]}}}{{{pair[1]}}}"
)


def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, inner)
    return (
        pairs.map(lambda pair: f"({pair[0]} + {pair[1]})")
        | pairs.map(lambda pair: f"({pair[0]} - {pair[1]})")
        | pairs.map(lambda pair: f"({pair[0]}) \\cdot ({pair[1]})")
        | st.tuples(inner, st.integers(2, 3)).map(lambda pair: f"({pair[0]})^{{{pair[1]}}}")
        | inner.map(lambda body: f"\\sqrt{{({body})^2 + 1}}")
        | inner.map(lambda body: f"\\sin({body})")
    )


FRACTIONS = st.fractions(min_value=-99, max_value=99, max_denominator=20)
EXPRESSIONS = st.recursive(NAMES | NUMBERS, grow, max_leaves=6)
DRESS: list[Callable[[str], str]] = [
    lambda text: f"${text}$",
    lambda text: f"\\[ {text} \\]",
    lambda text: f"\\boxed{{{text}}}",
    lambda text: text.replace("\\frac", "\\dfrac"),
    lambda text: text.replace("(", "\\left(").replace(")", "\\right)"),
    lambda text: text.replace(" ", "  "),
    lambda text: text.replace("-", "−"),
    lambda text: text.replace("\\cdot", "\\times"),
    lambda text: f"({text})",
    lambda text: f"{text} + 0",
    lambda text: f"1 \\cdot ({text})",
]


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS, st.sampled_from(range(len(DRESS))))
def test_an_answer_is_itself_in_any_dress(text: str, dress: int) -> None:
    assert compare(DRESS[dress](text), text).kind == "correct"
    assert compare(text, DRESS[dress](text)).kind == "correct"


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS, st.integers(1, 9), st.sampled_from([0, 3, 30, 300]))
def test_a_difference_however_small_is_never_equal(text: str, by: int, places: int) -> None:
    other = f"{text} + {by} \\cdot 10^{{-{places}}}"
    assert compare(other, text).kind == "wrong"
    assert compare(text, other).kind == "wrong"


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS, EXPRESSIONS)
def test_equality_is_symmetric(left: str, right: str) -> None:
    kinds = {compare(left, right).kind, compare(right, left).kind}
    assert kinds != {"correct", "wrong"}


@settings(max_examples=100, deadline=None)
@given(EXPRESSIONS, st.sampled_from(["x", "y", "n"]))
def test_another_variable_is_another_expression(text: str, name: str) -> None:
    other = text.replace(name, "t")
    verdict = compare(other, text)
    assert (
        verdict.kind != "correct"
        or name not in text
        or compare(text.replace(name, "7"), text).kind == "correct"
    )


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.fractions(min_value=-99, max_value=99, max_denominator=20), min_size=2, max_size=6, unique=True
    ),
)
def test_sets_have_no_order_and_tuples_have(values: list[Fraction]) -> None:
    turned = values[1:] + values[:1]
    one, two = (", ".join(map(str, side)) for side in (values, turned))
    assert compare(f"\\{{{two}\\}}", f"\\{{{one}\\}}").kind == "correct"
    assert compare(f"({two})", f"({one})").kind == "wrong"
    assert compare(f"\\{{{two.partition(', ')[2]}\\}}", f"\\{{{one}\\}}").kind == "wrong"


@settings(max_examples=100, deadline=None)
@given(st.integers(-99, 99), st.integers(1, 50), st.booleans(), st.booleans())
def test_intervals_are_their_inequalities(low: int, width: int, left: bool, right: bool) -> None:
    high = low + width
    interval = f"{'[' if left else '('}{low}, {high}{']' if right else ')'}"
    below, above = ("<", "\\le"), (">", "\\ge")
    relation = f"{low} {below[left]} x {below[right]} {high}"
    turned = f"{high} {above[right]} x {above[left]} {low}"
    wrong = f"{low} {below[not left]} x {below[right]} {high}"
    assert compare(relation, interval).kind == "correct"
    assert compare(turned, relation).kind == "correct"
    assert compare(wrong, interval).kind == "wrong"


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 30),
    st.integers(1, 30),
    st.integers(-30, 30),
    st.integers(-9, 9).filter(bool),
    st.integers(1, 5),
)
def test_lines_are_equal_up_to_a_factor(a: int, b: int, c: int, by: int, off: int) -> None:
    gold = f"{a}x + {b}y = {c}"
    assert compare(f"{a * by}x + {b * by}y = {c * by}".replace("+ -", "- "), gold).kind == "correct"
    assert compare(f"{a * by}x + {b * by}y = {c * by + off}".replace("+ -", "- "), gold).kind == "wrong"


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_gets_a_verdict(answer: str, gold: str) -> None:
    assert compare(answer, gold).kind in ("correct", "wrong", "undecided")


MARKS = r"\frac \sqrt { } ( ) [ ] ^ _ 1 x , = < \pm \text{a} | \{ \} ! % \cup \infty \sum & \\ 0 - and"
TOKENS = [*MARKS.split(), "\\begin{pmatrix}", "\\end{pmatrix}", " "]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=14).map("".join))
def test_broken_mathematics_gets_a_verdict(answer: str) -> None:
    assert compare(answer, "12345").kind in ("wrong", "undecided")
    assert compare("12345", answer).kind in ("wrong", "undecided")


@given(st.text(max_size=80))
def test_cleaning_is_done_once(text: str) -> None:
    once = clean(text)
    assert normal_form(once) == normal_form(clean(once))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000,
        "\\frac{" * 2000,
        "^{" * 3000,
        "\\text{" * 1000,
        "[" * 5000,
        "|" * 3000,
        "-" * 10_000,
        "1+" * 5000,
    ],
)
def test_deep_nesting_ends(text: str) -> None:
    assert compare(text + "1", "5").kind in ("wrong", "undecided")
    assert compare("5", text + "1").kind in ("wrong", "undecided")
