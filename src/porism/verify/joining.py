"""What several items between separators or in a set builder are together."""

from __future__ import annotations

from fractions import Fraction

from porism.verify.lexer import Unreadable
from porism.verify.reader import as_node
from porism.verify.syntax import (
    NODES,
    Combined,
    Congruence,
    Domain,
    Listing,
    Node,
    Num,
    Relation,
    Sym,
    Text,
    Value,
    whole,
)

DOTS = Text("...")
MAX_TERMS = 300


def joined(found: list[Value], joints: list[str]) -> Value:
    """Items between separators as one value: a list, conditions, or a congruence with several residues."""
    if DOTS in found:
        found = _filled(found)
    last = found[-1]
    if isinstance(last, Congruence) and len(found) > 1:
        return _residues(found, last)
    if len(found) == 1:
        return found[0]
    parameters = [item for item in found if isinstance(item, Relation) and item.ops == ("in",) and item.sides[1] in
                  (Domain("Z"), Domain("N"))]  # fmt: skip
    if parameters and len(parameters) < len(found):
        found = [item for item in found if item not in parameters]
        if len(found) == 1:
            return found[0]
    conditions = [item for item in found if isinstance(item, Relation) and item.ops != ("=",)]
    if len(conditions) == len(found):
        plain = "and" if "and" in joints or not set(joints) <= {",", ";"} else "conditions"
        return Combined("or" if "or" in joints else plain, tuple(found))
    if "or" in joints and conditions and all(isinstance(item, Relation) for item in found):
        return Combined("or", tuple(found))
    return Listing("list", tuple(found))


def _filled(found: list[Value]) -> list[Value]:
    """1, 3, ..., 9 with the integers that the dots stand for. Raises Unreadable unless all have one step."""
    at = found.index(DOTS)
    before, after = ([whole(item) for item in part] for part in (found[:at], found[at + 1 :]))
    terms = [term for term in (*before, *after) if term is not None]
    if not before or not after or len(terms) < len(found) - 1:
        raise Unreadable("dots")
    step = terms[1] - terms[0] if len(before) > 1 else 1
    if step == 0 or not 0 < (terms[-1] - terms[0]) // step < MAX_TERMS:
        raise Unreadable("dots")
    filled = list(range(terms[0], terms[-1] + step // abs(step), step))
    if filled[: len(before)] != before or filled[-len(after) :] != after:
        raise Unreadable("dots")
    return [Num(Fraction(term)) for term in filled]


def congruence(sides: list[Value], ops: list[str], modulus: Node) -> Congruence:
    """a = b (mod m), or a residue alone. Raises Unreadable for longer chains."""
    if len(sides) == 1:
        return Congruence(None, (as_node(sides[0]),), modulus)
    if len(sides) != 2 or ops[0] not in ("equiv", "="):
        raise Unreadable("a chain of congruences")
    return Congruence(as_node(sides[0]), (as_node(sides[1]),), modulus)


def _residues(found: list[Value], last: Congruence) -> Value:
    """x = 1, 3 (mod 4), or several whole congruences in the same name and modulus."""
    name, residues = last.name, []
    for item in found[:-1]:
        if isinstance(item, Relation) and item.ops in (("equiv",), ("=",)) and last.name is None:
            name = as_node(item.sides[0])
            residues.append(as_node(item.sides[1]))
        elif isinstance(item, Congruence) and item.modulus == last.modulus and item.name in (name, last.name):
            residues += item.residues
        elif isinstance(item, NODES):
            residues.append(item)
        else:
            raise Unreadable("congruences")
    return Congruence(name, (*residues, *last.residues), last.modulus)


def built(value: Value, condition: Value) -> Value:
    """{x : condition} or {x in R : condition} as the condition."""
    if isinstance(value, Relation) and value.ops == ("in",) and value.sides[1] == Domain("R"):
        value = value.sides[0]
    if isinstance(value, Sym) and isinstance(condition, Relation | Combined):
        return condition
    raise Unreadable("a set builder")


__all__ = ["DOTS", "built", "congruence", "joined"]
