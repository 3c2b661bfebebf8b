"""The paper's run on 1, 8 and 64 replicas, simulated: what failures, stragglers and rounds that wait add to the ideal.

    python benchmarks/scale.py [PROBLEMS]      192 problems: a minute or two; prints the table of docs/scale.md

A discrete-event simulation on a heap of its own, no library: the only events are that a generation ends, that a replica
fails and that it is back. A replica has `slots` streams of equal, constant speed. A candidate's generations wait at the
replica that rendezvous hashing names; one with nothing left to do takes from the longest queue. A replica that fails
loses its cache and what is in flight, which is asked again. Every number below is an assumption of the simulation; what
it tells are ratios. Real servers speed up when few streams are left, so the tails here are longer than theirs.
"""

from __future__ import annotations

import heapq
import math
import random
import sys
from collections import deque
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count
from typing import NamedTuple

CANDIDATES, NEIGHBORS = 10, 2
ROUNDS = (2, 2, 4, 8, 16, 32)  # 64 rollouts
HALVING = (10, 10, 10, 5, 5, 3)  # candidates left in each round: 296 of 640 rollouts a neighbor
READS = 10  # times as many tokens a second as it writes
SLOW = 0.5  # the speed of a slow replica, as a share of that of others


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What completions are, and replicas. The paper's run, by default."""

    tokens: float = 7_500  # mean of a completion
    spread: float = 0.6  # sigma of its logarithm
    most: int = 16_384  # where it is cut
    prefix: int = 4_000  # tokens
    slots: int = 64  # streams of a replica
    speed: float = 12.5  # tokens a second of a stream
    life: float = 24.0  # hours between failures of a replica, on average
    repair: float = 1 / 6  # hours until it is back
    slow_share: float = 0.125  # of the replicas: one of 8, none of 1


PAPER = Conditions()


class Task(NamedTuple):
    """One generation: problem, its prefix, tokens of its completion."""

    problem: int
    prefix: int
    tokens: int


@dataclass
class Replica:
    """A server: its speed, what waits for it, what it works on, and the prefixes in its cache."""

    speed: float
    queue: deque[Task] = field(default_factory=deque)
    running: dict[int, tuple[Task, float]] = field(default_factory=dict)  # by event: task and start
    cached: set[int] = field(default_factory=set)
    up: bool = True


class Outcome(NamedTuple):
    """Hours to the end and those of the ideal; the share of tokens lost; how often a prefix was computed on average."""

    hours: float
    ideal: float
    redone: float
    prefills: float


class Simulation:
    """One run. adaptive: half of the candidates leave on the way, and each round waits for the one before."""

    def __init__(
        self,
        replicas: int,
        problems: int,
        *,
        adaptive: bool = False,
        failures: bool = False,
        stragglers: bool = False,
        seed: int = 1,
        conditions: Conditions = PAPER,
    ) -> None:
        self._rng = random.Random(seed)
        self._given = conditions
        slow = int(replicas * conditions.slow_share) if stragglers else 0
        self._replicas = [Replica(conditions.speed * (SLOW if i < slow else 1)) for i in range(replicas)]
        self._events: list[tuple[float, int, int]] = []  # time, event, replica
        self._numbers = count()
        self._problems = problems
        self._adaptive, self._failures = adaptive, failures
        self._round = [0] * problems
        self._open = [0] * problems
        self._left = 0
        self._tokens = self._lost = self._prefills = 0.0
        self._now = 0.0
        self._homes: dict[int, int] = {}
        self._failing: dict[int, int] = {}  # the event at which each replica fails next
        self._repairing: dict[int, int] = {}

    def run(self) -> Outcome:
        """Simulate to the end."""
        for problem in range(self._problems):
            self._submit(problem)
        if self._failures:
            for r in range(len(self._replicas)):
                self._next_failure(r)
        self._dispatch_all()
        while self._left:
            self._now, event, r = heapq.heappop(self._events)
            replica = self._replicas[r]
            if event in replica.running:
                self._done(replica.running.pop(event)[0])
                self._dispatch(r)
            elif event == self._failing.get(r):
                self._fail(r)
            elif event == self._repairing.get(r):
                replica.up = True
                if self._failures:
                    self._next_failure(r)
                self._dispatch(r)
        return Outcome(
            hours=self._now / 3600,
            ideal=self._tokens / (len(self._replicas) * self._given.slots * self._given.speed) / 3600,
            redone=self._lost / self._tokens,
            prefills=self._prefills / (self._problems * CANDIDATES),
        )

    def _at(self, seconds: float, r: int) -> int:
        event = next(self._numbers)
        heapq.heappush(self._events, (self._now + seconds, event, r))
        return event

    def fail_after(self, seconds: float, r: int) -> None:
        """Let replica r fail, so long from now."""
        self._failing[r] = self._at(seconds, r)

    def _next_failure(self, r: int) -> None:
        self.fail_after(self._rng.expovariate(1 / (self._given.life * 3600)), r)

    def _fail(self, r: int) -> None:
        """What was in flight is asked again, wherever there is room; what it has cost is lost."""
        replica = self._replicas[r]
        for task, begun in replica.running.values():
            self._lost += min(task.tokens, (self._now - begun) * replica.speed)
            replica.queue.appendleft(task)
        replica.running.clear()
        replica.cached.clear()
        replica.up = False
        self._repairing[r] = self._at(self._given.repair * 3600, r)
        self._dispatch_all()

    def _submit(self, problem: int) -> None:
        """Queue a problem's next round; where no round waits for another, all of them."""
        first = self._round[problem]
        last = first + 1 if self._adaptive else len(ROUNDS)
        for number in range(first, last):
            for candidate in range(HALVING[number] if self._adaptive else CANDIDATES):
                prefix = problem * CANDIDATES + candidate
                queue = self._replicas[self._home(prefix)].queue
                for _ in range(ROUNDS[number] * NEIGHBORS):
                    task = Task(problem, prefix, self._length())
                    queue.append(task)
                    self._open[problem] += 1
                    self._left += 1
                    self._tokens += task.tokens
        self._round[problem] = last

    def _length(self) -> int:
        """Tokens of a completion. The mean is that of the conditions before the cut."""
        mu = math.log(self._given.tokens) - self._given.spread**2 / 2
        tokens = self._rng.lognormvariate(mu, self._given.spread)
        return max(1, min(self._given.most, round(tokens)))

    def _home(self, prefix: int) -> int:
        if prefix not in self._homes:
            self._homes[prefix] = max(
                range(len(self._replicas)), key=lambda r: blake2b(b"%d %d" % (prefix, r)).digest()
            )
        return self._homes[prefix]

    def _done(self, task: Task) -> None:
        self._left -= 1
        self._open[task.problem] -= 1
        if not self._open[task.problem] and self._round[task.problem] < len(ROUNDS):
            self._submit(task.problem)
            self._dispatch_all()

    def _dispatch_all(self) -> None:
        for r in range(len(self._replicas)):
            self._dispatch(r)

    def _dispatch(self, r: int) -> None:
        replica = self._replicas[r]
        while replica.up and len(replica.running) < self._given.slots:
            if replica.queue:
                task = replica.queue.popleft()
            else:
                longest = max(self._replicas, key=lambda other: len(other.queue))
                if not longest.queue:
                    return
                task = longest.queue.pop()
            seconds = task.tokens / replica.speed
            if task.prefix not in replica.cached:
                replica.cached.add(task.prefix)
                self._prefills += 1
                seconds += self._given.prefix / (READS * self._given.slots * self._given.speed)
            replica.running[self._at(seconds, r)] = (task, self._now)


def main() -> None:
    """Print the table."""
    problems = int(sys.argv[1]) if len(sys.argv) > 1 else 192
    print("| replicas | allocation | trouble | hours | over the ideal | tokens lost | prefixes computed |")
    print("|---|---|---|---|---|---|---|")
    for replicas in (1, 8, 64):
        for adaptive in (False, True):
            for name, failures, stragglers in (
                ("none", False, False),
                ("stragglers", False, True),
                ("failures", True, False),
                ("both", True, True),
            ):
                if stragglers and not int(replicas * PAPER.slow_share):
                    continue
                found = Simulation(
                    replicas, problems, adaptive=adaptive, failures=failures, stragglers=stragglers, seed=1
                ).run()
                print(
                    f"| {replicas} | {'halving' if adaptive else 'uniform'} | {name} | {found.hours:,.1f} | "
                    f"{found.hours / found.ideal - 1:+.1%} | {found.redone:.2%} | {found.prefills:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
