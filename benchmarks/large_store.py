"""A run folder of a million rollouts: how long it takes to write, open, look at and export, and in how much memory.

    python benchmarks/large_store.py FOLDER [ROLLOUTS [READER ...]]     4 GB of text for a million; needs 2 GB of disk

A READER is open, texts, status or export; all of them by default.

The rollouts are those that `rank` would ask: problems of 10 candidates, 2 neighbors, 64 rollouts, with ids, cells and
index rows of full size, written by the store itself. A text is 4 KB of words drawn from a seed; three answers of ten
are right, five come from twenty wrong ones a neighbor, one in five was never seen before. Each figure is that of a
process of its own: seconds on the clock, and the most memory it held.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from measure import Figure, Measured, measured, report

from porism.data import data_hash
from porism.methods.utility import Utility
from porism.segments import FULL, Segments, compress
from porism.store import Row, Store
from porism.types import (
    Ask,
    Candidate,
    Completion,
    Generate,
    Neighbor,
    Problem,
    Sampling,
    Usage,
    Verdict,
)
from porism.verify import VERSION

SOLVER = "6" * 64
CANDIDATES, NEIGHBORS, ROLLOUTS, N = 10, 2, 64, 8
TEXT = 4_000  # bytes of an answer


def problems(count: int) -> list[Problem]:
    """Problems in the shape of the paper's, with invented words."""
    return [
        Problem(
            id=f"problem-{p:04}",
            question=f"Question {p}: how many lattice paths stay below the line?",
            candidates=tuple(
                Candidate(id=f"candidate-{c:02}", text=f"Attempt {c} at {p}.") for c in range(CANDIDATES)
            ),
            neighbors=tuple(
                Neighbor(id=f"neighbor-{n}", question=f"Neighbor {n} of {p}?", answer=str(1000 * p + n))
                for n in range(NEIGHBORS)
            ),
        )
        for p in range(count)
    ]


def asks(method: Utility, chosen: list[Problem], rollouts: int) -> Iterator[Ask]:
    """The first `rollouts` asks of the plan."""
    left = rollouts
    for problem in chosen:
        for ask in method.plan(problem, [])[:left]:
            left -= 1
            yield ask


def write(folder: Path, rollouts: int) -> None:
    """Make the run folder."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 11))) for _ in range(4000)]
    texts = [" ".join(rng.choices(words, k=TEXT // 7))[: TEXT - 60] for _ in range(3000)]
    a_problem = (CANDIDATES + 1) * NEIGHBORS * ROLLOUTS
    chosen = problems(rollouts // a_problem + 1)
    method = Utility(solvers=(SOLVER,), sampling=Sampling(max_tokens=16384), rollouts=ROLLOUTS)
    with Store(folder) as store:
        settings = {
            "name": "large",
            "verifier": VERSION,
            "data_hash": data_hash(chosen),
            "models": {"vllm/a-model": SOLVER},
            "method": msgspec.to_builtins(method),
            "sessions": [],
        }
        store.update_settings(lambda old: old | settings)
        store.write("problems.jsonl", b"".join(msgspec.json.encode(p) + b"\n" for p in chosen))
        for number, ask in enumerate(asks(method, chosen, rollouts)):
            assert isinstance(ask.work, Generate)
            store.add_prompt(ask.work.prompt)
            gold = ask.gold.answer if ask.gold else "7"
            luck = rng.random()
            answer = gold if luck < 0.3 else f"-{rng.randrange(20)}" if luck < 0.8 else f"{rng.random()}"
            text = f"{texts[number % len(texts)]} {number} so the answer is \\boxed{{{answer}}}"
            usage = Usage(N * 1200, N * 1100, N * 1100, 1) if number % N == 0 else Usage()
            row = Row(ask.work.id, ask.cell, "stop", answer, "boxed", f"{number:016x}", usage=usage)
            store.add(row, Completion(ask.work.rollout, text))
            if ask.gold is not None and store.verdict(answer, ask.gold, VERSION) is None:
                verdict = Verdict("correct" if answer == gold else "wrong", "equal numbers")
                store.add_verdict(answer, ask.gold, VERSION, verdict)


READ = """
import sys, pathlib
from porism.store import Store
store = Store(pathlib.Path(sys.argv[1]), write=False)
print(len(store.rows), 'rows,', len(store.decided), 'verdicts')
"""
TEXTS = """
import sys, pathlib, random, time
from porism.store import Store
store = Store(pathlib.Path(sys.argv[1]), write=False)
rows = random.Random(2).sample(list(store.rows.values()), min(2000, len(store.rows)))
begun = time.perf_counter()
assert all(store.completion(row, 0).text for row in rows)
print(f'{(time.perf_counter() - begun) / len(rows) * 1000:.2f} ms a text, anywhere')
"""


def timed(name: str, *command: str) -> Measured:
    """Run a command and print its seconds on the clock, its most memory, and its last line."""
    took = measured(sys.executable, *command)
    last = took.output.splitlines()[-1:]
    print(f"{name:14} {took.seconds:6.1f} s  {took.megabytes / 1000:5.2f} GB ", *last, flush=True)
    return took


def main() -> None:
    """Write the folder unless it is there, then time what reads it."""
    folder = Path(sys.argv[1])
    rollouts = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    if not (folder / "run.json").is_file():
        begun = time.perf_counter()
        write(folder, rollouts)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{'write':14} {time.perf_counter() - begun:6.1f} s  {peak:5.2f} GB")
        begun = time.perf_counter()
        full = Segments(folder / "text").full(FULL)  # this writer is faster than the compressor beside it
        assert all(compress(segment) for segment in full)
        print(f"{'compress':14} {time.perf_counter() - begun:6.1f} s  {len(full)} segments that were left")
    sizes = {kind: sum(f.stat().st_size for f in folder.glob(kind)) for kind in ("index.jsonl", "text/*")}
    print(json.dumps({kind: f"{size / 1e6:,.0f} MB" for kind, size in sizes.items()}))
    readers = sys.argv[3:] or ["open", "texts", "status", "export"]
    if "open" in readers:
        took = timed("open", "-c", READ, str(folder))
        what = f"a store of {rollouts:,} rollouts"
        report(
            Figure(what=f"{what}: opened to go on", value=took.seconds, unit="s", rule="under", bound=20),
            Figure(what=f"{what}: memory", value=took.megabytes / 1000, unit="GB", rule="under", bound=1.5),
        )
    if "texts" in readers:
        timed("open, texts", "-c", TEXTS, str(folder))
    if "status" in readers:
        took = timed("status", "-m", "porism", "status", str(folder))
        report(Figure(what="its porism status", value=took.seconds, unit="s", rule="under", bound=3))
    if "export" in readers:
        timed("export", "-m", "porism", "export", str(folder), "-o", str(folder / "parquet"))


if __name__ == "__main__":
    main()
