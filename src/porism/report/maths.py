r"""LaTeX to MathML, and never to anything else.

A well-kept converter does the work. What it returns is let through only if it is made of known elements and known
attributes with harmless values: formulas come from models, and the page must not depend on a converter's care. Styles
become classes, since the page allows no inline style. What cannot be converted is shown as its source.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from math_core import LatexToMathML

LONGEST = 4000  # characters of a formula; longer ones are shown as source
DEEPEST = 30  # levels of braces, fences and environments
WIDEST = 20.0  # em, of a space somebody asks for

_ELEMENT = re.compile(
    "math|mrow|mi|mo|mn|mtext|ms|mspace|mfrac|msqrt|mroot|msub|msup|msubsup|munder|mover|munderover|mmultiscripts|"
    "mprescripts|mtable|mtr|mtd|mphantom|mpadded|mstyle|menclose|b|i"
)
_ATTRIBUTE_NAME = re.compile(
    "display|displaystyle|scriptlevel|mathvariant|stretchy|symmetric|largeop|movablelimits|form|fence|separator|accent|"
    "accentunder|lspace|rspace|minsize|maxsize|linethickness|width|height|depth|voffset|columnspan|rowspan"
)
_TAG = re.compile(r'<(/?)([a-z]+)((?: [a-z-]+="[^"<>&]*")*)(/?)>')
_ATTRIBUTE = re.compile(r' ([a-z-]+)="([^"]*)"')
_VALUE = re.compile(r"[a-z-]+|-?(\d+(?:\.\d+)?)(?:em|ex|mu|%)?", re.IGNORECASE)
_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|#39|#x27|ApplyFunction|InvisibleTimes|nbsp);)")
_CLASSES = (("text-align: left", "al"), ("text-align: right", "ar"), ("padding-left:1em", "gap"))
_UNNUMBERED = re.compile(r"\\(begin|end)\{(equation|align|gather|multline|alignat|flalign)\}")
_SPELLED = (
    (re.compile(r"\\(?:label|ref|eqref)\{[^{}]*\}"), ""),
    (re.compile(r"\\tag\*?\{([^{}$]*)\}"), r"\\qquad\\text{(\1)}"),
    (re.compile(r"\\mbox\b"), r"\\text"),
    (re.compile(r"\\begin\{eqnarray\*?\}"), r"\\begin{align*}"),
    (re.compile(r"\\end\{eqnarray\*?\}"), r"\\end{align*}"),
)


@lru_cache(maxsize=4096)
def mathml(latex: str, display: bool) -> str:
    """A formula (without its dollars) as a <math> element, or as its escaped source in <code>."""
    found = _converted(latex, display)
    if found is not None:
        return f'<div class="display" tabindex="0">{found}</div>' if display else found
    return f'<code class="latex" title="shown as written: not converted">{escape(latex)}</code>'


def _converted(latex: str, display: bool) -> str | None:
    from math_core import LatexError

    if len(latex) > LONGEST or _depth(latex) > DEEPEST:
        return None
    text = _UNNUMBERED.sub(r"\\\1{\2*}", latex)
    for pattern, spelling in _SPELLED:
        text = pattern.sub(spelling, text)
    try:
        return checked(_converter().convert_with_local_state(text, displaystyle=display))
    except LatexError:
        return None


@lru_cache(maxsize=1)
def _converter() -> LatexToMathML:
    from math_core import LatexToMathML

    return LatexToMathML(fancy_error=False, max_expansions=200)


def _depth(latex: str) -> int:
    """How deep the formula is nested, at most; scripts of scripts count as well."""
    level = deepest = 0
    for mark in re.finditer(r"\\(?:left|right|begin|end)\b|\\.|[{}^_]", latex, re.DOTALL):
        token = mark[0]
        if token in ("{", r"\left", r"\begin"):
            level += 1
            deepest = max(deepest, level)
        elif token in ("}", r"\right", r"\end"):
            level = max(0, level - 1)
    return deepest


def checked(markup: str) -> str | None:
    """The markup with styles as classes; None if anything in it is not plainly MathML."""
    if _ENTITY.search(markup):
        return None
    parts: list[str] = []
    at = 0
    for tag in _TAG.finditer(markup):
        between = markup[at : tag.start()]
        if "<" in between or ">" in between:
            return None
        kept = _tag(tag)
        if kept is None:
            return None
        parts += between, kept
        at = tag.end()
    rest = markup[at:]
    return None if "<" in rest or ">" in rest else "".join(parts) + rest


def _tag(tag: re.Match[str]) -> str | None:
    closing, name, attributes, empty = tag.groups()
    if not _ELEMENT.fullmatch(name):
        return None
    boxed = name == "menclose"  # MathML Core has no boxes: a class draws them
    kept, classes = "", ["boxed"] if boxed and not closing else []
    for attribute in _ATTRIBUTE.finditer(attributes):
        key, value = attribute.groups()
        if key == "style":
            classes += [short for style, short in _CLASSES if style in value]
        elif boxed or key == "class":
            continue
        elif not (_ATTRIBUTE_NAME.fullmatch(key) and _harmless(value)):
            return None
        else:
            kept += f' {key}="{value}"'
    if classes:
        kept += f' class="{" ".join(classes)}"'
    return f"<{closing}{'mrow' if boxed else name}{kept}{empty}>"


def _harmless(value: str) -> bool:
    number = _VALUE.fullmatch(value)
    if number is None:
        return False
    return number[1] is None or value.endswith("%") or float(number[1]) <= WIDEST


__all__ = ["checked", "mathml"]
