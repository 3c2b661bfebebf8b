r"""Operands with a grammar of their own: mixed numbers, roots, functions and their arguments, series."""

from __future__ import annotations

from fractions import Fraction

from porism.verify.lexer import Token, Unreadable
from porism.verify.reader import Reader, as_node, number, whole
from porism.verify.syntax import Node, Num, Op, Sym, Value

_SUM = 10
_INVERSE = {"sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot", "sec": "arcsec", "csc": "arccsc",
            "sinh": "arcsinh", "cosh": "arccosh", "tanh": "arctanh"}  # fmt: skip
_SAME = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
         "atanh": "arctanh", "sign": "sgn", "factorial": "fact"}  # fmt: skip


class Atoms(Reader):
    """How numbers, roots, functions and series are read."""

    def argument(self) -> Node:
        """A LaTeX argument: a group, or one digit or letter."""
        token = self.peek()
        if token.kind == "{":
            return as_node(self.braces())
        if token.kind == "num" and token.text.isdigit():
            if len(token.text) > 1:
                self.items[self.at] = Token("num", token.text[1:])
            else:
                self.at += 1
            return Num(Fraction(int(token.text[0])))
        return as_node(self.atom())

    def after_number(self, token: Token) -> Value:
        value = number(token.text)
        if "." in token.text and self.peek().kind == "overline":
            self.at += 1
            period = self.braces()
            digits = whole(period)
            length = len(self.items[self.at - 2].text)
            if digits is None:
                raise Unreadable("overline")
            places = len(token.text.partition(".")[2])
            return Num(value.value + Fraction(digits, (10**length - 1) * 10**places))
        if whole(value) is None:
            return value
        if self.peek().kind == "frac":
            start = self.at
            self.at += 1
            top, bottom = whole(self.argument()), whole(self.argument())
            if top is not None and bottom is not None:
                if not 0 <= top < bottom:
                    raise Unreadable("a number before an improper fraction")
                return Num(value.value + Fraction(top, bottom))
            self.at = start
        elif [self.peek(ahead).kind for ahead in range(3)] == ["num", "/", "num"] and self.peek().spaced:
            part = [number(self.peek(ahead).text).value for ahead in (0, 2)]
            if 0 <= part[0] < part[1]:
                self.at += 3
                return Num(value.value + part[0] / part[1])
        return value

    def root(self) -> Node:
        degree: Node | None = None
        if self.take("["):
            degree = self.node()
            self.need("]")
        token = self.peek()
        if token.kind == "(":
            body = as_node(self.group())
        elif token.kind == "num" and len(token.text) > 1:
            raise Unreadable("a root without braces")
        else:
            body = self.argument()
        return Op("sqrt", (body,)) if degree is None else Op("root", (body, degree))

    def function(self, name: str) -> Node:
        base: Node | None = None
        power: Node | None = None
        while True:
            if self.take("_"):
                base = as_node(self.braces()) if self.peek().kind == "{" else self.argument_of_log()
            elif self.take("^"):
                power = self.exponent()
            else:
                break
        if power is not None and _negative_one(power) and name in _INVERSE:
            name, power = _INVERSE[name], None
        result = self.call(_SAME.get(name, name), base)
        if power is None:
            return result
        return Op("pow", (result, power))

    def argument_of_log(self) -> Node:
        token = self.need("num") if self.peek().kind == "num" else None
        return number(token.text) if token else as_node(self.atom())

    def call(self, name: str, base: Node | None) -> Node:
        if self.peek().kind in ("(", "[", "\\{", "{"):
            bracket = self.peek().kind
            args = [as_node(self.braces())] if bracket == "{" else self.arguments()
        else:
            args = [self.chain()]
        if base is not None:
            if name != "log":
                raise Unreadable("a subscript")
            return Op("log", (args[0], base))
        if name == "lg":
            return Op("log", (args[0], Num(Fraction(10))))
        if name == "cbrt":
            return Op("root", (args[0], Num(Fraction(3))))
        if name == "cis":
            return Op("add", (Op("cos", (args[0],)), Op("mul", (Sym("i"), Op("sin", (args[0],))))))
        return Op(name, tuple(args))

    def arguments(self) -> list[Node]:
        close = {"(": ")", "[": "]", "\\{": "\\}"}[self.peek().kind]
        self.at += 1
        found = [self.node()]
        while self.take(","):
            found.append(self.node())
        self.need(close)
        return found

    def chain(self) -> Node:
        """The unbracketed argument of a function: factors without signs, up to the next function or bracket."""
        body = self.postfix(self.prefix_free_atom())
        while self.peek().kind in ("name", "frac", "sqrt"):
            body = Op("mul", (as_node(body), as_node(self.postfix(self.atom()))))
        if self.peek().kind == "/" and self.peek(1).kind in ("num", "name") and not self.peek().spaced:
            self.ambiguous = True
            if self.tight:
                self.at += 1
                body = Op("div", (as_node(body), as_node(self.postfix(self.atom()))))
        return as_node(body)

    def prefix_free_atom(self) -> Value:
        if self.take("-"):
            return Op("neg", (as_node(self.postfix(self.atom())),))
        return self.atom()

    def series(self, kind: str) -> Node:
        """A sum or product with bounds: (variable, from, to, body)."""
        self.need("_")
        self.need("{")
        name = self.need("name")
        self.need("=")
        low = self.node()
        self.need("}")
        self.need("^")
        high = as_node(self.braces()) if self.peek().kind == "{" else as_node(self.atom())
        return Op(kind, (Sym(name.text), low, high, self.node(_SUM)))


def _negative_one(node: Node) -> bool:
    return isinstance(node, Op) and node.head == "neg" and whole(node.args[0]) == 1


__all__ = ["Atoms"]
