"""Lists, sets, tuples and records against each other: when order counts, when repetition does."""

from __future__ import annotations

from collections.abc import Sequence

from porism.verify.equal import Agree, Same
from porism.verify.shapes import definition
from porism.verify.syntax import Listing, Node, Value

MAX_ITEMS = 300
YES, NO = True, False


def every(found: Sequence[Same], rule: str) -> Same:
    """Yes when all are, no when one is."""
    if any(item.equal is False for item in found):
        return Same(NO, rule)
    return Same(YES if all(item.equal for item in found) else None, rule)


def match(
    gold: Sequence[Value],
    answer: Sequence[Value],
    rule: str,
    agree: Agree,
    *,
    certain: bool = True,
) -> Same:
    """Whether two collections have equal members, each once; equality is transitive, so greed is right."""
    if len(gold) != len(answer):
        return Same(NO, rule)
    rest, unsure = list(answer), False
    for item in gold:
        found = [agree(item, other) for other in rest]
        at = next((index for index, one in enumerate(found) if one.equal), None)
        if at is not None:
            rest.pop(at)
        elif certain and all(one.equal is False for one in found):
            return Same(NO, rule)
        else:
            unsure = True
    return Same(None if unsure else YES, rule)


def _distinct(items: Sequence[Value], agree: Agree) -> list[Value]:
    found: list[Value] = []
    for item in items:
        if not any(agree(item, other).equal for other in found):
            found.append(item)
    return found


def ordered(gold: Sequence[Value], answer: Sequence[Value], rule: str, agree: Agree) -> Same:
    """Whether two sequences are equal place by place."""
    if len(gold) != len(answer):
        return Same(NO, rule)
    return every([agree(a, b) for a, b in zip(gold, answer, strict=True)], rule)


def listings(gold: Listing, answer: Listing, agree: Agree) -> Same:
    """Whether a listing is the gold's: bare lists and sets without order, tuples in order."""
    kinds = gold.kind, answer.kind
    if len(gold.items) > MAX_ITEMS or len(answer.items) > MAX_ITEMS:
        return Same(NO if len(gold.items) != len(answer.items) and "set" not in kinds else None, "long")
    if "record" in kinds:
        return _records(gold, answer, agree)
    if kinds in (("tuple", "tuple"), ("bracket", "bracket")):
        return ordered(gold.items, answer.items, "tuple", agree)
    if "bracket" in kinds:
        if gold.kind == "tuple" or answer.kind == "tuple":
            return Same(NO, "interval")
        found = ordered(gold.items, answer.items, "list", agree)
        return found if found.equal is False else Same(None, "list or interval")
    if "tuple" in kinds:
        found = ordered(gold.items, answer.items, "tuple", agree)
        if found.equal:
            longer = len(gold.items) > 2 and "set" not in kinds
            return Same(YES if longer else None, "tuple or list")
        loose = match(gold.items, answer.items, "tuple or list", agree)
        return loose if loose.equal is False else Same(None, "tuple or list")
    if kinds == ("list", "list") and len(gold.items) != len(answer.items):
        found = match(_distinct(gold.items, agree), _distinct(answer.items, agree), "set", agree)
        return found if found.equal is False else Same(None, "multiplicity")
    if "set" in kinds:
        return match(_distinct(gold.items, agree), _distinct(answer.items, agree), "set", agree)
    return match(gold.items, answer.items, "set", agree)


def _named(record: Listing) -> dict[Node, Value]:
    pairs = [definition(item) for item in record.items]
    return {pair[0]: pair[1] for pair in pairs if pair is not None}


def _records(gold: Listing, answer: Listing, agree: Agree) -> Same:
    """Values under names, against the same or against a tuple in the names' order."""
    if gold.kind == answer.kind:
        known, given = _named(gold), _named(answer)
        if set(known) != set(given):
            return Same(None, "other names")
        return every([agree(known[name], given[name]) for name in known], "record")
    record, plain = (gold, answer) if gold.kind == "record" else (answer, gold)
    values = list(_named(record).values())
    if len(values) != len(plain.items):
        return Same(NO if plain.kind == "tuple" else None, "record")
    heads = [str(name) for name in _named(record)]
    pairs = zip(values, plain.items, strict=True)
    found = every([agree(a, b) if record is gold else agree(b, a) for a, b in pairs], "record")
    if found.equal and plain.kind == "tuple" and heads == sorted(heads):
        return found
    return Same(NO, "record") if found.equal is False and heads == sorted(heads) else Same(None, "record")


__all__ = ["every", "listings", "match", "ordered"]
