"""The values of the rule language: exact, and of a size that can be written down.

Whatever a rule does is paid for in steps of a Meter, and no number has more than BITS bits. What is not as it should
be is a RuleError in words for the author of the rule.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from porism.errors import InputError

Value: TypeAlias = "int | Fraction | str | tuple[Value, ...]"  # bool is an int
Number: TypeAlias = int | Fraction

BITS = 8192  # of a number: some 2,400 digits
_BOUND = 1 << BITS


class RuleError(InputError):
    """A rule that cannot be read, or cannot be evaluated for the values it was given."""


class Meter:
    """Steps left for an evaluation. RuleError when they are used up: the rule loops or asks for too much."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise RuleError(f"takes more than {self.limit:,} steps")


def noun(value: object) -> str:
    """What a value is, in words."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int):
        return "a whole number"
    return {"Fraction": "a fraction", "str": "text", "tuple": "a list"}.get(type(value).__name__, "nothing")


def number(value: object) -> Number:
    """The value, if it is a number."""
    if isinstance(value, int | Fraction):
        return value
    raise RuleError(f"a number is needed, not {noun(value)}")


def whole(value: object) -> int:
    """The value, if it is a whole number."""
    if isinstance(value, int):
        return value
    raise RuleError(f"a whole number is needed, not {noun(value)}")


def sequence(value: object) -> tuple[Value, ...]:
    """The value, if it is a list."""
    if isinstance(value, tuple):
        return value
    raise RuleError(f"a list is needed, not {noun(value)}")


def weight(values: tuple[Value, ...]) -> int:
    """Values in a list, those in its lists included: what looking through it costs."""
    return sum(1 + weight(x) if isinstance(x, tuple) else 1 for x in values)


def listed(values: list[Value], meter: Meter) -> tuple[Value, ...]:
    """The values as a list, paid for."""
    found = tuple(values)
    meter.spend(weight(found))
    return found


def through(value: object, meter: Meter) -> tuple[Value, ...]:
    """The value, if it is a list, with a look through it paid for."""
    found = sequence(value)
    meter.spend(weight(found))
    return found


def exact(value: Number) -> Number:
    """The value, whole where its denominator is 1, and of a size that can be written down."""
    if isinstance(value, Fraction):
        top, bottom = value.numerator, value.denominator
        if bottom == 1:
            return exact(top)
        if bottom >= _BOUND or not -_BOUND < top < _BOUND:
            raise RuleError(f"gives a number of more than {BITS:,} bits")
    elif not -_BOUND < value < _BOUND:
        raise RuleError(f"gives a number of more than {BITS:,} bits")
    return value


def power(base: Number, exponent: Value) -> Number:
    """base ** exponent, for a whole exponent."""
    e = whole(exponent)
    size = max(abs(base.numerator), base.denominator)
    if size > 1 and (size.bit_length() - 1) * abs(e) > BITS:
        raise RuleError(f"gives a number of more than {BITS:,} bits")
    if size <= 1:
        e = e % 2 + 2 if e > 0 else -(e % 2) - 2 if e < 0 else 0  # 1, 0 and -1: only the parity matters
    return exact(Fraction(base) ** e if e < 0 else base**e)


__all__ = [
    "BITS", "Meter", "Number", "RuleError", "Value",
    "exact", "listed", "noun", "number", "power", "sequence", "through", "weight", "whole",
]  # fmt: skip
