r"""Tokens to expressions: operator precedence over LaTeX and plain notation.

Two spellings have two honest readings: 1/2x, and a number before an improper fraction. The first sets
`ambiguous`, and `tight` chooses the other reading; the second is refused. Depth is bounded, so reading is
linear and never overflows.
"""

from __future__ import annotations

from fractions import Fraction

from porism.verify.lexer import Token, Unreadable
from porism.verify.numbers import MAX_DIGITS
from porism.verify.syntax import INFINITY, NODES, Node, Num, Op, Sym, Value

MAX_DEPTH = 60
END = Token("end", "")
_SUM, _PRODUCT, _TIGHT, _NEGATE, _POWER = 10, 20, 25, 15, 30
_STARTS = frozenset(
    (
        "name",
        "func",
        "sqrt",
        "frac",
        "binom",
        "(",
        "{",
        "lfloor",
        "lceil",
        "infinity",
        "sum",
        "prod",
        "mathbb",
        "[",
    )
)
_INVERSE = {"sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot", "sec": "arcsec", "csc": "arccsc",
            "sinh": "arcsinh", "cosh": "arccosh", "tanh": "arctanh"}  # fmt: skip
_SAME = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
         "atanh": "arctanh", "sign": "sgn", "factorial": "fact"}  # fmt: skip


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


def whole(node: Value) -> int | None:
    """The integer of an integer literal."""
    if isinstance(node, Num) and node.digits is None and node.value.denominator == 1:
        return node.value.numerator
    return None


def as_node(value: Value) -> Node:
    """The value if it is an expression. Raises Unreadable for a structure."""
    if isinstance(value, NODES):
        return value
    raise Unreadable("a structure inside an expression")


class Expressions:
    """A reader over tokens. `group` reads what stands in brackets; structures.py extends it."""

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

    # operators

    def expression(self, power: int = 0) -> Value:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("nesting")
        left = self.prefix()
        divided = False
        while True:
            token = self.peek()
            kind = token.kind
            if kind in ("+", "-", "pm", "mp") and power < _SUM:
                self.at += 1
                right = self.node(_SUM)
                left = Op({"+": "add", "-": "sub"}.get(kind, kind), (as_node(left), right))
            elif kind in ("*", "/", "mod") and power < _PRODUCT:
                self.at += 1
                right = self.node(_PRODUCT)
                left = Op({"*": "mul", "/": "div"}.get(kind, kind), (as_node(left), right))
                divided = kind == "/"
                continue
            elif power < (_TIGHT if self.tight else _PRODUCT) and self.multiplies(left):
                plain = isinstance(left, Op) and all(whole(part) is not None for part in left.args)
                self.ambiguous |= divided and not token.spaced and (kind == "name" or not plain)
                left = Op("mul", (as_node(left), self.node(_TIGHT)))
                continue
            else:
                break
            divided = False
        self.depth -= 1
        return left

    def node(self, power: int = 0) -> Node:
        return as_node(self.expression(power))

    def multiplies(self, left: Value) -> bool:
        """Whether the next token starts a factor that is multiplied without a sign."""
        token = self.peek()
        if token.kind == "|":
            return self.bars == 0 and isinstance(left, NODES) and self.closes()
        if token.kind in ("(", "[") and self.peek(1).kind in ("mod",):
            return False
        if token.kind == "[" and not isinstance(left, NODES):
            return False
        return token.kind in _STARTS and isinstance(left, NODES)

    def closes(self) -> bool:
        return any(token.kind == "|" for token in self.items[self.at + 1 :])

    def prefix(self) -> Value:
        sign = self.take("-", "+", "pm", "mp")
        if sign is None:
            return self.postfix(self.atom())
        body = self.node(_NEGATE)
        if sign.kind == "+":
            return body
        return Op({"-": "neg"}.get(sign.kind, sign.kind), (body,))

    def postfix(self, left: Value) -> Value:
        while True:
            token = self.peek()
            if token.kind == "^":
                self.at += 1
                if self.take("circ"):
                    left = Op("degree", (as_node(left),))
                elif self.take("'"):
                    left = Op("prime", (as_node(left),))
                else:
                    left = Op("pow", (as_node(left), self.exponent()))
            elif token.kind == "!":
                self.at += 1
                double = self.peek().kind == "!" and not self.peek().spaced
                self.at += double
                left = Op("dfact" if double else "fact", (as_node(left),))
            elif token.kind == "%":
                self.at += 1
                left = Op("percent", (as_node(left),))
            elif token.kind == "'" and isinstance(left, NODES):
                self.at += 1
                left = Op("prime", (as_node(left),))
            elif token.kind == "_" and isinstance(left, NODES):
                self.at += 1
                left = self.subscript(left)
            else:
                return left

    def exponent(self) -> Node:
        """What a power is raised to: a group, or one signed factor and its own power."""
        if self.peek().kind == "{":
            body = as_node(self.braces())
            return Op("pow", (body, self.exponent())) if self.take("^") else body
        if self.take("-"):
            return Op("neg", (self.exponent(),))
        body = as_node(self.atom())
        if self.take("^"):
            return Op("pow", (body, self.exponent()))
        while self.peek().kind == "!" and not self.peek().spaced:
            self.at += 1
            body = Op("fact", (body,))
        return body

    def subscript(self, left: Value) -> Node:
        body = as_node(self.braces()) if self.peek().kind == "{" else as_node(self.atom())
        if isinstance(left, Sym):
            return Sym(f"{left.name}_{spell(body)}")
        base = whole(body)
        if isinstance(left, Num) and base is not None and 2 <= base <= 36 and whole(left) is not None:
            return Op("base", (left, body))
        raise Unreadable("a subscript")

    # atoms

    def atom(self) -> Value:
        token = self.peek()
        self.at += 1
        kind = token.kind
        if kind == "num":
            return self.after_number(token)
        if kind == "name":
            return Sym(token.text)
        if kind == "infinity":
            return INFINITY
        if kind == "func":
            return self.function(token.text)
        if kind == "sqrt":
            return self.root()
        if kind == "frac":
            return Op("div", (self.argument(), self.argument()))
        if kind == "binom":
            return Op("binom", (self.argument(), self.argument()))
        if kind in ("sum", "prod"):
            return self.series(kind)
        if kind in ("lfloor", "lceil"):
            body = self.node()
            self.need("r" + kind[1:])
            return Op(kind[1:], (body,))
        if kind == "|":
            self.bars += 1
            body = self.node()
            self.need("|")
            self.bars -= 1
            return Op("abs", (body,))
        self.at -= 1
        if kind == "{":
            return self.braces()
        return self.group()

    def group(self) -> Value:
        """What stands in brackets: here parentheses around one expression."""
        self.need("(")
        body = self.expression()
        self.need(")")
        return body

    def braces(self) -> Value:
        """LaTeX's own group."""
        self.need("{")
        if self.take("}"):
            raise Unreadable("an empty group")
        bars, self.bars = self.bars, 0
        body = self.expression()
        if self.take("choose"):
            body = Op("binom", (as_node(body), self.node()))
        elif self.take("over"):
            body = Op("div", (as_node(body), self.node()))
        self.need("}")
        self.bars = bars
        return body

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
                if not 0 < top < bottom:
                    raise Unreadable("a number before an improper fraction")
                return Num(value.value + Fraction(top, bottom))
            self.at = start
        elif [self.peek(ahead).kind for ahead in range(3)] == ["num", "/", "num"] and self.peek().spaced:
            part = [number(self.peek(ahead).text).value for ahead in (0, 2)]
            if 0 < part[0] < part[1]:
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
        if power is not None and whole_negative_one(power) and name in _INVERSE:
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


def whole_negative_one(node: Node) -> bool:
    return isinstance(node, Op) and node.head == "neg" and whole(node.args[0]) == 1


def spell(node: Node) -> str:
    """A subscript as part of a name."""
    if isinstance(node, Num):
        return str(node.value)
    if isinstance(node, Sym):
        return node.name
    return f"({node.head} {' '.join(map(spell, node.args))})"


__all__ = ["END", "Expressions", "as_node", "number", "whole"]
