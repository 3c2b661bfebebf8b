"""Runs for the tests of the report: made by the engine, with fake models that write what a test wants to see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from porism.bench.config import read_config
from porism.bench.run import arun
from porism.data import write_problems
from porism.engine import Engine
from porism.methods.utility import Utility
from porism.models.fake import FakeModel
from porism.progress import SilentWatch
from porism.report import write
from porism.run import rank
from porism.store import Store
from porism.types import Candidate, Neighbor, Problem, Prompt, Sampling
from porism.verify.pool import Verifier

_T = TypeVar("_T")
BENCH = """
data = "set.jsonl"
primary.metric = "auc"
primary.methods = ["utility", "random"]

[models.solver]
model = "fake/rate_right=0.9,rate_wrong=0.2"
max_tokens = 100

[methods.utility]
model = "solver"
rollouts = 2

[methods.answer-only]
method = "utility"
exemplar = "answer-only"
model = "solver"
rollouts = 2

[methods.length]
[methods.random]
"""
CASES = Path(__file__).parent / "cases"


def apart(work: Coroutine[Any, Any, _T]) -> _T:
    """asyncio.run in a thread of its own: Playwright keeps a loop in the test's thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def hostile() -> dict[str, str]:
    """The hostile texts by name."""
    found = {}
    for case in yaml.safe_load((CASES / "hostile.yaml").read_text(encoding="utf-8")):
        text = case["text"]
        if isinstance(text, dict):
            part, times = text["repeat"]
            text = part * times
        found[case["name"]] = text
    return found


def mathematical(id: str = "valuation") -> Problem:
    """A problem with formulas in every text; candidate a helps."""
    return Problem(
        id=id,
        question="What is the largest integer $v$ such that $3^v$ divides $100!$?",
        answer="48",
        candidates=(
            Candidate(
                id="a",
                text="[[helps]] Divide again and again:\n\n$$v = \\sum_{k \\ge 1} \\lfloor n/p^k \\rfloor$$\n\nThe "
                "answer is $\\boxed{48}$.",
                answer="48",
                correct=True,
                human=True,
            ),
            Candidate(
                id="b",
                text="Only multiples of $p$ count: \\(v = 33\\).",
                answer="33",
                correct=False,
                kind="method-error",
            ),
            Candidate(
                id="c", text="| p | v |\n|---|---|\n| 3 | $68$ |\n\n`x < y` and $\\broken{$", answer="68"
            ),
        ),
        neighbors=tuple(
            Neighbor(
                id=f"n{j}", question=f"And $3^v$ for $({j + 2}0)!$? [[answer: {j + 14}]]", answer=str(j + 14)
            )
            for j in range(3)
        ),
    )


def made(folder: Path, problems: Sequence[Problem], **settings: Any) -> Path:
    """A run of these problems in `folder`, as `porism rank` makes it."""
    rank(list(problems), output=folder, **{"model": "fake/rate_right=0.9,rate_wrong=0.2", **settings})
    return folder


def benched(folder: Path) -> Path:
    """A benchmark of several methods over labelled problems, as `porism run` makes it; the run folder."""
    folder.mkdir()
    write_problems([mathematical(f"q{i}") for i in range(4)], folder / "set.jsonl")
    (folder / "bench.toml").write_text(BENCH, encoding="utf-8")
    config = read_config(folder / "bench.toml", [f"output={folder / 'run'}"])
    apart(arun(config, folder / "bench.toml", watch=SilentWatch()))
    return folder / "run"


def told(folder: Path, problems: Sequence[Problem], answer: Callable[[Prompt, int], str]) -> Path:
    """A run whose completions are what `answer` says."""

    async def run() -> None:
        model = FakeModel("fake/default", answer=answer)
        method = Utility(solvers=(model.identity,), sampling=Sampling(max_tokens=100), rollouts=2)
        async with Verifier() as checker:
            with Store(folder) as store:
                await Engine({model.identity: model}, store, checker, SilentWatch()).run(problems, [method])
                settings = {"schema": 1, "name": folder.name, "method": msgspec.to_builtins(method)}
                store.write_json("run.json", settings)
                store.write("problems.jsonl", b"".join(msgspec.json.encode(p) + b"\n" for p in problems))

    apart(run())
    return folder


def hostile_run(folder: Path) -> Path:
    """A run in which question, candidates, answers, names and completions are hostile, all of them."""
    texts = {name: text[:100_000] for name, text in hostile().items()}
    listed = list(texts.values())
    target = Problem(
        id="</script><script>window.pwned=1</script>",
        question="".join(listed[:15]),
        candidates=tuple(
            Candidate(id=f"{name} <b onclick=window.pwned=1>\u202e", text=text, answer=text[:3000])
            for name, text in texts.items()
        ),
        neighbors=(
            Neighbor(id='n"><img src=x onerror=window.pwned=1>', question=listed[0], answer="<svg onload=1>"),
        ),
        answer="<img src=x onerror=window.pwned=1>",
    )

    def completion(prompt: Prompt, rollout: int) -> str:
        return listed[(int(prompt.key[:8], 16) + rollout) % len(listed)]

    return told(folder, [target], completion)


def report(run: Path, *problems: str) -> Path:
    """The HTML report of a run."""
    file = run.with_suffix(".html")
    apart(write(run, file, problems=problems))
    return file
