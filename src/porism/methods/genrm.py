"""Generative reward models: a model reasons about a response, then rates it.

Those trained for it compare two responses in a chat template of their own. Here the candidate is the first, the same
dummy always the second, and only the first rating is read, so that every candidate is rated alone. Three forms:

    responses   messages of the roles response_1 and response_2, for servers whose chat template knows them
    text        the same question in words, for any model
    yes-no      one response, is it correct? The score is the share of yes over calls
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from msgspec import structs

from porism.errors import ConfigError
from porism.methods.calls import TOP_LOGPROBS, Calls, own, read
from porism.methods.judge import check_models, pointwise
from porism.methods.marks import expected_mark, first_of_pair, word
from porism.methods.means import accepted_share, mean_score
from porism.methods.prompt import JUDGE_FIELDS, PAIR_FIELDS, check_template, load_template, render
from porism.types import (
    Ask,
    Candidate,
    Message,
    Observation,
    Problem,
    Prompt,
    Result,
    Sampling,
    Score,
    Token,
)

Form = Literal["responses", "text", "yes-no"]
FORMS: tuple[Form, ...] = get_args(Form)

_LEAST, _MOST = 1, 5
_ANSWERS = {"yes": 1.0, "no": 0.0}


@dataclass(frozen=True, kw_only=True)
class GenRM:
    """The method. judges: identities of generative reward models; each weighs the same.

    calls: ratings of every one for every candidate. dummy: the second response, always. expected (for yes-no): the
    probability of yes rather than the word that was drawn, for servers that tell it. again_tokens: the limit when
    an answer without a rating is asked once more; 0 means twice that of `sampling`. template: text of a jinja2
    template for the forms text (question, first, second) and yes-no (question, candidate); empty means the built-in
    one. Raises ConfigError for settings that cannot be used.
    """

    judges: tuple[str, ...]
    sampling: Sampling
    calls: int = 8
    form: Form = "responses"
    expected: bool = False
    dummy: str = "N/A"
    again_tokens: int = 0
    template: str = ""
    name: str = "genrm"

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ConfigError(f"{self.name}: form {self.form!r} is not known: {', '.join(FORMS)}.")
        if self.expected and self.form != "yes-no":
            raise ConfigError(f"{self.name}: only the form yes-no has a probability (expected).")
        check_models(self.name, self.judges)
        if self.form == "responses":
            if self.template:
                raise ConfigError(f"{self.name}: the form responses has the server's template, none of ours.")
        else:
            fields = PAIR_FIELDS if self.form == "text" else JUDGE_FIELDS
            if not self.template:
                built_in = "genrm" if self.form == "text" else "genrm-yes-no"
                object.__setattr__(self, "template", load_template(None, built_in))
            check_template(self.template, fields)
        _ = self._calls

    def plan(self, problem: Problem, seen: list[Observation]) -> list[Ask]:
        """Ratings of every candidate in rounds that end at 2, 4, 8, ...; then once more what could not be read."""
        sampling = (
            structs.replace(self.sampling, top_logprobs=TOP_LOGPROBS) if self.expected else self.sampling
        )
        questions = [
            pointwise(
                self.name,
                problem,
                candidate,
                Prompt(model, self._messages(problem, candidate), sampling),
            )
            for candidate in problem.candidates
            for model in self.judges
        ]
        return self._calls.plan(questions, own(self.name, problem, seen))

    def read(self, ask: Ask, result: Result) -> Observation:
        """The first rating, or 1 for yes and 0 for no, as `score`; without one the verdict says why."""
        return read(ask, result, self._mark, _weigh if self.expected else None)

    def score(self, problem: Problem, seen: list[Observation]) -> dict[str, Score]:
        """The mean rating (1 to 5) of every candidate, over models of their means; for yes-no the share of yes."""
        found = self._calls.readings(own(self.name, problem, seen))
        scores = {}
        for candidate in problem.candidates:
            rows = [found.get((candidate.id, None, model), []) for model in self.judges]
            if self.expected:
                scores[candidate.id] = mean_score(
                    rows, 0, 1, calls=self._calls, sampling=self.sampling, whole=False
                )
            elif self.form == "yes-no":
                scores[candidate.id] = accepted_share(rows, calls=self._calls, sampling=self.sampling)
            else:
                scores[candidate.id] = mean_score(
                    rows, _LEAST, _MOST, calls=self._calls, sampling=self.sampling
                )
        return scores

    def _mark(self, text: str) -> float | None:
        return (
            word(text, "correct", _ANSWERS) if self.form == "yes-no" else first_of_pair(text, _LEAST, _MOST)
        )

    def _messages(self, problem: Problem, candidate: Candidate) -> tuple[Message, ...]:
        if self.form == "responses":
            return (
                Message("user", problem.question),
                Message("response_1", candidate.text),
                Message("response_2", self.dummy),
            )
        if self.form == "text":
            text = render(self.template, question=problem.question, first=candidate.text, second=self.dummy)
        else:
            text = render(self.template, question=problem.question, candidate=candidate.text)
        return (Message("user", text),)

    @property
    def _calls(self) -> Calls:
        return Calls.of(self.name, self.calls, self.sampling, self.again_tokens)


def _weigh(ending: Sequence[Token]) -> float | None:
    return expected_mark(ending, "correct", _ANSWERS)


__all__ = ["FORMS", "Form", "GenRM"]
