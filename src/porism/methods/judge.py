"""A judge: a model reads one candidate and grades it against a rubric. What the field does, and utility's rival.

Pointwise: each candidate alone, `calls` times, and its score is the mean. It sees the question and the candidate's
text, never a label or a source. Three scales, each with a prompt of its own: 1 to 10 in bands, 0 to 7 as at an
olympiad, and a referee's accept or reject, whose mean is the share of accepts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from msgspec import structs

from porism.errors import ConfigError
from porism.methods.calls import TOP_LOGPROBS, Calls, Question, own, read
from porism.methods.marks import expected_mark, whole_number, word
from porism.methods.means import accepted_share, mean_score
from porism.methods.prompt import JUDGE_FIELDS, check_template, load_template, render
from porism.types import (
    Ask,
    Candidate,
    Cell,
    Message,
    Observation,
    Problem,
    Prompt,
    Result,
    Sampling,
    Score,
    Token,
)

Scale = Literal["1-10", "0-7", "accept"]
SCALES: tuple[Scale, ...] = get_args(Scale)

_RANGES = {"1-10": (1, 10), "0-7": (0, 7), "accept": (0, 1)}
_MARKS = {str(mark): float(mark) for mark in range(8)}
_DECISIONS = {"accept": 1.0, "accepted": 1.0, "reject": 0.0, "rejected": 0.0}


@dataclass(frozen=True, kw_only=True)
class Judge:
    """The method. judges: model identities; each weighs the same.

    calls: grades of every judge for every candidate. expected: the grade as the mean over the tokens that could
    have been drawn for it, by their probabilities, rather than the one that was drawn; for servers that tell them,
    and for the scales 0-7 and accept, whose grades begin with different tokens. again_tokens: the limit when an
    answer without a grade is asked once more; 0 means twice that of `sampling`. template: text of a jinja2 template
    (question, candidate) that asks for the same last line; empty means the built-in one of the scale. Raises
    ConfigError for settings that cannot be used.
    """

    judges: tuple[str, ...]
    sampling: Sampling
    calls: int = 8
    scale: Scale = "1-10"
    expected: bool = False
    again_tokens: int = 0
    template: str = ""
    name: str = "judge"

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise ConfigError(f"{self.name}: scale {self.scale!r} is not known: {', '.join(SCALES)}.")
        if self.expected and self.scale == "1-10":
            raise ConfigError(
                f"{self.name}: an expected grade needs grades that begin with different tokens, and 1 and 10 often do "
                "not: use the scale 0-7 or accept."
            )
        check_models(self.name, self.judges)
        if not self.template:
            object.__setattr__(self, "template", load_template(None, f"judge-{self.scale}"))
        check_template(self.template, JUDGE_FIELDS)
        _ = self._calls

    def plan(self, problem: Problem, seen: list[Observation]) -> list[Ask]:
        """Grades of every candidate in rounds that end at 2, 4, 8, ...; then once more what could not be read."""
        questions = [
            pointwise(self.name, problem, candidate, self._prompt(judge, problem, candidate))
            for candidate in problem.candidates
            for judge in self.judges
        ]
        return self._calls.plan(questions, own(self.name, problem, seen))

    def read(self, ask: Ask, result: Result) -> Observation:
        """The grade as `score`; an answer without one has a verdict that says why."""
        return read(ask, result, self._mark, self._weigh if self.expected else None)

    def score(self, problem: Problem, seen: list[Observation]) -> dict[str, Score]:
        """The mean grade of every candidate, over judges of their means; for `accept` the share of accepts."""
        found = self._calls.readings(own(self.name, problem, seen))
        scores = {}
        for candidate in problem.candidates:
            rows = [found.get((candidate.id, None, judge), []) for judge in self.judges]
            if self.scale == "accept" and not self.expected:
                scores[candidate.id] = accepted_share(rows, calls=self._calls, sampling=self.sampling)
            else:
                least, most = _RANGES[self.scale]
                scores[candidate.id] = mean_score(
                    rows, least, most, calls=self._calls, sampling=self.sampling, whole=not self.expected
                )
        return scores

    def _mark(self, text: str) -> float | None:
        if self.scale == "accept":
            return word(text, "verdict", _DECISIONS)
        return whole_number(text, "score", *_RANGES[self.scale])

    def _weigh(self, ending: Sequence[Token]) -> float | None:
        if self.scale == "accept":
            return expected_mark(ending, "verdict", _DECISIONS)
        return expected_mark(ending, "score", _MARKS)

    def _prompt(self, judge: str, problem: Problem, candidate: Candidate) -> Prompt:
        text = render(self.template, question=problem.question, candidate=candidate.text)
        sampling = (
            structs.replace(self.sampling, top_logprobs=TOP_LOGPROBS) if self.expected else self.sampling
        )
        return Prompt(judge, (Message("user", text),), sampling)

    @property
    def _calls(self) -> Calls:
        return Calls.of(self.name, self.calls, self.sampling, self.again_tokens)


def pointwise(name: str, problem: Problem, candidate: Candidate, prompt: Prompt) -> Question:
    """The question about one candidate alone."""
    cell = Cell(problem.id, candidate.id, None, name, prompt.model, 0)
    return Question(cell, prompt, f"{prompt.model}/{problem.id}/{name} of {candidate.id}")


def check_models(name: str, models: Sequence[str]) -> None:
    """Raises ConfigError unless there is a model, and each only once."""
    if not models or len(set(models)) < len(models):
        raise ConfigError(f"{name}: name at least one model, and each only once.")


__all__ = ["SCALES", "Judge", "Scale"]
