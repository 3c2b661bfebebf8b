"""What a stated answer type says of a text whose look leaves it open: (0, 1) is a point or an interval."""

from __future__ import annotations

import re

from porism.verify.equal import Same
from porism.verify.syntax import NODES, Interval, Listing, Value
from porism.verify.words import known_words, plain_words

_LETTER = re.compile(r"(?<![A-Za-z\\])[A-Z](?![A-Za-z])")
_LISTINGS = {
    "tuple": "tuple", "point": "tuple", "vector": "tuple", "sequence": "tuple", "set": "set", "multiset": "list",
    "list": "list",
}  # fmt: skip
TYPES = frozenset(
    (
        "auto", "integer", "rational", "decimal", "expression", "equation", "inequality", "interval", "matrix",
        "polynomial", "congruence", "function", "group", "choice", "boolean", "string", "python", *_LISTINGS,
    )
)  # fmt: skip


def typed(value: Value, kind: str) -> Value:
    """The value as a stated type reads it."""
    if not isinstance(value, Listing) or value.kind == "record":
        return value
    if kind == "interval" and len(value.items) == 2 and value.kind in ("tuple", "bracket"):
        low, high = value.items
        if isinstance(low, NODES) and isinstance(high, NODES):
            return Interval(low, high, value.kind == "bracket", value.kind == "bracket")
    return Listing(_LISTINGS[kind], value.items) if kind in _LISTINGS else value


def letters(gold: str, answer: str) -> Same:
    """Choices by their letters alone, in any order."""
    known, given = (set(_LETTER.findall(text.upper() if len(text) <= 3 else text)) for text in (gold, answer))
    return Same(known == given if known and given else None, "choice")


def truth(gold: str, answer: str) -> Same:
    """Yes or no, true or false; a reason may follow the first word."""
    meanings = []
    for text in (gold, answer):
        words = plain_words(text)
        meanings.append(known_words(words) or known_words(words.split()[0].strip(",") if words else ""))
    if not all(meaning in ("yes", "no") for meaning in meanings):
        return Same(None, "boolean")
    return Same(meanings[0] == meanings[1], "boolean")


__all__ = ["TYPES", "letters", "truth", "typed"]
