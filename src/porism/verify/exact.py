"""Exact values: rational arithmetic of closed expressions, and rational functions at points modulo primes.

Two rational functions that differ anywhere differ at almost every point modulo a large prime, and two
equal ones never do, so `residue` decides their equality in microseconds with no rounding and no algebra.
The chance of a wrong yes is about degree / 10^36, twice over. Sizes are bounded before they are computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from porism.verify.syntax import Node, Num, Op, Sym

MAX_BITS = 400_000
MAX_EXPONENT_BITS = 4_000
# Primes that are 1 modulo 4, each with a square root of -1 for the imaginary unit.
FIELDS = tuple((prime, pow(g, (prime - 1) // 4, prime)) for prime, g in (
    (1000000000000000000000000000000000141, 2),
    (30000000000000000000000000000000000000029, 2),
))  # fmt: skip


class NotExact(Exception):
    """Not a rational (function), or too big to be computed."""


class Undefined(Exception):
    """A division by zero, or a function outside its domain."""


def rational(node: Node) -> Fraction:
    """The value of a closed rational expression. Raises NotExact or Undefined."""
    if isinstance(node, Num):
        return node.value
    if isinstance(node, Sym):
        raise NotExact(node.name)
    head = node.head
    if head not in _RATIONAL:
        raise NotExact(head)
    if head == "mod" and isinstance(node.args[0], Op) and node.args[0].head == "pow":
        return _power_modulo(node.args[0], rational(node.args[1]))
    args = [rational(arg) for arg in node.args]
    value = _RATIONAL[head](*args)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise NotExact("size")
    return value


def _power_modulo(power: Op, modulus: Fraction) -> Fraction:
    """The remainder of an integer power, without the power itself."""
    base, exponent = (rational(arg) for arg in power.args)
    whole = all(value.denominator == 1 for value in (base, exponent, modulus))
    if not whole or exponent < 0 or modulus <= 0:
        return _RATIONAL["mod"](_power(base, exponent), modulus)
    return Fraction(pow(base.numerator, exponent.numerator, modulus.numerator))


def _divide(a: Fraction, b: Fraction) -> Fraction:
    if b == 0:
        raise Undefined("division by zero")
    return a / b


def _power(a: Fraction, b: Fraction) -> Fraction:
    if b.denominator != 1:
        if a < 0:
            raise NotExact("root of a negative number")
        return _root(a, b.denominator) ** b.numerator if abs(b.numerator) < 64 else _refuse()
    if a == 0 and b < 0:
        raise Undefined("division by zero")
    if abs(a) == 1:
        return a if b.numerator % 2 else abs(a)
    if a != 0 and max(a.numerator.bit_length(), a.denominator.bit_length()) * abs(b) > MAX_BITS:
        raise NotExact("size")
    return a**b.numerator if a != 0 else Fraction(b == 0)


def _refuse() -> Fraction:
    raise NotExact("size")


def _root(a: Fraction, degree: int) -> Fraction:
    """The exact root of a nonnegative rational. Raises NotExact when it is irrational."""
    if degree > 64 or degree < 1:
        raise NotExact("degree")
    return Fraction(_integer_root(a.numerator, degree), _integer_root(a.denominator, degree))


def _integer_root(n: int, degree: int) -> int:
    if degree == 2:
        root = math.isqrt(n)
    else:
        low, high = 0, 1 << (n.bit_length() // degree + 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**degree <= n else (low, middle - 1)
        root = low
    if root**degree != n:
        raise NotExact("irrational")
    return root


def _sqrt(a: Fraction) -> Fraction:
    if a < 0:
        raise NotExact("imaginary")
    return _root(a, 2)


def _nth_root(a: Fraction, n: Fraction) -> Fraction:
    if n.denominator != 1 or n < 1:
        raise NotExact("degree")
    if a < 0 and n.numerator % 2:
        return -_root(-a, n.numerator)
    return _sqrt(a) if n == 2 else _root(a, n.numerator) if a >= 0 else _refuse()


def _natural(value: Fraction, bound: int = 20_000) -> int:
    if value.denominator != 1 or not 0 <= value <= bound:
        raise NotExact("not a small natural number")
    return value.numerator


def _double_factorial(n: Fraction) -> Fraction:
    return Fraction(math.prod(range(_natural(n), 0, -2)))


def _binomial(n: Fraction, k: Fraction) -> Fraction:
    if n.denominator != 1 or k.denominator != 1 or n < 0:
        raise NotExact("binomial")
    if k < 0 or k > n:
        return Fraction(0)
    if min(k, n - k) > 5000 or n.numerator.bit_length() > 200:
        raise NotExact("size")
    return Fraction(math.comb(n.numerator, k.numerator))


def _base(digits: Fraction, base: Fraction) -> Fraction:
    if digits.numerator.bit_length() > 2000:
        raise NotExact("size")
    try:
        return Fraction(int(str(digits.numerator), base.numerator))
    except ValueError:
        raise Undefined("a digit outside the base") from None


def _integers(values: tuple[Fraction, ...]) -> list[int]:
    if any(value.denominator != 1 for value in values):
        raise NotExact("not integers")
    return [value.numerator for value in values]


_RATIONAL: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": _divide, "pow": _power,
    "neg": lambda a: -a, "percent": lambda a: a / 100, "sqrt": _sqrt, "root": _nth_root, "abs": abs,
    "floor": lambda a: Fraction(math.floor(a)), "ceil": lambda a: Fraction(math.ceil(a)),
    "lfloor": lambda a: Fraction(math.floor(a)), "lceil": lambda a: Fraction(math.ceil(a)),
    "fact": lambda a: Fraction(math.factorial(_natural(a))), "dfact": _double_factorial, "binom": _binomial,
    "mod": lambda a, b: a - b * math.floor(_divide(a, b)), "base": _base,
    "gcd": lambda *v: Fraction(math.gcd(*_integers(v))), "lcm": lambda *v: Fraction(math.lcm(*_integers(v))),
    "max": lambda *v: max(v), "min": lambda *v: min(v),
}  # fmt: skip


def residue(node: Node, point: dict[str, int], field: tuple[int, int]) -> int:
    """The value at a point modulo a prime. Raises NotExact when it is no rational function of the names."""
    prime, unit = field
    if isinstance(node, Num):
        return _reduce(node.value, prime)
    if isinstance(node, Sym):
        if node.name in point:
            return point[node.name]
        if node.name == "i":
            return unit
        raise NotExact(node.name)
    head, args = node.head, node.args
    if head in ("add", "sub", "mul", "div"):
        a, b = (residue(arg, point, field) for arg in args)
        if head == "add":
            return (a + b) % prime
        if head == "sub":
            return (a - b) % prime
        if head == "mul":
            return a * b % prime
        return a * _inverse(b, prime) % prime
    if head == "neg":
        return -residue(args[0], point, field) % prime
    if head == "percent":
        return residue(args[0], point, field) * _inverse(100, prime) % prime
    if head == "pow":
        try:
            exponent = rational(args[1])
            if exponent.denominator == 1 and exponent.numerator.bit_length() <= MAX_EXPONENT_BITS:
                base = residue(args[0], point, field)
                power = exponent.numerator
                return pow(base if power >= 0 else _inverse(base, prime), abs(power), prime)
        except NotExact:
            pass
    return _reduce(rational(node), prime)


def _reduce(value: Fraction, prime: int) -> int:
    if value.denominator == 1:
        return value.numerator % prime
    return value.numerator * _inverse(value.denominator, prime) % prime


def _inverse(value: int, prime: int) -> int:
    if value % prime == 0:
        raise Undefined("division by zero")
    return pow(value, -1, prime)


__all__ = ["FIELDS", "NotExact", "Undefined", "rational", "residue"]
