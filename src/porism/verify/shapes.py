"""Structures in one shape before they are compared: choices of sign spread out, names set apart.

`1 +- 2` becomes two values, `x = 1 or x = 2` and `n = 1, 2` the values, `p = 5, q = 2` a record of names.
"""

from __future__ import annotations

from porism.verify.equal import same
from porism.verify.scalars import has
from porism.verify.syntax import (
    NODES,
    Listing,
    Measured,
    Node,
    Op,
    Relation,
    Sym,
    Value,
    names,
    whole,
)

_UNITS_OF_ONE_LETTER = frozenset(("m", "s", "g", "h", "L"))


def spread(value: Value) -> list[Value]:
    """The values of an item with plus-minus signs, all upper or all lower; the item itself without any."""
    if isinstance(value, NODES):
        if has(value, "pm") or has(value, "mp"):
            return [_signed(value, 1), _signed(value, -1)]
    elif isinstance(value, Relation):
        sides = [spread(side) for side in value.sides]
        if any(len(side) > 1 for side in sides):
            return [
                Relation(value.ops, tuple(side[min(at, len(side) - 1)] for side in sides)) for at in (0, 1)
            ]
    return [value]


def _signed(node: Node, sign: int) -> Node:
    if not isinstance(node, Op):
        return node
    args = tuple(_signed(arg, sign) for arg in node.args)
    if node.head not in ("pm", "mp"):
        return Op(node.head, args)
    plus = (sign > 0) == (node.head == "pm")
    if len(args) == 1:
        return args[0] if plus else Op("neg", args)
    return Op("add" if plus else "sub", args)


def definition(value: Value) -> tuple[Node, Value] | None:
    """name = value or f(x) = value, when the name does not come back on the right."""
    if not isinstance(value, Relation) or value.ops not in (("=",), ("~",)):
        return None
    left, right = value.sides
    if isinstance(left, Op) and left.head == "apply":
        return left, right
    if isinstance(left, Sym):
        if isinstance(right, NODES) and left.name in names(right):
            return None
        return left, right
    return None


def shape(value: Value) -> Value:
    """The value in the shape that comparison expects."""
    if isinstance(value, Listing):
        return _listing(value)
    several = spread(value)
    if len(several) > 1:
        return _listing(Listing("set", tuple(several)))
    if isinstance(value, Measured) and isinstance(value.value, NODES):
        inner = spread(value.value)
        if len(inner) > 1:
            return Listing("set", tuple(inner))
    return value


def _listing(value: Listing) -> Value:
    items = [part for item in value.items for part in spread(item)]
    kind = value.kind
    if len(items) > len(value.items) and kind == "list":
        kind = "set"
    if kind == "bracket" and len(items) != 2:
        kind = "tuple"
    if kind in ("list", "set", "tuple"):
        defined = [definition(item) for item in items]
        heads = [item[0] if item else None for item in defined]
        if heads and heads[0] is not None:
            pairs = list(zip(items, defined, strict=True))
            if all(head is None or head == heads[0] for head in heads[1:]):
                if not any(isinstance(item, Relation) and pair is None for item, pair in pairs):
                    values = tuple(pair[1] if pair else item for item, pair in pairs)
                    return _listing(Listing("list" if kind != "set" else kind, values))
            elif all(head is not None for head in heads):
                return _records(items, [head for head in heads if head is not None])
    if len(items) == 1 and kind in ("list", "set", "tuple") and isinstance(items[0], NODES):
        return items[0]
    return Listing(kind, tuple(item if _single(item) else shape(item) for item in items))


def _single(value: Value) -> bool:
    """A set of one: as a member of another it is not its element."""
    return isinstance(value, Listing) and value.kind == "set" and len(value.items) == 1


def _records(items: list[Value], heads: list[Node]) -> Value:
    """Equations of different names as one record, or as several when the names begin again."""
    groups: list[list[Value]] = []
    for item, head in zip(items, heads, strict=True):
        if not groups or head == heads[0]:
            groups.append([])
        groups[-1].append(item)
    records = [Listing("record", tuple(group)) for group in groups]
    return records[0] if len(records) == 1 else Listing("list", tuple(records))


def unit_letter(value: Value) -> Measured | None:
    """5 m as a measure: a number times one letter that is also a unit's."""
    if isinstance(value, Op) and value.head == "mul" and not names(value.args[0]):
        number, letter = value.args
        power = ""
        if isinstance(letter, Op) and letter.head == "pow" and whole(letter.args[1]) in (2, 3):
            power = f" ^{whole(letter.args[1])}"
            letter = letter.args[0]
        if isinstance(letter, Sym) and letter.name in _UNITS_OF_ONE_LETTER:
            return Measured(number, letter.name + power)
    return None


def result(value: Relation) -> Value | None:
    """What a chain of equalities arrives at; None when its parts contradict each other."""
    if any(op not in ("=", "~") for op in value.ops):
        return None
    opening = value.sides[0]
    if value.ops[0] == "~" and isinstance(opening, NODES) and not names(opening):
        return opening  # sqrt(2) and its rounding
    end = next((at for at, op in enumerate(value.ops) if op == "~"), len(value.ops))
    sides = value.sides[: end + 1] if end else value.sides
    final = sides[-1]
    if isinstance(sides[0], NODES) and isinstance(final, Op) and not names(sides[0]) and names(final):
        return None
    if isinstance(final, Sym) and isinstance(sides[0], NODES) and not names(sides[0]):
        return sides[0]
    closed = [side for side in sides if isinstance(side, NODES) and not names(side)]
    if any(same(side, closed[-1]).equal is not True for side in closed[:-1]):
        return None
    return final


__all__ = ["definition", "result", "shape", "spread", "unit_letter"]
