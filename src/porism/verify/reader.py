r"""A cursor over tokens, and what every reader of them needs: number literals, integers, bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

from porism.verify.lexer import Token, Unreadable
from porism.verify.numbers import MAX_DIGITS
from porism.verify.syntax import NODES, Node, Num, Value, whole

MAX_DEPTH = 90
END = Token("end", "")


def number(text: str) -> Num:
    """A literal's exact value. Raises Unreadable when it is too long to be worth reading."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, part = mantissa.partition(".")
    if len(exponent) > 4 or len(text) > 25 * MAX_DIGITS:
        raise Unreadable("huge number")
    digits = (whole + part).lstrip("0") or "0"
    stem = digits.rstrip("0") or "0"
    value = Fraction(_integer(stem) * 10 ** (len(digits) - len(stem)))
    if part or exponent:
        value = value / 10 ** len(part) * Fraction(10) ** int(exponent or 0)
    if "." in mantissa or exponent:
        return Num(value, len(digits) if digits != "0" else 1, len(part) - int(exponent or 0))
    return Num(value)


def _integer(digits: str) -> int:
    """int(), also beyond the interpreter's bound, by halves."""
    if len(digits) <= MAX_DIGITS:
        return int(digits)
    cut = len(digits) // 2
    scale: int = 10 ** (len(digits) - cut)
    return _integer(digits[:cut]) * scale + _integer(digits[cut:])


def as_node(value: Value) -> Node:
    """The value if it is an expression. Raises Unreadable for a structure."""
    if isinstance(value, NODES):
        return value
    raise Unreadable("a structure inside an expression")


class Reader(ABC):
    """Tokens with a place among them. ambiguous: an answer with two readings was met; tight chooses the other."""

    def __init__(self, items: list[Token], *, tight: bool = False) -> None:
        self.items = items
        self.at = 0
        self.tight = tight
        self.ambiguous = False
        self.depth = 0
        self.bars = 0

    # tokens

    def peek(self, ahead: int = 0) -> Token:
        at = self.at + ahead
        return self.items[at] if at < len(self.items) else END

    def take(self, *kinds: str) -> Token | None:
        token = self.peek()
        if token.kind in kinds:
            self.at += 1
            return token
        return None

    def need(self, kind: str) -> Token:
        token = self.take(kind)
        if token is None:
            raise Unreadable(f"no {kind} before {self.peek().text or 'the end'}")
        return token

    def node(self, power: int = 0) -> Node:
        """The next expression, which must not be a structure."""
        return as_node(self.expression(power))

    @abstractmethod
    def expression(self, power: int = 0) -> Value:
        """The next expression whose operators bind more than `power`."""

    @abstractmethod
    def atom(self) -> Value:
        """The next operand, without signs before or after it."""

    @abstractmethod
    def postfix(self, left: Value) -> Value:
        """An operand with the powers, factorials and signs that follow it."""

    @abstractmethod
    def exponent(self) -> Node:
        """What follows a caret."""

    @abstractmethod
    def braces(self) -> Value:
        """A LaTeX group."""

    @abstractmethod
    def group(self) -> Value:
        """What stands in brackets."""


__all__ = ["END", "MAX_DEPTH", "Reader", "as_node", "number", "whole"]
