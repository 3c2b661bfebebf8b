r"""Tokens to expressions: operator precedence over LaTeX and plain notation.

Two spellings have two honest readings: 1/2x, and a number before an improper fraction. The first sets
`ambiguous`, and `tight` chooses the other reading; the second is refused. Depth is bounded, so reading is
linear and never overflows.
"""

from __future__ import annotations

from porism.verify.atoms import Atoms
from porism.verify.lexer import Unreadable
from porism.verify.matrices import negative, operation
from porism.verify.reader import END, MAX_DEPTH, as_node, number, whole
from porism.verify.syntax import INFINITY, NODES, Matrix, Node, Num, Op, Sym, Value

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
        "begin",
    )
)


class Expressions(Atoms):
    """A reader of whole expressions. `group` reads what stands in brackets; structures.py extends it."""

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
                left = operation({"+": "add", "-": "sub"}.get(kind, kind), left, self.expression(_SUM))
            elif kind in ("*", "/", "mod") and power < _PRODUCT:
                self.at += 1
                left = operation({"*": "mul", "/": "div"}.get(kind, kind), left, self.expression(_PRODUCT))
                divided = kind == "/"
                continue
            elif power < (_TIGHT if self.tight else _PRODUCT) and self.multiplies(left):
                plain = isinstance(left, Op) and all(whole(part) is not None for part in left.args)
                self.ambiguous |= divided and not token.spaced and (kind == "name" or not plain)
                left = operation("mul", left, self.expression(_TIGHT))
                continue
            else:
                break
            divided = False
        self.depth -= 1
        return left

    def multiplies(self, left: Value) -> bool:
        """Whether the next token starts a factor that is multiplied without a sign."""
        token = self.peek()
        if token.kind == "|":
            return self.bars == 0 and isinstance(left, NODES) and self.closes()
        if token.kind in ("(", "[") and self.peek(1).kind in ("mod",):
            return False
        if token.kind == "[" and not isinstance(left, NODES):
            return False
        return token.kind in _STARTS and isinstance(left, (*NODES, Matrix))

    def closes(self) -> bool:
        return any(token.kind == "|" for token in self.items[self.at + 1 :])

    def prefix(self) -> Value:
        sign = self.take("-", "+", "pm", "mp")
        if sign is None:
            return self.postfix(self.atom())
        body = self.expression(_NEGATE)
        if sign.kind == "+":
            return body
        return negative(body) if sign.kind == "-" else Op(sign.kind, (as_node(body),))

    def postfix(self, left: Value) -> Value:
        while True:
            token = self.peek()
            if token.kind == "^":
                self.at += 1
                if self.take("circ"):
                    left = Op("degree", (as_node(left),))
                elif self.take("'"):
                    left = _primed(left)
                else:
                    left = Op("pow", (as_node(left), self.exponent()))
            elif token.kind == "!":
                self.at += 1
                double = self.peek().kind == "!" and not self.peek().spaced
                self.at += double
                left = Op("dfact" if double else "fact", (as_node(left),))
            elif token.kind == "%":
                if isinstance(left, Op) and left.head == "percent":
                    raise Unreadable("%%")
                self.at += 1
                left = Op("percent", (as_node(left),))
            elif token.kind == "'" and isinstance(left, Sym):
                self.at += 1
                left = _primed(left)
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
            called = token.text in ("Gamma", "zeta") and self.peek().kind == "("
            return self.function(token.text) if called else Sym(token.text)
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


def _primed(value: Value) -> Sym:
    """A name with a prime is another name."""
    if not isinstance(value, Sym):
        raise Unreadable("a prime")
    return Sym(value.name + "'")


def spell(node: Node) -> str:
    """A subscript as part of a name."""
    if isinstance(node, Num):
        return str(node.value)
    if isinstance(node, Sym):
        return node.name
    return f"({node.head} {' '.join(map(spell, node.args))})"


__all__ = ["END", "MAX_DEPTH", "Expressions", "as_node", "number", "whole"]
