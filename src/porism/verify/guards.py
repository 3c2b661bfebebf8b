"""Texts that are sure to exhaust a symbolic engine, told by their look before one is troubled."""

from __future__ import annotations

import re

MAX_LENGTH = 2000
MAX_NESTING = 25
_TOWER = re.compile(r"(?:\^\s*[({]?\s*\\?[\w.]+\s*[)}]?\s*){3,}|(?:\*\*\s*\w+\s*){3,}")
_NESTED = re.compile(r"\^\s*\{[^{}]*\^\s*\{[^{}]*\^")
_FACTORIAL = re.compile(r"\d{4,}\s*[)}]*\s*!|![)}\s]*!|\^[\s\d{}()]+!")
_DIGITS = re.compile(r"\d{400}")
_POWER = re.compile(r"\^\s*\{?\s*\d{5,}")


def hostile(text: str) -> str | None:
    """Why a text is not given to a symbolic engine, or None."""
    if len(text) > MAX_LENGTH:
        return "too-long"
    depth = deepest = 0
    for char in text:
        depth += (char in "({[") - (char in ")}]")
        deepest = max(deepest, depth)
    if deepest > MAX_NESTING:
        return "nesting"
    if _TOWER.search(text) or _NESTED.search(text):
        return "tower of powers"
    if _FACTORIAL.search(text) or _DIGITS.search(text) or _POWER.search(text):
        return "huge number"
    return None


__all__ = ["hostile"]
