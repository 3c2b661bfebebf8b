"""Texts from models for everything that is not a ranking: neighbors, solutions, candidates, second opinions.

The same engine, store, budgets and Ctrl-C as a run: what is asked is stored as it lands, equal requests are never
asked twice, and the same command goes on where it was. A job may ask in several stages, each made from the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from msgspec import Struct

from porism.budget import Budget
from porism.engine import Engine, Watch
from porism.errors import ConfigError
from porism.interrupt import interruptible
from porism.models import open_model
from porism.prepare import enter
from porism.progress import SilentWatch
from porism.store import MISSING, Store
from porism.types import (
    Ask,
    Cell,
    Completion,
    Generate,
    Gold,
    Message,
    Model,
    Observation,
    Problem,
    Prompt,
    Result,
    Sampling,
    Score,
    Usage,
    Verdict,
)

EMBEDDED_CONTEXT = 4096  # tokens of a request to an embedded model, its answer included


class Request(Struct, frozen=True):
    """n answers of one model to one user turn. key: what the caller finds them by; model: an index into the models."""

    key: str
    text: str
    n: int = 1
    model: int = 0


class Generated(Struct, frozen=True, kw_only=True):
    """Answers by request key, in the order of rollouts; None where one never came (missing says why, by count).

    stopped says why the job ended before all was asked, and is None at its end; then the exit code of the command is 3
    for a budget, 130 for Ctrl-C, 1 for a model that failed. usage: everything the folder holds has cost.
    """

    answers: dict[str, tuple[Completion | None, ...]]
    usage: Usage
    missing: dict[str, int] = {}
    stopped: str | None = None
    exit_code: int = 0


class Generator:
    """Asks `models`, and keeps what they answer in `folder`. An async context manager.

    sampling: one for all models, or one for each. Entering raises ConfigError for a model string that means nothing,
    ModelError for a model that cannot serve, StoreError for a folder that cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        models: Sequence[str],
        *,
        sampling: Sampling | Sequence[Sampling],
        base_url: str | Sequence[str] | None = None,
        concurrency: int | None = None,
        budget: Budget | None = None,
        watch: Watch | None = None,
    ) -> None:
        if not models or len(set(models)) < len(models):
            raise ConfigError("name at least one model, and each only once")
        self.watch = watch or SilentWatch()
        self.warnings: list[str] = []
        self._folder, self._specs = folder, tuple(models)
        self._sampling = (sampling,) * len(models) if isinstance(sampling, Sampling) else tuple(sampling)
        self._base_url, self._concurrency = base_url, concurrency
        self._budget = budget or Budget()
        self._stack = AsyncExitStack()
        self._models: list[Model] = []

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._store = stack.enter_context(Store(self._folder))
            for spec, sampling in zip(self._specs, self._sampling, strict=True):
                context = EMBEDDED_CONTEXT + sampling.max_tokens if spec.startswith("local/") else None
                model = open_model(
                    spec, base_url=self._base_url, context=context, concurrency=self._concurrency
                )
                self._models.append(await enter(stack, model, self.watch, self.warnings))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    @property
    def identities(self) -> tuple[str, ...]:
        """What each model is known by in the store: the hash of its weights, or its served name."""
        return tuple(model.identity for model in self._models)

    async def ask(self, requests: Sequence[Request]) -> Generated:
        """The answers to all requests; those already in the folder cost nothing."""
        method = _Listed(tuple((r, self._prompt(r)) for r in requests))
        engine = Engine(
            {model.identity: model for model in self._models},
            self._store,
            _NoChecker(),
            self.watch,
            budget=self._budget,
        )
        with interruptible(engine):
            outcome = await engine.run([_NO_PROBLEM], [method])
        missing = {
            f"{where.rpartition('/')[0]}: {why}": count for (where, why), count in outcome.missing.items()
        }
        stopped = outcome.stopped
        return Generated(
            answers={r.key: self._answers(prompt, r.n) for r, prompt in method.requests},
            usage=self._store.usage,
            missing=missing,
            stopped=str(stopped) if stopped is not None else None,
            exit_code=stopped.exit_code if stopped is not None else int(bool(missing)),
        )

    def _prompt(self, request: Request) -> Prompt:
        model = self._models[request.model]
        return Prompt(model.identity, (Message("user", request.text),), self._sampling[request.model])

    def _answers(self, prompt: Prompt, n: int) -> tuple[Completion | None, ...]:
        rows = [self._store.rows.get(Generate(prompt, rollout).id) for rollout in range(n)]
        return tuple(
            None if row is None or row.finish == MISSING else self._store.completion(row, rollout)
            for rollout, row in enumerate(rows)
        )


_NO_PROBLEM = Problem(id="", question="", candidates=(), neighbors=())


class _NoChecker:
    """Nothing asked here has a gold, so nothing is ever verified."""

    version = ""

    async def verify(self, answer: str, gold: Gold) -> Verdict:
        raise AssertionError(f"{answer!r} was given a gold: {gold!r}")


@dataclass(frozen=True)
class _Listed:
    """The method that asks a list of requests in one round and makes nothing of the answers."""

    requests: tuple[tuple[Request, Prompt], ...]
    name: str = "generate"

    def plan(self, problem: Problem, seen: list[Observation]) -> list[Ask]:  # noqa: ARG002
        if seen:
            return []
        return [
            Ask(
                Cell(request.key, None, None, self.name, prompt.model, 0),
                Generate(prompt, rollout),
                prefix=f"{prompt.model}/{request.key}",
            )
            for request, prompt in self.requests
            for rollout in range(request.n)
        ]

    def read(self, ask: Ask, result: Result) -> Observation:
        return Observation(cell=ask.cell, rollout=ask.work.rollout, verdict=result.verdict)

    def score(self, problem: Problem, seen: list[Observation]) -> dict[str, Score]:  # noqa: ARG002
        return {}


__all__ = ["Generated", "Generator", "Request"]
