r"""Cleaned text to a Value: lists, tuples, sets, intervals, relations, congruences, matrices, measures.

What stands between brackets or commas is read by structure first, and the expressions inside by
expressions.py. A text outside the grammar raises Unreadable and is left to other rules.
"""

from __future__ import annotations

import re

from porism.verify.expressions import END, MAX_DEPTH, Expressions, as_node, number, whole
from porism.verify.joining import DOTS, built, congruence, joined
from porism.verify.lexer import Token, Unreadable, tokens
from porism.verify.matrices import determinant
from porism.verify.syntax import (
    EMPTY,
    NODES,
    Combined,
    Congruence,
    Domain,
    Interval,
    Listing,
    Matrix,
    Measured,
    Node,
    Num,
    Op,
    Ratio,
    Relation,
    Sym,
    Value,
)
from porism.verify.words import FRACTION_WORDS, alters, unit_size

_RELATIONS = frozenset(("=", "<", ">", "<=", ">=", "!=", "in", "notin", "~", "equiv", "subset"))
_SETS = {"cup": "union", "cap": "intersection", "setminus": "difference"}
_SEPARATORS = frozenset((",", ";", "and", "or", "newline"))
_MATRIX = re.compile(r"[pbBvV]?(?:small)?matrix|array")
_CUP = re.compile(r"(?<=[)\]}])\s*U\s*(?=[(\[{\\])")
_TURNED = re.compile(r"([\[\]])([^\[\]]+[,;][^\[\]]+)([\[\]])")
_REALS = re.compile(
    r"(?:\\(?:text|mbox) ?\{ ?)?all (?:reals|real (?:numbers|values|x))(?: x)?"
    r"(?: except(?: for)? ?\}? ?(?:x ?= ?)?(?P<points>[^{}]+))?\}?",
    re.IGNORECASE,
)
_HALVES = {
    "am": "am",
    "pm": "pm",
    "noon": "pm",
    "midnight": "am",
    "inthemorning": "am",
    "intheafternoon": "pm",
}
_CLOCK = re.compile(r"(?<=\d:\d\d) ?\b([AaPp])\.? ?[Mm]\b\.?")
_TAIL = re.compile(
    r"[,;]?\s*(?:\\(?:text|mbox)\s*\{\s*)?\b(?:where|for (?:all|any|some|every|each)"
    r"|with(?!\W*(?:an? )?(?:remainder|probability|\d)))\b.*|[,;]?\s*\\forall.*",
    re.DOTALL,
)


class _Reader(Expressions):
    """Structures over expressions. building: inside set braces, where a colon opens the condition."""

    building = False

    def top(self) -> Value:
        value = self.items_until(END.kind)
        if self.peek() is not END:
            raise Unreadable(self.peek().text)
        return value

    def items_until(self, *close: str) -> Value:
        """One item, or several as a bare list or a combination of conditions."""
        found: list[Value] = []
        joints: list[str] = []
        while self.peek().kind in (";", ","):  # a leading quad
            self.at += 1
        while self.peek().kind not in close:
            found.append(DOTS if self.take("dots") else self.item())
            joint = ""
            while self.peek().kind in _SEPARATORS:  # the end of a list is no place for "or"
                joint = self.peek().kind if joint in ("", ",", ";", "newline") else joint
                self.at += 1
            if joint:
                if joint in ("and", "or") and self.peek().kind in close:
                    raise Unreadable(joint)
                joints.append(joint)
            elif self.peek().kind not in close:
                raise Unreadable(self.peek().text or "the end")
        if not found:
            raise Unreadable("nothing")
        return joined(found, joints)

    def item(self) -> Value:
        self.depth = 0 if self.depth < 0 else self.depth
        if named := self.applied():
            left: Value = named
        else:
            left = self.set_expression()
        sides, ops = [left], []
        while (token := self.take(*_RELATIONS)) is not None:
            ops.append(token.kind)
            sides.append(self.set_expression())
        modulus = self.modulus()
        if modulus is not None:
            return congruence(sides, ops, modulus)
        if not ops:
            return left
        if "equiv" in ops:
            last = sides[-1]
            if isinstance(last, Op) and last.head == "mod" and len(sides) == 2:
                return Congruence(as_node(sides[0]), (last.args[0],), last.args[1])
        return Relation(tuple(ops), tuple(sides))

    def applied(self) -> Node | None:
        """f(x), f(x, y), f(3) or an inverse or derivative of f, before an equals sign."""
        if self.peek().kind != "name":
            return None
        kinds = [token.kind for token in self.items[self.at : self.at + 20]]
        head = 6 if kinds[1:6] == ["^", "{", "-", "num", "}"] else 1
        while kinds[head : head + 1] == ["'"]:
            head += 1
        if kinds[head : head + 1] != ["("] or ")" not in kinds[head:]:
            return None
        close = kinds.index(")", head)
        inside = self.items[self.at + head + 1 : self.at + close]
        wanted = [(",",) if at % 2 else ("name", "num") for at in range(len(inside))]
        fits = all(token.kind in allowed for token, allowed in zip(inside, wanted, strict=True))
        if kinds[close + 1 : close + 2] != ["="] or not fits or len(inside) % 2 == 0:
            return None
        name = "".join(token.text for token in self.items[self.at : self.at + head])
        self.at += close + 1
        return Op("apply", (Sym(name), *(_argument(token) for token in inside[::2])))

    def modulus(self) -> Node | None:
        if self.take("pmod"):
            return as_node(self.braces()) if self.peek().kind == "{" else as_node(self.atom())
        if self.peek().kind == "(" and self.peek(1).kind == "mod":
            self.at += 2
            body = self.node()
            self.need(")")
            return body
        return None

    def set_expression(self) -> Value:
        left = self.measured()
        while (token := self.take(*_SETS)) is not None:
            left = Combined(_SETS[token.kind], (left, self.measured()))
        return left

    def measured(self) -> Value:
        """An expression with what follows it: a unit, a noun, or the other parts of a ratio."""
        if self.peek().kind == "emptyset":
            self.at += 1
            return EMPTY
        if self.peek().kind == "mathbb" or self.peek().kind == "not":
            return self.domain()
        start = self.at
        value = self.expression()
        if self.peek().kind == ":" and not self.building and isinstance(value, NODES):
            return self.ratio(value, self.items[start])
        words: list[str] = []
        while isinstance(value, NODES) and self.peek().text.lower() in FRACTION_WORDS:
            value = Op("mul", (value, Num(FRACTION_WORDS[self.peek().text.lower()])))
            self.at += 1
        while (token := self.take("text")) is not None:
            words.append(token.text)
            if self.peek().kind == "^":
                self.at += 1
                words.append(f"^{whole(as_node(self.exponent()))}")
            if self.peek().kind == "/" and self.peek(1).kind == "text":
                self.at += 1
                words.append("/")
        if not words:
            return value
        unit = " ".join(words)
        if not isinstance(value, NODES) or alters(unit):
            raise Unreadable("words after a structure, or of value")
        return Measured(self.smaller(value, unit), unit)

    def smaller(self, value: Node, unit: str) -> Node:
        """The value with what follows in smaller units of the same kind added: 5 ft 6 in, 2 hours and 30 minutes."""
        size = unit_size(unit)
        while size is not None:
            skipped = int(self.peek().kind == "and")
            part, word = self.peek(skipped), self.peek(skipped + 1)
            following = unit_size(word.text) if part.kind == "num" and word.kind == "text" else None
            if following is None or following[0] != size[0] or following[1] >= size[1]:
                break
            self.at += skipped + 2
            amount = Num(number(part.text).value * following[1] / unit_size(unit)[1])  # type: ignore[index]
            value, size = Op("add", (value, amount)), following
        return value

    def ratio(self, first: Node, token: Token) -> Value:
        parts, pieces = [first], [token]
        while self.take(":"):
            pieces.append(self.peek())
            parts.append(self.node(20))
        clock = len(parts) in (2, 3) and all(
            piece.kind == "num" and len(piece.text) == 2 for piece in pieces[1:]
        )
        clock = clock and token.kind == "num" and len(token.text) <= 2
        words = self.take("text")
        value = Ratio(tuple(parts), clock)
        if words is None:
            return value
        half = _HALVES.get(re.sub(r"[ .]", "", words.text.lower()))
        if alters(words.text) or (clock and half is None):
            raise Unreadable(words.text)
        return Measured(value, half) if clock and half else value

    def domain(self) -> Value:
        self.need("mathbb")
        token = self.take("name") or (self.take("{") and self.need("name"))
        if token is None or token.text not in "RQZNC":
            raise Unreadable("a blackboard letter")
        self.take("}")
        if self.peek().kind in ("^", "/", "_", "*"):
            raise Unreadable("a structure over a number set")
        return Domain(token.text)

    def group(self) -> Value:
        token = self.peek()
        if token.kind == "begin":
            return self.matrix()
        if token.kind not in ("(", "[", "\\{", "langle"):
            raise Unreadable(token.text or "the end")
        self.at += 1
        if token.kind == "\\{":
            return self.set_braces("\\}")
        closes = (")", "]") if token.kind in "([" else ("rangle",)
        bars, self.bars = self.bars, 0
        depth, self.depth = self.depth, self.depth + 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("nesting")
        value = self.items_until(*closes)
        self.bars, self.depth = bars, depth
        close = self.peek().kind
        self.at += 1
        items = value.items if isinstance(value, Listing) and value.kind == "list" else None
        if (token.kind, close) in (("(", "]"), ("[", ")")):
            if items is None or len(items) != 2:
                raise Unreadable("half-open brackets")
            return Interval(as_node(items[0]), as_node(items[1]), token.kind == "[", close == "]")
        if items is None:
            if token.kind == "langle":
                raise Unreadable("what one element generates")
            return value
        return Listing("bracket" if token.kind == "[" else "tuple", items)

    def set_braces(self, close: str) -> Value:
        if self.take(close):
            return EMPTY
        bars, self.bars = self.bars, 0
        self.building = True
        value = self.items_until(close, "|", ":")
        self.building = False
        if self.take("|", ":"):
            condition = self.items_until(close)
            self.need(close)
            self.bars = bars
            return built(value, condition)
        self.need(close)
        self.bars = bars
        if isinstance(value, Listing) and value.kind == "list":
            return Listing("set", value.items)
        return Listing("set", (value,))

    def braces(self) -> Value:
        """A LaTeX group; also a set whose braces were written without a backslash."""
        start = self.at
        if self.peek(1).kind == "}":
            self.at += 2
            return EMPTY
        try:
            return super().braces()
        except Unreadable:
            if start != 0:
                raise
            self.at, self.depth = start + 1, 0
            return self.set_braces("}")

    def matrix(self) -> Value:
        self.need("begin")
        name = self.environment()
        if not _MATRIX.fullmatch(name):
            raise Unreadable(name)
        if name == "array":
            self.environment()
        rows: list[tuple[Value, ...]] = []
        row: list[Value] = []
        while True:
            row.append(self.expression())
            if self.take("&"):
                continue
            rows.append(tuple(row))
            row = []
            ended = self.take("newline", "end")
            if ended is None:
                raise Unreadable(self.peek().text or "the end")
            if ended.kind == "end" or self.take("end"):
                break
        self.environment()
        if len({len(row) for row in rows}) != 1:
            raise Unreadable("a ragged matrix")
        matrix = Matrix(tuple(rows))
        if name[0] == "V":
            raise Unreadable("a norm")
        return determinant(matrix) if name[0] == "v" else matrix

    def environment(self) -> str:
        self.need("{")
        name = ""
        while not self.take("}"):
            if self.peek() is END:
                raise Unreadable("the end")
            name += self.peek().text
            self.at += 1
        return name


def _argument(token: Token) -> Node:
    return Sym(token.text) if token.kind == "name" else number(token.text)


def read(text: str, *, grouped: bool = False, tight: bool = False) -> tuple[Value, bool]:
    """The value of a cleaned text, and whether 1/2x stands in it. Raises Unreadable."""
    if turned := _TURNED.fullmatch(text):
        open_, body, close = turned.groups()
        text = ("(" if open_ == "]" else "[") + body + (")" if close == "[" else "]")
    if reals := _REALS.fullmatch(text):
        text = r"\mathbb{R}" + (rf" \setminus \{{{reals['points']}\}}" if reals["points"] else "")
    text = _CLOCK.sub(r" \\text{ \1m}", text)
    text = _CUP.sub(r" \\cup ", text)
    text = _TAIL.sub("", text) or text
    reader = _Reader(tokens(text, grouped=grouped), tight=tight)
    return reader.top(), reader.ambiguous


__all__ = ["read"]
