"""What porism adds to the embedded server's own time, and how much of the shared prompt comes from its cache.

The same calls go to the same server twice: through the engine (store, verifier and all), and by a bare loop that
posts them and throws the answers away. Five interleaved pairs; every run gets problems of its own, so that no run
profits from a prompt that another has warmed. Prints the ratio of completion tokens a second.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import tempfile
import time
from pathlib import Path

from measure import Figure, report

from porism import read_problems
from porism.engine import Engine
from porism.lane import bundle
from porism.methods.utility import Utility
from porism.models.local import LocalModel
from porism.progress import SilentWatch
from porism.store import Store
from porism.types import Ask, Call, Problem, Sampling, Usage
from porism.verify.pool import Verifier

HERE = Path(__file__).resolve().parents[1]


def variant(problem: Problem, number: int) -> Problem:
    """The same problem with another opening, so that no cache knows it."""
    return dataclasses.replace(problem, question=f"(Exercise {number}.) {problem.question}")


async def bare(model: LocalModel, asks: list[Ask]) -> Usage:
    """Post the calls, calls of a prefix in a chain as the engine does, as many rollouts at once as there are slots."""
    chains: dict[str, list[Call]] = {}
    for call, prefix in bundle(asks, model.max_n):
        chains.setdefault(prefix, []).append(call)
    total = Usage()
    free = model.concurrency
    changed = asyncio.Condition()

    async def run(chain: list[Call]) -> None:
        nonlocal total, free
        for call in chain:
            async with changed:
                await changed.wait_for(lambda: free >= call.n)  # noqa: B023  waited for at once
                free -= call.n
            reply = await model.generate(call)
            total += reply.usage
            async with changed:
                free += call.n
                changed.notify_all()

    await asyncio.gather(*(run(chain) for chain in chains.values()))
    return total


async def engine(model: LocalModel, problem: Problem, method: Utility) -> Usage:
    """The same through the engine."""
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "run") as store:
        async with Verifier() as checker:
            outcome = await Engine({model.identity: model}, store, checker, SilentWatch()).run(
                [problem], [method]
            )
        assert outcome.stopped is None
        return store.usage


def shareable(asks: list[Ask], usage: Usage) -> float:
    """Prompt tokens that a call could take from an earlier call of its prefix, estimated by characters."""
    first: dict[str, str] = {}
    shared = total = 0
    for call, prefix in bundle(asks, 8):
        text = call.prompt.messages[0].content
        total += len(text)
        if prefix in first:
            before = first[prefix]
            same = next(
                (i for i, (a, b) in enumerate(zip(before, text, strict=False)) if a != b), len(before)
            )
            shared += same
        else:
            first[prefix] = text
    return usage.prompt * shared / total


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("-n", type=int, default=4)
    given = parser.parse_args()
    (base,) = read_problems(HERE / "examples" / "necklaces.yaml")
    base = dataclasses.replace(base, candidates=base.candidates[:3], neighbors=base.neighbors[:2])
    ratios, shares = [], []
    async with LocalModel(given.model, context=1024) as model:
        await bare(model, _method(model, 1).plan(variant(base, 0), []))
        for pair in range(given.pairs):
            rates = {}
            for side in ("engine", "bare") if pair % 2 else ("bare", "engine"):
                method = _method(model, given.n)
                problem = variant(base, 100 + 2 * pair + (side == "bare"))
                asks = method.plan(problem, [])
                started = time.monotonic()
                usage = await (engine(model, problem, method) if side == "engine" else bare(model, asks))
                rates[side] = usage.completion / (time.monotonic() - started)
                if side == "engine":
                    shares.append(usage.cached / shareable(asks, usage))
            ratios.append(rates["engine"] / rates["bare"])
            print(
                f"pair {pair}: engine {rates['engine']:.1f}, bare {rates['bare']:.1f} tokens/s, {ratios[-1]:.3f}"
            )
    report(
        Figure.over("embedded model: tokens a second, of a bare loop's", ratios, rule="at least", bound=0.97),
        Figure.over(
            "embedded model: shareable prompt tokens that came from the cache",
            shares,
            rule="at least",
            bound=0.9,
        ),
    )


def _method(model: LocalModel, rollouts: int) -> Utility:
    sampling = Sampling(temperature=0.6, top_p=0.95, top_k=40, max_tokens=128)
    return Utility(solvers=(model.identity,), sampling=sampling, rollouts=rollouts, target_samples=0)


if __name__ == "__main__":
    asyncio.run(main())
