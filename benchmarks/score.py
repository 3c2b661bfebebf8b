"""How long `porism score` takes over a large benchmark, and how much memory: 100,000 stored observations.

    python benchmarks/score.py [FOLDER]     makes the run folder there (or a temporary one), scores it, prints figures

100 problems in 50 groups, 10 candidates each, 5 neighbors, 16 rollouts; a row without example; a judge with 12 calls.
Answers are drawn by a seeded generator and stored as a run would store them; nothing else is made up.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from porism.bench.config import BenchConfig
from porism.methods.judge import Judge
from porism.methods.utility import Utility
from porism.store import Row, Store
from porism.types import Candidate, Completion, Generate, Method, Neighbor, Problem, Sampling, Usage, Verdict
from porism.verify import VERSION

PROBLEMS, CANDIDATES, NEIGHBORS, ROLLOUTS, CALLS = 100, 10, 5, 16, 12
CONFIG = {
    "data": ["set.jsonl"],
    "models": {"solver": {"model": "fake/default"}},
    "methods": {"utility": {"model": "solver"}, "judge": {"model": "solver"}},
    "primary": {"metric": "auc", "methods": ["utility", "judge"]},
}


def problems() -> list[Problem]:
    """Pools of five right and five wrong candidates."""
    return [
        Problem(
            id=f"p{i}",
            group=f"g{i // 2}",
            question=f"Question {i}?",
            answer=str(i),
            candidates=tuple(
                Candidate(id=f"c{j}", text=f"Method {j} of {i}.", correct=j < CANDIDATES // 2, human=j == 0)
                for j in range(CANDIDATES)
            ),
            neighbors=tuple(
                Neighbor(id=f"n{j}", question=f"And {j} of {i}?", answer=str(1000 * i + j))
                for j in range(NEIGHBORS)
            ),
        )
        for i in range(PROBLEMS)
    ]


def make(folder: Path) -> int:
    """Write the run folder; how many rollouts it holds."""
    sampling = Sampling(max_tokens=100)
    utility = Utility(solvers=("solver",), sampling=sampling, rollouts=ROLLOUTS, target_samples=4)
    judge = Judge(judges=("solver",), sampling=sampling, calls=CALLS)
    methods: tuple[Method, ...] = (utility, judge)
    pool = problems()
    rng = Random(0)
    with Store(folder) as store:
        for problem in pool:
            right = {c.id for c in problem.candidates if c.correct}
            gold = {n.id: n.answer for n in problem.neighbors}
            for method in methods:
                for ask in method.plan(problem, []):
                    assert isinstance(ask.work, Generate)
                    good = rng.random() < (0.6 if ask.cell.candidate in right else 0.3)
                    if method is judge:
                        answer, text = None, f"Score: {rng.randint(4, 10) if good else rng.randint(1, 7)}"
                    else:
                        known = gold.get(ask.cell.neighbor or "", problem.answer or "")
                        answer = known if good else str(rng.randint(0, 50))
                        text = f"\\boxed{{{answer}}}"
                        if ask.gold is not None and not store.verdicts(answer, ask.gold):
                            verdict = Verdict("correct" if answer == ask.gold.answer else "wrong", "integer")
                            store.add_verdict(answer, ask.gold, VERSION, verdict)
                    store.add(
                        Row(ask.work.id, ask.cell, "stop", answer, "boxed", f"{rng.getrandbits(64):x}",
                            usage=Usage(prompt=300, completion=rng.randint(40, 100), requests=1)),
                        Completion(ask.work.rollout, text),
                    )  # fmt: skip
        names = {"utility": utility, "judge": judge}
        settings = {
            "benchmark": BenchConfig.model_validate(CONFIG).model_dump(mode="json"),
            "methods": [
                {"method": name, "settings": msgspec.json.decode(msgspec.json.encode(method))}
                for name, method in names.items()
            ],
            "models": {"fake/default": "solver"},
            "verifier": VERSION,
        }
        store.update_settings(lambda found: {**found, **settings})
        store.write("problems.jsonl", b"".join(msgspec.json.encode(p) + b"\n" for p in pool))
        return len(store.rows)


class Measured(NamedTuple):
    """Seconds on the clock, seconds of processor time, and peak megabytes."""

    seconds: float
    cpu: float
    megabytes: float


def measure(folder: Path, *command: str) -> Measured:
    """What one porism command takes over the folder, in a process of its own."""
    started = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "porism", command[0], str(folder), *command[1:]], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        document = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert document
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return Measured(time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit)


def as_ranking(folder: Path) -> None:
    """Make the folder one of `porism rank`: its utility alone, with a ranking of every problem."""
    with Store(folder) as store:

        def change(settings: dict[str, Any]) -> dict[str, Any]:
            method = settings["methods"][0]["settings"]
            kept = {key: value for key, value in settings.items() if key not in ("benchmark", "methods")}
            return kept | {"method": method}

        store.update_settings(change)


def main() -> None:
    """Make the folder, score it, print what that took."""
    from measure import Figure, report  # not on the path of the test that loads this file

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary) / "run"
        if not folder.exists():
            make(folder)
        took = measure(folder, "score", "--json")
        what = "score of 100,000 observations"
        report(
            Figure(what=what, value=took.seconds, unit="s", rule="under", bound=10),
            Figure(what=f"{what}: processor time", value=took.cpu, unit="s"),
            Figure(what=f"{what}: memory", value=took.megabytes, unit="MB", rule="under", bound=1000),
        )


if __name__ == "__main__":
    main()
