r"""Questions with claimed answers out of a model's reply, whatever the reply looks like, and which of them are new.

The prompts ask for tags, which need no escapes: in JSON a small model's \frac becomes a form feed and its \sqrt breaks
the list. JSON and lines that begin with "Question:" are read as well. Nothing here raises, and nothing is dropped in
silence: `Parsed.faults` and `Screened.dropped` count it all by reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import Struct, field

from porism.neighbors.likeness import meaning
from porism.types import Problem
from porism.verify.extract import extract, visible

MOST = 100_000  # characters of a reply that are read
QUESTION = 4000  # characters of a question
ANSWER = 200  # characters of an answer
WORDS = 4  # words of an answer, beyond which it is a sentence

PROSE, CUT, EMPTY, LONG = "no question in the reply", "cut off", "empty question", "question too long"
SENTENCE = "answer is a sentence"
TARGET, TWICE, SURPLUS = "the target itself", "duplicate", "more than asked for"


class Pair(NamedTuple):
    """A question, and the answer that the model claims for it, if it gave one."""

    question: str
    claimed: str | None


class Parsed(Struct, frozen=True):
    """What a reply holds, and what was wrong with the rest, by reason."""

    pairs: tuple[Pair, ...]
    faults: dict[str, int]


class Proposal(Struct, frozen=True, kw_only=True):
    """A proposed neighbor and where it comes from. prompt: the prompt's key in the run folder."""

    problem: str
    question: str
    claimed: str | None
    strategy: str
    model: str
    prompt: str
    rollout: int


class Screened(Struct, frozen=True):
    """Proposals that are new, how many are in the file already, and what was dropped, by reason."""

    kept: tuple[Proposal, ...]
    known: int
    dropped: dict[str, int] = field(default_factory=dict)


def parse(text: str, *, truncated: bool = False) -> Parsed:
    """The pairs in a reply. truncated: it was cut by a limit, so a last pair without its answer is not whole."""
    shown = (visible(text[:MOST]) or "").strip()
    found = _tagged(shown) or list(_objects(shown)) or _labelled(shown)
    faults: Counter[str] = Counter()
    pairs = []
    for i, (question, claimed) in enumerate(found):
        question, answer = _plain(question), _answer(_plain(claimed or ""))
        if truncated and i == len(found) - 1 and not answer:
            faults[CUT] += 1
        elif not any(c.isalnum() for c in question):
            faults[EMPTY] += 1
        elif len(question) > QUESTION:
            faults[LONG] += 1
        elif answer is not None and not is_compact(answer):
            faults[SENTENCE] += 1
        else:
            pairs.append(Pair(question, answer))
    if not found:
        faults[CUT if truncated else PROSE] += 1
    return Parsed(tuple(pairs), dict(faults))


def screen(
    problem: Problem, proposals: Iterable[Proposal], most: int, *, taken: Iterable[Proposal] = ()
) -> Screened:
    """The first `most` proposals of a strategy that are neither the target, nor taken by another, nor said twice.

    Those that the problem has already are counted as known, and not proposed again.
    """
    target, there = meaning(problem.question), {meaning(n.question) for n in problem.neighbors}
    seen = {meaning(proposal.question) for proposal in taken}
    kept: list[Proposal] = []
    known, dropped = 0, Counter[str]()
    for proposal in proposals:
        key = meaning(proposal.question)
        if key == target:
            dropped[TARGET] += 1
        elif key in seen:
            dropped[TWICE] += 1
        elif len(kept) + known >= most:
            dropped[SURPLUS] += 1
        elif key in there:
            known += 1
        else:
            kept.append(proposal)
        seen.add(key)
    return Screened(tuple(kept), known, dict(dropped))


_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")


def is_compact(answer: str) -> bool:
    """Whether an answer is a value rather than a sentence."""
    return len(answer) <= ANSWER and len(_WORD.findall(answer)) <= WORDS


def _plain(text: str) -> str:
    """The text as a file can hold it: no control characters, no half characters."""
    return _CONTROL.sub("", text.encode("utf-8", "replace").decode()).strip()


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def _answer(text: str) -> str | None:
    """A claimed answer without its dress, or None where there is none."""
    if not text.strip("."):
        return None
    if is_compact(text) and "\\boxed" not in text:
        return text.removesuffix(".").strip("$ ") or None
    return extract(text).answer or text


_OPEN = re.compile(r"<\s*question\b[^>\n]{0,40}>", re.IGNORECASE)
_ENDS = re.compile(r"<\s*/\s*question\s*>|(?=<\s*answer\b)", re.IGNORECASE)
_ANSWER_TAG = re.compile(r"<\s*answer\b[^>\n]{0,40}>(.*?)(?:<\s*/|\Z)", re.IGNORECASE | re.DOTALL)


def _tagged(text: str) -> list[tuple[str, str | None]]:
    """Pairs between tags; an end tag may be missing."""
    found = []
    for part in _OPEN.split(text)[1:]:
        end = _ENDS.search(part)
        question, rest = (part[: end.start()], part[end.end() :]) if end else (part, "")
        answer = _ANSWER_TAG.search(rest)
        found.append((question, answer[1] if answer else None))
    return found


_ESCAPE = re.compile(r"\\(\\|[\"/]|u[0-9a-fA-F]{4}|n(?![a-z])|[A-Za-z]+|.)", re.DOTALL)
_KEYS = {
    "question": ("question", "problem"),
    "answer": ("answer", "final_answer", "final answer", "solution"),
}


def _objects(text: str) -> Iterator[tuple[str, str | None]]:
    """The JSON objects with a question, each read by itself, so that a broken list still gives its whole ones."""
    decoder = json.JSONDecoder(strict=False)
    if '"' not in text:
        return
    source = _ESCAPE.sub(lambda m: m[0] if _is_escape(m[1]) else "\\" + m[0], text)
    at = source.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(source, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            record = {str(key).lower(): item for key, item in value.items()}
            question = _first(record, _KEYS["question"])
            if question is not None:
                yield question, _first(record, _KEYS["answer"])
            elif any(isinstance(item, dict | list) for item in record.values()):
                end = at + 1  # the list stands inside
        at = source.find("{", end)


def _is_escape(said: str) -> bool:
    """Whether what follows a backslash is JSON's own: not so a LaTeX command that begins with b, f, n, r, t or u."""
    return said in ("\\", '"', "/", "n") or re.fullmatch("u[0-9a-fA-F]{4}", said) is not None


def _first(record: dict[str, Any], keys: Sequence[str]) -> str | None:
    """The first of the keys that holds a text or a number."""
    found = (record[key] for key in keys if key in record)
    return next((str(v) for v in found if isinstance(v, str | int | float) and not isinstance(v, bool)), None)


_LABEL = re.compile(
    r"^[ \t>#*_-]*(?:\d{1,3}[.)][ \t]*)?[*_]*(?:new )?(?P<name>question|problem|answer) ?\d{0,3}[*_]* ?[:.][*_]*",
    re.IGNORECASE | re.MULTILINE,
)


def _labelled(text: str) -> list[tuple[str, str | None]]:
    """Pairs of lines that begin with "Question:" and "Answer:"; an answer may stand in tags instead."""
    found: list[tuple[str, str | None]] = []
    marks = list(_LABEL.finditer(text))
    ends = [*(mark.start() for mark in marks), len(text)][1:]
    for mark, end in zip(marks, ends, strict=False):
        said = text[mark.end() : end].strip()
        if mark["name"].lower() != "answer":
            tag = _ANSWER_TAG.search(said)
            found.append((said[: tag.start()], tag[1]) if tag else (said, None))
        elif found and found[-1][1] is None:
            found[-1] = (found[-1][0], said.split("\n\n")[0].strip())
    return found


__all__ = ["Pair", "Parsed", "Proposal", "Screened", "is_compact", "parse", "screen"]
