"""Is this value the known one? By kind of the gold: what it accepts, what it surely is not.

A gold `x = 5` accepts 5, a gold set does not accept one of its elements, an interval accepts the
inequality that says the same. No means proved different; what is neither stays unknown.
"""

from __future__ import annotations

from porism.verify import scalars
from porism.verify.equal import Same
from porism.verify.lists import listings
from porism.verify.quantities import congruences, matrices, measures, progression, ratios
from porism.verify.realsets import variables
from porism.verify.relations import is_set, real_sets, relations
from porism.verify.shapes import definition, result, shape, unit_letter
from porism.verify.syntax import (
    NODES,
    Congruence,
    Listing,
    Matrix,
    Measured,
    Node,
    Op,
    Ratio,
    Relation,
    Sym,
    Value,
)

MAX_SPELLINGS = 3


def agree(gold: Value, answer: Value) -> Same:
    """Whether an answer is the gold, and the rule."""
    return _agree(shape(gold), shape(answer))


def _agree(gold: Value, answer: Value) -> Same:
    if gold == answer:
        return Same(True, "identical")
    if isinstance(gold, Measured) or isinstance(answer, Measured):
        gold, answer = unit_letter(gold) or gold, unit_letter(answer) or answer
        return measures(gold, answer, agree)
    if isinstance(gold, NODES) and isinstance(answer, NODES):
        return _scalar(gold, answer)
    if isinstance(gold, Congruence) or isinstance(answer, Congruence):
        known, given = progression(gold), progression(answer)
        return congruences(known, given) if known and given else Same(None, "kind")
    if isinstance(gold, Matrix) or isinstance(answer, Matrix):
        return matrices(gold, answer, agree)
    if isinstance(gold, Ratio) or isinstance(answer, Ratio):
        return ratios(gold, answer)
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        return relations(gold, answer, agree)
    if is_set(gold) or is_set(answer):
        return real_sets(gold, answer, agree)
    if isinstance(answer, Relation):
        return _unnamed(gold, answer)
    if isinstance(gold, Relation):
        named = definition(gold)
        if (
            named is None
            and not any(variables(side) for side in gold.sides)
            and (value := result(gold)) is not None
        ):
            return agree(value, answer)
        if named is None:
            return Same(False, "kind") if isinstance(answer, NODES) else Same(None, "kind")
        return _agree(shape(named[1]), answer)
    if isinstance(gold, Listing) and isinstance(answer, Listing):
        return listings(gold, answer, _members)
    if isinstance(gold, Listing) and isinstance(answer, NODES):
        return _members(gold.items[0], answer) if len(gold.items) == 1 else Same(False, "kind")
    if isinstance(answer, Listing) and isinstance(gold, NODES):
        return _spellings(gold, answer)
    return Same(None, "kind")


def _members(gold: Value, answer: Value) -> Same:
    """As agree, for members of a collection: {2} is not 2 there."""
    if any(
        isinstance(value, Listing) and value.kind == "set" and isinstance(other, NODES)
        for value, other in ((gold, answer), (answer, gold))
    ):
        return Same(False, "kind")
    return agree(gold, answer)


def _spellings(gold: Node, answer: Listing) -> Same:
    """One value against several: right when they are one value written several times, as in 3/4, or 75%."""
    found = [_agree(gold, shape(item)) for item in answer.items] if len(answer.items) <= MAX_SPELLINGS else []
    if found and answer.kind in ("list", "set") and all(item.equal for item in found):
        return found[0]
    return Same(None if found and all(item.equal is not False for item in found) else False, "kind")


def _scalar(gold: Node, answer: Node) -> Same:
    found = scalars.agree(gold, answer)
    if found.equal is False:
        measured = unit_letter(gold), unit_letter(answer)
        if (measured[0] is None) != (measured[1] is None):
            return _doubted(measures(measured[0] or gold, measured[1] or answer, agree))
    return found


def _doubted(found: Same) -> Same:
    """5m beside 5: a unit without a space, or a variable."""
    return Same(None, "unit or variable") if found.equal else found


def _unnamed(gold: Value, answer: Relation) -> Same:
    """A gold without a name against `x = ...`, or against a chain of equalities."""
    value = result(answer)
    if value is None:
        return Same(None, "contradiction" if "=" in answer.ops else "kind")
    found = _agree(gold, shape(value))
    left = answer.sides[0]
    if len(answer.sides) > 2 or _simple(left):
        return found
    if found.equal is not None and variables(left) & set("xyz"):
        return Same(None, "equation against value")  # x + y = 1 is not 1, and x - 1 = 0 is not 0
    return found


def _simple(side: Value) -> bool:
    return isinstance(side, Sym | Listing) or (isinstance(side, Op) and side.head == "apply")


__all__ = ["agree"]
