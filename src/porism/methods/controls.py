"""Controls of utility: the same neighbors, with less than the candidate, or something else, as the example.

A candidate may help for reasons that are not its method: any worked example helps, or the question does, or the
answer alone. Each control takes one thing away and keeps the rest, so that what is left of the utility can be read
off. What stands in for a candidate is fixed by the problem, the candidate and the donors, never by order or chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from random import Random
from typing import Literal, NamedTuple, get_args

from msgspec import Struct

from porism.types import Candidate, Problem
from porism.verify.extract import extract

Exemplar = Literal["full", "question-only", "answer-only", "none", "other-question", "shuffled"]
EXEMPLARS: tuple[Exemplar, ...] = get_args(Exemplar)

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\s*\n\s*")


class Donor(Struct, frozen=True):
    """A candidate that may be shown for another problem's: its question, its text, and what they belong to."""

    problem: str
    group: str
    question: str
    text: str


class Shown(NamedTuple):
    """What opens the prompt. No text: the question alone. No question either: nothing, as in the no-example row."""

    question: str | None
    text: str | None


def donors(problems: Iterable[Problem]) -> tuple[Donor, ...]:
    """Every candidate of `problems`, to be shown for those of other groups. Labels are not looked at."""
    return tuple(
        Donor(p.id, p.group or p.id, p.question, candidate.text)
        for p in problems
        for candidate in p.candidates
    )


def shown(exemplar: Exemplar, problem: Problem, candidate: Candidate, others: Sequence[Donor]) -> Shown:
    """What `exemplar` shows for the candidate.

    answer-only of a candidate without a final answer is the question alone; other-question is a pair of question
    and candidate from another group, and nothing where there is none.
    """
    if exemplar == "none":
        return Shown(None, None)
    if exemplar == "question-only":
        return Shown(problem.question, None)
    if exemplar == "answer-only":
        answer = own_answer(candidate)
        return Shown(problem.question, None if answer is None else f"The final answer is {answer}.")
    if exemplar == "other-question":
        donor = _donor(problem, candidate, others)
        return Shown(None, None) if donor is None else Shown(donor.question, donor.text)
    if exemplar == "shuffled":
        return Shown(problem.question, shuffled(candidate.text, f"{problem.id}\0{candidate.id}"))
    return Shown(problem.question, candidate.text)


def own_answer(candidate: Candidate) -> str | None:
    """The candidate's final answer: as its file states it, else as found in its text."""
    return candidate.answer if candidate.answer is not None else extract(candidate.text).answer


def shuffled(text: str, seed: str) -> str:
    """The sentences and lines of a text in another order, a line each; the text as it is where it has only one."""
    parts = [part for part in _SENTENCE.split(text.strip()) if part]
    order = list(range(len(parts)))
    rng = Random(blake2b(f"shuffled\0{seed}".encode(), digest_size=16).digest())  # noqa: S311
    if len(set(parts)) < 2:
        return text
    while [parts[i] for i in order] == parts:
        rng.shuffle(order)
    return "\n".join(parts[i] for i in order)


def _donor(problem: Problem, candidate: Candidate, others: Sequence[Donor]) -> Donor | None:
    """The donor of another group that a hash of all three picks: one more donor moves few of the picks."""
    group = problem.group or problem.id
    strangers = [d for d in others if d.group != group and d.problem != problem.id]
    return min(strangers, key=lambda d: _rank(problem.id, candidate.id, d), default=None)


def _rank(problem: str, candidate: str, donor: Donor) -> bytes:
    text = "\0".join((problem, candidate, donor.problem, donor.question, donor.text))
    return blake2b(text.encode(errors="replace"), digest_size=16).digest()


__all__ = ["EXEMPLARS", "Donor", "Exemplar", "Shown", "donors", "own_answer", "shown", "shuffled"]
