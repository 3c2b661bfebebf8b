"""How replicas on Ray scale, and what Ray costs: fake models that only wait, so that processors do not matter.

    python benchmarks/ray_replicas.py

One worker and four with answers of 0.5 s, then the same run with answers of 1 s from this process and from one actor.
Times are those of the engine, from the first call to the last: a start of Ray is paid once a run. Every run draws the
same delays, by identity. The extra `ray` is needed; some four minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from porism.config import Placement
from porism.engine import Engine
from porism.methods.utility import Utility
from porism.models import open_model
from porism.prepare import enter
from porism.progress import SilentWatch
from porism.scale import Cluster, open_replicas
from porism.store import Store
from porism.types import Candidate, Neighbor, Problem, Sampling
from porism.verify.pool import Verifier

CANDIDATES, NEIGHBORS = 7, 4


def problems(rollouts: int) -> list[Problem]:
    """Problems that ask for at least so many rollouts, at 8 a neighbor."""
    each = (CANDIDATES + 1) * NEIGHBORS * 8
    return [
        Problem(
            id=f"p{i}",
            question=f"How many of {i}?",
            candidates=tuple(Candidate(id=f"c{j}", text=f"Method {j} of {i}.") for j in range(CANDIDATES)),
            neighbors=tuple(
                Neighbor(id=f"n{j}", question=f"And {j} of {i}? [[answer: {j}]]", answer=str(j))
                for j in range(NEIGHBORS)
            ),
        )
        for i in range(-(-rollouts // each))
    ]


async def seconds(spec: str, address: str, replicas: int, rollouts: int) -> float:
    """The time of a run with so many replicas on the cluster at `address`; with none, from this process."""
    watch, chosen = SilentWatch(), problems(rollouts)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if replicas:
            placement = Placement(address=address, replicas=replicas, cpus=0)
            cluster = await stack.enter_async_context(Cluster(placement, watch.note))
            model = await enter(stack, open_replicas(cluster, spec), watch, [])
        else:
            model = await enter(stack, open_model(spec), watch, [])
        store = stack.enter_context(Store(Path(folder, "run")))
        checker = await stack.enter_async_context(Verifier(workers=1))
        method = Utility(solvers=(model.identity,), sampling=Sampling(max_tokens=100), target_samples=0)
        engine = Engine({model.identity: model}, store, checker, watch)
        started = time.perf_counter()
        outcome = await engine.run(chosen, [method])
        took = time.perf_counter() - started
        assert outcome.stopped is None
        assert not outcome.missing
        return took


async def main(address: str, rollouts: int) -> None:
    """Print both comparisons."""
    half, whole = (
        "fake/delay=0.5,max_n=1,concurrency=8,tokens=5",
        "fake/delay=1,max_n=1,concurrency=8,tokens=5",
    )
    async with Cluster(Placement(address=address), SilentWatch().note):  # started once for all
        one, four = [await seconds(half, address, n, rollouts) for n in (1, 4)]
        print(f"0.5 s an answer: one worker {one:.1f} s, four {four:.1f} s: {one / four:.2f} times as fast")
        here, there = [await seconds(whole, address, n, rollouts // 4) for n in (0, 1)]
        print(f"1 s an answer: this process {here:.1f} s, one actor {there:.1f} s: {there / here - 1:+.1%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--address", default="local", help="of a cluster that runs already [one of its own]")
    parser.add_argument("--rollouts", type=int, default=1280)
    asked = parser.parse_args()
    asyncio.run(main(asked.address, asked.rollouts))
