"""Baselines that know nothing of mathematics: the length of a candidate, and chance.

A method that does not beat these on a labelled set has shown nothing. Both ask no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from porism.types import Ask, Observation, Problem, Result, Score


@dataclass(frozen=True, kw_only=True)
class Length:
    """The score is the number of characters of a candidate's text: the longer, the better."""

    name: str = "length"

    def plan(self, problem: Problem, seen: list[Observation]) -> list[Ask]:  # noqa: ARG002
        return []

    def read(self, ask: Ask, result: Result) -> Observation:  # noqa: ARG002
        return Observation(cell=ask.cell, rollout=ask.work.rollout)

    def score(self, problem: Problem, seen: list[Observation]) -> dict[str, Score]:  # noqa: ARG002
        """Characters, an exact number: the interval is the value."""
        return {c.id: _exactly(float(len(c.text))) for c in problem.candidates}


@dataclass(frozen=True, kw_only=True)
class Random:
    """The score is a number from 0 to 1 that the seed, the problem's id and the candidate's id fix."""

    seed: int = 0
    name: str = "random"

    def plan(self, problem: Problem, seen: list[Observation]) -> list[Ask]:  # noqa: ARG002
        return []

    def read(self, ask: Ask, result: Result) -> Observation:  # noqa: ARG002
        return Observation(cell=ask.cell, rollout=ask.work.rollout)

    def score(self, problem: Problem, seen: list[Observation]) -> dict[str, Score]:  # noqa: ARG002
        """A draw each, uniform over seeds."""
        return {c.id: _exactly(self._draw(problem.id, c.id)) for c in problem.candidates}

    def _draw(self, problem: str, candidate: str) -> float:
        text = "\0".join((str(self.seed), problem, candidate))
        return int.from_bytes(blake2b(text.encode(), digest_size=6).digest(), "big") / 2**48


def _exactly(value: float) -> Score:
    return Score(value=value, low=value, high=value)


__all__ = ["Length", "Random"]
