"""Where functions are compared: fixed points of all sizes and signs, and around the numbers they mention.

|x - 50| is 50 - x everywhere below 50, so points near the literals of both sides are taken as well. Values
of different variables are unrelated, and no draw is random.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

from porism.verify.syntax import Node, Num, walk

Point = dict[str, Fraction]
_SMALL = (
    Fraction(17, 7), Fraction(5, 11), Fraction(23, 19), Fraction(29, 13), Fraction(3, 17), Fraction(41, 31),
    Fraction(13, 5), Fraction(37, 43), Fraction(53, 23), Fraction(7, 29),
)  # fmt: skip
_LARGE = (Fraction(37, 3), Fraction(1009, 7), Fraction(100_003, 11))
_SPREAD = 7
_MANY = 6


def literals(*nodes: Node) -> list[Fraction]:
    """The sizes of the numbers that expressions mention, beyond those of the small points."""
    found = {abs(item.value) for node in nodes for item in walk(node) if isinstance(item, Num)}
    return sorted(value for value in found if 2 < value < 10**9)[:_MANY]


def samples(free: list[str], known: list[Fraction] | None) -> tuple[list[Point], list[Point]]:
    """Points with all values positive, and points with values of both signs; small ones when known is None."""
    if known is None:
        positive = [_point(free, step) for step in range(4)]
        return positive, [_signed(_point(free, step), sign) for step, sign in enumerate(((-1,), (-1, 1)))]
    sizes = list(_LARGE)
    near = [value * factor for value in known for factor in (Fraction(16, 15), Fraction(13, 15))]
    positive = [_point(free, step) for step in range(5)]
    positive += [_scaled(free, size) for size in sizes + near]
    signs = list(itertools.product((1, -1), repeat=min(len(free), 3)))[1:]
    mixed = [_signed(_point(free, step), sign) for step, sign in enumerate((signs * 2)[:8])]
    mixed += [_signed(_scaled(free, size), sign) for size, sign in zip(sizes + near, itertools.cycle(signs))]
    return positive, mixed


def integers(free: list[str], count: int) -> list[Point]:
    """Points with positive integer values."""
    steps = (*range(1, count), 20)
    return [{name: Fraction(step + 3 * at) for at, name in enumerate(free)} for step in steps]


def _point(free: list[str], step: int) -> Point:
    size = len(_SMALL)
    return {name: _SMALL[(step + _SPREAD * at) % size] + at // size for at, name in enumerate(free)}


def _scaled(free: list[str], size: Fraction) -> Point:
    return {name: size * (1 + Fraction(at, 3)) + Fraction(at, 17) for at, name in enumerate(free)}


def _signed(point: Point, sign: tuple[int, ...]) -> Point:
    return {name: value * sign[at % len(sign)] for at, (name, value) in enumerate(point.items())}


__all__ = ["Point", "integers", "literals", "samples"]
