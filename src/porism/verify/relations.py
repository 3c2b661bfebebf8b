"""Equations, inequalities and sets of reals: what is said, not how it is written."""

from __future__ import annotations

from porism.verify import realsets, scalars
from porism.verify.equal import Agree, Same, proportional, same
from porism.verify.lists import every, match
from porism.verify.realsets import NotASet
from porism.verify.shapes import definition, result
from porism.verify.syntax import (
    NODES,
    Combined,
    Domain,
    Interval,
    Listing,
    Node,
    Op,
    Relation,
    Sym,
    Value,
    names,
    walk,
)

YES, NO = True, False
_SETS = (Interval, Combined, Domain)


def is_set(value: Value) -> bool:
    """Whether a value says which reals: an interval, an inequality, a membership."""
    if isinstance(value, Relation):
        return any(op not in ("=", "~") for op in value.ops)
    return isinstance(value, _SETS)


def real_sets(gold: Value, answer: Value, agree: Agree) -> Same:
    """Whether two values are one set of reals."""
    if isinstance(gold, Interval) and isinstance(answer, Listing) and len(answer.items) > 2:
        return Same(NO, "kind")
    for value, other in ((gold, answer), (answer, gold)):
        if isinstance(value, Domain) and (
            isinstance(other, Domain) or (isinstance(other, NODES) and not names(other))
        ):
            return Same(NO, "kind")
        if isinstance(value, NODES) and is_set(other):
            value = Listing("set", (value,))
            gold, answer = (value, answer) if value is not answer and other is answer else (gold, value)
    try:
        return realsets.agree(gold, answer)
    except NotASet:
        return _intervals(gold, answer, agree)


def _intervals(gold: Value, answer: Value, agree: Agree) -> Same:
    """Intervals whose ends have names: end by end."""
    if isinstance(gold, Interval) and isinstance(answer, Interval):
        if (gold.closed_low, gold.closed_high) != (answer.closed_low, answer.closed_high):
            return Same(NO, "interval")
        ends = scalars.agree(gold.low, answer.low), scalars.agree(gold.high, answer.high)
        return every(ends, "interval")
    if isinstance(gold, Combined) and isinstance(answer, Combined) and gold.head == answer.head:
        return match(gold.parts, answer.parts, "parts", lambda a, b: agree(a, b), certain=False)
    return Same(None, "real set")


def relations(gold: Relation, answer: Relation, agree: Agree) -> Same:
    """Whether two relations say the same."""
    if all(side.ops in (("in",), ("notin",)) for side in (gold, answer)):
        inside = [agree(a, b) for a, b in zip(gold.sides, answer.sides, strict=True)]
        alike = every(inside, "membership")
        return Same(NO, "membership") if alike.equal and gold.ops != answer.ops else alike
    if is_set(gold) or is_set(answer):
        found = real_sets(gold, answer, agree)
        return found if found.equal is not None else _inequality(gold, answer)
    left, right = definition(gold), definition(answer)
    if left and right:
        return _definitions(left, right, agree)
    if len(gold.sides) == 2 and len(answer.sides) == 2:
        return _equation(gold, answer, agree)
    ended = result(answer)
    if left and ended is not None and len(answer.sides) > 2 and answer.sides[0] == left[0]:
        return agree(left[1], ended)
    if len(gold.sides) == len(answer.sides) and gold.ops == answer.ops:
        inside = [agree(a, b) for a, b in zip(gold.sides, answer.sides, strict=True)]
        if all(item.equal for item in inside):
            return Same(YES, "chain")
    return Same(None, "chain")


def _definitions(gold: tuple[Node, Value], answer: tuple[Node, Value], agree: Agree) -> Same:
    """name = value against name = value: f(x) = x^2 is g(t) = t^2, and no derivative."""
    (head, body), (other, given) = gold, answer
    if isinstance(head, Op) and isinstance(other, Op):
        if _marks(head) != _marks(other) or len(head.args) != len(other.args):
            return Same(None, "other function")
        for ours, theirs in zip(head.args[1:], other.args[1:], strict=True):
            if ours == theirs:
                continue
            if not (isinstance(ours, Sym) and isinstance(theirs, Sym) and isinstance(given, NODES)):
                return Same(None, "other argument")
            given = scalars.renamed(given, theirs.name, ours.name)
    found = agree(body, given)
    if found.equal is False and isinstance(head, Op) and _other_constant(body, given, head):
        return Same(None, "other parameter")
    if head == other or not found.equal:
        return found
    if all(
        isinstance(side, Op) or (isinstance(value, NODES) and names(value)) for side, value in (gold, answer)
    ):
        return found  # y = x + 1 and f(x) = x + 1
    return Same(None, "other name")


def _other_constant(gold: Value, answer: Value, head: Op) -> bool:
    """Whether two functions differ by the letter of one constant only: f(x) = cx and f(x) = kx."""
    if not isinstance(gold, NODES) or not isinstance(answer, NODES):
        return False
    ours, theirs = names(gold) - names(answer), names(answer) - names(gold)
    if len(ours) != 1 or len(theirs) != 1 or ours & {arg.name for arg in head.args if isinstance(arg, Sym)}:
        return False
    return same(gold, scalars.renamed(answer, *theirs, *ours)).equal is True


def _marks(head: Op) -> str:
    """What tells a derivative or an inverse from its function."""
    name = head.args[0]
    return (
        name.name.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
        if isinstance(name, Sym)
        else ""
    )


def _equation(gold: Relation, answer: Relation, agree: Agree) -> Same:
    sides = (*gold.sides, *answer.sides)
    if not all(isinstance(side, NODES) for side in sides):
        inside = [agree(a, b) for a, b in zip(gold.sides, answer.sides, strict=True)]
        if all(item.equal for item in inside):
            return Same(YES, "sides")
        named = gold.sides[0] == answer.sides[0] and isinstance(gold.sides[0], Listing)
        return Same(NO if named and inside[1].equal is False else None, "equation")
    a, b = (Op("sub", pair) for pair in ((sides[0], sides[1]), (sides[2], sides[3])))  # type: ignore[arg-type]
    if names(a) != names(b):
        return Same(NO, "other variables")
    found, _ = proportional(a, b)
    if found.equal:
        return Same(YES, "equation")
    certain = (
        found.equal is False and found.rule == "exact" and not _divides_by_name(a) and not _divides_by_name(b)
    )
    return Same(NO if certain else None, "equation")


def _divides_by_name(node: Node) -> bool:
    return any(
        isinstance(item, Op) and item.head in ("div", "pow") and names(item.args[1]) for item in walk(node)
    )


def _inequality(gold: Relation, answer: Relation) -> Same:
    """Inequalities in several variables: the same up to a positive factor."""
    if len(gold.ops) != 1 or len(answer.ops) != 1:
        return Same(None, "inequality")
    (op, left), (other, right) = (_upward(value) for value in (gold, answer))
    if left is None or right is None:
        return Same(None, "inequality")
    found, sign = proportional(left, right)
    if not found.equal or sign == 0:
        return Same(None, "inequality")
    if op == other and (sign > 0 or op == "!="):
        return Same(YES, "inequality")
    return Same(NO, "inequality")


def _upward(value: Relation) -> tuple[str, Node | None]:
    """The operator among > >= != and the difference of the sides that it compares with zero."""
    left, right = value.sides
    op = value.ops[0]
    if not isinstance(left, NODES) or not isinstance(right, NODES):
        return op, None
    if op in ("<", "<="):
        return {"<": ">", "<=": ">="}[op], Op("sub", (right, left))
    return op, Op("sub", (left, right)) if op in (">", ">=", "!=") else None


__all__ = ["is_set", "real_sets", "relations"]
