"""A run killed again and again: nothing stored is lost or stored twice, little is asked again, the end is the same."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from porism.data import write_problems
from samples import problem
from server import serving

FAULTS = {"latency": 0.05, "limited": 0.03, "error": 0.1, "cut": 0.05, "garbage": 0.05, "tokens": 12}
IN_FLIGHT = 8


def command(file: Path, run: Path, url: str) -> list[str]:
    flags = f"-n 8 --max-tokens 64 --concurrency {IN_FLIGHT} --model generic/test-model --base-url {url}"
    return [sys.executable, "-m", "porism", "rank", str(file), "-o", str(run), *flags.split()]


def stats(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/stats") as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def stored(run: Path) -> list[str]:
    """Ids of whole index rows, in order."""
    try:
        lines = (run / "index.jsonl").read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    ids = []
    for line in lines:
        try:
            ids.append(json.loads(line)["id"])
        except ValueError:
            continue  # torn by an earlier kill
    return ids


def finish(file: Path, run: Path, url: str) -> dict[str, Any]:
    done = subprocess.run(command(file, run, url), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((run / "ranking.json").read_text())
    return found


def kill_and_resume(tmp_path: Path, kills: int, seed: int) -> None:
    file = tmp_path / "problems.jsonl"
    write_problems([problem(f"p{i}", candidates=4, neighbors=3) for i in range(4)], file)
    rng = random.Random(seed)
    run = tmp_path / "killed"
    with serving(**FAULTS) as url:
        before: list[str] = []
        for _ in range(kills):
            process = subprocess.Popen(
                command(file, run, url), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            # The moment is drawn from where something happens: from the first new row on, and before it.
            started = time.monotonic()
            wait = rng.uniform(0.05, 0.6)
            while time.monotonic() - started < 20 and process.poll() is None:
                if len(stored(run)) > len(before) or rng.random() < 0.01:
                    break
                time.sleep(0.02)
            time.sleep(wait)
            process.kill()
            process.wait()
            after = stored(run)
            assert after[: len(before)] == before, "a stored answer is gone"
            before = after
        killed = finish(file, run, url)
        answered: Counter[str] = Counter(stats(url)["answered"])
    ids = stored(run)
    assert len(ids) == len(set(ids)), "an answer is stored twice"
    assert len(ids) == 4 * (5 * 3 * 8 + 4)
    # Prompts of the start probe repeat by design, once a session; rollouts of the run only when in flight.
    prompts = Counter(key.rpartition("-")[0] for key in answered)
    probe = {
        key
        for key, _ in prompts.items()
        if any(n > kills // 2 + 1 for k, n in answered.items() if k.startswith(key))
    }
    again = sum(n - 1 for key, n in answered.items() if key.rpartition("-")[0] not in probe)
    assert again <= kills * IN_FLIGHT
    with serving(**FAULTS) as url:
        calm = finish(file, tmp_path / "calm", url)
    assert killed["problems"] == calm["problems"]


def test_three_kills(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, 3, seed=1)


@pytest.mark.slow
@pytest.mark.ci
def test_twenty_kills(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, 20, seed=2)
