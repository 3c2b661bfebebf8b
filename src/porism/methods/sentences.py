r"""Sentences of a mathematical text. A formula, however it is delimited and over however many lines, stays whole.

`$3.5$ and so on. $$ a. b $$` has two sentences and not five. What is no formula ends at a period, a question mark or
an exclamation mark before white space and a new beginning, or at an empty line.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_FORMULA = re.compile(
    r"```.*?```|\$\$.*?\$\$|(?<!\\)\\\[.*?\\\]|(?<!\\)\\\(.*?\\\)|\\begin\{(?P<name>[A-Za-z]+\*?)\}.*?\\end\{(?P=name)\}"
    r"|(?<!\\)\$(?:\\.|[^$\\])+\$|\\boxed\{[^{}]*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}[^{}]*)*\}",
    re.DOTALL,
)
_ABBREVIATIONS = (
    "e.g.",
    "i.e.",
    "cf.",
    "resp.",
    "Thm.",
    "Prop.",
    "Lem.",
    "Fig.",
    "Eq.",
    "No.",
    "etc.",
    "vs.",
    "Dr.",
)
_END = re.compile(r"(?<=[.!?])(?P<gap>\s+)(?=[^\sa-z])|\n[ \t]*\n\s*")


class Sentence(NamedTuple):
    """A sentence, and the white space between it and the next one."""

    text: str
    gap: str

    @property
    def mathematical(self) -> bool:
        """Whether it holds a formula or a digit."""
        return _FORMULA.search(self.text) is not None or any(c.isdigit() for c in self.text)


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text in order; their texts and gaps together are the text without its outer white space."""
    text = text.strip()
    inside = [match.span() for match in _FORMULA.finditer(text)]
    found, start = [], 0
    for end in _END.finditer(text):
        if any(a < end.start() < b for a, b in inside):
            continue
        if end["gap"] is not None and text[start : end.start()].endswith(_ABBREVIATIONS):
            continue
        found.append(Sentence(text[start : end.start()], end[0]))
        start = end.end()
    if text[start:]:
        found.append(Sentence(text[start:], ""))
    return found


_DELIMITERS = re.compile(r"^(?:\$\$?|\\[\[(])\s*|\s*(?:\$\$?|\\[\])])$")


def formulas(text: str) -> list[str]:
    """The formulas of a text in order, without their delimiters."""
    return [
        _DELIMITERS.sub("", match[0]) for match in _FORMULA.finditer(text) if not match[0].startswith("```")
    ]


__all__ = ["Sentence", "formulas", "sentences"]
