"""The mark at the end of a model's answer, read strictly.

A mark stands on a line of its own behind its label, and the last such line counts, as the prompts ask. Emphasis, a box
and `8/10` for 8 are forgiven; a range, a half, a word more or a number off the scale is no mark: a guess at what the
model meant would be a score that nobody gave. Linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LONGEST = 60  # characters of a mark; a longer one is prose

_FRAME = r"[ \t*_`$<>#]*"
_BOX = re.compile(r"\\f?boxed\{(.*)\}|\\(?:text|mathrm|mathbf)\{(.*)\}")
_PAIR = re.compile(r"\\f?boxed\s{0,9}\{\s{0,9}(\d{1,3})\s{0,9},\s{0,9}(\d{1,3})\s{0,9}\}")


def last_mark(text: str, label: str) -> str | None:
    """What stands behind the last line that is `label: ...`, without boxes and emphasis; None where it is prose."""
    line = re.compile(rf"{_FRAME}(?:final )?{re.escape(label)}{_FRAME}[:=]{_FRAME}(.*)", re.IGNORECASE)
    found = next(filter(None, map(line.fullmatch, reversed(text.splitlines()))), None)
    if found is None:
        return None
    mark = _bare(found[1])
    while len(mark) <= LONGEST and (box := _BOX.fullmatch(mark)):
        mark = _bare(box[1] if box[1] is not None else box[2])
    return mark if len(mark) <= LONGEST else None


def whole_number(text: str, label: str, least: int, most: int) -> float | None:
    """The whole number from least to most on the last line `label: ...`, also as `8/10`; None for anything else."""
    mark = last_mark(text, label)
    found = None if mark is None else re.fullmatch(rf"([0-9]{{1,3}})(?:\s*(?:/|out of)\s*{most})?", mark)
    if found is None or not least <= int(found[1]) <= most:
        return None
    return float(found[1])


def word(text: str, label: str, marks: Mapping[str, float]) -> float | None:
    """What the one word on the last line `label: ...` stands for; None for any other."""
    mark = last_mark(text, label)
    return None if mark is None else marks.get(mark.casefold())


def first_of_pair(text: str, least: int, most: int) -> float | None:
    r"""The first number of the last \boxed{a, b} whose numbers are both from least to most."""
    pairs = _PAIR.findall(text)
    if not pairs or not all(least <= int(number) <= most for number in pairs[-1]):
        return None
    return float(pairs[-1][0])


def _bare(text: str) -> str:
    return text.strip(" \t*_`$<>.")


__all__ = ["first_of_pair", "last_mark", "whole_number", "word"]
