"""The mark at the end of a model's answer, read strictly.

A mark stands on a line of its own behind its label, and the last such line counts, as the prompts ask. Emphasis, a box
and `8/10` for 8 are forgiven; a range, a half, a word more or a number off the scale is no mark: a guess at what the
model meant would be a score that nobody gave. Linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import exp

from porism.types import Token

LONGEST = 60  # characters of a mark; a longer one is prose
KNOWN = 0.5  # the least probability that must lie on tokens which begin a mark

_FRAME = r"[ \t*_`$<>#]*"
_BOX = re.compile(r"\\f?boxed\{(.*)\}|\\(?:text|mathrm|mathbf)\{(.*)\}")
_PAIR = re.compile(r"\\f?boxed\s{0,9}\{\s{0,9}(\d{1,3})\s{0,9},\s{0,9}(\d{1,3})\s{0,9}\}")


def last_mark(text: str, label: str) -> str | None:
    """What stands behind the last line that is `label: ...`, without boxes and emphasis; None where it is prose."""
    found = next(filter(None, map(_line(label).fullmatch, reversed(text.splitlines()))), None)
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


def expected_mark(ending: Sequence[Token], label: str, marks: Mapping[str, float]) -> float | None:
    """The mean of the marks by the probabilities of the tokens that may begin one, behind the last `label:`.

    A token counts for the mark whose words it begins, and for none where it begins words of several. None where the
    ending has no such line, or under half of the probability lies on tokens that count.
    """
    text = "".join(token.text for token in ending)
    lines = text.splitlines(keepends=True)
    for number in reversed(range(len(lines))):
        if found := _line(label).fullmatch(lines[number].rstrip("\r\n")):
            place = sum(map(len, lines[:number])) + found.start(1)
            break
    else:
        return None
    for token in ending:
        if place < len(token.text):
            break
        place -= len(token.text)
    else:
        return None
    weights: dict[float, float] = {}
    for other, logprob in token.top.items():
        begun = other.strip(" \t\n*_`$<>:=").casefold()
        meant = {mark for word, mark in marks.items() if begun and word.startswith(begun)}
        if len(meant) == 1:
            mark = meant.pop()
            weights[mark] = weights.get(mark, 0.0) + exp(min(logprob, 0.0))
    total = sum(weights.values())
    return sum(mark * weight for mark, weight in weights.items()) / total if total >= KNOWN else None


def _line(label: str) -> re.Pattern[str]:
    return re.compile(rf"{_FRAME}(?:final )?{re.escape(label)}{_FRAME}[:=]{_FRAME}(.*)", re.IGNORECASE)


def _bare(text: str) -> str:
    return text.strip(" \t*_`$<>.")


__all__ = ["expected_mark", "first_of_pair", "last_mark", "whole_number", "word"]
