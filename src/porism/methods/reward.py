"""A scalar reward model: one pass over the question and the candidate, one number, no words.

The number is the model's own, on a scale of its own: it orders the candidates of a problem, and is comparable with no
other model's. There is nothing to repeat, so there is no interval either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from porism.errors import ConfigError
from porism.methods.calls import own
from porism.types import (
    Ask,
    Cell,
    Generate,
    Message,
    Observation,
    Problem,
    Prompt,
    Result,
    Sampling,
    Score,
    Verdict,
)

_ONCE = Sampling(temperature=0.0, max_tokens=1)


@dataclass(frozen=True, kw_only=True)
class Reward:
    """The method. model: the identity of a reward model (models.reward). Raises ConfigError without one."""

    model: str
    name: str = "reward"

    def __post_init__(self) -> None:
        if not self.model:
            raise ConfigError(f"{self.name}: name a reward model.")

    def plan(self, problem: Problem, seen: list[Observation]) -> list[Ask]:
        """One reward for every candidate."""
        have = {o.cell.candidate for o in self._own(problem, seen)}
        asks = [
            Ask(
                Cell(problem.id, c.id, None, self.name, self.model, 0),
                Generate(reward_prompt(self.model, problem.question, c.text), 0),
                prefix=f"{self.model}/{problem.id}",
                text=True,
            )
            for c in problem.candidates
        ]
        return asks if any(a.cell.candidate not in have for a in asks) else []

    def read(self, ask: Ask, result: Result) -> Observation:
        """The reward as `score`."""
        score, verdict = None, result.verdict
        if result.completion is not None:
            score = _number(result.completion.text)
            verdict = Verdict("no_answer", "no number") if score is None else None
        return Observation(
            cell=ask.cell, rollout=ask.work.rollout, verdict=verdict, score=score, text_key=result.text_key
        )

    def score(self, problem: Problem, seen: list[Observation]) -> dict[str, Score]:
        """The reward of every candidate; None where it never came, as for one that does not fit the context."""
        found = {o.cell.candidate: o for o in self._own(problem, seen)}
        return {c.id: _score(found.get(c.id)) for c in problem.candidates}

    def _own(self, problem: Problem, seen: list[Observation]) -> list[Observation]:
        return [o for o in own(self.name, problem, seen) if o.cell.solver == self.model]


def reward_prompt(model: str, question: str, text: str) -> Prompt:
    """What a reward model is shown: the question as the user's turn, the candidate as the assistant's."""
    return Prompt(model, (Message("user", question), Message("assistant", text)), _ONCE)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _score(found: Observation | None) -> Score:
    if found is not None and found.score is not None:
        return Score(value=found.score, low=found.score, high=found.score)
    why = "nothing seen" if found is None else found.verdict.rule if found.verdict else "no number"
    return Score(value=None, low=-math.inf, high=math.inf, flags=(f"no reward: {why}",))


__all__ = ["Reward", "reward_prompt"]
