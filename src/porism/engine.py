"""The only impure loop: plan, minus what is stored, asked, stored as it lands, verified, read, scored.

The engine drives every (problem, method) pair: it asks the method for the next round, hands what the store
does not hold to the lane of its model, and gives the method what came back. Equal work is asked once, however
many cells want it. Problems are taken in order, and a new one is begun when the lanes run low, so that servers
stay full and memory small.

Reported scores stand on completed rounds. When the run stops early (a budget, an open circuit, Ctrl-C) what has
landed is stored, unfinished rounds are left out of the scores, and the same command goes on from there.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import groupby
from typing import Protocol

from porism.budget import Budget
from porism.errors import BudgetReached, ConfigError, Interrupted, ModelError, PorismError
from porism.lane import Pending, RetryPolicy, bundle
from porism.router import Router
from porism.store import MISSING, Failure, Row, Store
from porism.types import (
    Ask,
    Compare,
    Completion,
    Generate,
    Gold,
    Method,
    Model,
    Observation,
    Problem,
    Reply,
    Result,
    Usage,
    Verdict,
)
from porism.verify.extract import extract


class Checker(Protocol):
    """What the engine needs of the verifier pool."""

    @property
    def version(self) -> str: ...

    async def verify(self, answer: str, gold: Gold) -> Verdict: ...


class Watch(Protocol):
    """Who looks on: a display, a log, nobody."""

    def started(self, total: int, stored: int) -> None: ...

    def landed(self, rollouts: int, usage: Usage) -> None: ...

    def waiting(self, reason: str | None, until: float | None) -> None: ...

    def note(self, text: str) -> None: ...

    def finished(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """Observations of completed rounds by (problem id, method name), and what ended the run before its plan."""

    seen: dict[tuple[str, str], list[Observation]]
    stopped: PorismError | None
    missing: Counter[tuple[str, str]]  # (problem/candidate, reason) -> rollouts


Rounds = Callable[[Problem, Method, list[Observation]], None]


class Engine:
    """Runs methods over problems. One instance, one run.

    models: by identity, entered already. on_round is called after every completed round with all seen so far.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        store: Store,
        checker: Checker,
        watch: Watch,
        *,
        budget: Budget | None = None,
        policy: RetryPolicy | None = None,
        on_round: Rounds | None = None,
    ) -> None:
        self._store, self._checker, self._watch = store, checker, watch
        self._budget = budget or Budget()
        self._on_round = on_round
        self._work: dict[str, asyncio.Future[Row]] = {}
        self._asks: dict[str, Ask] = {}
        self._asked: set[str] = set()  # ids answered or given up in this session
        self._seen: dict[tuple[str, str], list[Observation]] = {}
        self._missing: Counter[tuple[str, str]] = Counter()
        self._ended: asyncio.Future[None] | None = None
        self._error: BaseException | None = None
        self._room = asyncio.Event()
        self._lanes = {
            identity: Router(
                model,
                policy or RetryPolicy(),
                landed=self._landed,
                lost=self._lost,
                failed=self._failed,
                may_start=self._may_start,
                stop=self.stop,
                waiting=watch.waiting,
                note=watch.note,
            )
            for identity, model in models.items()
        }

    async def run(self, problems: Sequence[Problem], methods: Sequence[Method]) -> Outcome:
        """Drive every method over every problem; also when stopped, what is returned are complete rounds.

        Raises faults of ours only: a model, a store or a budget that ends the run is Outcome.stopped.
        """
        self._ended = asyncio.get_running_loop().create_future()
        if self._error is not None:
            self._ended.set_result(None)
        self._watch.started(*self.size(problems, methods))
        work = asyncio.ensure_future(self._drive_all(problems, methods))
        try:
            await asyncio.wait({work, self._ended}, return_when=asyncio.FIRST_COMPLETED)
            if work.done() and (fault := work.exception()) is not None:
                self.stop(_first(fault))
            elif not work.done() and isinstance(self._error, BudgetReached | Interrupted | ModelError):
                await asyncio.gather(*(lane.drain() for lane in self._lanes.values()))
        finally:
            await self.abort()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        self._watch.finished()
        if self._error is not None and not isinstance(self._error, PorismError):
            raise self._error
        if self._error is not None:
            self._seen = await replay(self._store, self._checker, problems, methods)
        return Outcome(self._seen, self._error, self._missing)

    def stop(self, reason: BaseException) -> None:
        """End the run gently: nothing new is asked, what is in flight lands and is stored."""
        if self._error is None:
            self._error = reason
        for lane in self._lanes.values():
            lane.close()
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    async def abort(self) -> None:
        """Drop what is in flight."""
        await asyncio.gather(*(lane.abort() for lane in self._lanes.values()))

    def size(self, problems: Sequence[Problem], methods: Sequence[Method]) -> tuple[int, int]:
        """Rollouts that the first plan asks for, and how many of them are stored. Equal work counts once."""
        ids: set[str] = set()
        for problem in problems:
            for method in methods:
                asks = method.plan(problem, [])
                ids.update(ask.work.id for ask in asks if isinstance(ask.work, Generate))
        return len(ids), sum(self._settled(id) for id in ids)

    def _settled(self, id: str) -> bool:
        row = self._store.rows.get(id)
        if row is None or not self._lanes:
            return row is not None
        return id in self._asked or not row.again

    # Driving

    async def _drive_all(self, problems: Sequence[Problem], methods: Sequence[Method]) -> None:
        async with asyncio.TaskGroup() as group:
            for problem in problems:
                for method in methods:
                    group.create_task(self._drive(problem, method))
                await asyncio.sleep(0)
                while not self._low():
                    self._room.clear()
                    await self._room.wait()

    def _low(self) -> bool:
        return all(lane.queued < 2 * lane.model.concurrency for lane in self._lanes.values())

    async def _drive(self, problem: Problem, method: Method) -> None:
        seen = self._seen.setdefault((problem.id, method.name), [])
        while asks := method.plan(problem, seen):
            self._submit(asks)
            for _, group in groupby(asks, key=lambda ask: ask.cell.round):
                members = list(group)
                if not self._lanes:
                    if any(ask.work.id in self._asks for ask in members):
                        return  # a replay, and here the stored rounds end
                    # All is there already, and a task costs more than reading it.
                    seen.extend([await self._observe(method, ask) for ask in members])
                    continue
                tasks = [asyncio.ensure_future(self._observe(method, ask)) for ask in members]
                try:
                    seen.extend(await asyncio.gather(*tasks))
                finally:  # one that fails leaves the others running
                    for task in tasks:
                        task.cancel()
                if self._on_round is not None:
                    self._on_round(problem, method, seen)

    def _submit(self, asks: Sequence[Ask]) -> None:
        """Queue what the store does not hold, neighboring rollouts of a prompt bundled into calls."""
        loop = asyncio.get_running_loop()
        owed: list[tuple[Ask, Generate]] = []
        for ask in asks:
            id = ask.work.id
            if not isinstance(ask.work, Generate) or id in self._work:
                continue
            self._work[id] = future = loop.create_future()
            if self._settled(id):
                row = self._store.rows[id]
                future.set_result(row)
                self._count_missing(ask, row)
            else:
                self._asks[id] = ask
                owed.append((ask, ask.work))
        lanes = set()
        for (identity, _, round), members in groupby(
            owed, key=lambda one: (one[1].prompt.model, one[1].prompt.key, one[0].cell.round)
        ):
            if not self._lanes:
                break
            if (lane := self._lanes.get(identity)) is None:
                raise ConfigError(f"no model here is the solver {identity!r}")
            lanes.add(identity)
            for call, prefix in bundle([ask for ask, _ in members], lane.model.max_n):
                lane.submit(call, prefix, round)
        for identity in lanes:
            self._lanes[identity].pump()

    async def _observe(self, method: Method, ask: Ask) -> Observation:
        if isinstance(ask.work, Compare):
            given = ask.work.answer
            return method.read(ask, Result(None, given, await self._verify(given, "given", ask.gold)))
        row = await self._work[ask.work.id]
        if row.finish == MISSING:
            return method.read(ask, Result(None, None, Verdict("missing", row.rule)))
        verdict = await self._verify(row.answer, row.rule, ask.gold)
        completion = Completion(ask.work.rollout, "", row.finish)
        if ask.text:
            completion = self._store.completion(row, ask.work.rollout)
        return method.read(ask, Result(completion, row.answer, verdict, row.text_key))

    async def _verify(self, answer: str | None, rule: str, gold: Gold | None) -> Verdict | None:
        if gold is None:
            return None
        if answer is None:
            return Verdict("no_answer", rule)
        version = self._checker.version
        stored = self._store.verdict(answer, gold, version)
        if stored is not None:
            return stored
        verdict = await self._checker.verify(answer, gold)
        if self._lanes and self._store.verdict(answer, gold, version) is None:
            self._store.add_verdict(answer, gold, version, verdict)
        return verdict

    # What lanes tell

    def _may_start(self) -> bool:
        lanes = self._lanes.values()
        reached = self._budget.reached(
            self._store.usage,
            requests=self._store.usage.requests
            + self._store.failures
            + sum(lane.calls_in_flight for lane in lanes),
            in_flight=sum(lane.in_flight for lane in lanes) / max(1, len(self._store.rows)),
        )
        if reached is not None:
            self.stop(
                BudgetReached(
                    f"the budget is reached ({reached}); raise it and give the same command to go on"
                )
            )
        return reached is None

    def _landed(self, pending: Pending, reply: Reply) -> None:
        call, usage = pending.call, reply.usage
        try:
            self._store.add_prompt(call.prompt)
            for completion in reply.completions:
                id = f"{call.prompt.key}-{completion.rollout}"
                ask = self._asks.pop(id, None)
                if ask is None:
                    continue
                found = extract(completion.text, truncated=completion.truncated)
                row = self._store.add(
                    Row(
                        id,
                        ask.cell,
                        completion.finish_reason,
                        found.answer,
                        found.rule,
                        blake2b(completion.text.encode(errors="replace"), digest_size=8).hexdigest(),
                        usage=usage,
                    ),
                    completion,
                )
                usage = Usage()
                self._settle(id, row)
        except PorismError as error:  # the store cannot be written: nothing more may be asked
            self.stop(error)
            return
        self._watch.landed(len(reply.completions), reply.usage)
        self._room.set()

    def _settle(self, id: str, row: Row) -> None:
        self._asked.add(id)
        if not (work := self._work[id]).done():  # it is where a fault has ended the waiting
            work.set_result(row)

    def _count_missing(self, ask: Ask, row: Row) -> None:
        if row.finish == MISSING:
            where = f"{ask.cell.problem}/{ask.cell.candidate or 'no example'}"
            self._missing[where, row.rule.partition(": ")[2]] += 1

    def _lost(self, pending: Pending, error: ModelError) -> None:
        call = pending.call
        for rollout in range(call.first, call.first + call.n):
            id = f"{call.prompt.key}-{rollout}"
            ask = self._asks.pop(id)
            row = Row(
                id, ask.cell, MISSING, rule=f"{error.kind}: {error}"[:300], again=error.kind != "context"
            )
            self._count_missing(ask, row)
            try:
                self._settle(id, self._store.add(row))
            except PorismError as fault:
                self.stop(fault)
                return
        self._watch.landed(call.n, Usage())
        self._room.set()

    def _failed(self, pending: Pending, error: ModelError) -> None:
        call = pending.call
        now = datetime.now(UTC).isoformat(timespec="seconds")
        failure = Failure(
            now,
            call.prompt.model,
            call.prompt.key,
            call.first,
            call.n,
            pending.failures + 1,
            error.kind,
            str(error)[:500],
        )
        try:
            self._store.add_failure(failure)
        except PorismError as fault:
            self.stop(fault)


async def replay(
    store: Store, checker: Checker, problems: Sequence[Problem], methods: Sequence[Method]
) -> dict[tuple[str, str], list[Observation]]:
    """Observations of all rounds that the store holds whole, by (problem id, method name). Costs no token."""
    engine = Engine({}, store, checker, _Nobody())
    for problem in problems:
        for method in methods:
            await engine._drive(problem, method)
    return engine._seen


def _first(fault: BaseException) -> BaseException:
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault


class _Nobody:
    """A watch that looks away."""

    def started(self, total: int, stored: int) -> None: ...

    def landed(self, rollouts: int, usage: Usage) -> None: ...

    def waiting(self, reason: str | None, until: float | None) -> None: ...

    def note(self, text: str) -> None: ...

    def finished(self) -> None: ...
