"""The answer of a question by agreement: several independent solves, classed by the verifier's equivalence.

A model that makes a question claims an answer with it, and that claim counts for nothing here. What counts is that
solves which did not see it, nor each other, arrive at one answer: most of all samples, most of each model's own, and no
other answer with a following. Agreement is not truth. Samples of one model share its errors; models that differ, and
a program's output (program.py), are worth more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from porism.errors import ConfigError
from porism.neighbors.proposals import SENTENCE, is_compact
from porism.types import Completion, Gold, Verdict
from porism.verify.extract import extract

SAMPLES = 8  # of one model; several share them
MODELS = 3  # from so many models on, one sample of each is enough
SHOWN = 5  # other answers that are kept with the votes


class Checker(Protocol):
    """What tells whether two answers are equal: porism.verify.pool.Verifier."""

    async def verify(self, answer: str, gold: Gold) -> Verdict: ...


class Rule(Struct, frozen=True, kw_only=True):
    """When an answer is agreed on: its least share of all samples, and the most of any other answer."""

    agreement: float = 0.8
    second: float = 0.1

    def __post_init__(self) -> None:
        if not 0.5 < self.agreement <= 1:
            raise ConfigError(f"agreement is {self.agreement:g}: a share above 0.5, at most 1")


class Votes(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many samples gave which answer.

    answer: as most samples with it wrote it; None where no sample gave one. asked = agreeing + the others + no_answer
    + undecided + missing. undecided: answers that may be equal to it or not. by_model: agreeing and asked, by model.
    """

    answer: str | None
    agreeing: int
    asked: int
    others: dict[str, int] = {}
    no_answer: int = 0
    undecided: int = 0
    missing: int = 0
    by_model: dict[str, tuple[int, int]] = {}


def samples_each(models: int) -> int:
    """Samples of each model by default: 8 of one, 4 of each of two, one of each of three or more."""
    return 1 if models >= MODELS else SAMPLES // models


def stages(samples: int) -> tuple[int, ...]:
    """Samples of a model to have after each stage: a quarter, a half, all. Most proposals end at the first."""
    return tuple(sorted({max(1, samples // 4), max(1, samples // 2), samples}))


async def count(samples: Mapping[str, Sequence[Completion | None]], checker: Checker) -> Votes:
    """The votes of each model's samples. None is a sample that never came."""
    given: list[tuple[str, str]] = []  # model, answer
    no_answer = missing = 0
    for model, completions in samples.items():
        for completion in completions:
            if completion is None:
                missing += 1
            elif (answer := extract(completion.text, truncated=completion.truncated).answer) is None:
                no_answer += 1
            else:
                given.append((model, answer))
    texts = Counter(answer for _, answer in given)
    classes: list[list[str]] = []  # the commonest text of a class stands for it
    undecided: set[str] = set()
    for text, _ in texts.most_common():
        verdicts = [(await _equal(text, members[0], checker), members) for members in classes]
        same = next((members for kind, members in verdicts if kind == "correct"), None)
        if same is not None:
            same.append(text)
        elif verdicts and verdicts[0][0] == "undecided":
            undecided.add(text)
        else:
            classes.append([text])
    sizes = sorted(((sum(texts[t] for t in members), members) for members in classes), key=lambda c: -c[0])
    agreeing, first = sizes[0] if sizes else (0, [])
    return Votes(
        answer=first[0] if first else None,
        agreeing=agreeing,
        asked=sum(len(completions) for completions in samples.values()),
        others={members[0]: size for size, members in sizes[1 : SHOWN + 1]},
        no_answer=no_answer,
        undecided=sum(texts[text] for text in undecided),
        missing=missing,
        by_model={
            model: (sum(m == model and a in first for m, a in given), len(samples[model]))
            for model in samples
        },
    )


async def _equal(answer: str, other: str, checker: Checker) -> str:
    """The verdict on two answers; the other way around where the first way is not sure."""
    verdict = await checker.verify(answer, Gold(other))
    return verdict.kind if verdict.kind != "undecided" else (await checker.verify(other, Gold(answer))).kind


def in_reach(votes: Votes, rule: Rule, samples: int) -> bool:
    """Whether more solves, up to so many `samples` in all, may still settle an answer that has these votes now."""
    left = samples - votes.asked + votes.missing
    sizes = [votes.agreeing, *votes.others.values(), 0]
    return any(
        size + left + votes.undecided >= rule.agreement * samples - 1e-9
        and all(other <= rule.second * samples + 1e-9 for other in sizes[:i] + sizes[i + 1 :])
        for i, size in enumerate(sizes)
    )


def objection(votes: Votes, rule: Rule) -> str | None:
    """Why the votes settle no answer, in a few words; None where they do."""
    if votes.missing:
        return "samples missing"
    if votes.answer is None:
        return "no answer"
    if votes.agreeing < rule.agreement * votes.asked - 1e-9:
        return "no agreement"
    if any(size > rule.second * votes.asked + 1e-9 for size in votes.others.values()):
        return "a second answer"
    if any(2 * agreeing <= asked for agreeing, asked in votes.by_model.values()):
        return "models differ"
    if not is_compact(votes.answer):
        return SENTENCE
    return None


__all__ = ["Rule", "Votes", "count", "in_reach", "objection", "samples_each", "stages"]
