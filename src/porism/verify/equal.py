"""Are two expressions the same function? Yes, no, or unknown, with the rule that says so.

Exact first: equal trees, rational values, rational functions modulo primes. Then numbers at fixed points
in high precision, where the domain counts: points at which both sides are real decide, a difference that
shows only at negative or fractional points is unknown, since the writer may have meant n > 0 or integers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

from porism.verify import points
from porism.verify.exact import FIELDS, NotExact, Undefined, rational, residue
from porism.verify.syntax import Node, Num, Op, Sym, Value, names, walk, whole


class Same(NamedTuple):
    """equal is None when unknown."""

    equal: bool | None
    rule: str


Agree: TypeAlias = Callable[[Value, Value], Same]

_COUNTERS = frozenset("nmkjlNMK")
_SMOOTH = frozenset(
    (
        "add", "sub", "mul", "div", "neg", "percent", "exp", "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh",
        "tanh", "sum", "prod", "fact", "binom", "Gamma",
    )
)  # fmt: skip
DIGITS = 60  # the precision of a first look, which covers sizes from 10^-SPAN to 10^SPAN
SPAN = 6


def same(left: Node, right: Node) -> Same:
    """Whether two expressions are equal as functions of their variables."""
    if left == right:
        return Same(True, "identical")
    free = sorted(names(left) | names(right))
    if not free:
        exact = _constants(left, right)
        if exact is not None:
            return exact
    exact = _residues(left, right, free)
    return exact if exact is not None else _numbers(left, right, free)


def _constants(left: Node, right: Node) -> Same | None:
    try:
        known = rational(left)
        return Same(known == rational(right), "exact")
    except NotExact:
        return None
    except Undefined:  # a number is not what has no value
        return Same(False, "undefined")


def _residues(left: Node, right: Node, free: list[str]) -> Same | None:
    try:
        for field in FIELDS:
            prime = field[0]
            point = {name: _scattered(at) % prime for at, name in enumerate(free)}
            if residue(left, point, field) != residue(right, point, field):
                return Same(False, "exact")
    except NotExact:
        return None
    except Undefined:
        return Same(None, "undefined")
    return Same(True, "exact")


@cache
def _scattered(at: int) -> int:
    """A fixed number with no relation to its neighbors: of powers of one base, products would be equal."""
    return int.from_bytes(blake2b(at.to_bytes(4, "big"), digest_size=20).digest(), "big")


def _numbers(left: Node, right: Node, free: list[str]) -> Same:
    """Both readings of what has two (odd roots, log): equal under one is equal."""
    first = _evaluated(left, right, free, real_roots=True, log_base=0)
    if first[0].equal or first[0].rule == "unknown":
        return first[0]
    if first[1]:
        other = _evaluated(left, right, free, real_roots=False, log_base=0)[0]
        if other.equal:
            return other
    plain = [any(isinstance(item, Op) and item.head == "log" and len(item.args) == 1 for item in walk(side))
             for side in (left, right)]  # fmt: skip
    if any(plain):
        other = _evaluated(left, right, free, real_roots=True, log_base=10)[0]
        if other.equal:  # log 10 and 1 / log 10 are both 1 to the base ten
            return Same(None, "base of the logarithm") if all(plain) else other
    return first[0]


def _all(*nodes: Node) -> itertools.chain[Node]:
    return itertools.chain.from_iterable(walk(node) for node in nodes)


def _evaluated(
    left: Node, right: Node, free: list[str], *, real_roots: bool, log_base: int
) -> tuple[Same, bool]:
    """The decision from points, and whether a root with two readings was met."""
    from porism.verify.numeric import MAX_DECADES, Closed, Evaluation, NeedsIntegers, NotNumeric, TooBig

    branched = False
    closed: dict[int, Closed] = {}

    def at(point: dict[str, Fraction], digits: int = DIGITS) -> tuple[bool, bool, bool] | None:
        """Whether the sides agree, and whether each is real, at a point; None where one is undefined."""
        nonlocal branched
        sides = [Evaluation(dict(point), digits, real_roots=real_roots, log_base=log_base) for _ in range(2)]
        if digits == DIGITS:
            for side in sides:
                side.closed = closed
        try:
            a, b = (side.value(node) for side, node in zip(sides, (left, right), strict=True))
        except (Undefined, ArithmeticError, ValueError, TooBig):
            return None
        branched |= sides[0].branched or sides[1].branched
        top = max(side.top for side in sides)
        ctx = sides[0].ctx
        if not (ctx.isfinite(a) and ctx.isfinite(b)):
            return None
        agree = bool(abs(a - b) <= top * ctx.mpf(10) ** (20 - digits))
        span = max(side.decades for side in sides)
        if agree and span > SPAN and digits == DIGITS:  # a term may be too small to be seen
            if span > (MAX_DECADES // 5 if free else MAX_DECADES):
                return None
            return at(point, span * 3 + DIGITS)
        return agree, sides[0].real, sides[1].real

    try:
        return _decide(at, free, points.literals(left, right) if kinked(left, right) else None), branched
    except NeedsIntegers:
        pass
    except (NotNumeric, TypeError):
        return Same(None, "unknown"), branched
    try:
        found = [at(point) for point in points.integers(free, 12)]
    except (NotNumeric, TypeError):
        return Same(None, "unknown"), branched
    seen = [item[0] for item in found if item is not None]
    if len(seen) < 5:
        return Same(None, "undefined"), branched
    return Same(all(seen), "integers"), branched


def kinked(*nodes: Node) -> bool:
    """Whether a variable stands under a root, a logarithm or an absolute value, or in a floor, maximum, ...

    There a function may be another one beyond some point. All others are analytic in their variables, and
    equal everywhere when equal on a few points.
    """
    return any(isinstance(item, Op) and _kink(item) and names(item) for item in _all(*nodes))


def _kink(item: Op) -> bool:
    if item.head == "pow":
        return bool(names(item.args[0])) and whole(item.args[1]) is None
    return item.head not in _SMOOTH


def _decide(at: Any, free: list[str], literals: list[Fraction] | None) -> Same:
    if not free:
        found = at({})
        return Same(None, "undefined") if found is None else Same(found[0], "numeric")
    positive, mixed = points.samples(free, literals)
    here: list[tuple[bool, bool, bool]] = []
    for point in positive:
        item = at(point)
        if item is not None:
            here.append(item)
            if not item[0] and item[1] and item[2] and not set(free) <= _COUNTERS:
                return Same(False, "numeric")
    seen = here + [item for item in map(at, mixed) if item is not None]
    if len(seen) < 3:
        return Same(None, "undefined")
    both = [item for item in seen if item[1] and item[2]]
    if len(both) < 3:
        both = seen
    if all(item[0] for item in both):
        narrower = any(item[1] and not item[2] and not item[0] for item in seen)
        return Same(None, "domain") if narrower else Same(True, "numeric")
    here = [item for item in here if item in both]
    if here and all(item[0] for item in here):
        return Same(None, "equal for positive values only")
    if set(free) <= _COUNTERS:
        whole = [at(point) for point in points.integers(free, 7)]
        if any(whole) and all(item is None or item[0] for item in whole):
            return Same(None, "equal at integers only")
    return Same(False, "numeric")


def zero(node: Node) -> Same:
    """Whether an expression vanishes identically."""
    return same(node, Num(Fraction(0)))


def proportional(left: Node, right: Node) -> tuple[Same, int]:
    """Whether left = c right for a nonzero constant c, and the sign of c (0 when unknown)."""
    free = sorted(names(left) | names(right))
    if not free:
        return Same(None, "constants"), 0
    base = points.samples(free, None)[0][1]
    there = {name: Num(value) for name, value in base.items()}
    a, b = substitute(left, there), substitute(right, there)
    if zero(a).equal is not False or zero(b).equal is not False:
        both = zero(left).equal and zero(right).equal
        return Same(True if both else None, "degenerate"), 0
    result = same(Op("mul", (left, b)), Op("mul", (right, a)))
    return result, _sign(a) * _sign(b)


def _sign(node: Node) -> int:
    from porism.verify.numeric import Evaluation, NotNumeric

    try:
        value = Evaluation({}, 30).value(node)
    except (NotNumeric, Undefined, ValueError, ZeroDivisionError, OverflowError, TypeError):
        return 0
    return 0 if value.imag != 0 else (1 if value.real > 0 else -1)


def substitute(node: Node, by: dict[str, Num]) -> Node:
    """The expression with numbers for names."""
    if isinstance(node, Sym):
        return by.get(node.name, node)
    if isinstance(node, Op):
        return Op(node.head, tuple(substitute(arg, by) for arg in node.args))
    return node


__all__ = ["Agree", "Same", "proportional", "same", "substitute", "zero"]
