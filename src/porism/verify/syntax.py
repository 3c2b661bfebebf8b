"""What an answer is made of: expressions, and the structures that hold them.

An expression is a number, a name, or an operation on expressions. Values are exact: a decimal literal is
a Fraction that remembers how many digits were written. Nothing here computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

from msgspec import Struct


class Num(Struct, frozen=True):
    """An exact number; digits: significant digits of a literal with a decimal point, places after it."""

    value: Fraction
    digits: int | None = None
    places: int = 0


class Sym(Struct, frozen=True):
    """A variable, or a constant: pi, e, i, infinity."""

    name: str


class Op(Struct, frozen=True):
    """add, mul, div, pow, neg, pm, mp, fact, percent, degree, or a function of its arguments."""

    head: str
    args: tuple[Node, ...]


Node: TypeAlias = Num | Sym | Op


class Listing(Struct, frozen=True):
    """kind: list (written bare, order means nothing), set (in braces), tuple (in parentheses), bracket."""

    kind: str
    items: tuple[Value, ...]


class Interval(Struct, frozen=True):
    """Both ends; (a, b) is first read as a tuple."""

    low: Node
    high: Node
    closed_low: bool
    closed_high: bool


class Combined(Struct, frozen=True):
    """union, intersection, difference, and, or."""

    head: str
    parts: tuple[Value, ...]


class Relation(Struct, frozen=True):
    """sides[0] ops[0] sides[1] ops[1] ...  with ops of = < > <= >= != in notin ~ subset."""

    ops: tuple[str, ...]
    sides: tuple[Value, ...]


class Congruence(Struct, frozen=True):
    """name is congruent to one of the residues."""

    name: Node | None
    residues: tuple[Node, ...]
    modulus: Node


class Matrix(Struct, frozen=True):
    rows: tuple[tuple[Value, ...], ...]


class Domain(Struct, frozen=True):
    """One of the number sets: R, Q, Z, N, C."""

    name: str


class Measured(Struct, frozen=True):
    """A value with a unit or a counted noun."""

    value: Value
    unit: str


class Ratio(Struct, frozen=True):
    """a : b : c, or a time of day."""

    parts: tuple[Node, ...]
    clock: bool


class Text(Struct, frozen=True):
    """Words; canonical where they are known ones (yes, no, undefined)."""

    words: str


Value: TypeAlias = (
    Num
    | Sym
    | Op
    | Listing
    | Interval
    | Combined
    | Relation
    | Congruence
    | Matrix
    | Domain
    | Measured
    | Ratio
    | Text
)

PI, INFINITY = Sym("pi"), Sym("infinity")
CONSTANTS = frozenset(("pi", "e", "i", "infinity"))
EMPTY = Listing("set", ())
NODES = (Num, Sym, Op)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it."""
    todo = [node]
    while todo:
        here = todo.pop()
        yield here
        if isinstance(here, Op):
            todo.extend(here.args)


def names(node: Node) -> frozenset[str]:
    """The free variables."""
    bound = {item.args[0].name for item in walk(node) if isinstance(item, Op) and item.head in ("sum", "prod")
             and isinstance(item.args[0], Sym)}  # fmt: skip
    return frozenset(
        item.name for item in walk(node) if isinstance(item, Sym) and item.name not in CONSTANTS
    ) - frozenset(bound)


def whole(node: Value) -> int | None:
    """The integer of an integer literal."""
    if isinstance(node, Num) and node.digits is None and node.value.denominator == 1:
        return node.value.numerator
    return None


__all__ = [
    "CONSTANTS", "EMPTY", "INFINITY", "NODES", "PI", "Combined", "Congruence", "Domain", "Interval",
    "Listing", "Matrix", "Measured", "Node", "Num", "Op", "Ratio", "Relation", "Sym", "Text", "Value", "names",
    "walk", "whole",
]  # fmt: skip
