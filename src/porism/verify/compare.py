"""Is this answer the known one? Certain cheap rules first, symbolic comparison only where they end.

`quick` is exact, linear and safe anywhere. `compare` reads both texts, may be slow on hostile ones, and
therefore runs in worker processes. A rule that is not sure says undecided, never wrong; a wrong that
deserves a second look says why.
"""

from __future__ import annotations

import re

from porism.types import Verdict
from porism.verify import agreement, choices, groups
from porism.verify.choices import unwrapped
from porism.verify.custom import is_custom
from porism.verify.equal import Same, proportional
from porism.verify.lexer import Unreadable
from porism.verify.normalize import clean, squeeze
from porism.verify.numbers import literal
from porism.verify.structures import read
from porism.verify.syntax import EMPTY, NODES, Listing, Node, Op, Relation, Value
from porism.verify.typed import letters, truth, typed
from porism.verify.words import (
    SCALE_WORDS,
    exclusive,
    known_words,
    number_phrase,
    plain_words,
    without_article,
)

_SCALES = "|".join(SCALE_WORDS)
MAX_LENGTH = 20_000  # longer answers are not read
_ENGINE = re.compile(r"\\(?:i*int|lim|sum|prod|partial|det|frac\s*\{\s*d\s*\})(?![A-Za-z])")
_HEDGE = re.compile(
    r"^(?:\\approx|\\sim|\\(?:text|mbox)\{ *(?:approximately|about|roughly|exactly"
    r"|(?:[Tt]he )?(?:[Ff]inal )?[Aa]nswer(?: is)?:?) *\}"
    r"|approximately|about|roughly|exactly)\s*(?<![a-z])(?=\S)"
)
_WRAPPED = re.compile(r"^\\(?:text|mbox|textbf|mathrm|mathbf)\s*\{([^{}]*\d[^{}]*)\}$")
_CENTS = re.compile(r"\bcents?\b")
_TO = re.compile(r"(\d+(?:\.\d+)?) ?(?:\\(?:text|mbox) ?\{ ?to ?\}|to) ?(\d+(?:\.\d+)?)")
_SHARE = re.compile(r"(\d+) ?(?:\\(?:text|mbox) ?\{ ?(?:in|out of) ?\}|in|out of) ?(\d+)")
_SCALED = re.compile(rf"(?<=\d) ?(?:\\text ?\{{ ?(?:{_SCALES})\b ?|(?:{_SCALES})\b)")
_GROUPED = re.compile(r"\d,\d{3}")
_COMMA = re.compile(r"[+-]?(?:\d+,(?:\d{1,2}|\d{4,})|0,\d+)")
_SETTLED = frozenset(("integer", "rational", "decimal", "expression"))


def quick(answer: str, gold: str, answer_type: str | None = None) -> Verdict | None:
    """The verdict where equal text or two number literals settle it, else None. Never slow."""
    if len(answer) > MAX_LENGTH or len(gold) > MAX_LENGTH:
        return Verdict("undecided", "too-long")
    if is_custom(answer_type):
        return None
    left, right = clean(answer), clean(gold)
    if left and squeeze(left) == squeeze(right):
        return Verdict("correct", "text")
    if answer_type is not None and answer_type not in _SETTLED:
        return None
    given, known = literal(left), literal(right)
    if given is None or known is None:
        return None
    if given.value == known.value:
        return Verdict("correct", "number")
    if given.percent != known.percent or given.digits is not None or known.digits is not None:
        return None
    return Verdict("wrong", "number")


def compare(answer: str, gold: str, answer_type: str | None = None) -> Verdict:
    """The verdict on an answer; undecided where neither exact rules nor symbolic ones are sure.

    answer_type: None or "auto" (the gold decides), decimal:TOLERANCE (0.01, or 1% of the gold), choice, boolean,
    string, tuple, set, multiset, interval, or another of typed.TYPES, for which the gold decides as well.
    """
    kind, _, detail = (answer_type or "auto").partition(":")
    verdict = quick(answer, gold, answer_type)
    if verdict is not None:
        return verdict
    if kind == "python":
        return Verdict("undecided", "own rules run in workers only")
    left, right = (number_phrase(text) or text for text in (clean(answer), clean(gold)))
    if not left:
        return Verdict("undecided", "empty")
    whole = {"string": _strings, "choice": letters, "boolean": truth}.get(kind)
    if whole is not None:
        return _verdict(whole(right, left))
    if _dollars(answer) != _dollars(gold) and (left.endswith("%") or right.endswith("%")):
        return Verdict("undecided", "unit")  # an amount of money and a percentage
    left, right = _in_dollars(left, answer, right), _in_dollars(right, gold, left)
    for rule in (_letters, _parts, _words, _asymptotics, groups.agree):
        found = rule(right, left)
        if found is not None:
            return _verdict(found)
    if kind == "decimal":
        return _decimals(right, left, detail)
    return _values(right, left, kind)


def _verdict(found: Same, suspicious: str | None = None) -> Verdict:
    if found.equal is None:
        return Verdict("undecided", found.rule)
    if found.equal:
        return Verdict("correct", found.rule)
    if found.rule in ("kind", "other name", "other variables", "rounded to too few digits", "words"):
        suspicious = found.rule
    return Verdict("wrong", found.rule, suspicious)


def _strings(gold: str, answer: str) -> Same:
    left, right = (unwrapped(text).casefold() for text in (gold, answer))
    return Same(left == right, "string")


def _letters(gold: str, answer: str) -> Same | None:
    return choices.choices(gold, answer, compare)


def _parts(gold: str, answer: str) -> Same | None:
    return choices.parts(gold, answer, compare)


def _dollars(written: str) -> bool:
    """Whether a dollar sign stands for money, not for mathematics."""
    return "\\$" in written or written.count("$") % 2 == 1


def _in_dollars(text: str, written: str, other: str) -> str:
    """The text with its dollar sign as a unit, where the other one is in cents."""
    if _dollars(written) and _CENTS.search(other) and not _CENTS.search(text):
        return text + r" \text{ dollars}"
    return text


def _words(gold: str, answer: str) -> Same | None:
    """Golds or answers that are words: known ones by meaning, others by spelling."""
    left, right = plain_words(gold), plain_words(answer)
    meanings = [known_words(left) if left else None, known_words(right) if right else None]
    if all(meanings):
        # "does not exist" may be said of a solution, and of an infinite limit
        unlike = set(meanings) in ({"empty", "undefined"}, {"infinite", "undefined"})
        return Same(None if unlike else meanings[0] == meanings[1], "words")
    if "infinite" in meanings and r"\infty" in (gold, answer):
        return Same(True, "words")
    if "empty" in meanings:
        return _against_empty(answer if meanings[0] else gold)
    if not left or not right or len(left) < 2 or len(right) < 2:
        if meanings[0] or (meanings[1] and literal(gold) is not None):
            return Same(False, "words")
        if right and len(right) > 3 and literal(gold) is not None and not _readable(answer):
            return Same(False, "words")
        return None
    if without_article(left) == without_article(right):
        return Same(True, "words")
    first = known_words(right.split()[0].strip(","))
    if meanings[0] in ("yes", "no") and first in ("yes", "no"):
        if known_words(right.split()[-1]) in {"yes", "no"}:
            return Same(None, "words")  # yes and no
        return Same(first == meanings[0], "words")
    if _readable(gold) or _readable(answer):
        return None
    pieces = set(left.split()), set(right.split())
    return Same(None if pieces[0] & pieces[1] and not exclusive(left, right) else False, "words")


def _against_empty(other: str) -> Same:
    try:
        value = read(other)[0]
    except Unreadable:
        return Same(None, "words")
    return Same(value == EMPTY, "empty set")


def _readable(text: str) -> bool:
    try:
        read(text)
    except Unreadable:
        return False
    return True


def _asymptotics(gold: str, answer: str) -> Same | None:
    """O(n log n): the same class, and rates that differ by a constant factor."""
    left, right = groups.growth(gold), groups.growth(answer)
    if left is None or right is None or (left[0] in "Oo" and left[1].isdigit()):
        return None
    if left[0] != right[0]:
        return Same(None, "growth")
    try:
        rates = [read(side[1])[0] for side in (left, right)]
    except Unreadable:
        return None
    if not isinstance(rates[0], NODES) or not isinstance(rates[1], NODES):
        return None
    found, _ = proportional(rates[0], rates[1])
    if found.equal:
        return Same(True, "growth")
    return Same(
        False if _monomial(rates[0]) and _monomial(rates[1]) and found.equal is False else None, "growth"
    )


def _monomial(node: Node) -> bool:
    return not (isinstance(node, Op) and node.head in ("add", "sub", "pm", "mp"))


def _decimals(gold: str, answer: str, detail: str) -> Verdict:
    """A number within a stated tolerance: absolute, or of the gold's size with a percent sign."""
    from porism.verify.numeric import Evaluation, NotNumeric
    from porism.verify.scalars import decimal

    try:
        known, given = (_number(read(text)[0]) for text in (gold, answer))
        a, b = (Evaluation({}, 60).value(node) for node in (known, given))
    except (Unreadable, NotNumeric, ArithmeticError, ValueError, TypeError):
        return _values(gold, answer, "decimal")
    bound = literal(detail) if detail else None
    written = decimal(known)
    if bound is not None:
        width = abs(a) * bound.value.numerator / bound.value.denominator if bound.percent else (
            bound.value.numerator / (b * 0 + bound.value.denominator)
        )  # fmt: skip
    elif written is not None:
        width = (a * 0 + 10) ** -written.places / 2
    else:
        return _values(gold, answer, "decimal")
    near = abs(a - b) <= width * (1 + (a * 0 + 10) ** -40)
    return Verdict("correct" if near else "wrong", "tolerance")


def _number(value: Value) -> Node:
    value = value.sides[-1] if isinstance(value, Relation) else value
    if not isinstance(value, NODES):
        raise Unreadable("not a number")
    return value


def _values(gold: str, answer: str, kind: str) -> Verdict:
    gold, answer = (_HEDGE.sub("", _WRAPPED.sub(r"\1", text)) for text in (gold, answer))
    gold, answer = (_TO.sub(r"\1:\2", text) if _TO.fullmatch(text) else text for text in (gold, answer))
    gold, answer = (
        _SHARE.sub(r"\\frac{\1}{\2}", text) if _SHARE.fullmatch(text) else text for text in (gold, answer)
    )
    try:
        known, twofold = read(gold)
    except Unreadable:
        return _unread(gold, answer)
    try:
        given, doubtful = read(answer)
    except Unreadable:
        return _unread(gold, answer)
    found = agreement.agree(typed(known, kind), typed(given, kind))
    if found.equal is None and found.rule == "multiplicity" and kind == "multiset":
        found = Same(False, "multiplicity")
    if found.equal is False and _GROUPED.search(gold if isinstance(given, Listing) else answer):
        found = _regrouped(gold, answer, known, given, found)
    if found.equal is False and bool(_SCALED.search(gold)) != bool(_SCALED.search(answer)):
        found = _unscaled(gold, answer, found)
    if twofold or doubtful:
        other = agreement.agree(read(gold, tight=True)[0], read(answer, tight=True)[0])
        if other.equal != found.equal:
            return Verdict("undecided", "two readings")
    if found.equal is False and _COMMA.fullmatch(answer) and isinstance(known, NODES):
        found = agreement.agree(known, read(answer.replace(",", "."))[0])
        found = Same(found.equal or None, "decimal comma")
    if found.equal is None and found.rule in ("unknown", "infinity"):
        return _symbolic(gold, answer, found.rule)
    return _verdict(found)


def _regrouped(gold: str, answer: str, known: Value, given: Value, found: Same) -> Same:
    """1,234,567 where the other side is a list: three numbers, should that fit."""
    if isinstance(known, Listing) == isinstance(given, Listing):
        return found
    other = agreement.agree(*(read(text.replace(",", ", "))[0] for text in (gold, answer)))
    return other if other.equal else found


def _unscaled(gold: str, answer: str, found: Same) -> Same:
    """5 million beside 5: the question may have asked for millions."""
    texts = (
        _SCALED.sub(lambda match: r"\text{ " if "{" in match[0] else "", text) for text in (gold, answer)
    )
    try:
        plain = agreement.agree(*(read(text.replace(r"\text{ }", ""))[0] for text in texts))
    except Unreadable:
        return found
    return Same(None, "scale") if plain.equal else found


def _unread(gold: str, answer: str) -> Verdict:
    """For texts outside the grammar: the same words are the same answer, words are no number."""
    dotted = gold.endswith("...") == answer.endswith("...")
    if len(gold) > 2 and dotted and unwrapped(gold).casefold() == unwrapped(answer).casefold():
        return Verdict("correct", "text")
    if literal(gold) is not None and not re.search(r"[\d\\]", answer) and len(answer) > 3:
        return Verdict("wrong", "words", "words")
    return _symbolic(gold, answer, "unreadable")


def _symbolic(gold: str, answer: str, rule: str) -> Verdict:
    """What a symbolic engine says of integrals, limits and series, which are not read here."""
    from porism.verify.guards import hostile

    if reason := hostile(answer) or hostile(gold):
        return Verdict("undecided", reason)
    from porism.verify.symbolic import symbolic

    if not _ENGINE.search(answer) and not _ENGINE.search(gold):
        return Verdict("undecided", rule)
    verdict = symbolic(answer, gold)
    return verdict if verdict.kind != "undecided" else Verdict("undecided", rule)


__all__ = ["MAX_LENGTH", "compare", "quick"]
