"""High-precision values of expressions at points, with what is needed to trust a comparison.

Beside the value an evaluation tells whether it stayed real, the largest number that came up, and how many
decades the sizes of numbers span: a difference is zero only when it vanishes next to the largest number
in a precision that covers the span. Runs in workers: mpmath is imported on first use.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from porism.verify.exact import NotExact, Undefined, rational
from porism.verify.syntax import Node, Num, Op, Sym, names

MAX_DECADES = 1500  # spans beyond this are not evaluated
_BIG = 10**12  # arguments of exponentials beyond this are not evaluated


class NotNumeric(Exception):
    """An operation without a numeric meaning here."""


class NeedsIntegers(NotNumeric):
    """Only integer points make sense: sums and products with variable bounds, gcd."""


class TooBig(NotNumeric):
    """A value too large to be worth computing."""


@cache
def context() -> Any:
    """A private mpmath context: its precision is nobody else's."""
    from mpmath.ctx_mp import MPContext

    return MPContext()


class Closed(NamedTuple):
    """What is known of a constant; its value is None for an operation with variables."""

    value: Any
    real: bool
    branched: bool
    top: Any
    decades: int


class Evaluation:
    """One evaluation at a point. real_roots: odd roots of negative numbers are real, not principal."""

    def __init__(
        self, point: dict[str, Any], digits: int, *, real_roots: bool = True, log_base: int = 0
    ) -> None:
        self.ctx = context()
        self.ctx.dps = digits
        self.point = point
        self.real_roots = real_roots
        self.log_base = log_base
        self.real = True
        self.branched = False  # a root had two readings
        self.top = self.ctx.mpf(0)
        self.decades = 0
        self.closed: dict[int, Closed] | None = None  # constants already computed, by identity

    def value(self, node: Node) -> Any:
        """The value. Raises NotNumeric, Undefined, or what mpmath raises for a pole."""
        if self.closed is not None and isinstance(node, Op):
            return self._constant(node, self.closed)
        return self._sized(node)

    def _constant(self, node: Op, closed: dict[int, Closed]) -> Any:
        """The value of an operation, remembered when no variable stands in it."""
        known = closed.get(id(node))
        if known is None:
            if names(node):
                closed[id(node)] = Closed(None, True, False, self.top, 0)
                return self._sized(node)
            inner = Evaluation({}, self.ctx.dps, real_roots=self.real_roots, log_base=self.log_base)
            value = inner.value(node)
            known = closed[id(node)] = Closed(value, inner.real, inner.branched, inner.top, inner.decades)
        if known.value is None:
            return self._sized(node)
        self.real &= known.real
        self.branched |= known.branched
        self.top = max(self.top, known.top)
        self.decades = max(self.decades, known.decades)
        return known.value

    def _sized(self, node: Node) -> Any:
        value = self._value(node)
        size = abs(value)
        if size > self.top:
            self.top = size
        _, mantissa, exponent, bits = size._mpf_
        if mantissa:
            self.decades = max(self.decades, int(abs(exponent + bits) * 0.302))
        return value

    def _value(self, node: Node) -> Any:
        ctx = self.ctx
        if isinstance(node, Num):
            return self._fraction(node.value)
        if isinstance(node, Sym):
            return self._name(node.name)
        head = node.head
        if head in ("sum", "prod"):
            return self._series(node)
        try:
            if head in ("pow", "fact", "div", "neg", "base", "mod", "binom"):
                return self._fraction(rational(node))
        except NotExact:
            pass
        args = [self.value(arg) for arg in node.args]
        return self._apply(ctx, head, args, node)

    def _fraction(self, value: Fraction) -> Any:
        return self.ctx.mpf(value.numerator) / value.denominator

    def _name(self, name: str) -> Any:
        if name in self.point:
            return self.ctx.mpf(self.point[name].numerator) / self.point[name].denominator
        if name == "pi":
            return +self.ctx.pi
        if name == "e":
            return +self.ctx.e
        if name == "i":
            return self.ctx.mpc(0, 1)
        raise NotNumeric(name)

    def _series(self, node: Op) -> Any:
        name, low, high, body = node.args
        first, last = (self._whole(self.value(end)) for end in (low, high))
        if not isinstance(name, Sym) or last - first > 2000:
            raise NotNumeric("a long series")
        total = self.ctx.mpf(node.head == "prod")
        before = self.point.get(name.name)
        for step in range(first, last + 1):
            self.point[name.name] = Fraction(step)
            term = self.value(body)
            total = total + term if node.head == "sum" else total * term
        if before is None:
            self.point.pop(name.name, None)
        else:
            self.point[name.name] = before
        return total

    def _whole(self, value: Any) -> int:
        if not self.ctx.isint(value) or abs(value) > _BIG:
            raise NeedsIntegers("a bound")
        return int(value.real)

    def _apply(self, ctx: Any, head: str, args: list[Any], node: Op) -> Any:
        a = args[0]
        if head in ("add", "sub", "mul"):
            return a + args[1] if head == "add" else a - args[1] if head == "sub" else a * args[1]
        if head == "div":
            if args[1] == 0:
                raise Undefined("division by zero")
            return a / args[1]
        if head == "pow":
            return self._power(a, args[1], node.args[1])
        if head in ("sqrt", "root"):
            return self._root(a, Fraction(2) if head == "sqrt" else self._degree(node))
        if head in ("floor", "ceil", "lfloor", "lceil"):
            return (ctx.floor if "floor" in head else ctx.ceil)(self._real(a))
        if head in ("gcd", "lcm"):
            return ctx.mpf(getattr(math, head)(*(self._whole(arg) for arg in args)))
        if head in ("max", "min"):
            return {"max": max, "min": min}[head](*(self._real(arg) for arg in args))
        if head == "mod":
            return a - args[1] * ctx.floor(self._real(a / args[1]))
        if head == "log":
            return self._log(a, args[1] if len(args) > 1 else None)
        function = _FUNCTIONS.get(head)
        if function is None or len(args) != (2 if head == "binom" else 1):
            raise NotNumeric(head)
        if head in _PERIODIC:  # a long argument is reduced exactly; a precision that covers its size is taken
            if abs(ctx.re(a)) > ctx.mpf(10) ** MAX_DECADES or abs(ctx.im(a)) > _BIG:
                raise TooBig("size")
        elif head in _BOUNDED and abs(a) > _BIG:
            raise TooBig("size")
        return self._watched(getattr(ctx, function)(*args), args)

    def _real(self, value: Any) -> Any:
        if self.ctx.im(value) != 0:
            raise NotNumeric("a complex number")
        return self.ctx.re(value)

    def _watched(self, result: Any, args: list[Any]) -> Any:
        """The result; leaving the reals with real arguments is remembered."""
        if self.ctx.im(result) != 0 and all(self.ctx.im(arg) == 0 for arg in args):
            self.real = False
        return result

    def _log(self, a: Any, base: Any) -> Any:
        if a == 0:
            raise Undefined("log 0")
        result = self._watched(self.ctx.ln(a), [a])
        if base is None and self.log_base:
            base = self.ctx.mpf(self.log_base)
        if base == 1:
            raise Undefined("base 1")
        return result if base is None else result / self._watched(self.ctx.ln(base), [base])

    def _degree(self, node: Op) -> Fraction:
        try:
            degree = rational(node.args[1])
        except NotExact:
            raise NotNumeric("a root's degree") from None
        if degree == 0:
            raise Undefined("a zeroth root")
        return degree

    def _root(self, a: Any, degree: Fraction) -> Any:
        return self._fractional(a, 1 / degree)

    def _power(self, a: Any, b: Any, exponent: Node) -> Any:
        if a == 0:
            if self.ctx.re(b) > 0:
                return self.ctx.mpf(0)
            if b == 0:
                return self.ctx.mpf(1)
            raise Undefined("division by zero")
        try:
            return self._fractional(a, rational(exponent))
        except NotExact:
            pass
        if abs(b * self.ctx.ln(a)) > _BIG:
            raise TooBig("size")
        return self._watched(self.ctx.power(a, b), [a, b])

    def _fractional(self, a: Any, b: Fraction) -> Any:
        """a to a rational power; an odd root of a negative number by the chosen reading."""
        ctx = self.ctx
        if abs(b) > _BIG:
            raise TooBig("size")
        power = ctx.mpf(b.numerator) / b.denominator
        if a == 0:
            if b < 0:
                raise Undefined("division by zero")
            return ctx.mpf(0)
        if ctx.im(a) == 0 and ctx.re(a) < 0 and b.denominator > 1 and b.denominator % 2:
            self.branched = True
            if self.real_roots:
                sign = -1 if b.numerator % 2 else 1
                return sign * ctx.power(-ctx.re(a), power)
        return self._watched(ctx.power(a, b.numerator if b.denominator == 1 else power), [a])


_BOUNDED = frozenset(("exp", "sinh", "cosh", "fact", "Gamma", "gamma", "dfact", "binom"))
_PERIODIC = frozenset(("sin", "cos", "tan", "cot", "sec", "csc"))
_FUNCTIONS = {
    "sin": "sin", "cos": "cos", "tan": "tan", "cot": "cot", "sec": "sec", "csc": "csc", "arcsin": "asin",
    "arccos": "acos", "arctan": "atan", "arccot": "acot", "arcsec": "asec", "arccsc": "acsc", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "coth": "coth", "sech": "sech", "csch": "csch", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "ln": "ln", "exp": "exp", "abs": "fabs", "neg": "fneg", "fact": "factorial",
    "dfact": "fac2", "binom": "binomial", "Re": "re", "Im": "im", "arg": "arg", "sgn": "sign", "Gamma": "gamma",
    "gamma": "gamma", "zeta": "zeta",
}  # fmt: skip

__all__ = ["MAX_DECADES", "Closed", "Evaluation", "NeedsIntegers", "NotNumeric", "TooBig", "context"]
