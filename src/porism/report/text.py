r"""Texts of models and people as HTML: Markdown for the layout, MathML for the formulas, everything else escaped.

Formulas are lifted out before Markdown sees them, and put back afterwards, so that neither disturbs the other. Links,
pictures and HTML are never made: they stay as they are written. Characters that deceive the eye (direction marks,
controls) are shown by name. A text is returned in blocks, since the page marks single steps of a transcript.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from porism.report.maths import mathml

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONGEST = 20_000  # characters of a text that a page shows
LONGEST_BOX = 500  # characters of a boxed answer outside of any formula
LONGEST_PLAIN = 30_000
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb]"
)
_OPEN = re.compile(
    r"\\[\\$]|^(?:`{3,}|~{3,})|`+|\\\[|\\\(|\$\$|\$(?=\S)|\\boxed\{|\\begin\{([a-zA-Z]{1,20}\*?)\}",
    re.MULTILINE,
)
_MATHS_ENVIRONMENT = re.compile(
    "equation|align|gather|multline|alignat|flalign|eqnarray|aligned|gathered|cases|array|split|"
    "[pbvBV]?matrix|smallmatrix"
)
_HELD = re.compile("\ue000(\\d+)\ue001")
_HELD_AND_STOP = re.compile("\ue000(\\d+)\ue001([.,;:!?)]*)")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_BRACE = re.compile(r"\\.|[{}\n]")
_MARKS = str.maketrans("", "", "\ue000\ue001")


_PIECE = re.compile(r"<([a-z/]*)[^>]*>|[^<]+")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, list, table, ... of a text. source: as written; formulas: those in it, without their dollars."""

    html: str
    source: str
    formulas: tuple[str, ...]

    @property
    def numbers(self) -> list[str]:
        """The numbers written in the block, in order."""
        return _NUMBER.findall(self.source)

    def marked(self, number: str) -> str:
        """The block's HTML with the first place marked that has this number and no more."""
        whole = re.compile(rf"(?<![\w.,]){re.escape(number)}(?!\w|[.,]\d)")
        element, before = "", 0
        for piece in _PIECE.finditer(self.html):
            if piece[1] is not None:
                element, before = piece[1], piece.start()
            elif found := whole.search(piece[0]):
                at, end = piece.start() + found.start(), piece.start() + found.end()
                if element == "mn" and found[0] == piece[0]:
                    return f'{self.html[:before]}<mn class="mark">{self.html[at:]}'
                if not element.startswith("m"):
                    return f"{self.html[:at]}<mark>{number}</mark>{self.html[end:]}"
        return self.html


def clean(text: str, most: int = LONGEST) -> str:
    """The text with hidden characters named, and cut in the middle beyond `most` characters."""
    if len(text) > most:
        left_out = len(text) - most
        text = (
            f"{text[: most * 3 // 4]}\n\n[... {left_out:,} characters left out ...]\n\n{text[-(most // 4) :]}"
        )
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_MARKS)
    text = text.encode("utf-8", "replace").decode()
    return _CONTROL.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)


def to_html(text: str, most: int = LONGEST) -> str:
    """The whole text as HTML."""
    return "\n".join(block.html for block in blocks(text, most))


def inline(text: str, most: int = 400) -> str:
    """A short text, such as an answer, on one line: formulas where it marks them, or as a whole, and nothing else."""
    held: list[tuple[str, bool]] = []
    whole = " ".join(clean(text, most).split())
    flat = _lift(whole, held)
    if not held and "\\" in whole and (formula := mathml(whole, False)).startswith("<math"):
        return formula
    return _HELD.sub(lambda m: mathml(held[int(m[1])][0], False), escape(flat))


def blocks(text: str, most: int = LONGEST) -> list[Block]:
    """The text's blocks in order."""
    held: list[tuple[str, bool]] = []
    flat = _lift(clean(text, most), held)
    md, found = _markdown(), list[Block]()
    lines = flat.split("\n")
    for tokens in _top_level(md.parse(flat)):
        html = md.renderer.render(tokens, md.options, {})
        first, end = tokens[0].map or (0, 0)
        found.append(_block(html, "\n".join(lines[first:end]), held))
    return found


def _block(html: str, source: str, held: Sequence[tuple[str, bool]]) -> Block:
    inside = [int(m[1]) for m in _HELD.finditer(source)]
    back = _HELD.sub(lambda m: f"${held[int(m[1])][0]}$", source)
    # A display stands in a paragraph of Markdown's making, where HTML allows no <div>.
    shown = _HELD_AND_STOP.sub(lambda m: _put_back(*held[int(m[1])], m[2]), html)
    if 'class="display"' in shown:
        shown = shown.replace("<p>", '<div class="p">').replace("</p>", "</div>")
    return Block(shown, back, tuple(held[i][0] for i in inside))


def _put_back(latex: str, display: bool, stop: str) -> str:
    """The formula with the stop after it, which must not begin a line."""
    shown = mathml(latex, display)
    return f'<span class="nb">{shown}{stop}</span>' if stop and not display else shown + stop


def _lift(text: str, held: list[tuple[str, bool]]) -> str:
    """The text with every formula replaced by a mark; (formula, display) are appended to `held`."""
    parts: list[str] = []
    at, absent = 0, set[str]()
    while (opening := _OPEN.search(text, at)) is not None:
        parts.append(text[at : opening.start()])
        mark, at = opening[0], opening.end()
        if mark[:2] in (r"\\", r"\$") and len(mark) == 2 and mark not in (r"\[", r"\("):
            parts.append(mark)
            continue
        end, formula, display = _formula(text, opening, absent)
        if end < 0:
            parts.append(mark)
        elif formula is None:
            parts.append(text[opening.start() : end])
            at = end
        else:
            parts.append(f"\ue000{len(held)}\ue001")
            held.append((formula.strip(), display))
            at = end
    parts.append(text[at:])
    return "".join(parts)


def _formula(text: str, opening: re.Match[str], absent: set[str]) -> tuple[int, str | None, bool]:
    """Where what opens here ends (-1: it opens nothing), the formula in it (None: code), whether a display."""
    mark, start = opening[0], opening.end()
    if mark == r"\boxed{":  # many a model forgets the dollars
        end = _closing_brace(text, start)
        return end, None if end < 0 else mark + text[start:end], False
    if mark[0] in "`~":
        closing, display = mark, False
    elif opening[1]:
        if not _MATHS_ENVIRONMENT.fullmatch(opening[1].rstrip("*")):
            return -1, None, False
        closing, display = f"\\end{{{opening[1]}}}", True
    else:
        closing = {"$$": "$$", "$": "$", r"\[": r"\]", r"\(": r"\)"}[mark]
        display = mark in ("$$", r"\[")
    if closing in absent:
        return -1, None, False
    end = text.find(closing, start)
    while mark == "$" and end > 0 and text[end - 1] == "\\":
        end = text.find(closing, end + 1)
    if end < 0:
        absent.add(closing)
        return -1, None, False
    inner = text[start:end]
    if mark[0] in "`~":
        return end + len(closing), None, False
    if mark == "$" and (inner[-1].isspace() or text[end + 1 : end + 2].isdigit()):
        return -1, None, False
    if not inner.strip() or (not display and "\n\n" in inner):
        return -1, None, False
    if opening[1]:
        inner = mark + inner + closing
    return end + len(closing), inner, display


def _closing_brace(text: str, start: int) -> int:
    """Where the group that opened before `start` is closed, on the same line and not far; else -1."""
    level = 1
    for brace in _BRACE.finditer(text, start, start + LONGEST_BOX):
        level += {"{": 1, "}": -1}.get(brace[0], 0)
        if brace[0] == "\n":
            break
        if level == 0:
            return brace.end()
    return -1


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    md = MarkdownIt("commonmark", {"html": False, "maxNesting": 20, "typographer": False})
    md.enable("table").disable(
        ["link", "image", "autolink", "html_inline", "html_block", "reference", "entity"]
    )
    # A heading of a text is no heading of the page, and the page allows no inline style.
    fixed = {
        "heading_open": '<p class="heading">',
        "heading_close": "</p>",
        "table_open": '<div class="scroll" tabindex="0"><table>',
        "table_close": "</table></div>",
    }
    for name, markup in fixed.items():
        md.add_render_rule(name, _constant(markup))
    for name in ("th_open", "td_open"):
        md.add_render_rule(name, _constant(f"<{name[:2]}>"))
    md.add_render_rule("fence", _fence)
    md.add_render_rule("code_block", _fence)
    return md


def _constant(markup: str) -> Any:
    def rule(*_: object) -> str:
        return markup

    return rule


def _fence(_: object, tokens: Sequence[Token], at: int, *__: object) -> str:
    return f'<pre tabindex="0"><code>{escape(tokens[at].content)}</code></pre>'


def _top_level(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Tokens by block: each run starts and ends at the outermost level."""
    run: list[Token] = []
    level = 0
    for token in tokens:
        run.append(token)
        level += token.nesting
        if level == 0:
            yield run
            run = []


__all__ = ["Block", "blocks", "clean", "inline", "to_html"]
