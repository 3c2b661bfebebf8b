"""Is this value the known one? By kind of the gold: what it accepts, what it surely is not.

A gold `x = 5` accepts 5, a gold set does not accept one of its elements, an interval accepts the
inequality that says the same. No means proved different; what is neither stays unknown.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from porism.verify import realsets, scalars
from porism.verify.equal import Same, proportional, same
from porism.verify.exact import NotExact, Undefined, rational
from porism.verify.realsets import NotASet
from porism.verify.shapes import definition, result, shape, unit_letter
from porism.verify.syntax import (
    NODES,
    Combined,
    Congruence,
    Domain,
    Interval,
    Listing,
    Matrix,
    Measured,
    Node,
    Num,
    Op,
    Ratio,
    Relation,
    Sym,
    Value,
    names,
    walk,
)
from porism.verify.words import singular, unit_size

YES, NO = True, False
_SETS = (Interval, Combined, Domain)


def agree(gold: Value, answer: Value) -> Same:
    """Whether an answer is the gold, and the rule."""
    return _agree(shape(gold), shape(answer))


def _agree(gold: Value, answer: Value) -> Same:
    if gold == answer:
        return Same(YES, "identical")
    if isinstance(gold, Measured) or isinstance(answer, Measured):
        return _measured(gold, answer)
    if isinstance(gold, NODES) and isinstance(answer, NODES):
        return _scalar(gold, answer)
    if isinstance(gold, Congruence) and isinstance(answer, Congruence):
        return _congruence(gold, answer)
    if isinstance(gold, Matrix) or isinstance(answer, Matrix):
        return _matrix(gold, answer)
    if isinstance(gold, Ratio) or isinstance(answer, Ratio):
        return _ratio(gold, answer)
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        return _relations(gold, answer)
    if _is_set(gold) or _is_set(answer):
        return _real_sets(gold, answer)
    if isinstance(answer, Relation):
        return _unnamed(gold, answer)
    if isinstance(gold, Relation):
        named = definition(gold)
        if named is None:
            return Same(NO, "kind") if isinstance(answer, NODES) else Same(None, "kind")
        return _agree(shape(named[1]), answer)
    if isinstance(gold, Listing) and isinstance(answer, Listing):
        return _listings(gold, answer)
    if isinstance(gold, Listing) and isinstance(answer, NODES):
        return _agree(gold.items[0], answer) if len(gold.items) == 1 else Same(NO, "kind")
    if isinstance(answer, Listing) and isinstance(gold, NODES):
        return _agree(gold, answer.items[0]) if len(answer.items) == 1 else Same(NO, "kind")
    return Same(None, "kind")


def _scalar(gold: Node, answer: Node) -> Same:
    found = scalars.agree(gold, answer)
    if found.equal is False:
        measured = unit_letter(gold), unit_letter(answer)
        if (measured[0] is None) != (measured[1] is None):
            return _measured(measured[0] or gold, measured[1] or answer)
    return found


def _unnamed(gold: Value, answer: Relation) -> Same:
    """A gold without a name against `x = ...`, or against a chain of equalities."""
    value = result(answer)
    if value is None:
        return Same(None, "contradiction" if "=" in answer.ops else "kind")
    found = _agree(gold, shape(value))
    if found.equal is False and len(answer.sides) == 2:  # x - 1 = 0 is not read as 0
        left = answer.sides[0]
        simple = isinstance(left, Sym) or (isinstance(left, Op) and left.head == "apply")
        return found if simple else Same(None, "equation against value")
    return found


# Sets of reals


def _is_set(value: Value) -> bool:
    if isinstance(value, Relation):
        return any(op not in ("=", "~") for op in value.ops)
    return isinstance(value, _SETS)


def _real_sets(gold: Value, answer: Value) -> Same:
    if isinstance(gold, Interval) and isinstance(answer, Listing) and len(answer.items) > 2:
        return Same(NO, "kind")
    for value, other in ((gold, answer), (answer, gold)):
        if isinstance(value, NODES) and _is_set(other):
            value = Listing("set", (value,))
            gold, answer = (value, answer) if value is not answer and other is answer else (gold, value)
    try:
        return realsets.agree(gold, answer)
    except NotASet:
        return _intervals(gold, answer)


def _intervals(gold: Value, answer: Value) -> Same:
    """Intervals whose ends have names: end by end."""
    if isinstance(gold, Interval) and isinstance(answer, Interval):
        if (gold.closed_low, gold.closed_high) != (answer.closed_low, answer.closed_high):
            return Same(NO, "interval")
        ends = scalars.agree(gold.low, answer.low), scalars.agree(gold.high, answer.high)
        return _all(ends, "interval")
    if isinstance(gold, Combined) and isinstance(answer, Combined) and gold.head == answer.head:
        return _match(
            gold.parts, answer.parts, "parts", lambda a, b: _agree(shape(a), shape(b)), certain=False
        )
    return Same(None, "real set")


# Equations and inequalities


def _relations(gold: Relation, answer: Relation) -> Same:
    if all(side.ops in (("in",), ("notin",)) for side in (gold, answer)):
        inside = [_agree(shape(a), shape(b)) for a, b in zip(gold.sides, answer.sides, strict=True)]
        alike = _all(inside, "membership")
        return Same(NO, "membership") if alike.equal and gold.ops != answer.ops else alike
    if _is_set(gold) or _is_set(answer):
        found = _real_sets(gold, answer)
        return found if found.equal is not None else _inequality(gold, answer)
    left, right = definition(gold), definition(answer)
    if left and right:
        return _definitions(left, right)
    if len(gold.sides) == 2 and len(answer.sides) == 2:
        return _equation(gold, answer)
    ended = result(answer)
    if left and ended is not None and len(answer.sides) > 2 and answer.sides[0] == left[0]:
        return _agree(shape(left[1]), shape(ended))
    if len(gold.sides) == len(answer.sides) and gold.ops == answer.ops:
        inside = [_agree(shape(a), shape(b)) for a, b in zip(gold.sides, answer.sides, strict=True)]
        if all(item.equal for item in inside):
            return Same(YES, "chain")
    return Same(None, "chain")


def _definitions(gold: tuple[Node, Value], answer: tuple[Node, Value]) -> Same:
    found = _agree(shape(gold[1]), shape(answer[1]))
    if gold[0] == answer[0] or not found.equal:
        return found
    if all(
        isinstance(head, Op) or (isinstance(body, NODES) and names(body)) for head, body in (gold, answer)
    ):
        return found  # y = x + 1 and f(x) = x + 1
    return Same(None, "other name")


def _equation(gold: Relation, answer: Relation) -> Same:
    sides = (*gold.sides, *answer.sides)
    if not all(isinstance(side, NODES) for side in sides):
        inside = [_agree(shape(a), shape(b)) for a, b in zip(gold.sides, answer.sides, strict=True)]
        return Same(YES, "sides") if all(item.equal for item in inside) else Same(None, "equation")
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


# Lists


def _all(found: Sequence[Same], rule: str) -> Same:
    if any(item.equal is False for item in found):
        return Same(NO, rule)
    return Same(YES if all(item.equal for item in found) else None, rule)


def _match(
    gold: Sequence[Value],
    answer: Sequence[Value],
    rule: str,
    how: Callable[[Value, Value], Same] = _agree,
    *,
    certain: bool = True,
) -> Same:
    """Whether two collections have equal members, each once; equality is transitive, so greed is right."""
    if len(gold) != len(answer):
        return Same(NO, rule)
    rest, unsure = list(answer), False
    for item in gold:
        found = [how(item, other) for other in rest]
        at = next((index for index, one in enumerate(found) if one.equal), None)
        if at is not None:
            rest.pop(at)
        elif certain and all(one.equal is False for one in found):
            return Same(NO, rule)
        else:
            unsure = True
    return Same(None if unsure else YES, rule)


def _distinct(items: Sequence[Value]) -> list[Value]:
    found: list[Value] = []
    for item in items:
        if not any(_agree(item, other).equal for other in found):
            found.append(item)
    return found


def _ordered(gold: Sequence[Value], answer: Sequence[Value], rule: str) -> Same:
    if len(gold) != len(answer):
        return Same(NO, rule)
    return _all([_agree(a, b) for a, b in zip(gold, answer, strict=True)], rule)


def _listings(gold: Listing, answer: Listing) -> Same:
    kinds = gold.kind, answer.kind
    if len(gold.items) > 300 or len(answer.items) > 300:
        return Same(NO if len(gold.items) != len(answer.items) and "set" not in kinds else None, "long")
    if "record" in kinds:
        return _records(gold, answer)
    if kinds in (("tuple", "tuple"), ("bracket", "bracket")):
        return _ordered(gold.items, answer.items, "tuple")
    if "bracket" in kinds:
        if gold.kind == "tuple" or answer.kind == "tuple":
            return Same(NO, "interval")
        found = _ordered(gold.items, answer.items, "list")
        return found if found.equal is False else Same(None, "list or interval")
    if "tuple" in kinds:
        found = _ordered(gold.items, answer.items, "tuple")
        if found.equal:
            longer = len(gold.items) > 2 and "set" not in kinds
            return Same(YES if longer else None, "tuple or list")
        loose = _match(gold.items, answer.items, "tuple or list")
        return loose if loose.equal is False else Same(None, "tuple or list")
    if kinds == ("list", "list") and len(gold.items) != len(answer.items):
        found = _match(_distinct(gold.items), _distinct(answer.items), "set")
        return found if found.equal is False else Same(None, "multiplicity")
    if "set" in kinds:
        return _match(_distinct(gold.items), _distinct(answer.items), "set")
    return _match(gold.items, answer.items, "set")


def _named(record: Listing) -> dict[Node, Value]:
    pairs = [definition(item) for item in record.items]
    return {pair[0]: shape(pair[1]) for pair in pairs if pair is not None}


def _records(gold: Listing, answer: Listing) -> Same:
    """Values under names, against the same or against a tuple in the names' order."""
    if gold.kind == answer.kind:
        known, given = _named(gold), _named(answer)
        if set(known) != set(given):
            return Same(None, "other names")
        return _all([_agree(known[name], given[name]) for name in known], "record")
    record, plain = (gold, answer) if gold.kind == "record" else (answer, gold)
    values = list(_named(record).values())
    if len(values) != len(plain.items):
        return Same(NO if plain.kind == "tuple" else None, "record")
    heads = [str(name) for name in _named(record)]
    pairs = zip(values, plain.items, strict=True)
    found = _all([_agree(a, b) if record is gold else _agree(b, a) for a, b in pairs], "record")
    if found.equal and plain.kind == "tuple" and heads == sorted(heads):
        return found
    return Same(NO, "record") if found.equal is False and heads == sorted(heads) else Same(None, "record")


# Other kinds


def _measured(gold: Value, answer: Value) -> Same:
    units = [value.unit if isinstance(value, Measured) else "" for value in (gold, answer)]
    left, right = (value.value if isinstance(value, Measured) else value for value in (gold, answer))
    sizes = [unit_size(unit) if unit else None for unit in units]
    if sizes[0] and sizes[1]:
        if sizes[0][0] != sizes[1][0]:
            return Same(NO, "unit")
        if isinstance(left, NODES) and isinstance(right, NODES):
            left, right = Op("mul", (left, Num(sizes[0][1]))), Op("mul", (right, Num(sizes[1][1])))
            return Same(scalars.agree(left, right).equal, "unit")
    found = _agree(shape(left), shape(right))
    if found.equal and units[0] and units[1] and singular(units[0]) != singular(units[1]):
        return Same(None, "unit")
    return found


def _congruence(gold: Congruence, answer: Congruence) -> Same:
    try:
        sets = []
        moduli = [_modulus(value) for value in (gold, answer)]
        common = moduli[0] * moduli[1]
        for value, modulus in zip((gold, answer), moduli, strict=True):
            residues = [rational(residue) for residue in value.residues]
            if any(residue.denominator != 1 for residue in residues) or common > 10**6:
                return Same(None, "congruence")
            steps = range(0, common, modulus)
            sets.append({residue.numerator % modulus + step for residue in residues for step in steps})
    except (NotExact, Undefined):
        return Same(None, "congruence")
    if sets[0] != sets[1]:
        return Same(NO, "congruence")
    return Same(YES if gold.name == answer.name or None in (gold.name, answer.name) else None, "congruence")


def _modulus(value: Congruence) -> int:
    modulus = rational(value.modulus)
    if modulus.denominator != 1 or modulus <= 0:
        raise NotExact("modulus")
    return modulus.numerator


def _matrix(gold: Value, answer: Value) -> Same:
    if isinstance(gold, Matrix) and isinstance(answer, Matrix):
        shapes = [(len(value.rows), len(value.rows[0])) for value in (gold, answer)]
        if shapes[0] != shapes[1]:
            turned = shapes[0] == shapes[1][::-1] and 1 in shapes[0]
            return Same(None if turned else NO, "matrix")
        known, given = (itertools.chain.from_iterable(value.rows) for value in (gold, answer))
        return _all([_agree(shape(a), shape(b)) for a, b in zip(known, given, strict=True)], "matrix")
    matrix, other = (gold, answer) if isinstance(gold, Matrix) else (answer, gold)
    assert isinstance(matrix, Matrix)
    if isinstance(other, Relation):
        named = definition(other)
        if named is None:
            return Same(None, "matrix")
        return _matrix(matrix, named[1]) if matrix is gold else _matrix(named[1], matrix)
    flat = [shape(item) for row in matrix.rows for item in row]
    vector = 1 in (len(matrix.rows), len(matrix.rows[0]))
    if isinstance(other, Listing) and other.kind in ("tuple", "bracket") and vector:
        return _ordered(flat, other.items, "vector")
    return Same(NO if isinstance(other, NODES) and len(flat) > 1 else None, "matrix")


def _ratio(gold: Value, answer: Value) -> Same:
    if not isinstance(gold, Ratio) or not isinstance(answer, Ratio):
        return Same(None, "ratio")
    if len(gold.parts) != len(answer.parts):
        return Same(NO, "ratio")
    found = _all([same(a, b) for a, b in zip(gold.parts, answer.parts, strict=True)], "ratio")
    if found.equal or gold.clock:
        return found
    first = gold.parts[0], answer.parts[0]
    crossed = [
        same(Op("mul", (a, first[1])), Op("mul", (b, first[0])))
        for a, b in zip(gold.parts, answer.parts, strict=True)
    ]
    return _all(crossed, "ratio")


__all__ = ["agree"]
