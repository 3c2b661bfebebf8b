r"""Number literals, read exactly: 1,234  -3.50  3/4  \frac{3}{4}  2\frac12  1.5e3  3 \times 10^8  0.\overline{3}.

Only whole texts that are one literal are read; everything else is left to the parser. Values are
Fractions, so comparison never rounds. Sizes are bounded before anything is computed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

MAX_DIGITS = 4000  # below the interpreter's own bound on reading decimals
MAX_PERIODIC = 200  # finding a period takes time that grows with the square of the length
_UINT = r"(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)"
_DEC = rf"(?:{_UINT}(?:\.\d*)?|\.\d+)"
_INT_ARG = r"(?:\{\s*(-?\d+)\s*\}|(\d))"
_DECIMAL = re.compile(rf"\s*([+-]?)\s*({_DEC})\s*(%?)\s*")
_RATIO = re.compile(rf"\s*([+-]?)\s*({_UINT})\s*/\s*(-?\d+)\s*(%?)\s*")
_FRAC = re.compile(rf"\s*([+-]?)\s*\\frac\s*{_INT_ARG}\s*{_INT_ARG}\s*(%?)\s*")
_MIXED = re.compile(
    rf"\s*([+-]?)\s*(\d+)\s*(?:\\frac\s*{_INT_ARG}\s*{_INT_ARG}|(?<=\d)\s+(\d+)\s*/\s*(\d+))\s*"
)
_SCIENCE = re.compile(
    rf"\s*([+-]?)\s*({_DEC})\s*(?:[eE]\s*([+-]?\d+)|(?:\\times|\\cdot|\*|x)\s*10\s*\^\s*(?:\{{\s*([+-]?\d+)\s*\}}|([+-]?\d+)))\s*"
)
_REPEAT = re.compile(
    r"\s*([+-]?)\s*(\d*)\.(\d*)(?:\\overline\s*\{\s*(\d+)\s*\}|\\dot\s*\{?(\d)\}?|\((\d+)\))\s*"
)
_ENDLESS = re.compile(r"\s*([+-]?)\s*(\d*)\.(\d*?)((\d{1,6}?)\5{2,})\s*(?:\.\.\.|\\(?:ldots|dots|cdots))\s*")


@dataclass(frozen=True, slots=True)
class Literal:
    """value is exact. digits: significant digits of a decimal literal, None for every other form."""

    value: Fraction
    digits: int | None = None
    places: int = 0
    percent: bool = False


def _decimal(text: str) -> tuple[Fraction, int, int]:
    """Value, significant digits and decimal places of an unsigned decimal."""
    whole, _, part = text.replace(",", "").partition(".")
    value = Fraction(int((whole or "0") + part), 10 ** len(part))
    return value, len((whole + part).lstrip("0")), len(part)


def _ratio(sign: str, whole: int, top: int, bottom: int) -> Fraction | None:
    if bottom == 0:
        return None
    value = whole + Fraction(top, bottom)
    return -value if sign == "-" else value


def literal(text: str) -> Literal | None:
    """The number that the whole (cleaned) text is a literal of, or None."""
    if len(text) > MAX_DIGITS or not any(char.isdigit() for char in text):
        return None
    if match := _DECIMAL.fullmatch(text):
        sign, body, percent = match.groups()
        value, digits, places = _decimal(body)
        value = -value if sign == "-" else value
        if percent:
            return Literal(value / 100, digits if "." in body else None, places + 2, True)
        return Literal(value, digits if "." in body else None, places)
    if match := _RATIO.fullmatch(text):
        sign, top, bottom, percent = match.groups()
        ratio = _ratio(sign, 0, int(top.replace(",", "")), int(bottom))
        return None if ratio is None else Literal(ratio / (100 if percent else 1), percent=bool(percent))
    if match := _FRAC.fullmatch(text):
        sign, a, b, c, d, percent = match.groups()
        ratio = _ratio(sign, 0, int(a or b), int(c or d))
        return None if ratio is None else Literal(ratio / (100 if percent else 1), percent=bool(percent))
    if match := _MIXED.fullmatch(text):
        sign, whole, *rest = match.groups()
        top, bottom = (int(part) for part in rest if part is not None)
        if not 0 <= top < bottom:  # two readings, a product and a sum: not certain
            return None
        ratio = _ratio(sign, int(whole), top, bottom)
        return None if ratio is None else Literal(ratio)
    if match := _SCIENCE.fullmatch(text):
        sign, body, *powers = match.groups()
        power = int(next(part for part in powers if part is not None))
        if abs(power) > MAX_DIGITS:
            return None
        value, digits, places = _decimal(body)
        value = (-value if sign == "-" else value) * Fraction(10) ** power
        return Literal(value, digits, places - power)
    if len(text) <= MAX_PERIODIC and (match := _REPEAT.fullmatch(text) or _ENDLESS.fullmatch(text)):
        return _repeating(match)
    return None


def _repeating(match: re.Match[str]) -> Literal:
    if match.re is _ENDLESS:
        sign, whole, part, _, period = match.groups()
    else:
        sign, whole, part, *periods = match.groups()
        period = next(item for item in periods if item is not None)
    lead = Fraction(int((whole or "0") + part), 10 ** len(part))
    value = lead + Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(part))
    return Literal(-value if sign == "-" else value)


__all__ = ["MAX_DIGITS", "Literal", "literal"]
