r"""A cleaned answer as tokens. LaTeX commands and plain spellings (sqrt, <=, **) meet here.

A run of letters is a known word or else a product of one-letter variables when short; a longer unknown
run is a word, which expressions refuse. A number with separators of thousands is one number outside of
brackets, and a list inside them unless `grouped` says otherwise.
"""

from __future__ import annotations

import re

from msgspec import Struct

from porism.verify.words import NUMBER_WORDS, SCALE_WORDS, alters, is_unit


class Unreadable(Exception):
    """The text is not in the grammar; says where reading stopped."""


class Token(Struct, frozen=True):
    """kind: num, name, func, text, or an operator's own sign. spaced: white space stood before it."""

    kind: str
    text: str
    spaced: bool = False


MAX_TOKENS = 4000
FUNCTIONS = frozenset(
    (
        "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "arccot", "arcsec", "arccsc", "asin",
        "acos", "atan", "sinh", "cosh", "tanh", "coth", "sech", "csch", "arcsinh", "arccosh", "arctanh", "asinh",
        "acosh", "atanh", "log", "ln", "lg", "exp", "sqrt", "cbrt", "abs", "floor", "ceil", "gcd", "lcm", "max", "min",
        "binom", "Re", "Im", "arg", "factorial", "cis", "sgn", "sign", "Gamma", "gamma", "zeta",
    )
)  # fmt: skip
_GREEK = frozenset(
    (
        "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu",
        "xi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda",
        "Xi", "Sigma", "Phi", "Psi", "Omega", "ell", "hbar",
    )
)  # fmt: skip
_COMMANDS = {
    "cdot": "*", "times": "*", "ast": "*", "cdotp": "*", "div": "/", "le": "<=", "ge": ">=", "lt": "<", "gt": ">",
    "ne": "!=", "pm": "pm", "mp": "mp", "infty": "infinity", "in": "in", "notin": "notin", "cup": "cup", "cap": "cap",
    "setminus": "setminus", "backslash": "setminus", "smallsetminus": "setminus", "emptyset": "emptyset",
    "quad": ";", "qquad": ";", "lor": "or", "vee": "or", "land": "and", "wedge": "and", "approx": "~", "sim": "~",
    "simeq": "~", "equiv": "equiv", "bmod": "mod", "mod": "mod", "pmod": "pmod", "mid": "|", "vert": "|", "lvert": "|",
    "rvert": "|", "lfloor": "lfloor", "rfloor": "rfloor", "lceil": "lceil", "rceil": "rceil", "langle": "langle",
    "rangle": "rangle", "colon": ":", "circ": "circ", "prime": "'", "choose": "choose", "frac": "frac",
    "binom": "binom", "sum": "sum", "prod": "prod", "sqrt": "sqrt", "subseteq": "subset", "subset": "subset",
    "Rightarrow": "=>", "implies": "=>", "rightarrow": "to", "to": "to", "mapsto": "mapsto", "ldots": "dots",
    "dots": "dots", "cdots": "dots", "begin": "begin", "end": "end", "mathbb": "mathbb", "mathbf": "mathbb",
    "angle": "",
    "euro": "", "pounds": "", "bf": "", "it": "", "mathcal": "", "mathit": "", "overline": "overline",
    "bar": "overline",
    "neg": "not", "not": "not", "oplus": "oplus", "over": "over",
}  # fmt: skip
_WORDS = {
    "and": "and", "or": "or", "mod": "mod", "pi": "pi", "inf": "infinity", "infinity": "infinity", "oo": "infinity",
    "in": "in", "div": "/", "times": "*", "union": "cup", "intersection": "cap", "choose": "choose",
}  # fmt: skip
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|\\(?P<box>text|mbox|textbf|textit|textrm|mathrm|mathsf|mathtt|operatorname|hbox|textnormal|emph)\s*\{(?P<inner>[^{}]*)\}"
    r"|\\(?P<command>[A-Za-z]+)|\\(?P<escape>.)"
    r"|(?P<grouped>[1-9]\d{0,2}(?:,\d{3})+(?![\d])(?:\.\d+)?)"
    r"|(?P<num>\d+\.\d+(?:[eE][+-]?\d+)?(?![A-Za-z\d])|\d+[eE][+-]?\d+(?![A-Za-z\d])|\d+\.\d+|\d+\.(?=\D|$)|\d+|\.\d+)"
    r"|(?P<word>[A-Za-z]+)|(?P<op>\.\.\.|<=|>=|!=|==|=>|->|\*\*|[-+*/^_=<>(){}\[\]|!,;:'&%#\"?.])"
)


_GLUED = re.compile(
    r"([A-Za-z]{0,2}?)(arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|log|ln|exp|sqrt)([A-Za-z]{0,2})"
)
_JOINED = re.compile(r"(.*\w.?) ?(,|\band)")
_ENGLISH = frozenset(
    ("since", "cost", "costs", "tank", "tanks", "logs", "login", "sing", "sins", "using", "basin", "cosy")
)
_COMPOUND = re.compile(
    r"\b(twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[- ](one|two|three|four|five|six|seven|eight|nine)\b",
    re.IGNORECASE,
)
_UNIT_LETTERS = frozenset("msghL")


def _word(word: str, spaced: bool) -> list[Token]:
    if word in _WORDS:
        return [Token(_WORDS[word] if word != "pi" else "name", word, spaced)]
    if word in FUNCTIONS and word not in ("gamma", "zeta", "Gamma"):
        return [Token("sqrt" if word == "sqrt" else "func", word, spaced)]
    if word in _GREEK:
        return [Token("name", word, spaced)]
    lower = word.lower()
    if lower in NUMBER_WORDS:
        return [Token("num", NUMBER_WORDS[lower], spaced)]
    if lower in ("percent", "pct", "percentage"):
        return [Token("%", word, spaced)]
    if (glued := _GLUED.fullmatch(word)) and lower not in _ENGLISH:
        parts = [part for part in glued.groups() if part]
        return [token for at, part in enumerate(parts) for token in _word(part, spaced and at == 0)]
    if len(word) > 1 and (
        is_unit(word) or len(word) > 3 or lower in ("is", "no", "of", "to", "we", "the", "are", "sq", "cu")
    ):
        return [Token("text", word, spaced)]
    return [Token("name", char, spaced and at == 0) for at, char in enumerate(word)]


def _scale(word: str) -> list[Token]:
    """million after a number: times its size."""
    return [Token("*", word), Token("num", SCALE_WORDS[word.lower()])]


def _boxed(inner: str, spaced: bool, *, after_number: bool) -> list[Token]:
    """The tokens of \\text{...}: connectives and numbers are read, everything else is a noun or unit."""
    inner = inner.strip()
    lower = inner.lower().strip(" ,.")
    if lower in ("and", "or"):
        return [Token(lower, lower, spaced)]
    if lower in ("", "is"):
        return []
    first, _, rest = inner.partition(" ")
    if after_number and first.lower() in SCALE_WORDS:
        return [*_scale(first), *([Token("text", rest, True)] if rest else [])]
    amount = first if first.isdigit() else NUMBER_WORDS.get(first.lower())
    if amount and rest.isalpha() and not after_number and not alters(rest):
        return [Token("num", amount, spaced), Token("text", rest, True)]
    if after_number and lower == "min":
        return [Token("text", inner, True)]
    if len(inner) == 1 and inner.isalpha() and not (after_number and inner in "msghL"):
        return [Token("name", inner, spaced)]
    if lower in FUNCTIONS:
        return [Token("func", lower, spaced)]
    if (lower in _WORDS and lower != "in") or lower in ("percent", "pct", "percentage"):
        return _word(lower, spaced)
    if re.fullmatch(r"[\d.,/%]+", inner) or lower in NUMBER_WORDS:
        return tokens(inner)
    joint = _JOINED.fullmatch(inner)
    noun, sign = (joint[1], joint[2]) if joint else (inner, "")
    return [Token("text", noun, True), *([Token(sign, sign, True)] if sign else [])]


def _command(command: str, spaced: bool) -> list[Token]:
    if command in _COMMANDS:
        kind = _COMMANDS[command]
        return [Token(kind, command, spaced)] if kind else []
    if command == "pi" or command in _GREEK:
        return [Token("name", command, spaced)]
    if command in FUNCTIONS:
        return [Token("func", command, spaced)]
    raise Unreadable(f"\\{command}")


def tokens(text: str, *, grouped: bool = False) -> list[Token]:
    """The tokens of a cleaned text. Raises Unreadable for a sign or command outside the grammar."""
    text = _COMPOUND.sub(
        lambda match: str(sum(int(NUMBER_WORDS[word.lower()]) for word in match.groups())), text
    )
    found: list[Token] = []
    at = depth = 0
    spaced = False
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or len(found) > MAX_TOKENS:
            raise Unreadable(text[at : at + 12])
        at = match.end()
        kind = match.lastgroup
        if kind == "space":
            spaced = True
            continue
        if kind == "inner":
            found += _boxed(match["inner"], spaced, after_number=bool(found) and found[-1].kind == "num")
        elif kind == "command":
            found += _command(match["command"], spaced)
        elif kind == "escape":
            sign = match["escape"]
            if sign in "{}":
                depth += 1 if sign == "{" else -1
                found.append(Token("\\" + sign, sign, spaced))
            elif sign in "\\|":
                found.append(Token("newline" if sign == "\\" else "|", sign, spaced))
            elif sign in "#%&_":
                found.append(Token(sign, sign, spaced))
            else:
                raise Unreadable("\\" + sign)
        elif kind == "grouped":
            if depth > 0 and not grouped:
                head = match[0].split(",", 1)[0]
                at = match.start() + len(head)
                found.append(Token("num", head, spaced))
            else:
                found.append(Token("num", match[0].replace(",", ""), spaced))
        elif kind == "word":
            after_number = bool(found) and found[-1].kind == "num"
            scaled = after_number and match[0].lower() in SCALE_WORDS
            found += _scale(match[0]) if scaled else _word(match[0], spaced)
        else:
            sign = match[0]
            depth += (sign in "([") - (sign in ")]")
            kind = (
                "num"
                if kind == "num"
                else {"...": "dots", "==": "=", "**": "^", "->": "to", "&": "&"}.get(sign, sign)
            )
            found.append(Token(kind, sign, spaced))
        spaced = False
    return _with_units(found)


def _with_units(found: list[Token]) -> list[Token]:
    """5 m: a unit's letter that is set apart behind a number and ends it is no variable."""
    for at in range(len(found) - 1, 0, -1):
        token = found[at]
        if token.kind != "name" or token.text not in _UNIT_LETTERS:
            continue
        after = [item.kind for item in found[at + 1 : at + 3]]
        ends = (
            not after
            or after[0] in (",", ";", "and", "or")
            or (after[0] == "^" and len(found) in (at + 3, at + 5))
        )
        rate = after[:1] == ["/"] and after[1:] == ["text"]
        if (token.spaced and found[at - 1].kind in ("num", "}") and (ends or rate)) or (
            ends
            and found[at - 1].kind == "/"
            and found[at - 2].text in _UNIT_LETTERS
            and found[at - 2].spaced
        ):
            found[at] = Token("text", token.text, True)
    return found


__all__ = ["FUNCTIONS", "Token", "Unreadable", "tokens"]
