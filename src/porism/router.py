"""The way to a model that several servers serve: a lane for each, and which lane a call goes to.

A prefix has a home, found by rendezvous hashing: every server ranks every prefix by a hash, and the highest rank
wins. So a candidate stays where its prefix is cached, however the list of servers is ordered, and when one is away
only its own share moves. A server that has nothing to do takes from the end of the longest queue.

A server is away after a few failures in a row that another server need not share. What waits for it goes to the
others at once, what fails there is asked again elsewhere, and one call at a time tries whether it answers again;
then its share comes back. Nothing here changes what is asked: rollouts, seeds and scores stay the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Protocol, runtime_checkable

from porism.errors import CircuitOpen, ModelError
from porism.lane import Failed, Landed, Lane, Lost, Pending, RetryPolicy
from porism.types import Call, Model

AWAY_AFTER = 4  # failures in a row, where other servers can take over


@runtime_checkable
class Several(Protocol):
    """What a Model is as well that several servers answer for: which of them gets a call is the engine's affair."""

    @property
    def servers(self) -> Mapping[str, Model]:
        """By a name that stays the same from run to run."""
        ...

    @property
    def hosts(self) -> list[str]:
        """Where text leaves to; this machine left out."""
        ...


class Router:
    """Runs the calls of one model, on one server or on several; to the engine it looks like one lane.

    note is told when a server goes and when it is back; the other callbacks are those of a Lane.
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
        note: Callable[[str], None],
    ) -> None:
        self.model = model
        self._policy, self._stop, self._waiting, self._note = policy, stop, waiting, note
        servers = model.servers if isinstance(model, Several) else {model.name: model}
        several = len(servers) > 1
        self._lanes = {
            name: Lane(
                server,
                policy,
                landed=landed,
                lost=lost,
                failed=partial(_failed_at, failed, name) if several else failed,
                may_start=may_start,
                stop=self._stopped if several else stop,
                waiting=partial(self._waits, name) if several else waiting,
                others=self if several else None,
            )
            for name, server in servers.items()
        }
        self._names = {lane: name for name, lane in self._lanes.items()}
        self._away: dict[Lane, int] = {}  # trials that failed
        self._held: dict[str, tuple[str, float | None]] = {}  # why, until when
        self._told: dict[str, tuple[str, float | None]] = {}
        self._balancing = False

    @property
    def queued(self) -> int:
        """Calls that wait."""
        return sum(lane.queued for lane in self._names)

    @property
    def in_flight(self) -> int:
        """Rollouts."""
        return sum(lane.in_flight for lane in self._names)

    @property
    def calls_in_flight(self) -> int:
        return sum(lane.calls_in_flight for lane in self._names)

    def submit(self, call: Call, prefix: str, round: int) -> None:
        """Queue a call behind those of its round and prefix. Call `pump` when all are queued."""
        pending = Pending(call, prefix, round)
        self._home(pending).submit(pending)

    def pump(self) -> None:
        """Start as many calls as may be in flight now."""
        self._pump()
        self.balance()

    def close(self) -> None:
        """Start nothing more; what is in flight may land."""
        for lane in self._names:
            lane.close()

    async def drain(self) -> None:
        """Wait until nothing is in flight."""
        await asyncio.gather(*(lane.drain() for lane in self._names))

    async def abort(self) -> None:
        """Drop what is in flight."""
        self.close()
        await asyncio.gather(*(lane.abort() for lane in self._names))

    # What lanes ask

    def take(self, lane: Lane, pending: Pending, error: ModelError) -> bool:
        """Whether a call that failed in `lane` is seen to: asked elsewhere now, or kept for better times."""
        if error.fatal or (error.retry == "transient" and lane.failures_in_a_row >= AWAY_AFTER):
            lane.distrust()
        if error.retry == "no" and not lane.in_trouble:
            return False  # the call's own fault
        if lane.in_trouble:
            self._leave(lane, error)
        elif error.retry == "rate_limit":
            self._waits(self._names[lane], f"{error}; asking again", time.time() + lane.pause)
        sound = [
            other
            for other in self._names
            if other is not lane and not other.in_trouble and other.pause < self._policy.total_deadline
        ]
        if not sound:
            if error.fatal or not lane.in_trouble or not self._lately():
                return False
            lane.requeue(pending)
            return True
        if not lane.in_trouble and error.retry == "transient":
            if pending.failures + 1 >= len(self._lanes):
                return False  # each server has had its turn: it is time to wait between attempts
            pending.failures += 1
        open_now = [other for other in sound if other.pause <= 0]
        self._best(open_now or sound, pending).requeue(pending)
        self.pump()
        return True

    def balance(self) -> None:
        """Move what waits: away from servers that are away, home to those that are back, and to the idle."""
        if self._balancing or len(self._lanes) == 1:
            return
        returned = [lane for lane in self._away if not lane.in_trouble]
        for lane in returned:
            del self._away[lane]
            self._note(f"{self._names[lane]} answers again")
        if self._away or returned:
            self._move(self._names if returned else self._away)
            self._pump()
        for lane in self._names:
            while lane.idle and (pending := self._spare(lane)) is not None:
                lane.submit(pending)
                self._pump()
        self._tell()

    # How

    def _pump(self) -> None:
        """Each lane its own work; nothing is moved meanwhile."""
        self._balancing = True
        try:
            for lane in self._names:
                lane.pump()
        finally:
            self._balancing = False

    def _move(self, lanes: dict[Lane, str] | dict[Lane, int]) -> None:
        if all(lane.in_trouble for lane in self._names):
            return
        for pending in [pending for lane in lanes for pending in lane.take_all()]:
            self._home(pending).submit(pending)

    def _home(self, pending: Pending) -> Lane:
        """The lane of a call's prefix among the sound ones; one that is away gets a call to try."""
        home = self._best(self._names, pending)
        if home.in_trouble and not home.idle:
            sound = [lane for lane in self._names if not lane.in_trouble]
            return self._best(sound or self._names, pending)
        return home

    def _best(self, lanes: list[Lane] | dict[Lane, str], pending: Pending) -> Lane:
        what = pending.prefix or pending.call.prompt.key
        return max(lanes, key=lambda lane: _weight(self._names[lane], what))

    def _spare(self, idle: Lane) -> Pending | None:
        busiest = max((lane for lane in self._names if lane is not idle), key=lambda lane: lane.backlog)
        return busiest.take_last()

    def _leave(self, lane: Lane, error: ModelError) -> None:
        """Hold a lane whose server is away, the longer the oftener a trial failed."""
        name = self._names[lane]
        if lane not in self._away:
            self._away[lane] = 0
            self._note(f"{name} is away, the others do its share: {error}")
        if lane.pause <= 0:
            wait = min(self._policy.longest_wait, self._policy.first_wait * 2 ** self._away[lane])
            self._away[lane] += 1
            lane.hold(max(wait, error.retry_after or 0.0))
        self._held[name] = (f"{error}; trying again", time.time() + lane.pause)

    def _lately(self) -> bool:
        """Whether any server answered within the patience that one alone would be given."""
        latest = max(lane.last_success for lane in self._names)
        return time.monotonic() - latest <= self._policy.patience

    def _waits(self, name: str, reason: str | None, until: float | None) -> None:
        if reason is not None:
            self._held[name] = (reason, until)
        self._tell()

    def _tell(self) -> None:
        """Pass on which servers are held and why, and that none is any more."""
        for name, lane in self._lanes.items():
            if not (lane.in_trouble or lane.pause > 0 or lane.backing_off):
                self._held.pop(name, None)
        if self._held == self._told:
            return
        self._told = dict(self._held)
        until = min((t for _, t in self._held.values() if t is not None), default=None)
        self._waiting(self._why() or None, until)

    def _why(self) -> str:
        return "; ".join(f"{name}: {why}" for name, (why, _) in self._held.items())

    def _stopped(self, reason: BaseException) -> None:
        if isinstance(reason, CircuitOpen) and self._held:
            reason = CircuitOpen(f"no server of {self.model.name} answers: {self._why()}")
        self._stop(reason)


def _weight(name: str, prefix: str) -> bytes:
    return blake2b(f"{name}\0{prefix}".encode(errors="replace"), digest_size=8).digest()


def _failed_at(failed: Failed, name: str, pending: Pending, error: ModelError) -> None:
    failed(pending, ModelError(f"{name}: {error}", retry=error.retry, fatal=error.fatal, kind=error.kind))
