"""Letters of options, alone, several, or with the text of the option; and answers in labelled parts."""

from __future__ import annotations

import re
from collections.abc import Callable

from porism.types import Verdict
from porism.verify.equal import Same
from porism.verify.lists import every
from porism.verify.numbers import literal

_WRAPPER = re.compile(r"\\(?:text|mbox|textbf|mathbf|mathrm|bf|textit)\s*\{([^{}]*)\}")
_CHOICE = re.compile(r"\(?([A-J])\)?")
_CHOSEN = re.compile(
    r"[^\w\\]*(?i:(?:option|choice|answer)\s*)?\(?([A-Ja-j])\)?(?=$|[.):,\s])(?!\s*[-+*/^=<>])(.*)", re.DOTALL
)
_DENIED = re.compile(r"\b(?:not|never|wrong|incorrect|false|except)\b|n't\b", re.IGNORECASE)
_LETTER = re.compile(r"(?<![A-Za-z])[A-J](?![A-Za-z])")
_LABELLED = re.compile(r"(?:\(([A-J])\)|([A-J])[.:](?=\s))\s*(\S.*)", re.DOTALL)
_SEVERAL = re.compile(r"[A-J](?:(?:\s*[,;]\s*(?:and\s+)?|\s+and\s+)[A-J])+")
_GLUED = re.compile(r"[A-J]{2,10}")
_WRAPPED_LABEL = re.compile(r"\\(?:text|mbox|textbf|mathrm)\s*\{\s*(\([a-h]\))\s*\}\s*")
_PART = re.compile(r"(?:^|[,;\s])\(([a-h])\) ")

_SPLIT = re.compile(r"\s*(?:[,;]|\band\b|\\(?:text|mbox) ?\{ ?and ?\}|\\q?quad)\s*")

Compared = Callable[[str, str], Verdict]


def unwrapped(text: str) -> str:
    r"""The text without \text and its like around words."""
    return re.sub(r"\s+", " ", _WRAPPER.sub(r"\1", text)).strip(" .")


def choices(gold: str, answer: str, compare: Compared) -> Same | None:
    """A letter against a letter, alone or with the text of its option; several letters in any order."""
    gold, answer = unwrapped(gold), unwrapped(answer)
    if found := _several(gold, answer):
        return found
    if (option := _LABELLED.fullmatch(gold)) and not _LABELLED.match(option[3]):
        return _option(option[1] or option[2], option[3], answer, compare)
    known = _CHOICE.fullmatch(gold)
    if known is None:
        return None
    given = _CHOSEN.fullmatch(answer)
    if given is None and known[1] not in "EI" and literal(answer) is not None:
        return Same(None, "choice")  # perhaps the value of that option
    if given is None or (given[1].islower() and len(answer) == 1):
        return None
    if _LETTER.search(given[0], given.end(1)) or _DENIED.search(given[2]):
        return Same(None, "choice")  # more than one letter, or one that is refused
    return Same(given[1].upper() == known[1], "choice")


def _several(gold: str, answer: str) -> Same | None:
    """A, B, D against ABD, where at least one side has separators."""
    if not any(map(_SEVERAL.fullmatch, (gold, answer))):
        return None
    if not all(_SEVERAL.fullmatch(text) or _GLUED.fullmatch(text) for text in (gold, answer)):
        return None
    known, given = (re.findall("[A-J]", text) for text in (gold, answer))
    if len(set(known)) < len(known) or len(set(given)) < len(given):
        return None
    return Same(set(known) == set(given), "choice")


def _option(letter: str, text: str, answer: str, compare: Compared) -> Same:
    """A gold that has the letter and the text of its option: either is enough, both must fit."""
    given = _CHOSEN.fullmatch(answer)
    if given is None or given[1].islower() or _DENIED.search(given[2]):
        found = _same(compare(answer, text), "choice")
        return found if found.equal or not _LETTER.search(answer) else Same(None, "choice")
    rest = given[2].strip(" ).:,")
    alike = letter == given[1]
    if not rest:
        return Same(alike, "choice")
    fits = _same(compare(rest, text), "choice").equal
    return Same(alike if fits is alike else None, "choice")


def _same(verdict: Verdict, rule: str) -> Same:
    return Same({"correct": True, "wrong": False}.get(verdict.kind), rule)


def labelled(text: str) -> dict[str, str]:
    """The parts of an answer (a) ... (b) ...; empty where it has none."""
    text = _WRAPPED_LABEL.sub(r"\1 ", text)
    marks = list(_PART.finditer(text))
    if len(marks) < 2 or marks[0].start() or [mark[1] for mark in marks] != list("abcdefgh"[: len(marks)]):
        return {}
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    parts = {
        mark[1]: re.sub(r"\s(?:and|\\text ?\{ ?and ?\})$", "", text[mark.end() : end].strip(" ,;")).strip(
            " ,;"
        )
        for mark, end in zip(marks, ends, strict=True)
    }
    return parts if all(parts.values()) else {}


def parts(gold: str, answer: str, compare: Compared) -> Same | None:
    """Labelled parts against the same labels, each for itself; against as many in that order without labels."""
    known, given = labelled(gold), labelled(answer)
    plain = _SPLIT.split(answer)
    if not given and len(plain) == len(known) and not set("()[]") & set(answer):
        unnamed = all(
            compare(one, text).kind == "correct" for one, text in zip(plain, known.values(), strict=True)
        )
        return Same(True if unnamed else None, "parts")
    if not known or known.keys() != given.keys():
        return None
    return every([_same(compare(given[label], known[label]), "parts") for label in known], "parts")


__all__ = ["choices", "labelled", "parts", "unwrapped"]
