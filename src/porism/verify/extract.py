r"""The final answer of a completion, and the rule that found it.

Rules, the surest first: the last complete \boxed or <answer>, an announced answer ("final answer:"),
bold, the last mathematics of the last line, a last sentence that ends in a value, a bare last line.
What stands inside <think> never counts. It fails closed: a text that stops in the middle, an
unfinished box, an unfinished thought have no answer. Linear in the length of the text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from porism.verify.boxes import last_answer
from porism.verify.words import known_words

TAIL = 4000  # characters looked at by the rules that know no mark of their own
_THINK = re.compile(r"<(/?)\s*(?:think|thinking|thought|reasoning)\s*>", re.IGNORECASE)
_CHANNEL = "<|channel|>final<|message|>"
_TURN = re.compile(r"<\|im_end\|>|<\|im_start\|>user|<\|endoftext\|>|<\|eot_id\|>|</s>")
_BLANKS = re.compile(r"[^\S\n]{2,}")
_HOPE = re.compile(
    r"\s*I hope (?:it|this) is correct\.?\s*$|\s*(?:■|□|∎|\$?\\(?:blacksquare|square|qed)\b\$?)\s*$",
    re.IGNORECASE,
)
_TAG = re.compile(r"[<\[](/?)(?:final_)?answer[>\]]", re.IGNORECASE)
_ANCHOR = re.compile(
    r"(?P<strong>final\s+answer|answer\s*[:=]|\bans\s*[:.=]|answer\*\*\s*:|^\s*\#{4}(?=\s*\S)|^\s*A\s*:(?=[^\n]*\S[^\n]*\s*\Z)"
    r"|最终答案|答案|答え|정답|답\s*:|ответ|réponse|respuesta|antwort|lösung)"
    r"|(?:\b(?:the|our|my|correct|an)\s+(?:\w+\s+){0,2}|^\s*)(?:answer|result|solution)\b(?=\s+(?:is|are|equals)\b|\s*[:=])",
    re.IGNORECASE | re.MULTILINE,
)
_LEAD = re.compile(
    r"[\s*_:：=#]*(?:(?<=\s)[-–—](?=\s))?[\s*_]*"
    r"(?:(?:is|are|equals|would be|will be|should be|ist|lautet|es|est|为|是|は)\b)?"
    r"(?:\s+(?:therefore|thus|then|simply|indeed|given by))?[\s*_:：=,]*",
    re.IGNORECASE,
)
_SPAN = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$|\\\[(.+?)\\\]|\\\((.+?)\\\)", re.DOTALL)
_ALSO = re.compile(r"\s*,?\s*(?:and|or|,)\s*")
_CLAUSAL = re.compile(r"\b(?:to|that|if|when|we|of the)\b")
_NOT = re.compile(r"\b(?:not|never|cannot)\b|n't\b", re.IGNORECASE)
_FOREIGN = re.compile(r"[^\W\d_a-zA-Zα-ωΑ-Ω]")
_OPENING = re.compile(r"(?:so|thus|hence|therefore|and|but|we conclude that)\b[,\s]*", re.IGNORECASE)
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_STOP = re.compile(r"[.!?。！？]+(?=\s|$|\*)")
_CLAUSE = re.compile(
    r"[,，;；]\s*(?!(?:and|or)\b)(?=[a-z]{2,}\b(?!\s*[=<>(\d]))"
    r"|\s+(?:because|since|as|so|which|where|when|per|every|each|in total|at the)\s|\s+\((?!mod\b)(?=[a-z]{3,}\s)"
)
_IS = re.compile(
    r".*(?:\b(?:is|are|equals|be|equal to|becomes|get|obtain|gives|choose|pick|have"
    r"|makes|costs|spends|earns|pays|needs|saves|receives|weighs)\b\s*:?|[为是]|等于|[:：])"
    r"\s*(?P<value>.+)",
    re.DOTALL | re.IGNORECASE,
)
_EQUALS = re.compile(r".*=\s*(?P<value>.+)", re.DOTALL)
_WORD = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{3,}(?![A-Za-z]*\()")
_MATHS = re.compile(r"[\d=^\\]|(?<![A-Za-z])[A-Z](?![A-Za-z])")
_BARE = re.compile(r"[-+*/^=<>()\[\]{}|!%.,;:°\s\w\\√π∞≤≥−×·±]+")
_ANGLE = re.compile(r"[∠△]\s*[A-Z]{1,4}\b")
_DENIAL = re.compile(rf"{_NOT.pattern}|\b(?:wrong|incorrect|impossible)\b", re.IGNORECASE)
_DENIED = re.compile(r"(?:\b(?:not|never|cannot)|n't)\b(?:\s+(?:be|equal|equals|to))*\s*$", re.IGNORECASE)
_OPEN = re.compile(r"(?:cannot|can't|can not) be determined", re.IGNORECASE)
_RIGHT_CHOICE = re.compile(
    r"(?=.{3})(?i:option |choice )?\(?\b([A-J])\)?(?: is (?:the )?(?:correct|right)(?: (?:answer|option|choice))?)?"
)
_IS_ANSWER = re.compile(r"(\S{1,60}) is (?:the|our|my) (?:final |correct )?answer")
_CONJUNCTIONS = frozenset(("and", "or", "the", "a", "an", "of", "to", "in", "each"))


@dataclass(frozen=True, slots=True)
class Extracted:
    """answer is None where the text gives none; rule names what found it, or why nothing did."""

    answer: str | None
    rule: str


def visible(text: str) -> str | None:
    """The text without its thoughts, or None when it ends inside one."""
    text = _TURN.split(text, maxsplit=1)[0] if _TURN.search(text.lstrip(), 1) else text
    if _CHANNEL in text:
        text = text.rsplit(_CHANNEL, 1)[1]
    kept: list[str] = []
    start = depth = 0
    for tag in _THINK.finditer(text):
        if tag[1]:
            if depth == 0:
                kept.clear()  # the opening tag stood in the prompt: all so far was thought
            depth = max(0, depth - 1)
            start = tag.end()
        else:
            if depth == 0:
                kept.append(text[start : tag.start()])
            depth += 1
    if depth:
        return None
    kept.append(text[start:])
    return "".join(kept)


def _strip(text: str) -> str:
    text = text.strip()
    while text[:2] == "**" or text[-2:] == "**":
        text = text.removeprefix("**").removesuffix("**").strip()
    text = text.strip("` \t\n")
    if text[:1] == "_" == text[-1:]:  # emphasis; a subscript may open an answer
        text = text.strip("_ ")
    span = _SPAN.fullmatch(text.rstrip(" .,。"))
    if span:
        text = next(part for part in span.groups() if part is not None)
    return text.strip().rstrip("。")


def _tagged(text: str) -> tuple[str | None, int]:
    start, found, end = -1, None, -1
    for tag in _TAG.finditer(text):
        if not tag[1]:
            start = tag.end()
        elif start >= 0:
            found, end, start = text[start : tag.start()].strip(), tag.end(), -1
    return found, end


def _value(text: str) -> str | None:
    """The value that opens a sentence, without what the sentence goes on to say; None if there is none."""
    text = text.strip()
    span = _SPAN.match(text)
    if span:
        after = text[span.end() :]
        more = re.match(r"\s*(?:,|and|or|,\s*and)\s*(?=\$)", after)
        if not more:
            return _strip(span[0])
    else:
        text = text.split("\n", 1)[0]
    stop = _STOP.search(text)
    if stop:
        text = text[: stop.start()]
    clause = _CLAUSE.search(text)
    if clause:
        text = text[: clause.start()]
    text = _strip(text)
    return text or None


def _announced(text: str) -> str | None:
    anchors = list(_ANCHOR.finditer(text))
    if not anchors:
        return None
    last = anchors[-1]
    rest = text[last.end() :]
    lead = _LEAD.match(rest)
    if lead is None or not (
        lead[0].strip() or "\n" in lead[0] or last[0].endswith((":", "=", ".", "案", "#"))
    ):
        return None  # "the final answer within": spoken of, not given
    rest = rest[lead.end() :]
    if not last["strong"] and rest.count("\n") > 5:
        return None
    value = _value(rest)
    if value and _WORD.match(value) and not _NOT.search(value) and (sentence := _IS.fullmatch(value)):
        value = _strip(sentence["value"])  # "Final answer: the volume is 120"
    if value is None or _wordy(value) or (_NOT.match(value) and not _OPEN.fullmatch(value)):
        return None
    return value


def _wordy(text: str) -> bool:
    return len(_WORD.findall(text)) > 8 and not _MATHS.search(text)


def _readable(line: str) -> bool:
    """Whether a line is mathematics and nothing else."""
    line = _ANGLE.sub(" x ", line)
    if len(line) > 200 or not _BARE.fullmatch(line) or _FOREIGN.search(line):
        return False
    return bool(_MATHS.search(line)) and not _WORD.search(line)


def _last_line(text: str) -> Extracted:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return Extracted(None, "empty")
    bold = _BOLD.findall(lines[-1])
    if bold and _MATHS.search(bold[-1]):
        return Extracted(_strip(bold[-1]), "bold")
    spans = list(_SPAN.finditer(text))
    if spans:
        first = len(spans) - 1
        while first and _ALSO.fullmatch(text[spans[first - 1].end() : spans[first].start()]):
            first -= 1
        after = text[spans[-1].end() :].strip()
        ends = (not after or after[-1] in ".!。)*") and not _DENIAL.search(after)
        ends = ends and not _DENIED.search(text[: spans[first].start()][-40:])
        if "\n" not in after and ends and len(after.split()) <= 4 and not re.search(r"\d", after):
            return Extracted(", ".join(_strip(span[0]) for span in spans[first:]), "last-math")
    line = lines[-1].strip()
    bare = line.strip("$`*. ")
    if len(bare) <= 200 and _readable(bare):
        return Extracted(_strip(_OPENING.sub("", line, count=1)), "bare-line")
    if line[-1] in ".。!$*" or not _WORD.search(line[-20:]):
        sentence = [part for part in re.split(r"(?<=[.!?。！？])\s+", line) if part][-1]
        sentence = sentence.rstrip(".。!* ")
        said = _OPENING.sub("", sentence, count=1)
        if letter := _RIGHT_CHOICE.fullmatch(said):
            return Extracted(letter[1], "sentence")
        if named := _IS_ANSWER.fullmatch(said):
            return Extracted(_strip(named[1]), "sentence")
        if said != sentence and _readable(said.strip("$`* ")):
            return Extracted(_strip(said), "sentence")
        if known_words(said.lower()):
            return Extracted(said, "sentence")
        match = _IS.fullmatch(sentence) or _EQUALS.fullmatch(sentence)
        if match and known_words(match["value"].lower()):
            return Extracted(match["value"], "sentence")
        if _NOT.search(sentence):
            return Extracted(None, "none")
        if match:
            value = _value(match["value"])
            words = [word for word in _WORD.findall(value or "") if word.lower() not in _CONJUNCTIONS]
            if value and len(words) <= 3 and _MATHS.search(value) and not _CLAUSAL.search(value):
                return Extracted(value, "sentence")
    return Extracted(None, "none")


def _record(text: str) -> str | None:
    """The answer of a text that is one JSON object with that key."""
    if text[0] != "{" or text[-1] != "}" or len(text) > TAIL:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    value = found.get("final_answer", found.get("answer")) if isinstance(found, dict) else None
    return str(value) if isinstance(value, str | int | float) and str(value).strip() else None


_EMPTY_BOX = re.compile(r"\\f?boxed ?\{ ?\}")


def extract(text: str, *, truncated: bool = False) -> Extracted:
    """The final answer as written, and the rule that found it. truncated: the text was cut by a limit."""
    shown = visible(text)
    if shown is None:
        return Extracted(None, "think-unfinished")
    boxed, rule, box_end = last_answer(shown)
    tagged, tag_end = _tagged(shown)
    if tagged is not None and tag_end > box_end:
        inner, inner_rule, _ = last_answer(tagged)
        return Extracted(
            inner or _announced(tagged) or _strip(tagged) or None, inner_rule if inner else "tag"
        )
    if boxed is not None:
        return Extracted(_strip(boxed), rule)
    if rule == "box-unfinished":
        return Extracted(None, rule)
    if truncated:
        return Extracted(None, "truncated")
    if not shown.strip():
        return Extracted(None, "empty")
    if (given := _record(shown.strip())) is not None:
        return Extracted(given, "json")
    # A box with nothing in it, as where a prompt is repeated, is not an answer written some other way.
    tail = _EMPTY_BOX.sub(" ", _HOPE.sub("", _BLANKS.sub(" ", shown[-TAIL:])))
    if not tail.strip(" $.*"):
        return Extracted(None, "empty")
    value = _announced(tail)
    return Extracted(value, "announced") if value is not None else _last_line(tail.strip())


__all__ = ["Extracted", "extract", "visible"]
