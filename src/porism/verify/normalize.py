"""One spelling for what is written in many: Unicode signs become LaTeX, layout disappears.

`clean` prepares a text for every later step and never changes what it means. `normal_form` goes on to
a canonical text for cheap grouping of equal answers. Both are linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata

from porism.verify.numbers import literal

_SIGNS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "⁄": "/", "∕": "/", "·": r"\cdot ", "⋅": r"\cdot ",
    "×": r"\times ", "∗": "*", "÷": r"\div ", "±": r"\pm ", "∓": r"\mp ", "≤": r"\le ", "≥": r"\ge ",
    "⩽": r"\le ", "⩾": r"\ge ", "≠": r"\ne ", "≡": r"\equiv ", "≈": r"\approx ", "≅": r"\cong ",
    "∞": r"\infty ", "∈": r"\in ", "∉": r"\notin ", "∅": r"\emptyset ", "∪": r"\cup ", "∩": r"\cap ",
    "∖": r"\setminus ", "⊂": r"\subset ", "⊆": r"\subseteq ", "√": r"\sqrt ", "°": r"^\circ ", "º": r"^\circ ",
    "′": "'", "’": "'", "‘": "'", "“": '"', "”": '"', "∑": r"\sum ", "∏": r"\prod ", "∫": r"\int ",
    "→": r"\to ", "⟨": r"\langle ", "⟩": r"\rangle ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ",
    "⌉": r"\rceil ", "⊕": r"\oplus ", "⊗": r"\otimes ", "ℤ": r"\mathbb{Z}", "ℝ": r"\mathbb{R}",
    "ℚ": r"\mathbb{Q}", "ℂ": r"\mathbb{C}", "ℕ": r"\mathbb{N}", "，": ",", "、": ",", "；": ";", "：": ":",
    "（": "(", "）": ")", "【": "[", "】": "]", "￥": "$", "€": "$", "£": "$", "％": "%", "∣": "|",
    "…": r"\ldots ", "∀": r"\forall ", "∃": r"\exists ", "¬": r"\neg ", "∧": r"\wedge ", "∨": r"\vee ",
    "∠": r"\angle ", "¢": r"\text{ cents}",
}  # fmt: skip
_LETTERS = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
_GREEK = dict(zip(_LETTERS.split(), "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ", strict=True))
_SIGNS |= {letter: rf"\{name} " for name, letter in _GREEK.items()} | {"ϕ": r"\phi ", "ϵ": r"\epsilon "}
_TABLE = str.maketrans(_SIGNS)
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ", "0123456789+-=()ni", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎", "0123456789+-=()", strict=True))
_VULGAR = {
    char: tuple(map(int, unicodedata.normalize("NFKC", char).split("⁄"))) for char in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
}
_RUN = re.compile(f"[{''.join(_RAISED)}]+|[{''.join(_LOWERED)}]+|[{''.join(_VULGAR)}]")
_SPACES = re.compile(
    r"(\\\\)|\\[,!;:> ]|\\(?:thinspace|displaystyle|textstyle|limits|nolimits|strut)(?![A-Za-z])|[~\s]+"
)
_SIZES = re.compile(r"\\(?:left|right|middle|[bB]igg?[lrm]?)(?![A-Za-z])\s*(\.(?![0-9]))?")
_WORDS = [
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\[dt]binom(?![A-Za-z])"), r"\\binom"),
    (re.compile(r"\\(?:leq|leqslant|leqq)(?![A-Za-z])"), r"\\le"),
    (re.compile(r"\\(?:geq|geqslant|geqq)(?![A-Za-z])"), r"\\ge"),
    (re.compile(r"\\neq(?![A-Za-z])"), r"\\ne"),
    (
        re.compile(r"(?<![A-Za-z0-9)\]}])(?:\{\})?[_^] ?\{?(\d+|[a-z])\}? ?C ?_ ?\{?(\d+|[a-z])\}?"),
        r"\\binom{\1}{\2}",
    ),
    (re.compile(r"\\mathbb\s*([A-Z])"), r"\\mathbb{\1}"),
    (re.compile(r"\\(?:varnothing|O)(?![A-Za-z])"), r"\\emptyset"),
    (re.compile(r"\\lbrace(?![A-Za-z])"), r"\\{"),
    (re.compile(r"\\rbrace(?![A-Za-z])"), r"\\}"),
    (re.compile(r"\\var(epsilon|theta|phi|rho|sigma|pi|kappa)(?![A-Za-z])"), r"\\\1"),
    (re.compile(r"\\(?:mathrm|operatorname\*?|rm)\s*\{\s*([A-Za-z]+)\s*\}"), r"\\mathrm{\1}"),
    (
        re.compile(
            r"\^ *(?:\{ *(?:\\circ|\\degree|o) *\}|(?:\\circ|\\degree|o)(?![A-Za-z({]))|\\degrees?(?![A-Za-z])"
        ),
        r"^\\circ ",
    ),
    (re.compile(r"\^\\circ *(?:\\(?:mathrm|text)\{ *)?([CFK])\b *\}?(?!\()"), r"\\text{ degrees \1}"),
    (re.compile(r"(?<=\d)\{,\}(?=\d)"), ""),
    (re.compile(r"\\%"), "%"),
    (re.compile(r"(?<!\\)\\[()\[\]]|\\\$|\$|`"), " "),
]
_BOX = re.compile(r"\s*\\(?:boxed|fbox)\s*\{")
_SPACED = re.compile(r"[-+]?[1-9]\d{0,2}(?: \d{3})+(?:\.\d+)?\.?")
_DOTTED = re.compile(r"[-+]?[1-9]\d{0,2}(?:\.\d{3}){2,}")
_JOINT = re.compile(r" ?([^\w\\ ]) ?|(?<=[A-Za-z\d]) (?=\\)|(?<![A-Za-z\d]) ")


def _spell(match: re.Match[str]) -> str:
    run = match[0]
    if run in _VULGAR:
        top, bottom = _VULGAR[run]
        return rf"\frac{{{top}}}{{{bottom}}}"
    if run[0] in _RAISED:
        return "^{" + "".join(_RAISED[char] for char in run) + "}"
    return "_{" + "".join(_LOWERED[char] for char in run) + "}"


def _plain(char: str) -> str:
    """A digit of any script as ASCII; nothing for control and format characters."""
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    return " " if char in "\n\t\r" else "" if unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co") else char


def ascii_signs(text: str) -> str:
    """The same text with Unicode mathematics spelled in LaTeX, and no control or direction marks."""
    if text.isascii():
        return text if text.isprintable() else "".join(map(_plain, text))
    text = _RUN.sub(_spell, text).translate(_TABLE)
    return "".join(map(_plain, unicodedata.normalize("NFKC", text))).translate(_TABLE)


def unwrap(text: str) -> str:
    r"""The inside of `\boxed{...}` where the whole text is one box; any other text as it is."""
    for _ in range(4):
        match = _BOX.match(text)
        body = text.rstrip(" .$")
        if match is None or not body.endswith("}"):
            break
        depth = 1
        for index in range(match.end(), len(body)):
            char = body[index]
            if char in "{}" and body[index - 1] != "\\":
                depth += 1 if char == "{" else -1
                if depth == 0:
                    if index == len(body) - 1:
                        text = body[match.end() : -1]
                    break
        else:
            break
    return text


def clean(text: str) -> str:
    """The text in one spelling: ASCII signs, no dollar signs, sizes, thin spaces or boxes around it."""
    text = unwrap(" ".join(ascii_signs(text).split()))
    text = _SIZES.sub("", text)
    for pattern, by in _WORDS:
        text = pattern.sub(by, text)
    text = re.sub(r"(?<=\d)(?:\\[,!; ])+(?=\d{3}(?!\d))", "", text)
    text = re.sub(r"(?<=\d),(?:\\[,!; ]\s*)+(?=\d{3}(?!\d))", ",", text)
    text = _SPACES.sub(lambda match: match[1] or " ", text).strip()
    if _SPACED.fullmatch(text):
        text = text.replace(" ", "")
    if _DOTTED.fullmatch(text):
        text = text.replace(".", "")
    return text.rstrip(" .,;:") if not text.endswith(("...", r"\.")) else text


def squeeze(text: str) -> str:
    """A cleaned text without the spaces that mean nothing: only those between two words or numbers stay."""
    return _JOINT.sub(lambda match: match[1] or "", text)


def normal_form(answer: str) -> str:
    """A canonical text, equal for many answers that are obviously equal, for cheap grouping only.

    Numbers become reduced fractions; anything else its cleaned text. Unequal forms prove nothing.
    """
    text = clean(answer)
    number = literal(text)
    return str(number.value) if number is not None else squeeze(text)


__all__ = ["ascii_signs", "clean", "normal_form", "squeeze", "unwrap"]
