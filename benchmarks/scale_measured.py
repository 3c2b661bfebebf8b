"""The simulation of scale.py beside a small cluster that is really run: servers on this machine that only wait.

    python benchmarks/scale_measured.py       about five minutes; prints the table of docs/scale.md

Each server answers a rollout after half a second, eight at a time. One server, then four: all well, one of them at half
speed, and one killed after 10 s and started again 5 s later. The engine asks through its router, as it asks a rack of
servers or replicas on Ray; the simulation gets the same workload, and nothing is fitted.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from scale import CANDIDATES, NEIGHBORS, ROUNDS, SLOW, Conditions, Simulation

from porism.engine import Engine
from porism.methods.utility import Utility
from porism.models import open_model
from porism.prepare import enter
from porism.progress import SilentWatch
from porism.store import Store
from porism.types import Candidate, Neighbor, Problem, Sampling
from porism.verify.pool import Verifier

SERVER = Path(__file__).resolve().parents[1] / "tests" / "server.py"
LATENCY, SLOTS = 0.5, 8
KILL, BACK = 10.0, 5.0  # seconds from the start, and from then
SPEED = 1000.0  # tokens a second in the simulation: its unit is a millisecond
WAITING = Conditions(
    tokens=LATENCY * SPEED,
    spread=0.0,
    prefix=0,
    slots=SLOTS,
    speed=SPEED,
    repair=BACK / 3600,
    slow_share=0.25,
)


def workload(problems: int) -> list[Problem]:
    """As the simulation's: the row without an example is one of its candidates."""
    return [
        Problem(
            id=f"p{i}",
            question=f"How many of {i}?",
            candidates=tuple(
                Candidate(id=f"c{j}", text=f"Method {j} of {i}.") for j in range(CANDIDATES - 1)
            ),
            neighbors=tuple(
                Neighbor(id=f"n{j}", question=f"And {j} of {i}? [[answer: {j}]]", answer=str(j))
                for j in range(NEIGHBORS)
            ),
        )
        for i in range(problems)
    ]


class Servers:
    """Server processes on ports of their own; `slow`: how many of them take twice as long."""

    def __init__(self, number: int, slow: int) -> None:
        self.ports = [_free_port() for _ in range(number)]
        self.latencies = [LATENCY / SLOW if i < slow else LATENCY for i in range(number)]
        self.processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Servers:
        self.processes = [self._start(i) for i in range(len(self.ports))]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}/v1" for port in self.ports]

    async def trouble(self) -> None:
        """The first one fails, and comes back."""
        await asyncio.sleep(KILL)
        self.processes[0].kill()
        await asyncio.sleep(BACK)
        self.processes[0].communicate()
        self.processes[0] = await asyncio.to_thread(self._start, 0)

    def _start(self, at: int) -> subprocess.Popen[str]:
        command = [sys.executable, str(SERVER), "--port", str(self.ports[at])]
        command += ["--refuses-n", "true", "--latency", str(self.latencies[at])]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        return process


async def measured(servers: int, problems: int, *, slow: int, failure: bool) -> float:
    """Seconds of the engine from the first call to the last."""
    watch = SilentWatch()
    async with AsyncExitStack() as stack:
        with ExitStack() as inner:
            running = inner.enter_context(Servers(servers, slow))
            folder = inner.enter_context(tempfile.TemporaryDirectory())
            served = open_model("vllm/test-model", base_url=running.urls, concurrency=SLOTS)
            model = await enter(stack, served, watch, [])
            store = inner.enter_context(Store(Path(folder, "run")))
            checker = await stack.enter_async_context(Verifier(workers=1))
            method = Utility(
                solvers=(model.identity,),
                sampling=Sampling(max_tokens=100),
                target_samples=0,
                rollouts=sum(ROUNDS),
            )
            engine = Engine({model.identity: model}, store, checker, watch)
            started = time.perf_counter()
            trouble = asyncio.create_task(running.trouble()) if failure else None
            outcome = await engine.run(workload(problems), [method])
            took = time.perf_counter() - started
            if trouble is not None:
                await trouble
            assert outcome.stopped is None
            assert not outcome.missing
            await stack.aclose()
            return took


def simulated(servers: int, problems: int, *, slow: int, failure: bool) -> float:
    """The same in the simulation."""
    run = Simulation(servers, problems, stragglers=bool(slow), conditions=WAITING)
    if failure:
        run.fail_after(KILL, 0)
    return run.run().hours * 3600


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def main() -> None:
    """Print the table."""
    print("| servers | trouble | simulated | measured | difference |\n|---|---|---|---|---|")
    for servers, problems, name, slow, failure in (
        (1, 1, "none", 0, False),
        (4, 2, "none", 0, False),
        (4, 2, "one at half speed", 1, False),
        (4, 2, "one killed, back after 5 s", 0, True),
    ):
        expected = simulated(servers, problems, slow=slow, failure=failure)
        took = asyncio.run(measured(servers, problems, slow=slow, failure=failure))
        row = f"| {servers} | {name} | {expected:.1f} s | {took:.1f} s | {took / expected - 1:+.1%} |"
        print(row, flush=True)


if __name__ == "__main__":
    main()
