"""Sizes of numbers too big to compute: a tower of powers is surely not 781.

Bounds on the common logarithm of a closed expression's absolute value, by intervals of floats rounded
outwards. They only ever prove that two numbers differ.
"""

from __future__ import annotations

import math

from porism.verify.exact import Undefined
from porism.verify.syntax import Node, Num, Sym

_VAST = 1e300


class NoBounds(Exception):
    """No bounds are known."""


def differ(left: Node, right: Node) -> bool:
    """Whether the sizes prove that two closed expressions are different numbers."""
    try:
        a, b = bounds(left), bounds(right)
    except (NoBounds, OverflowError, ValueError):
        return False
    gap = 1e-6
    return a[1] < b[0] - gap * abs(b[0]) or b[1] < a[0] - gap * abs(a[0])


def bounds(node: Node) -> tuple[float, float]:
    """Low and high bound on log10 |value|; at most 1e308, which stands for anything beyond."""
    low, high = _bounds(node)
    return min(low, 1e308), high


def _bounds(node: Node) -> tuple[float, float]:
    if isinstance(node, Num):
        if node.value == 0:
            return -math.inf, -_VAST
        size = math.log10(abs(node.value.numerator)) - math.log10(node.value.denominator)
        return size - 1e-9, size + 1e-9
    if isinstance(node, Sym):
        raise NoBounds(node.name)
    head, args = node.head, node.args
    if head == "neg":
        return bounds(args[0])
    if head in ("mul", "div"):
        a, b = bounds(args[0]), bounds(args[1])
        return (a[0] + b[0], a[1] + b[1]) if head == "mul" else (a[0] - b[1], a[1] - b[0])
    if head in ("add", "sub"):
        big, small = sorted((bounds(args[0]), bounds(args[1])), reverse=True)
        if big[0] > small[1] + 1 or big[0] >= _VAST > small[1]:
            return big[0] - 0.1, big[1] + 0.1
        raise NoBounds(head)
    if head == "pow":
        base, power = bounds(args[0]), bounds(args[1])
        if base[0] <= 0.1 or power[0] < -3 or not _positive(args[1]):
            raise NoBounds(head)
        return base[0] * _ten(power[0]), base[1] * _ten(power[1])
    if head in ("fact", "dfact"):
        low, high = bounds(args[0])
        if high < 1:
            return _measured(node)
        if low < 1:
            raise NoBounds(head)
        return _ten(low) * (low - 0.5) / (1 if head == "fact" else 2.1), _ten(high) * high
    if head in ("log", "ln") and (inside := bounds(args[0]))[0] > 1:
        scale = math.log10(_number(args[1])) if len(args) > 1 else math.log10(math.e)
        if scale > 0:
            return math.log10(inside[0] / scale) - 1e-9, math.log10(inside[1] / scale) + 1e-9
    return _measured(node)


def _measured(node: Node) -> tuple[float, float]:
    size = math.log10(abs(_number(node)))
    return size - 1e-9, size + 1e-9


def _ten(power: float) -> float:
    return 10.0**power if power < 300 else math.inf


def _number(node: Node) -> float:
    """The value of an operation that is small enough to be computed."""
    from porism.verify.numeric import Evaluation, NotNumeric

    try:
        value = Evaluation({}, 30).value(node)
    except (NotNumeric, Undefined, ZeroDivisionError, TypeError):
        raise NoBounds("no value") from None
    if value.imag != 0 or value == 0:
        raise NoBounds("no size")
    return float(value.real)


def _positive(node: Node) -> bool:
    if isinstance(node, Num):
        return node.value > 0
    if isinstance(node, Sym) or node.head == "neg":
        return False
    if node.head in ("mul", "div", "add"):
        return all(_positive(arg) for arg in node.args)
    if node.head in ("pow", "fact", "dfact"):
        return _positive(node.args[0])
    if node.head == "sub":
        return _positive(node.args[0]) and bounds(node.args[0])[0] > bounds(node.args[1])[1] + 1
    return _number(node) > 0


__all__ = ["bounds", "differ"]
