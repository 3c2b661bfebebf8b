"""The way to one model: what waits, what is in flight, how fast to go, and when to give up.

One retry layer, this one. A call that fails for a reason that may pass goes back to the front of the queue and
waits there, so that it never holds a place in flight. The number of rollouts in flight starts small, grows with
success, is halved on "too many requests", and holds while the server is in trouble: after many failures in a row
one call at a time goes out to try. Where none succeeds for a while the lane opens its circuit: it stops with the
reason instead of failing for ever.

Calls with equal prefixes follow each other, so that a server computes the prefix once. Where the model asks for
it they go strictly one after another, and calls of other prefixes fill the places beside them.

Where several servers serve the model each has a lane, and router.py moves calls between them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal, Protocol, runtime_checkable

from msgspec import structs

from porism.errors import CircuitOpen, ModelError
from porism.types import Ask, Call, Completion, Generate, Model, Reply


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Times in seconds. A call is asked at most `attempts` times, refusals for the rate limit not counted."""

    attempts: int = 6
    attempt_deadline: float = 900.0
    total_deadline: float = 3600.0
    first_wait: float = 0.5
    longest_wait: float = 20.0
    failures_in_a_row: int = 24  # without a success: one call at a time tries whether it goes again
    patience: float = 10.0  # without a success meanwhile: the circuit opens


@dataclass(slots=True)
class Pending:
    """A call that waits or is in flight, with its history."""

    call: Call
    prefix: str
    round: int
    failures: int = 0
    since: float | None = None  # of the first attempt

    @property
    def group(self) -> tuple[int, str]:
        """Calls of one group follow each other: a prefix in a round."""
        return self.round, self.prefix


Landed = Callable[[Pending, Reply], None]
Lost = Callable[[Pending, ModelError], None]
Failed = Callable[[Pending, ModelError], None]


@runtime_checkable
class Batched(Protocol):
    """What a Model is as well that answers in large batches: all it can take goes out at once, without a deadline."""

    batched: Literal[True]


class Others(Protocol):
    """The lanes of the other servers of the same model."""

    def take(self, lane: Lane, pending: Pending, error: ModelError) -> bool:
        """Whether they see to a call that failed in `lane`; else the lane does, as if it were alone."""
        ...

    def balance(self) -> None:
        """Called when a lane has started all it can."""
        ...


class Lane:
    """Runs the calls of one model on one server.

    landed and lost are called once a call, failed at every attempt that failed, waiting with the reason (or
    None) when the lane begins or stops to wait; stop ends the run. may_start is asked before each call leaves.
    """

    def __init__(
        self,
        model: Model,
        policy: RetryPolicy,
        *,
        landed: Landed,
        lost: Lost,
        failed: Failed,
        may_start: Callable[[], bool],
        stop: Callable[[BaseException], None],
        waiting: Callable[[str | None, float | None], None],
        others: Others | None = None,
    ) -> None:
        self.model = model
        self.in_flight = 0  # rollouts
        self.calls_in_flight = 0
        batched = isinstance(model, Batched)  # an answer is as late as its batch, which may take days
        self.limit: float = model.concurrency if batched else min(model.concurrency, 16)
        self._policy = replace(policy, attempt_deadline=inf, total_deadline=inf) if batched else policy
        self._landed, self._lost, self._failed = landed, lost, failed
        self._may_start, self._stop, self._waiting = may_start, stop, waiting
        self._others = others
        self._groups: OrderedDict[tuple[int, str], deque[Pending]] = OrderedDict()
        self._chained: set[str] = set()  # prefixes with a call in flight, where calls of one go one by one
        self._tasks: set[asyncio.Task[None]] = set()
        self.backing_off = 0
        self._paused_until = 0.0
        self.failures_in_a_row = 0
        self.last_success = time.monotonic()
        self._last_cut = 0.0
        self._closed = False
        self._wake: asyncio.TimerHandle | None = None

    @property
    def queued(self) -> int:
        """Calls that wait."""
        return sum(len(group) for group in self._groups.values()) + self.backing_off

    @property
    def backlog(self) -> int:
        """Groups that wait."""
        return len(self._groups)

    @property
    def in_trouble(self) -> bool:
        """Whether so many calls failed in a row that only one at a time goes out to try."""
        return self.failures_in_a_row >= self._policy.failures_in_a_row

    @property
    def pause(self) -> float:
        """Seconds until a call may leave again; 0 or less: now."""
        return self._paused_until - time.monotonic()

    @property
    def idle(self) -> bool:
        """Whether it could start a call and has none."""
        room = self.in_flight == 0 or (not self.in_trouble and self.in_flight < self.limit)
        return room and not self._groups and not self._closed and self.pause <= 0

    def hold(self, seconds: float) -> None:
        """Start nothing for so long."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def distrust(self) -> None:
        """In trouble, until a call succeeds."""
        self.failures_in_a_row = max(self.failures_in_a_row, self._policy.failures_in_a_row)

    def submit(self, pending: Pending) -> None:
        """Queue a call behind those of its round and prefix. Call `pump` when all are queued."""
        self._groups.setdefault(pending.group, deque()).append(pending)

    def take_last(self) -> Pending | None:
        """The call that would have waited longest, removed."""
        if not self._groups:
            return None
        group, waiting = self._groups.popitem()
        pending = waiting.pop()
        if waiting:
            self._groups[group] = waiting
        return pending

    def take_all(self) -> list[Pending]:
        """All calls that wait, removed; those that back off are still to come."""
        found = [pending for group in self._groups.values() for pending in group]
        self._groups.clear()
        return found

    def close(self) -> None:
        """Start nothing more; what is in flight may land."""
        self._closed = True

    async def drain(self) -> None:
        """Wait until nothing is in flight."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def abort(self) -> None:
        """Drop what is in flight."""
        self.close()
        for task in self._tasks:
            task.cancel()
        await self.drain()

    def pump(self) -> None:
        """Start as many calls as may be in flight now."""
        if self._closed:
            return
        self._start()
        if self._others is not None:
            self._others.balance()

    def _start(self) -> None:
        if (pause := self.pause) > 0:
            if self._wake is None:
                self._wake = self._later(pause, self._after_pause)
            return
        while (group := self._next()) is not None:
            pending = group[0]
            fits = self.in_flight + pending.call.n <= (1 if self.in_trouble else self.limit)
            if not (fits or self.in_flight == 0) or not self._may_start():
                return
            group.popleft()
            if not group:
                del self._groups[pending.group]
            if self.model.chain and pending.prefix:
                self._chained.add(pending.prefix)
            self.in_flight += pending.call.n
            self.calls_in_flight += 1
            task = asyncio.get_running_loop().create_task(self._attempt(pending))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A fault of ours, here or in what the lane tells, must end the run with its reason, not hang it."""
        self._tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._stop(fault)

    def _later(self, wait: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        def act() -> None:
            try:
                action()
            except Exception as fault:  # noqa: BLE001  as in _ended
                self._stop(fault)

        return asyncio.get_running_loop().call_later(wait, act)

    def _after_pause(self) -> None:
        self._wake = None
        self.pump()

    def _next(self) -> deque[Pending] | None:
        for (_, prefix), group in self._groups.items():
            if prefix not in self._chained:
                return group
        return None

    async def _attempt(self, pending: Pending) -> None:
        pending.since = pending.since or time.monotonic()
        try:
            async with asyncio.timeout(self._policy.attempt_deadline):
                reply = _asked_for(pending.call, await self.model.generate(pending.call))
        except ModelError as raised:
            error = raised
        except TimeoutError:
            error = ModelError(
                f"no answer within {self._policy.attempt_deadline:.0f} s", retry="transient", kind="timeout"
            )
        except asyncio.CancelledError:
            if self._closed:  # by `abort`
                raise
            error = ModelError("the call was dropped on the way", retry="transient", kind="dropped")
        else:
            self._leave(pending)
            self._succeeded(pending, reply)
            return
        self._leave(pending)
        self._retry_or_give_up(pending, error)
        self.pump()

    def _leave(self, pending: Pending) -> None:
        self.in_flight -= pending.call.n
        self.calls_in_flight -= 1
        self._chained.discard(pending.prefix)

    def _succeeded(self, pending: Pending, reply: Reply) -> None:
        self.failures_in_a_row = 0
        self.last_success = time.monotonic()
        # As many again for each one answered: doubles per round trip at first, then a step a round trip.
        self.limit = min(self.model.concurrency, self.limit + (1 if self._last_cut == 0 else 1 / self.limit))
        call = pending.call
        answered = {completion.rollout for completion in reply.completions}
        owed = [rollout for rollout in range(call.first, call.first + call.n) if rollout not in answered]
        self._landed(pending, reply)
        for rollout in reversed(owed):
            self.requeue(replace(pending, call=Call(call.prompt, rollout)))
        self.pump()

    def _retry_or_give_up(self, pending: Pending, error: ModelError) -> None:
        now = time.monotonic()
        self._failed(pending, error)
        if error.kind != "context":  # what does not fit says nothing about the server
            self.failures_in_a_row += 1
        wait = self._wait(pending, error, now)
        if self._others is not None and self._others.take(self, pending, error):
            return
        if error.fatal:
            self._stop(error)
            return
        if error.retry == "no":
            if self.in_trouble:
                self._open_circuit(error)
            else:
                self._lost(pending, error)
            return
        if wait > self._policy.total_deadline:
            self._stop(CircuitOpen(f"{self.model.name} wants to be asked again in {wait:,.0f} s: {error}"))
            return
        since = pending.since or now
        out_of_time = now + wait - since > self._policy.total_deadline
        if error.retry == "transient":
            pending.failures += 1
        if pending.failures >= self._policy.attempts or out_of_time:
            if self.last_success < since:
                self._open_circuit(error)
                return
            self._lost(pending, error)
            return
        if error.retry == "transient" and self.in_trouble:
            if now - self.last_success > self._policy.patience:
                self._open_circuit(error)
                return
            self._paused_until = max(self._paused_until, now + wait)
        self.backing_off += 1
        self._waiting(f"{error}; asking again", time.time() + wait)
        self._later(wait, lambda: self._resume(pending))

    def _wait(self, pending: Pending, error: ModelError, now: float) -> float:
        """Seconds until the call may leave again; cuts the limit on "too many requests"."""
        if error.retry == "rate_limit":
            wait = error.retry_after if error.retry_after is not None else self._policy.first_wait * 4
            if now - self._last_cut > 1.0:  # one cut for all the calls that were refused together
                self.limit, self._last_cut = max(1.0, self.limit / 2), now
            self._paused_until = max(self._paused_until, now + wait)
            return wait
        spread = random.Random(f"{pending.call.prompt.key}{pending.call.first}{pending.failures}").random()  # noqa: S311
        doubled: float = self._policy.first_wait * 2**pending.failures
        wait = min(self._policy.longest_wait, doubled) * (0.5 + spread)
        return max(wait, error.retry_after or 0.0)

    def _resume(self, pending: Pending) -> None:
        self.backing_off -= 1
        self.requeue(pending)
        if self.backing_off == 0:
            self._waiting(None, None)
        self.pump()

    def requeue(self, pending: Pending) -> None:
        """Queue a call before all others."""
        self._groups.setdefault(pending.group, deque()).appendleft(pending)
        self._groups.move_to_end(pending.group, last=False)

    def _open_circuit(self, error: ModelError) -> None:
        self._stop(
            CircuitOpen(
                f"{self.model.name}: {self.failures_in_a_row} calls failed in a row and none succeeded; "
                f"the last: {error}"
            )
        )


def _asked_for(call: Call, reply: Reply) -> Reply:
    """The reply with the rollouts of its call alone, each once, as text that can be stored.

    Raises ModelError where none is left.
    """
    wanted = range(call.first, call.first + call.n)
    found = {c.rollout: _storable(c) for c in reply.completions if c.rollout in wanted}
    if not found:
        raise ModelError("the server answered without a completion", retry="transient", kind="empty")
    return Reply(tuple(found.values()), reply.usage)


def _storable(completion: Completion) -> Completion:
    """The same, but for halves of surrogate pairs: no file holds those."""
    try:
        (completion.text + completion.reasoning).encode()
    except UnicodeEncodeError:
        text, reasoning = (
            t.encode(errors="replace").decode() for t in (completion.text, completion.reasoning)
        )
        return structs.replace(completion, text=text, reasoning=reasoning)
    return completion


def bundle(asks: Sequence[Ask], max_n: int) -> list[tuple[Call, str]]:
    """Calls of at most max_n rollouts of a prompt that follow each other, with their prefix."""
    calls: list[tuple[Call, str]] = []
    for ask in asks:
        if not isinstance(ask.work, Generate):
            continue
        prompt, rollout = ask.work.prompt, ask.work.rollout
        if calls:
            last, prefix = calls[-1]
            if last.prompt.key == prompt.key and last.first + last.n == rollout and last.n < max_n:
                calls[-1] = (Call(last.prompt, last.first, last.n + 1), prefix)
                continue
        calls.append((Call(prompt, rollout), ask.prefix))
    return calls
