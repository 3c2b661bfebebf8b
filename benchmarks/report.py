"""How large a report gets, how long it takes to write, and how fast a browser opens it.

    python benchmarks/report.py                   200 problems, 10 candidates, 5 neighbors, 8 rollouts of 2 KB
    python benchmarks/report.py --problems 2000   the size the report is built for; needs 3 GB of disk

The run is made by the engine itself with a fake model, and its texts are of words that compress about as badly as
prose. Opening is measured in the Chromium of this machine, from the call to the end of the `load` event and one frame.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from pathlib import Path

import msgspec

from porism.engine import Engine
from porism.methods.utility import Utility
from porism.models.fake import FakeModel, draw
from porism.progress import SilentWatch
from porism.report import write
from porism.report.maths import mathml
from porism.store import Store
from porism.types import Candidate, Neighbor, Problem, Prompt, Sampling
from porism.verify.pool import Verifier

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
SYLLABLES = [a + b for a in "bcdfghklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]


def prose(rng: random.Random, size: int) -> str:
    """About `size` characters of made-up words with a formula every forty or so."""
    parts: list[str] = []
    length = 0
    while length < size:
        if rng.random() < 0.025:
            n = rng.randrange(2, 10**6)
            parts.append(
                rng.choice(
                    (f"$\\frac{{{n}}}{{2}}$", f"$x_{{{n}}}^2$", f"\n\n$$\\sum_{{i=1}}^{{{n}}} i^2$$\n\n")
                )
            )
        else:
            parts.append("".join(rng.choices(SYLLABLES, k=rng.randrange(1, 4))))
        length += len(parts[-1]) + 1
    return " ".join(parts)


def problem(number: int, candidates: int, neighbors: int) -> Problem:
    """Problem `number` of the benchmark; its first candidate helps."""
    rng = random.Random(number)
    return Problem(
        id=f"problem-{number:04}",
        question=prose(rng, 300),
        candidates=tuple(
            Candidate(id=f"c{i}", text=("[[helps]] " if i == 0 else "") + prose(rng, 2000), correct=i == 0)
            for i in range(candidates)
        ),
        neighbors=tuple(
            Neighbor(id=f"n{j}", question=prose(rng, 200) + f" [[answer: {j + 100}]]", answer=str(j + 100))
            for j in range(neighbors)
        ),
    )


def answer(prompt: Prompt, rollout: int) -> str:
    """2 KB of prose and an answer, right at 70 % where the candidate helps and at 20 % elsewhere."""
    text = prompt.messages[0].content
    rng = draw("bench", prompt.key, rollout)
    gold = text[text.rindex("[[answer: ") + 10 : text.rindex("]]")]
    rate = 0.7 if "[[helps]]" in text else 0.2
    return prose(rng, 2000) + f" \\boxed{{{gold if rng.random() < rate else rng.randrange(1000)}}}"


async def make(folder: Path, problems: list[Problem]) -> None:
    """A run of these problems in `folder`, through the engine."""
    model = FakeModel("fake/default", answer=answer, concurrency=64)
    method = Utility(solvers=(model.identity,), sampling=Sampling(max_tokens=1000), target_samples=0)
    async with Verifier() as checker:
        with Store(folder) as store:
            await Engine({model.identity: model}, store, checker, SilentWatch()).run(problems, [method])
            store.update_settings(
                lambda old: {
                    **old,
                    "name": "benchmark",
                    "models": {"fake/default": model.identity},
                    "method": msgspec.to_builtins(method),
                }
            )
            store.write("problems.jsonl", b"".join(msgspec.json.encode(p) + b"\n" for p in problems))


def opening(file: Path) -> dict[str, float]:
    """Seconds until the page is loaded and drawn, and until a packed problem in the middle is open."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = browser.new_page()
        begun = time.perf_counter()
        page.goto(file.as_uri())
        page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        loaded = time.perf_counter() - begun
        count = page.locator("details.problem").count()
        begun = time.perf_counter()
        page.goto(f"{file.as_uri()}#p{count - 1}")
        page.locator(f"#p{count - 1} table.heat").wait_for()
        unpacked = time.perf_counter() - begun
        browser.close()
    return {"opens_s": round(loaded, 2), "unpacks_s": round(unpacked, 2)}


def formulas(number: int) -> float:
    """Seconds for so many different formulas."""
    begun = time.perf_counter()
    for i in range(number):
        mathml(
            rf"\sum_{{k=1}}^{{{i}}} \frac{{k^2}}{{\sqrt{{1+k}}}} = \begin{{pmatrix}}1&2\\3&{i}\end{{pmatrix}}",
            True,
        )
    return round(time.perf_counter() - begun, 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--keep", type=Path, help="make the run here, or use the one that is here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary) / "run"
        begun = time.perf_counter()
        if not (folder / "run.json").exists():
            asyncio.run(make(folder, [problem(i, 10, 5) for i in range(options.problems)]))
        made, begun = round(time.perf_counter() - begun, 1), time.perf_counter()
        file = folder / "report.html"
        asyncio.run(write(folder, file))
        written = round(time.perf_counter() - begun, 1)
        result = {"problems": options.problems, "run_s": made, "report_s": written}
        result |= {"report_mb": round(file.stat().st_size / 1e6, 1), "formulas_10000_s": formulas(10_000)}
        print(json.dumps({**result, **opening(file)}))


if __name__ == "__main__":
    main()
