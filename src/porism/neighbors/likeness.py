"""What a neighbor has in common with the target, with candidates and with other neighbors. Texts only, no model.

Two questions are the same in meaning when nothing but layout, spelling of signs and filler words differs: numbers and
their order must agree, since a neighbor with other numbers is what a neighborhood is made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from porism.types import Problem
from porism.verify.extract import extract
from porism.verify.normalize import clean, normal_form, squeeze

_TOKEN = re.compile(r"\\[A-Za-z]+|[^\W\d_]+|\d+(?:\.\d+)?|[^\w\s]")
_WORDS = (
    "a an the of is are be in on to for that this it its we and with what which find compute determine calculate "
    "evaluate how please let give value exact exactly answer number final your as"
)
_FILLER = frozenset(_WORDS.split())
_LAYOUT = frozenset(".,;:!?$()[]{}")
LEAST_STATEMENT = 40  # characters of a question whose copy in a candidate is no accident
LEAST_ANSWER = 4  # characters of an answer that does not stand in a text by chance
NEAR = 0.9  # shared words above which two questions with equal numbers are one


def meaning(text: str) -> tuple[str, ...]:
    """The words, numbers and signs of a question that carry its meaning, in their order."""
    tokens = _TOKEN.findall(clean(text).casefold())
    return tuple(t for t in tokens if t not in _FILLER and t not in _LAYOUT)


def duplicates(problem: Problem) -> dict[str, list[str]]:
    """For each neighbor, the earlier neighbors that ask the same, and "the target" where it asks that."""
    target = meaning(problem.question)
    asked = [meaning(n.question) for n in problem.neighbors]
    return {
        n.id: ["the target"] * (asked[i] == target)
        + [m.id for m, other in zip(problem.neighbors[:i], asked, strict=False) if other == asked[i]]
        for i, n in enumerate(problem.neighbors)
    }


def near(problem: Problem) -> dict[str, list[str]]:
    """For each neighbor, earlier ones with the same numbers and nearly all words: one word may change everything."""
    asked = [meaning(n.question) for n in problem.neighbors]
    return {
        n.id: [m.id for m, other in zip(problem.neighbors[:i], asked, strict=False) if _near(other, asked[i])]
        for i, n in enumerate(problem.neighbors)
    }


def _near(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    if one == other or _numbers(one) != _numbers(other):
        return False
    words, others = set(one), set(other)
    return len(words & others) >= NEAR * len(words | others)


def leaks(problem: Problem) -> dict[str, list[str]]:
    """For each neighbor, where its answer or its statement can be copied from, in words."""
    return {n.id: list(_leaks(problem, n.question, n.answer)) for n in problem.neighbors}


def _leaks(problem: Problem, question: str, answer: str) -> Iterator[str]:
    known = normal_form(answer)
    if problem.answer is not None and normal_form(problem.answer) == known:
        yield "its answer is the target's answer"
    for candidate in problem.candidates:
        final = candidate.answer if candidate.answer is not None else extract(candidate.text).answer
        if final is not None and normal_form(final) == known:
            yield f"its answer is the final answer of {candidate.id}"
        elif _stands(answer, candidate.text):
            yield f"its answer stands in {candidate.id}"
        if len(question) >= LEAST_STATEMENT and squeeze(clean(question)) in squeeze(clean(candidate.text)):
            yield f"its statement stands in {candidate.id}"


def _stands(answer: str, text: str) -> bool:
    """Whether an answer too long to be there by chance stands in a text."""
    known = squeeze(clean(answer))
    if len(known) < LEAST_ANSWER:
        return False
    return re.search(rf"(?<![\w.,]){re.escape(known)}(?![\w]|[.,]\d)", squeeze(clean(text))) is not None


def _numbers(tokens: tuple[str, ...]) -> list[str]:
    return [t for t in tokens if t[0].isdigit()]


__all__ = ["duplicates", "leaks", "meaning", "near"]
