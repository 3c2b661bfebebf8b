"""Sets of real numbers: intervals, unions, inequalities, all as sorted pieces with exact ends.

x < 3 or x >= 5, (-inf, 3) U [5, inf) and R \\ [3, 5) are one set. Order comes from high-precision values,
equality of ends from the exact rules.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from porism.verify.equal import Same, same, substitute
from porism.verify.exact import Undefined
from porism.verify.scalars import rewritten, signed_infinity
from porism.verify.syntax import (
    EMPTY,
    INFINITY,
    NODES,
    Combined,
    Domain,
    Interval,
    Listing,
    Node,
    Num,
    Op,
    Relation,
    Sym,
    Value,
    names,
)

_FLIP = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_MINUS = Op("neg", (INFINITY,))


class NotASet(Exception):
    """Not a set of real numbers with numeric ends."""


class Piece(NamedTuple):
    """An interval; a point has equal closed ends. place: the ends as numbers, for order."""

    low: Node
    closed_low: bool
    high: Node
    closed_high: bool
    place: tuple[Any, Any]


def agree(gold: Value, answer: Value) -> Same:
    """Whether two values are the same set of reals. Raises NotASet."""
    unknowns = {name for value in (gold, answer) for name in variables(value)}
    if len(unknowns) > 1:
        raise NotASet("several variables")
    left, right = pieces(gold), pieces(answer)
    if len(left) != len(right):
        return Same(False, "real set")
    unsure = False
    for a, b in zip(left, right, strict=True):
        if (a.closed_low, a.closed_high) != (b.closed_low, b.closed_high):
            return Same(False, "real set")
        for one, two in ((a.low, b.low), (a.high, b.high)):
            ends = signed_infinity(one), signed_infinity(two)
            equal = ends[0] == ends[1] if any(ends) else same(one, two).equal
            if equal is False:
                return Same(False, "real set")
            unsure |= equal is None
    return Same(None, "real set") if unsure else Same(True, "real set")


def variables(value: Value) -> set[str]:
    """The names in a set's conditions and ends."""
    if isinstance(value, NODES):
        return set(names(value))
    if isinstance(value, Relation):
        return set().union(*(variables(side) for side in value.sides))
    if isinstance(value, Combined):
        return set().union(*(variables(part) for part in value.parts))
    return set()


def pieces(value: Value) -> list[Piece]:
    """The pieces of a set, sorted, none touching another."""
    if value == EMPTY:
        return []
    if isinstance(value, Interval):
        return _joined([_piece(value.low, value.closed_low, value.high, value.closed_high)])
    if isinstance(value, Domain) and value.name == "R":
        return [_piece(_MINUS, False, INFINITY, False)]
    if isinstance(value, Listing):
        return _listing(value)
    if isinstance(value, Combined):
        parts = [pieces(part) for part in value.parts]
        if value.head in ("union", "or"):
            return _joined([piece for part in parts for piece in part])
        if value.head == "difference":
            parts[1] = _complement(parts[1])
        found = parts[0]
        for part in parts[1:]:
            found = _meet(found, part)
        if value.head == "conditions" and not found:  # nobody lists conditions that exclude each other
            return _joined([piece for part in parts for piece in part])
        return found
    if isinstance(value, Relation):
        return _relation(value)
    if isinstance(value, NODES):
        return _joined([_piece(value, True, value, True)])
    raise NotASet(type(value).__name__)


def _listing(value: Listing) -> list[Piece]:
    if value.kind in ("tuple", "bracket") and len(value.items) == 2:
        low, high = value.items
        if isinstance(low, NODES) and isinstance(high, NODES):
            closed = value.kind == "bracket"
            piece = _piece(low, closed, high, closed)
            if piece.place[0] > piece.place[1]:
                raise NotASet("a pair, no interval")
            return _joined([piece])
    if value.kind in ("set", "list"):
        points = [item for item in value.items if isinstance(item, NODES)]
        if len(points) == len(value.items):
            return _joined([_piece(point, True, point, True) for point in points])
    raise NotASet(value.kind)


def _place(node: Node) -> Any:
    from porism.verify.numeric import Evaluation, NotNumeric, context

    sign = signed_infinity(node)
    if sign:
        return context().mpf("inf") * sign
    try:
        value = Evaluation({}, 50).value(node)
    except (NotNumeric, Undefined, ValueError, ZeroDivisionError, OverflowError, TypeError):
        raise NotASet("an end") from None
    if value.imag != 0:
        raise NotASet("a complex end")
    return value.real


def _piece(low: Node, closed_low: bool, high: Node, closed_high: bool) -> Piece:
    low, high = (rewritten(end, percent=True, radians=False) for end in (low, high))
    closed_low, closed_high = (
        closed_low and not signed_infinity(low),
        closed_high and not signed_infinity(high),
    )
    return Piece(low, closed_low, high, closed_high, (_place(low), _place(high)))


def _joined(found: list[Piece]) -> list[Piece]:
    merged: list[Piece] = []
    for piece in sorted(found, key=lambda item: (item.place[0], not item.closed_low)):
        low, high = piece.place
        if low > high or (low == high and not (piece.closed_low and piece.closed_high)):
            continue
        if merged:
            last = merged[-1]
            if low < last.place[1] or (low == last.place[1] and (piece.closed_low or last.closed_high)):
                if (high, piece.closed_high) > (last.place[1], last.closed_high):
                    merged[-1] = Piece(
                        last.low, last.closed_low, piece.high, piece.closed_high, (last.place[0], high)
                    )
                continue
        merged.append(piece)
    return merged


def _complement(found: list[Piece]) -> list[Piece]:
    ends: list[Piece] = []
    low: Node = _MINUS
    closed = False
    for piece in found:
        ends.append(_piece(low, closed, piece.low, not piece.closed_low))
        low, closed = piece.high, not piece.closed_high
    ends.append(_piece(low, closed, INFINITY, False))
    return _joined(ends)


def _meet(left: list[Piece], right: list[Piece]) -> list[Piece]:
    found = []
    for a in left:
        for b in right:
            lows = max(a, b, key=lambda item: (item.place[0], not item.closed_low))
            highs = min(a, b, key=lambda item: (item.place[1], item.closed_high))
            found.append(
                Piece(
                    lows.low, lows.closed_low, highs.high, highs.closed_high, (lows.place[0], highs.place[1])
                )
            )
    return _joined(found)


def _relation(value: Relation) -> list[Piece]:
    if value.ops == ("in",):
        return pieces(value.sides[1])
    if value.ops == ("notin",):
        return _complement(pieces(value.sides[1]))
    found: list[Piece] | None = None
    for left, op, right in zip(value.sides, value.ops, value.sides[1:], strict=False):
        if op not in _FLIP or not isinstance(left, NODES) or not isinstance(right, NODES):
            raise NotASet(op)
        here = _solved(left, op, right)
        found = here if found is None else _meet(found, here)
    return found or []


def _absolute(inner: Node, op: str, bound: Node) -> list[Piece]:
    """|inner| op bound, for a bound that is not negative."""
    if _place(bound) < 0:
        raise NotASet("a negative bound")
    sides = _solved(inner, op, bound), _solved(inner, _FLIP[op], Op("neg", (bound,)))
    return _meet(*sides) if op in ("<", "<=", "!=") else _joined([*sides[0], *sides[1]])


def _solved(left: Node, op: str, right: Node) -> list[Piece]:
    """The solutions of a linear relation in one variable."""
    free = names(left) | names(right)
    if len(free) != 1:
        raise NotASet("not one variable")
    if signed_infinity(left) or signed_infinity(right):
        return [_piece(_MINUS, False, INFINITY, False)]
    if isinstance(left, Op) and left.head == "abs" and not names(right):
        return _absolute(left.args[0], op, right)
    if isinstance(right, Op) and right.head == "abs" and not names(left):
        return _absolute(right.args[0], _FLIP[op], left)
    name = next(iter(free))
    difference = Op("sub", (left, right))
    at = [substitute(difference, {name: Num(Fraction(step))}) for step in (0, 1)]
    slope = Op("sub", (at[1], at[0]))
    if not same(difference, Op("add", (at[0], Op("mul", (slope, Sym(name)))))).equal:
        raise NotASet("not linear")
    rise = _place(slope)
    if rise == 0:
        raise NotASet("no variable")
    root = Op("neg", (Op("div", (at[0], slope)),))
    op = op if rise > 0 else _FLIP[op]
    point = _piece(root, True, root, True)
    if op == "=":
        return [point]
    if op == "!=":
        return _complement([point])
    if op[0] == "<":
        return [_piece(_MINUS, False, root, "=" in op)]
    return [_piece(root, "=" in op, INFINITY, False)]


__all__ = ["NotASet", "agree", "pieces", "variables"]
