"""A run folder as the report reads it: problem by problem, so that a large run needs little memory.

A report of a broken run is worth more than none. What is torn, missing or unfinished becomes a notice, and whatever
can still be read is shown. Only a folder that holds no run at all is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec
from msgspec import Struct

from porism.budget import dollars
from porism.engine import replay
from porism.errors import ConfigError, StoreError
from porism.methods.ranking import Ranking
from porism.methods.ranking import rank as ranking_of
from porism.methods.utility import Utility
from porism.right import Right
from porism.store import MISSING, Row, Store
from porism.stored import stored_methods
from porism.types import Completion, Method, Observation, Problem, Score
from porism.verify import VERSION
from porism.verify.pool import Verifier

if TYPE_CHECKING:
    from porism.analyze import Analyses
    from porism.bench.run import Benchmark


class Rollout(Struct, frozen=True):
    """What was seen of one rollout, and where its text is."""

    seen: Observation
    row: Row


class Page(Struct, frozen=True, kw_only=True):
    """A problem with its ranking, and how much of the plan behind it is answered.

    rollouts: by candidate (None: no example). scores: of every method of a benchmark, by its name and the candidate.
    """

    problem: Problem
    ranking: Ranking
    rollouts: dict[str | None, tuple[Rollout, ...]]
    planned: int
    answered: int
    missing: int
    scores: dict[str, dict[str, Score]] = {}


class Session(Struct, frozen=True):
    """One session of the run. seconds is None while it has not ended, or when it was killed.

    warnings: what it told of data, models and settings before it asked anything.
    """

    started: str
    seconds: float | None
    stopped: str | None
    warnings: tuple[str, ...] = ()


class Folder:
    """The run folder, open for reading. An async context manager.

    notices: what is wrong with the folder itself, a sentence each. method: the utility that problems are ranked by,
    None where there is none; right: the calibration it was made with, None without. Raises StoreError or ConfigError
    where there is no run at all.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notices: list[str] = []
        self.problems: list[Problem] = []
        self.methods: list[Method] = []
        self.method: Utility | None = None
        self.store = Store(path, write=False)
        self.settings = self._settings()
        self._checker = Verifier()
        if not self.settings and not self.notices and not (path / "index.jsonl").exists():
            raise ConfigError(f"{path}: no run.json here, so this is no run folder")
        try:
            self.store.check_version(VERSION)
            self.problems, self.methods = stored_methods(self.store)
        except (ConfigError, StoreError) as error:
            self.notices.append(f"Nothing can be ranked: {error}")
        self.right: Right | None = None
        try:
            self.right = Right.stored(self.settings)
        except ConfigError as error:
            self.notices.append(f"There is no P(right): {error}")
        utilities = [m for m in self.methods if isinstance(m, Utility) and m.exemplar == "full"]
        self.method = utilities[0] if utilities else None
        if self.methods and self.method is None:
            self.notices.append(
                "No method here is a utility with whole candidates, so there are no problem pages."
            )
        if self.store.torn:
            self.notices.append(
                f"{self.store.torn} unreadable lines in the run folder were passed over; the command that made the "
                "run asks for what they held again."
            )

    def _settings(self) -> dict[str, Any]:
        try:
            found = self.store.read_json("run.json")
        except StoreError as error:
            self.notices.append(f"The settings of this run cannot be read: {error}.")
            return {}
        return found if isinstance(found, dict) else {}

    async def __aenter__(self) -> Self:
        await self._checker.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._checker.__aexit__(kind, error, trace)
        self.store.close()

    @property
    def name(self) -> str:
        """The run's name, or the folder's."""
        return str(self.settings.get("name") or self.path.resolve().name)

    async def page(self, problem: Problem) -> Page:
        """The problem as far as completed rounds go. Costs no token; needs a utility among the methods."""
        if self.method is None:
            raise ConfigError(f"{self.path}: no method here ranks by utility")
        seen = await replay(self.store, self._checker, [problem], self.methods)
        observations = seen.get((problem.id, self.method.name), [])
        asks = self.method.plan(problem, [])
        rows = {ask.work.id: self.store.rows.get(ask.work.id) for ask in asks}
        ids: dict[tuple[str | None, str | None, str, int], str] = {
            (a.cell.candidate, a.cell.neighbor, a.cell.solver, a.work.rollout): a.work.id
            for a in asks
            if a.cell.neighbor is not None
        }
        found: dict[str | None, list[Rollout]] = {}
        for o in observations:
            id = ids.get((o.cell.candidate, o.cell.neighbor, o.cell.solver, o.rollout))
            if id is not None and (row := rows[id]) is not None:
                found.setdefault(o.cell.candidate, []).append(Rollout(o, row))
        ranking = ranking_of(problem, self.method, observations)
        if self.right is not None:
            ranking = self.right.give(ranking, problem, self.method, observations)
        stored = [row for row in rows.values() if row is not None]
        others = self.methods if len(self.methods) > 1 else []
        return Page(
            problem=problem,
            ranking=ranking,
            rollouts={row: tuple(got) for row, got in found.items()},
            planned=len(rows),
            answered=sum(row.finish != MISSING for row in stored),
            missing=sum(row.finish == MISSING for row in stored),
            scores={m.name: m.score(problem, seen.get((problem.id, m.name), [])) for m in others},
        )

    async def pages(self) -> AsyncIterator[Page]:
        """Problem by problem, up to the first that cannot be ranked, which becomes a notice."""
        for problem in self.problems if self.method else ():
            try:
                page = await self.page(problem)
            except ConfigError as error:
                self.notices.append(f"From problem {problem.id} on nothing can be ranked: {error}")
                return
            yield page

    async def benchmark(self) -> Benchmark | None:
        """The metrics of a benchmark; None where this is none, or they cannot be computed (which becomes a notice)."""
        from porism.bench.run import score
        from porism.stored import is_benchmark

        if not (self.methods and is_benchmark(self.settings)):
            return None
        try:
            return await score(self.path)
        except (ConfigError, StoreError) as error:
            self.notices.append(f"The metrics cannot be computed: {error}")
            return None

    async def analyses(self) -> Analyses | None:
        """The analyses of a benchmark; None where they cannot be made (which becomes a notice)."""
        from porism.analyze import analyze

        try:
            return await analyze(self.path)
        except (ConfigError, StoreError) as error:
            self.notices.append(f"The analyses cannot be made: {error}")
            return None

    def completion(self, rollout: Rollout) -> Completion | str:
        """The stored answer, or why it cannot be shown."""
        if rollout.row.finish == MISSING:
            return f"never answered: {rollout.row.rule}"
        try:
            return self.store.completion(rollout.row, rollout.seen.rollout)
        except StoreError as error:
            return str(error)

    @property
    def sessions(self) -> list[Session]:
        """The sessions that made the run, first to last."""
        listed = self.settings.get("sessions")
        return [_session(s) for s in listed if isinstance(s, dict)] if isinstance(listed, list) else []

    @property
    def cost(self) -> float | None:
        """Dollars for the tokens so far, at the price the run was last made with; None where it was told none."""
        bench = self.settings.get("benchmark")
        try:
            settings = self.settings if bench is None else bench["budget"]
            return dollars(self.store.usage, msgspec.convert(settings.get("price"), tuple[float, float]))
        except (msgspec.ValidationError, AttributeError, KeyError, TypeError):
            return None

    @property
    def failures(self) -> list[tuple[str, int]]:
        """Kinds of failed attempts and their number, the most frequent first."""
        return Counter(failure.kind for failure in self.store.failed()).most_common()

    @property
    def missing(self) -> list[tuple[str, int]]:
        """Reasons of rollouts never answered, and their number."""
        return Counter(row.rule for row in self.store.rows.values() if row.finish == MISSING).most_common()


def _session(found: dict[str, Any]) -> Session:
    started, ended = str(found.get("started", "")), found.get("ended")
    try:
        seconds = (datetime.fromisoformat(str(ended)) - datetime.fromisoformat(started)).total_seconds()
    except (ValueError, TypeError):
        seconds = None
    warnings = found.get("warnings")
    told = tuple(map(str, warnings)) if isinstance(warnings, list) else ()
    return Session(started, seconds, found.get("stopped"), told)


__all__ = ["Folder", "Page", "Rollout", "Session"]
