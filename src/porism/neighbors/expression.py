"""The rule language of families: exact arithmetic that cannot run away.

Expressions have Python's syntax and are read with its parser, but never run by it: the tree is checked against
the short list of what is allowed here and turned into closures of ours, so no name reaches anything but the
values given and the functions of functions.py. There are whole numbers, fractions, text, lists and truth values,
and no decimals: 1/3 is one third. Every step is paid for and every number bounded, so a rule that loops or explodes
is a RuleError. The same expression is evaluated thousands of times; closures make that cheap.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from porism.neighbors.functions import FUNCTIONS
from porism.neighbors.values import (
    Meter,
    RuleError,
    exact,
    listed,
    noun,
    number,
    power,
    sequence,
    through,
    weight,
    whole,
)

STEPS = 100_000  # of one evaluation: a few hundredths of a second
LENGTH = 2000  # characters of an expression
_DEPTH = 40

Scope: TypeAlias = Mapping[str, Any]  # never changed: what binds a name works on a copy
Run: TypeAlias = Callable[[Scope, Meter], Any]

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda x, items: x in sequence(items),
    ast.NotIn: lambda x, items: x not in sequence(items),
}


class Expression:
    """An expression, ready to be evaluated many times. `names`: the values it needs, in order of appearance.

    RuleError where the text is not of the language.
    """

    __slots__ = ("_run", "names", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        reader = _Reader()
        self._run = reader.read(_parse(source), 0)
        self.names = tuple(reader.free)

    def __call__(self, values: Mapping[str, Any], meter: Meter | None = None) -> Any:
        """The value: int, Fraction, bool, str, or a tuple of such. RuleError where there is none."""
        try:
            return self._run(values, meter or Meter(STEPS))
        except ZeroDivisionError:
            raise RuleError("division by zero") from None
        except KeyError as missing:
            raise RuleError(f"no value is given for {missing.args[0]!r}") from None
        except (OverflowError, MemoryError, RecursionError):
            raise RuleError("grows too large") from None


@lru_cache(maxsize=1024)
def expression(source: str) -> Expression:
    """The expression of a text; the same one for the same text."""
    return Expression(source)


def evaluate(source: str, values: Mapping[str, Any]) -> Any:
    """The value of an expression: int, Fraction, bool, str, or a tuple of such.

    values: what its names stand for. RuleError where the text is not of the language or has no value here.
    """
    return expression(source)(values)


def _parse(source: str) -> ast.expr:
    if len(source) > LENGTH:
        raise RuleError(f"is longer than {LENGTH} characters")
    if "\\" in source:
        raise RuleError("has a backslash: LaTeX belongs in the question or the format, not in an expression")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python thinks of style, such as `1if x else 2`
            return ast.parse(source.strip(), mode="eval").body
    except SyntaxError as error:
        at = f" at character {error.offset}" if error.offset else ""
        raise RuleError(f"is not an expression: {error.msg}{at}") from None
    except (ValueError, RecursionError, MemoryError):
        raise RuleError("is not an expression that can be read") from None


class _Reader:
    """Turns a tree into closures, and collects the names that nothing in it binds."""

    def __init__(self) -> None:
        self.free: dict[str, None] = {}
        self.bound: list[str] = []

    def read(self, node: ast.AST, depth: int) -> Run:
        if depth > _DEPTH:
            raise RuleError("is nested too deeply")
        reader = getattr(self, f"_{type(node).__name__.lower()}", None)
        if reader is None:
            shown = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
            raise RuleError(f"{shown[:60]!r} is not part of the language of rules")
        run: Run = reader(node, depth + 1)
        return run

    def _constant(self, node: ast.Constant, _: int) -> Run:
        value = node.value
        if isinstance(value, float):
            raise RuleError(f"{value} is a decimal, and rules are exact: write a fraction such as 1/2")
        if not isinstance(value, int | str):
            raise RuleError(f"{ast.unparse(node)[:60]} is not part of the language of rules")
        if isinstance(value, int):
            exact(value)
        return lambda _scope, _meter: value

    def _name(self, node: ast.Name, _: int) -> Run:
        name = node.id
        if name in FUNCTIONS or name == "iterate":
            raise RuleError(f"{name!r} is a function: write {name}(...)")
        if name not in self.bound:
            self.free[name] = None
        return lambda scope, _: scope[name]

    def _list(self, node: ast.List | ast.Tuple | ast.Set, depth: int) -> Run:
        items = [self.read(item, depth) for item in node.elts]
        return lambda scope, meter: listed([item(scope, meter) for item in items], meter)

    _tuple = _list

    def _unaryop(self, node: ast.UnaryOp, depth: int) -> Run:
        operand = self.read(node.operand, depth)
        match node.op:
            case ast.USub():
                return lambda scope, meter: -number(operand(scope, meter))
            case ast.UAdd():
                return lambda scope, meter: +number(operand(scope, meter))
            case ast.Not():
                return lambda scope, meter: not operand(scope, meter)
        raise RuleError("'~' is not part of the language of rules")

    def _binop(self, node: ast.BinOp, depth: int) -> Run:
        left, right = self.read(node.left, depth), self.read(node.right, depth)

        def add(scope: Scope, meter: Meter) -> Any:
            a, b = left(scope, meter), right(scope, meter)
            if isinstance(a, tuple) and isinstance(b, tuple):
                return listed([*a, *b], meter)
            return exact(number(a) + number(b))

        def divide(scope: Scope, meter: Meter) -> Any:
            a, b = number(left(scope, meter)), number(right(scope, meter))
            return exact(Fraction(a) / b)

        match node.op:
            case ast.Add():
                return add
            case ast.Div():
                return divide
            case ast.Sub():
                return lambda s, m: exact(number(left(s, m)) - number(right(s, m)))
            case ast.Mult():
                return lambda s, m: exact(number(left(s, m)) * number(right(s, m)))
            case ast.FloorDiv():
                return lambda s, m: number(left(s, m)) // number(right(s, m))
            case ast.Mod():
                return lambda s, m: exact(number(left(s, m)) % number(right(s, m)))
            case ast.Pow():
                return lambda s, m: power(number(left(s, m)), right(s, m))
        raise RuleError(f"{ast.unparse(node)[:60]!r}: use + - * / // % **")

    def _boolop(self, node: ast.BoolOp, depth: int) -> Run:
        parts = [self.read(value, depth) for value in node.values]
        if isinstance(node.op, ast.And):
            return lambda scope, meter: all(part(scope, meter) for part in parts)
        return lambda scope, meter: any(part(scope, meter) for part in parts)

    def _compare(self, node: ast.Compare, depth: int) -> Run:
        first = self.read(node.left, depth)
        rest = []
        for sign, item in zip(node.ops, node.comparators, strict=True):
            if type(sign) not in _COMPARE:
                raise RuleError("'is' is not part of the language of rules: use ==")
            rest.append((_COMPARE[type(sign)], self.read(item, depth)))

        def compare(scope: Scope, meter: Meter) -> bool:
            a = first(scope, meter)
            for holds, item in rest:
                b = item(scope, meter)
                if isinstance(b, tuple):
                    meter.spend(weight(b))
                try:
                    if not holds(a, b):
                        return False
                except TypeError:
                    raise RuleError(f"{noun(a)} cannot be compared with {noun(b)}") from None
                a = b
            return True

        return compare

    def _ifexp(self, node: ast.IfExp, depth: int) -> Run:
        test, yes, no = (self.read(part, depth) for part in (node.test, node.body, node.orelse))
        return lambda s, m: yes(s, m) if test(s, m) else no(s, m)

    def _subscript(self, node: ast.Subscript, depth: int) -> Run:
        items, at = self.read(node.value, depth), self.read(node.slice, depth)

        def subscript(scope: Scope, meter: Meter) -> Any:
            found, index = sequence(items(scope, meter)), whole(at(scope, meter))
            if not -len(found) <= index < len(found):
                raise RuleError(f"there is no item {index} in a list of {len(found)}")
            return found[index]

        return subscript

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, depth: int) -> Run:
        loops: list[tuple[Run, list[str], list[Run], int]] = []
        cost = 1 + sum(1 for _ in ast.walk(node.elt))
        bound = len(self.bound)
        for loop in node.generators:
            items = self.read(loop.iter, depth)
            names = _targets(loop.target)
            self.bound += names
            tests = [self.read(test, depth) for test in loop.ifs]
            paid = 1 + sum(1 for test in loop.ifs for _ in ast.walk(test))
            loops.append((items, names, tests, paid))
        element = self.read(node.elt, depth)
        del self.bound[bound:]
        last = len(loops)

        def walk(level: int, scope: dict[str, Any], meter: Meter, out: list[Any]) -> None:
            if level == last:
                meter.spend(cost)
                out.append(element(scope, meter))
                return
            items, names, tests, paid = loops[level]
            for item in sequence(items(scope, meter)):
                meter.spend(paid)
                _bind(scope, names, item)
                if all(test(scope, meter) for test in tests):
                    walk(level + 1, scope, meter, out)

        def comprehension(scope: Scope, meter: Meter) -> Any:
            out: list[Any] = []
            walk(0, dict(scope), meter, out)
            return listed(out, meter)

        return comprehension

    _generatorexp = _listcomp

    def _set(self, node: ast.Set, depth: int) -> Run:
        items = self._list(node, depth)
        return lambda scope, meter: tuple(dict.fromkeys(items(scope, meter)))

    def _setcomp(self, node: ast.SetComp, depth: int) -> Run:
        items = self._listcomp(node, depth)
        return lambda scope, meter: tuple(dict.fromkeys(through(items(scope, meter), meter)))

    def _call(self, node: ast.Call, depth: int) -> Run:
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if node.keywords or any(isinstance(x, ast.Starred) for x in node.args):
            raise RuleError(f"{name}: arguments are given by place, without names and stars")
        if name == "iterate":
            return self._iterate(node, depth)
        if name not in FUNCTIONS:
            raise RuleError(
                f"{name[:40]!r} is not a function here; there are iterate, {', '.join(FUNCTIONS)}"
            )
        function, least, most = FUNCTIONS[name]
        if not least <= len(node.args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise RuleError(f"{name} takes {wanted} arguments, not {len(node.args)}")
        items = [self.read(item, depth) for item in node.args]
        if len(items) == 1:
            only = items[0]
            return lambda scope, meter: function(meter, only(scope, meter))
        return lambda scope, meter: function(meter, *[item(scope, meter) for item in items])

    def _iterate(self, node: ast.Call, depth: int) -> Run:
        """iterate(lambda a, b: (b, a + b), (0, 1), n): the state after n steps."""
        if len(node.args) != 3 or not isinstance(node.args[0], ast.Lambda):
            raise RuleError("iterate is written iterate(lambda x: next x, first x, number of steps)")
        rule = node.args[0]
        names = [argument.arg for argument in rule.args.args]
        if len(names) != sum(1 for _ in ast.walk(rule.args)) - 1 or not names:
            raise RuleError("iterate: a lambda has plain names before its colon")
        start, times = self.read(node.args[1], depth), self.read(node.args[2], depth)
        bound = len(self.bound)
        self.bound += names
        step = self.read(rule.body, depth)
        del self.bound[bound:]
        cost = 1 + sum(1 for _ in ast.walk(rule.body))

        def iterate(scope: Scope, meter: Meter) -> Any:
            state, inner = start(scope, meter), dict(scope)
            count = whole(times(scope, meter))
            for _ in range(count):
                meter.spend(cost)
                _bind(inner, names, state)
                state = step(inner, meter)
            return state

        return iterate


def _targets(target: ast.expr) -> list[str]:
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    if not all(isinstance(name, ast.Name) for name in names):
        raise RuleError(f"'for {ast.unparse(target)[:40]}': loop variables are plain names")
    return [name.id for name in names if isinstance(name, ast.Name)]


def _bind(scope: dict[str, Any], names: list[str], item: Any) -> None:
    """Give loop variables their values: one takes the item, several share a list."""
    if len(names) == 1:
        scope[names[0]] = item
        return
    parts = sequence(item)
    if len(parts) != len(names):
        raise RuleError(f"a list of {len(parts)} values cannot be shared by {', '.join(names)}")
    scope.update(zip(names, parts, strict=True))


__all__ = ["STEPS", "Expression", "RuleError", "evaluate", "expression"]
