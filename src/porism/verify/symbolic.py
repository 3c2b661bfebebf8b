"""Comparison by sympy and math-verify, for what the exact rules do not read. Runs in workers only.

math-verify keeps what it can read of a text and drops the rest, so its yes counts only where the whole
of both texts was read as expressions and numeric evaluation agrees; its no only where numbers differ.
Its own timeouts need signals of a main thread and are off: the worker's limits rule.
"""

from __future__ import annotations

from typing import Any

from porism.types import Verdict


def _read(text: str) -> list[Any]:
    from math_verify import parse

    return list(parse(f"${text}$", parsing_timeout=None, raise_on_error=True))


def symbolic(answer: str, gold: str) -> Verdict:
    """correct, wrong or undecided. Raises what sympy raises; the caller maps that to undecided."""
    from math_verify import verify

    known, given = _read(gold), _read(answer)
    if not known or not given:
        return Verdict("undecided", "unreadable")
    agrees = bool(verify(known, given, timeout_seconds=None, raise_on_error=True))
    numbers = _difference(known[0], given[0])
    if numbers is None:
        return Verdict("undecided", "math-verify")
    if agrees and numbers:
        return Verdict("correct", "math-verify")
    if not agrees and not numbers:
        return Verdict("wrong", "math-verify")
    return Verdict("undecided", "math-verify")


def _difference(left: Any, right: Any) -> bool | None:
    """True when two expressions agree to 40 digits at fixed points, None when they are not expressions."""
    import sympy

    if not all(isinstance(side, sympy.Expr) for side in (left, right)):
        return None
    left, right = left.doit(), right.doit()
    names = sorted(left.free_symbols | right.free_symbols, key=str)
    if left.free_symbols != right.free_symbols:
        return False
    for step in range(3 if names else 1):
        point = {name: sympy.Rational(7 * step + 3 * at + 5, 11 + 2 * at) for at, name in enumerate(names)}
        a, b = (side.subs(point).evalf(50, maxn=200) for side in (left, right))
        if not (a.is_number and b.is_number) or not (a.is_finite and b.is_finite):
            return None
        scale = max(abs(a), abs(b))
        if scale != 0 and abs(a - b) > scale * sympy.Float(10) ** -40:
            return False
    return True


__all__ = ["symbolic"]
