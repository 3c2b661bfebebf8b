"""How large a report gets, how long it takes to write, and how fast a browser opens it.

    python benchmarks/report.py                   200 problems, 10 candidates, 5 neighbors, 8 rollouts of 2 KB
    python benchmarks/report.py --problems 2000   the size the report is built for; needs 3 GB of disk

The run is written as the engine writes one, with texts of made-up words that compress about as badly as prose.
Opening is measured in the Chromium of this machine, from the call to the end of the `load` event and one frame;
`draws_s` is when the first of it is seen, `opens_cpu_s` what the page's process computes until then, which a busy
machine does not change.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from porism.methods.utility import Utility
from porism.report import write
from porism.report.maths import mathml
from porism.store import Row, Store
from porism.types import SCHEMA, Candidate, Completion, Neighbor, Problem, Sampling, Usage, Verdict
from porism.verify import VERSION

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession

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
    """Problem `number` of the benchmark."""
    rng = random.Random(number)
    return Problem(
        id=f"problem-{number:04}",
        question=prose(rng, 300),
        candidates=tuple(
            Candidate(id=f"c{i}", text=prose(rng, 2000), correct=i == 0) for i in range(candidates)
        ),
        neighbors=tuple(
            Neighbor(id=f"n{j}", question=prose(rng, 200), answer=str(j + 100)) for j in range(neighbors)
        ),
    )


def make(folder: Path, problems: list[Problem]) -> None:
    """A run of these problems in `folder`: every rollout of the plan with a text of its own, and its verdict."""
    model = "fake/benchmark"
    method = Utility(solvers=(model,), sampling=Sampling(max_tokens=1000), target_samples=0)
    book = prose(random.Random(0), 5_000_000)
    rng = random.Random(1)
    with Store(folder) as store:
        settings = {"schema": SCHEMA, "name": "benchmark", "models": {model: model}, "verifier": VERSION}
        store.write_json("run.json", {**settings, "method": msgspec.to_builtins(method)})
        store.write("problems.jsonl", b"".join(msgspec.json.encode(p) + b"\n" for p in problems))
        for each in problems:
            for ask in method.plan(each, []):
                assert ask.gold is not None
                right = rng.random() < (0.7 if ask.cell.candidate == "c0" else 0.2)
                answer = ask.gold.answer if right else str(rng.randrange(1000, 1010))
                start = rng.randrange(len(book) - 2000)
                text = f"{book[start : start + 2000]} \\boxed{{{answer}}}"
                row = Row(
                    ask.work.id,
                    ask.cell,
                    "stop",
                    answer,
                    "box",
                    ask.work.id[:16],
                    usage=Usage(600, 500, 0, 1),
                )
                store.add(row, Completion(0, text))
                if not store.verdicts(answer, ask.gold):
                    verdict = Verdict("correct" if right else "wrong", "number")
                    store.add_verdict(answer, ask.gold, VERSION, verdict)


def opening(file: Path) -> dict[str, float]:
    """Seconds until the page is drawn, is loaded, of processor for that, and until a packed problem is open."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = browser.new_page()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        before = process_time(session)
        begun = time.perf_counter()
        page.goto(file.as_uri())
        page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        loaded = time.perf_counter() - begun
        cpu = process_time(session) - before
        page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
        drawn = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
        count = page.locator("details.problem").count()
        begun = time.perf_counter()
        page.goto(f"{file.as_uri()}#p{count - 1}")
        page.locator(f"#p{count - 1} table.heat").wait_for()
        unpacked = time.perf_counter() - begun
        browser.close()
    found = {"draws_s": drawn, "opens_s": loaded, "opens_cpu_s": cpu, "unpacks_s": unpacked}
    return {name: round(seconds, 2) for name, seconds in found.items()}


def process_time(session: CDPSession) -> float:
    """Seconds of processor that the page's process has used."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "ProcessTime"))


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
            make(folder, [problem(i, 10, 5) for i in range(options.problems)])
        made, begun = round(time.perf_counter() - begun, 1), time.perf_counter()
        file = folder / "report.html"
        asyncio.run(write(folder, file))
        written = round(time.perf_counter() - begun, 1)
        result = {"problems": options.problems, "run_s": made, "report_s": written}
        result |= {"report_mb": round(file.stat().st_size / 1e6, 1), "formulas_10000_s": formulas(10_000)}
        print(json.dumps({**result, **opening(file)}))


if __name__ == "__main__":
    main()
