"""The functions of the rule language: exact, and unable to run away.

Each takes the evaluation's Meter first and pays for its work in steps before doing it. Arguments are whole numbers
unless a function says otherwise; anything else is a RuleError in words for the author of the rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from porism.neighbors.values import (
    BITS,
    Meter,
    Number,
    RuleError,
    Value,
    exact,
    number,
    power,
    sequence,
    through,
    whole,
)

_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)  # decide primality below the next number
_DECIDED = 3_317_044_064_679_887_385_961_981  # Sorenson and Webster, 2015


def _positive(value: object) -> int:
    if (n := whole(value)) < 1:
        raise RuleError(f"a positive number is needed, not {n}")
    return n


def _natural(value: object) -> int:
    if (n := whole(value)) < 0:
        raise RuleError(f"a number from 0 up is needed, not {n}")
    return n


def _all_of(values: tuple[Value, ...], meter: Meter) -> tuple[Value, ...]:
    """The arguments of max(a, b, ...), or the items of max(list)."""
    found = through(values[0], meter) if len(values) == 1 and isinstance(values[0], tuple) else values
    if not found:
        raise RuleError("the list is empty")
    return found


def _factors(meter: Meter, n: int) -> dict[int, int]:
    """Prime factors with their exponents, by trial division."""
    found: dict[int, int] = {}
    p = 2
    while p * p <= n:
        meter.spend(1)
        while n % p == 0:
            found[p] = found.get(p, 0) + 1
            n //= p
        p += 1 if p == 2 else 2
    if n > 1:
        found[n] = found.get(n, 0) + 1
    return found


def _absolute(_: Meter, x: Value) -> Value:
    n = number(x)
    return -n if n < 0 else n


def _all(meter: Meter, values: Value) -> Value:
    return all(through(values, meter))


def _any(meter: Meter, values: Value) -> Value:
    return any(through(values, meter))


def _binomial(meter: Meter, n: Value, k: Value) -> Value:
    top, bottom = _natural(n), whole(k)
    if not 0 <= bottom <= top:
        return 0
    least = min(bottom, top - bottom)
    meter.spend(least)
    if least * (top.bit_length() - least.bit_length()) > BITS:  # (n/k)^k is a lower bound
        raise RuleError(f"gives a number of more than {BITS:,} bits")
    return exact(math.comb(top, bottom))


def _ceil(_: Meter, x: Value) -> Value:
    return math.ceil(number(x))


def _denominator(_: Meter, x: Value) -> Value:
    return number(x).denominator


def _digits(meter: Meter, n: Value, base: Value = 10) -> Value:
    rest, b = _natural(n), whole(base)
    if b < 2:
        raise RuleError(f"a base from 2 up is needed, not {b}")
    found = [] if rest else [0]
    while rest:
        meter.spend(1)
        rest, digit = divmod(rest, b)
        found.append(digit)
    return tuple(reversed(found))


def _divisors(meter: Meter, n: Value) -> Value:
    found = [1]
    for prime, exponent in _factors(meter, _positive(n)).items():
        meter.spend(len(found) * exponent)
        found = [d * prime**e for d in found for e in range(exponent + 1)]
    return tuple(sorted(found))


def _factorial(meter: Meter, n: Value) -> Value:
    top = _natural(n)
    meter.spend(top)
    if top > BITS:  # far past the bound, and not worth computing
        raise RuleError(f"gives a number of more than {BITS:,} bits")
    return exact(math.factorial(top))


def _floor(_: Meter, x: Value) -> Value:
    return math.floor(number(x))


def _gcd(meter: Meter, *values: Value) -> Value:
    return math.gcd(*(whole(x) for x in _all_of(values, meter)))


def _is_prime(meter: Meter, n: Value) -> Value:
    p = whole(n)
    if p < 2 or any(p % q == 0 for q in _WITNESSES):
        return p in _WITNESSES
    if p >= _DECIDED:
        raise RuleError("is_prime is for numbers below 3.3 * 10^24")
    meter.spend(10)
    twos = ((p - 1) & (1 - p)).bit_length() - 1
    for witness in _WITNESSES:  # Miller and Rabin's test
        x = pow(witness, (p - 1) >> twos, p)
        if x in (1, p - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % p
            if x == p - 1:
                break
        else:
            return False
    return True


def _isqrt(_: Meter, n: Value) -> Value:
    return math.isqrt(_natural(n))


def _lcm(meter: Meter, *values: Value) -> Value:
    found = 1
    for x in _all_of(values, meter):
        found = whole(exact(math.lcm(found, whole(x))))
    return found


def _len(_: Meter, values: Value) -> Value:
    return len(sequence(values))


def _max(meter: Meter, *values: Value) -> Value:
    return max(number(x) for x in _all_of(values, meter))


def _min(meter: Meter, *values: Value) -> Value:
    return min(number(x) for x in _all_of(values, meter))


def _mobius(meter: Meter, n: Value) -> Value:
    factors = _factors(meter, _positive(n))
    return 0 if any(exponent > 1 for exponent in factors.values()) else (-1) ** len(factors)


def _numerator(_: Meter, x: Value) -> Value:
    return number(x).numerator


def _phi(meter: Meter, n: Value) -> Value:
    result = _positive(n)
    for prime in _factors(meter, result):
        result -= result // prime
    return result


def _pow(meter: Meter, base: Value, exponent: Value, modulus: Value | None = None) -> Value:
    if modulus is None:
        return power(number(base), exponent)
    meter.spend(abs(whole(exponent)).bit_length())
    if whole(modulus) == 0:
        raise ZeroDivisionError
    try:
        return pow(whole(base), whole(exponent), whole(modulus))
    except ValueError:
        raise RuleError(f"{base} has no inverse modulo {modulus}") from None


def _prime_factors(meter: Meter, n: Value) -> Value:
    return tuple(_factors(meter, _positive(n)))


def _prod(meter: Meter, values: Value) -> Value:
    result: Number = 1
    for x in through(values, meter):
        result = exact(result * number(x))
    return result


def _range(meter: Meter, *bounds: Value) -> Value:
    try:
        found = range(*(whole(x) for x in bounds))
    except ValueError:
        raise RuleError("the step of a range is 0") from None
    meter.spend(max(0, (found.stop - found.start) // found.step))
    return tuple(found)


def _set(meter: Meter, values: Value) -> Value:
    return tuple(dict.fromkeys(through(values, meter)))


def _sorted(meter: Meter, values: Value) -> Value:
    return tuple(sorted(number(x) for x in through(values, meter)))


def _sum(meter: Meter, values: Value) -> Value:
    result: Number = 0
    for x in through(values, meter):
        result = exact(result + number(x))
    return result


def _valuation(meter: Meter, n: Value, p: Value) -> Value:
    rest, base, count = number(n), whole(p), 0
    if not rest or base < 2:
        raise RuleError("valuation needs a number that is not 0, and a base from 2 up")
    top, bottom = rest.numerator, rest.denominator
    while top % base == 0:
        top, count = top // base, count + 1
    while bottom % base == 0:
        bottom, count = bottom // base, count - 1
    meter.spend(abs(count))
    return count


# name -> the function, and the least and the most arguments it takes
FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "abs": (_absolute, 1, 1),
    "all": (_all, 1, 1),
    "any": (_any, 1, 1),
    "binomial": (_binomial, 2, 2),
    "ceil": (_ceil, 1, 1),
    "denominator": (_denominator, 1, 1),
    "digits": (_digits, 1, 2),
    "divisors": (_divisors, 1, 1),
    "factorial": (_factorial, 1, 1),
    "floor": (_floor, 1, 1),
    "gcd": (_gcd, 1, 9),
    "is_prime": (_is_prime, 1, 1),
    "isqrt": (_isqrt, 1, 1),
    "lcm": (_lcm, 1, 9),
    "len": (_len, 1, 1),
    "max": (_max, 1, 9),
    "min": (_min, 1, 9),
    "mobius": (_mobius, 1, 1),
    "numerator": (_numerator, 1, 1),
    "phi": (_phi, 1, 1),
    "pow": (_pow, 2, 3),
    "prime_factors": (_prime_factors, 1, 1),
    "prod": (_prod, 1, 1),
    "range": (_range, 1, 3),
    "set": (_set, 1, 1),
    "sorted": (_sorted, 1, 1),
    "sum": (_sum, 1, 1),
    "valuation": (_valuation, 2, 2),
}

__all__ = ["FUNCTIONS"]
