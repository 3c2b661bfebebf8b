"""What porism's harness costs beside inspect-ai's and lm-eval's: the same chat requests to the same local server.

    python benchmarks/harness.py                                    5,000 requests, 500 at once, 5 interleaved pairs
    python benchmarks/harness.py --requests 200 --at-once 50 --pairs 1     a small trial

The server answers after 2 s with 500 tokens and counts what comes; it is a process of its own, outside the figures. A
side is one process from its start to its end: it reads 5,000 questions, asks each once, finds the boxed number in the
answer, compares it, and keeps question and answer on the disk. Processor time is that of user and system, with all
processes that it starts. Every round runs all sides, each round in another order. A run of one request tells what
starting costs alone.

porism: `porism rank` with its engine, store and verifier; of its own accord it also sends four short trial requests.
inspect-ai: display none, log_realtime and log_model_api off, no control server, static connections; a task of one
sample a question with generate() and the scorer pattern().
lm-eval: local-chat-completions with num_concurrent, no tokenizer, no built-in tasks read, no bootstrap; a
generate_until task with a regex filter and exact_match, samples logged, its data set cached by the first round.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
from harness_server import MARK
from measure import ENVIRONMENT, Figure, Measured, measured, report

from porism.methods.utility import Utility
from porism.models.catalog import cache_folder
from porism.types import Candidate, Generate, Neighbor, Problem, Sampling

HERE = Path(__file__).resolve().parent
RIVALS = {
    "inspect-ai": ("inspect-ai==0.3.285", "openai==3.57.0"),
    "lm-eval": ("lm-eval[api]==0.4.13",),
}
SCRIPTS = {"inspect-ai": "harness_inspect.py", "lm-eval": "harness_lm_eval.py"}
DELAY = 2.0  # seconds from a request to its answer
CROWD_DELAY = (
    10.0  # the same with thousands in flight: a process that asks 1,000 a second then has 10,000 in flight
)
CANDIDATES, NEIGHBORS = 10, 10  # of a problem: a hundred requests


# What is asked


def problems(requests: int) -> list[Problem]:
    """Problems whose candidates and neighbors make so many requests at one rollout each: 1, or a multiple of 100."""
    if requests > 1 and requests % (CANDIDATES * NEIGHBORS):
        sys.exit(f"requests: a multiple of {CANDIDATES * NEIGHBORS}, not {requests}")
    candidates, neighbors = (1, 1) if requests == 1 else (CANDIDATES, NEIGHBORS)
    return [
        Problem(
            id=f"p{p:04}",
            question=f"{MARK.decode()} {p}: how many lattice paths of length {p + 9} stay below the diagonal?",
            candidates=tuple(
                Candidate(id=f"c{c}", text=f"Attempt {c} at {p}. " + "We reflect the path and count. " * 25)
                for c in range(candidates)
            ),
            neighbors=tuple(
                Neighbor(id=f"n{n}", question=f"And how many touch it {n} times?", answer=f"{(p + n) % 10}")
                for n in range(neighbors)
            ),
        )
        for p in range(requests // (candidates * neighbors))
    ]


class Data(NamedTuple):
    """A folder with problems.jsonl, and questions.jsonl with the same prompts word for word for the others."""

    folder: Path
    requests: int


@contextmanager
def made(requests: int) -> Iterator[Data]:
    """The files that make so many requests."""
    chosen = problems(requests)
    method = Utility(
        solvers=("test-model",),
        sampling=Sampling(max_tokens=1024),
        rollouts=1,
        no_example=False,
        target_samples=0,
    )
    rows = [
        {"question": ask.work.prompt.messages[0].content, "answer": ask.gold.answer}
        for problem in chosen
        for ask in method.plan(problem, [])
        if isinstance(ask.work, Generate) and ask.gold is not None
    ]
    assert len(rows) == requests
    encode = msgspec.json.encode
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "problems.jsonl").write_bytes(b"".join(encode(p) + b"\n" for p in chosen))
        (folder / "questions.jsonl").write_bytes(b"".join(encode(row) + b"\n" for row in rows))
        yield Data(folder, requests)


# The server


@contextmanager
def serving(delay: float) -> Iterator[str]:
    """The address of a server in a process of its own."""
    command = [sys.executable, str(HERE / "harness_server.py"), str(delay)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()
            server.wait(10)


def counts(url: str) -> dict[str, float]:
    """What has come to the server so far."""
    with urllib.request.urlopen(f"{url}/counts") as answer:
        return dict(json.load(answer))


# The sides


class Ran(NamedTuple):
    """What a side's process took, and what the server saw of it: seconds from first to last, most at once."""

    took: Measured
    span: float
    most: int


def environment(name: str) -> Path:
    """The Python of a rival's environment in the cache folder, made where it is missing."""
    place = cache_folder().parent / "bench" / name
    python = place / "bin" / "python"
    stamp = place / "made"
    wanted = " ".join(RIVALS[name])
    if not stamp.is_file() or stamp.read_text() != wanted:
        print(f"installing {wanted} into {place} (minutes)", file=sys.stderr, flush=True)
        uv = Path(sys.executable).with_name("uv")
        env = {**os.environ, "UV_PYTHON_DOWNLOADS": "never", "UV_SYSTEM_CERTS": "true"}
        subprocess.run(
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, place], env=env, check=True
        )
        install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", python]
        subprocess.run([*install, *RIVALS[name]], env=env, check=True)
        stamp.write_text(wanted)
    return python


def clean() -> dict[str, str]:
    """This process's environment without what is meant for another Python; nothing is fetched from a hub."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "INSPECT_"))}
    hub = cache_folder().parent / "bench" / "hub"
    return kept | {"HF_HOME": str(hub), "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "none"}


def command(side: str, data: Data, url: str, at_once: int, output: Path) -> list[str | Path]:
    """What a user would type."""
    if side != "porism":
        questions = data.folder / "questions.jsonl"
        return [environment(side), HERE / SCRIPTS[side], questions, url, str(at_once), output]
    return [
        *(sys.executable, "-m", "porism", "rank", data.folder / "problems.jsonl", "-o", output),
        *("--model", "generic/test-model", "--base-url", url, "--concurrency", str(at_once)),
        *("-n", "1", "--skip-no-example", "--target-samples", "0", "--max-tokens", "1024", "--json"),
    ]


def run(side: str, data: Data, at_once: int, delay: float) -> Ran:
    """One side once, from nothing. Raises where the server did not count exactly the requests, or one failed."""
    with tempfile.TemporaryDirectory() as temporary, serving(delay) as url:
        output = Path(temporary) / "out"
        env = ENVIRONMENT if side == "porism" else clean()
        took = measured(*command(side, data, url, at_once, output), env=env, cwd=Path(temporary))
        seen = counts(url)
        if seen["marked"] != data.requests or (output / "errors.jsonl").exists():
            raise RuntimeError(f"{side}: the server counted {seen} of {data.requests} requests")
        return Ran(took, seen["last"] - seen["first"], int(seen["most_in_flight"]))


# The figures


def compare(requests: int, at_once: int, pairs: int) -> None:
    """Rounds of all sides, and the ratios of the processor time that each round took."""
    sides = ["porism", *RIVALS]
    with made(1) as one:
        # Twice: the first start of an environment compiles its bytecode.
        starts = {side: run(side, one, at_once, 0.0).took.cpu for side in sides for _ in range(2)}
    runs: dict[str, list[Ran]] = {side: [] for side in sides}
    with made(requests) as data:
        for number in range(pairs):
            for side in sides if number % 2 else sides[::-1]:
                done = run(side, data, at_once, DELAY)
                runs[side].append(done)
                print(
                    f"round {number + 1}: {side:10} {done.span:5.1f} s from first request to last answer, "
                    f"{done.took.seconds:5.1f} s in all, {done.took.cpu:6.2f} s of processor time, "
                    f"{done.took.megabytes:4.0f} MB, {done.most} at once",
                    flush=True,
                )
    ideal = requests / at_once * DELAY
    report(
        Figure.over(
            "harness: time from first request to last answer, of the ideal",
            [done.span / ideal for done in runs["porism"]],
            rule="at most",
            bound=1.10,
        )
    )
    for side in sides:
        report(
            Figure.over(f"{side}: whole process", [done.took.seconds for done in runs[side]], "s"),
            Figure.over(f"{side}: processor time", [done.took.cpu for done in runs[side]], "s"),
            Figure(what=f"{side}: processor time to start, of one request", value=starts[side], unit="s"),
        )
    for side in RIVALS:
        pairs_of = list(zip(runs["porism"], runs[side], strict=True))
        report(
            Figure.over(
                f"processor time of {side}, times that of porism",
                [theirs.took.cpu / ours.took.cpu for ours, theirs in pairs_of],
                rule="at least",
                bound=4,
            ),
            Figure.over(
                f"the same without starting: {side}",
                [
                    (theirs.took.cpu - starts[side]) / (ours.took.cpu - starts["porism"])
                    for ours, theirs in pairs_of
                ],
            ),
        )


def ceiling(requests: int, at_once: int) -> None:
    """Requests a second where the server answers at once."""
    with made(requests) as data:
        done = run("porism", data, at_once, 0.0)
    report(Figure(what=f"requests a second, {at_once} at once, answered at once", value=requests / done.span))


def crowd(at_once: int) -> None:
    """So many in flight: none fails, and memory stays small."""
    with made(3 * at_once) as data:
        done = run("porism", data, at_once, CROWD_DELAY)
    report(
        Figure(what="most requests in flight, none failed", value=done.most, rule="at least", bound=at_once),
        Figure(what="memory", value=done.took.megabytes, unit="MB", rule="under", bound=600),
    )


def main() -> None:
    """All of it, or a small trial."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--at-once", type=int, default=500)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--crowd", type=int, default=5_000, help="in flight in the last part")
    given = parser.parse_args()
    compare(given.requests, given.at_once, given.pairs)
    ceiling(given.requests, given.at_once)
    crowd(given.crowd)


if __name__ == "__main__":
    main()
