"""Two expressions as answers: what a percent sign, a degree sign, a decimal point may mean.

A sign that the gold has may be dropped (28% and 28, 90 degrees and 90), and either may be written as the
number it is (50% and 1/2). A decimal is exact against a gold that has a finite decimal; against any other
it must be the gold rounded or cut to at least DIGITS significant digits. Fewer digits are not the value.
"""

from __future__ import annotations

from fractions import Fraction

from porism.verify.equal import Same, same
from porism.verify.exact import NotExact, Undefined, rational
from porism.verify.magnitude import differ
from porism.verify.syntax import INFINITY, PI, Node, Num, Op, Sym, names, walk

DIGITS = 6
_PARAMETERS = frozenset("klmnjst")
_ANGLES = frozenset(("sin", "cos", "tan", "cot", "sec", "csc"))


def has(node: Node, head: str) -> bool:
    """Whether an operation occurs."""
    return any(isinstance(item, Op) and item.head == head for item in walk(node))


def rewritten(node: Node, *, percent: bool, radians: bool) -> Node:
    """Without degree signs, and without percent signs where `percent` is False; angles inside sines are radians."""
    if not isinstance(node, Op):
        return node
    inside = radians or node.head in _ANGLES
    args = tuple(rewritten(arg, percent=percent, radians=inside) for arg in node.args)
    if node.head == "degree":
        return Op("div", (Op("mul", (args[0], PI)), Num(Fraction(180)))) if radians else args[0]
    if node.head == "percent" and not percent:
        return args[0]
    return Op(node.head, args)


def signed_infinity(node: Node) -> int:
    """1 or -1 for an infinite value, 0 for any other."""
    if node == INFINITY:
        return 1
    if isinstance(node, Op) and node.head == "neg":
        return -signed_infinity(node.args[0])
    return 0


def agree(gold: Node, answer: Node) -> Same:
    """Whether an answer is the gold's value."""
    ends = signed_infinity(gold), signed_infinity(answer)
    if any(ends):
        return Same(ends[0] == ends[1], "infinity")
    if any(item == INFINITY for node in (gold, answer) for item in walk(node)):
        return Same(None, "infinity")
    if has(gold, "base") or has(answer, "base"):
        return _bases(gold, answer)
    answer = _respelled(gold, answer)
    exact = _compare(gold, answer, percent=True, radians=False)
    if exact.equal:
        return exact
    readings = []
    degrees = has(gold, "degree"), has(answer, "degree")
    if degrees[0] != degrees[1]:
        readings.append(_compare(gold, answer, percent=True, radians=True))
    percents = has(gold, "percent"), has(answer, "percent")
    if percents[0] != percents[1]:
        dropped = _compare(gold, answer, percent=False, radians=False)
        if dropped.equal and _small(rewritten(gold, percent=False, radians=False)):
            dropped = Same(None, "percent")
        readings.append(dropped)
    for reading in readings:
        if reading.equal is not False:
            return reading
    if exact.equal is False and _other_parameter(gold, answer):
        return Same(None, "other parameter")
    return exact


def _other_parameter(gold: Node, answer: Node) -> bool:
    """Whether the sides differ by the letter of one parameter only: pi + 2 k pi and pi + 2 n pi."""
    ours, theirs = names(gold) - names(answer), names(answer) - names(gold)
    if len(ours) != 1 or len(theirs) != 1 or not ours | theirs <= _PARAMETERS:
        return False
    return same(gold, renamed(answer, *theirs, *ours)).equal is True


def _respelled(gold: Node, answer: Node) -> Node:
    """An answer with j for the imaginary unit, or c for the constant C, in the gold's letters."""
    theirs, ours = names(answer), names(gold)
    for letter, other in (("j", "i"), ("c", "C"), ("C", "c")):
        used = other in ours if other != "i" else any(item == Sym("i") for item in walk(gold))
        if letter in theirs and letter not in ours and used and Sym(other) not in walk(answer):
            return renamed(answer, letter, other)
    return answer


def renamed(node: Node, old: str, new: str) -> Node:
    """The expression with another name for a variable."""
    if isinstance(node, Sym):
        return Sym(new) if node.name == old else node
    if isinstance(node, Op):
        return Op(node.head, tuple(renamed(arg, old, new) for arg in node.args))
    return node


def _small(gold: Node) -> bool:
    """A number up to 1, which with a percent sign or without may be meant: dropping the sign is no layout."""
    try:
        return abs(rational(gold)) <= 1
    except (NotExact, Undefined):
        return True


def _bases(gold: Node, answer: Node) -> Same:
    if all(isinstance(node, Op) and node.head == "base" for node in (gold, answer)):
        assert isinstance(gold, Op)
        assert isinstance(answer, Op)
        if gold.args[1] == answer.args[1]:
            return Same(gold.args[0] == answer.args[0], "base")
    found = same(gold, answer)
    return Same(None, "base") if found.equal or not has(answer, "base") else found


def _compare(gold: Node, answer: Node, *, percent: bool, radians: bool) -> Same:
    left, right = (rewritten(node, percent=percent, radians=radians) for node in (gold, answer))
    found = same(left, right)
    if found.equal or names(left) or names(right):
        return found
    if found.equal is None:
        return Same(False, "magnitude") if differ(left, right) else found
    written = decimal(right)
    if written is not None:
        return _rounded(left, right, written, found)
    known = decimal(left)
    if known is not None and _near(right, left, known.places):
        exact = known.digits is not None and known.digits >= DIGITS and not _finite(right)
        return Same(True if exact else None, "gold is a rounding of the answer")
    return found


def decimal(node: Node) -> Num | None:
    """The literal of a value that is one decimal number, signed or a percentage."""
    while isinstance(node, Op) and node.head in ("neg", "percent"):
        node = node.args[0]
    return node if isinstance(node, Num) and node.digits is not None else None


def _rounded(gold: Node, answer: Node, written: Num, found: Same) -> Same:
    """A decimal answer that is not exactly the gold: its rounding to enough digits, or another number."""
    if _finite(gold):
        return found
    places = written.places + (2 if has(answer, "percent") else 0)
    if not _near(gold, answer, places):
        return found
    enough = written.digits is not None and written.digits >= DIGITS
    return Same(True, "rounded") if enough else Same(False, "rounded to too few digits")


def _finite(node: Node) -> bool:
    """Whether a value is a finite decimal."""
    try:
        denominator = rational(node).denominator
    except (NotExact, Undefined):
        return False
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return denominator == 1


def _near(exact: Node, rounded: Node, places: int) -> bool:
    """Whether a value rounds, or is cut, to a decimal with that many places."""
    from porism.verify.numeric import Evaluation, NotNumeric

    try:
        evaluation = Evaluation({}, 80)
        a, b = evaluation.value(exact), evaluation.value(rounded)
    except (NotNumeric, NotExact, Undefined, ValueError, ZeroDivisionError, OverflowError, TypeError):
        return False
    return bool(abs(a - b) < evaluation.ctx.mpf(10) ** -places)


__all__ = ["agree", "decimal", "has", "renamed", "rewritten", "signed_infinity"]
