"""A quick look whether two answers are the same text in different dress.

Only for warnings about data: it knows no algebra and needs no process of its own. Verdicts are the verifier's.
"""

from __future__ import annotations

import re

_FRACTION = re.compile(r"\\[dt]?frac\{?([^{}]+)\}\{?([^{}]+)\}|\\[dt]?frac(\d)(\d)")
_BOXED = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")
_DRESS = re.compile(r"\\(?:left|right|displaystyle|[,;:! ])|[$\s]")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"[-+]?\d+\.\d*")


def same_answer(one: str, other: str) -> bool:
    """Whether two answers agree after taking off $, \\boxed, white space, a final period and the like."""
    return plain(one) == plain(other)


def plain(answer: str) -> str:
    """An answer without its dress: `$\\boxed{\\frac{1}{2}}$.` becomes `1/2`."""
    text = _DRESS.sub("", answer).rstrip(".")
    if boxed := _BOXED.fullmatch(text):
        text = boxed[1].rstrip(".")
    text = _FRACTION.sub(lambda m: f"{m[1] or m[3]}/{m[2] or m[4]}", text)
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    if _DECIMAL.fullmatch(text):
        text = text.rstrip("0").rstrip(".")
    return text.removeprefix("+")


def last_boxed(text: str) -> str | None:
    """What stands in the last \\boxed{...} of a text, if there is one."""
    found = _BOXED.findall(text)
    return found[-1] if found else None
