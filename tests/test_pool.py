"""Worker processes: limits hold, faults stay inside, nothing is left running."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from porism.types import Gold, Verdict
from porism.verify.pool import Verifier

ENDLESS = [f"\\int_0^{{{n}}} \\sin(e^{{x^2}})\\cos(x^3) \\ln x\\,dx" for n in range(2, 40)]  # minutes each


CASES = Path(__file__).parent / "cases"


def run(job: Callable[[Verifier], Awaitable[None]], *, workers: int = 2, limit: float = 1.0) -> None:
    async def inside() -> None:
        async with Verifier(workers=workers, limit=limit) as verifier:
            await job(verifier)

    asyncio.run(inside())


def children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *children(int(child))]
    return found


def gone(pids: list[int], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(Path(f"/proc/{pid}").exists() and alive(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except FileNotFoundError:
        return False


def test_verdicts_and_shared_questions() -> None:
    async def job(verifier: Verifier) -> None:
        gold = Gold("(x+1)^2")
        found = await asyncio.gather(*(verifier.verify("x^2+2x+1", gold) for _ in range(20)))
        assert {verdict.kind for verdict in found} == {"correct"}
        assert len(verifier._decided) == 1
        assert not verifier._asked
        assert (await verifier.verify("x^2+2x+2", gold)).kind == "wrong"
        assert (await verifier.verify("1/2", Gold("0.5"))).kind == "correct"

    run(job)


def test_nothing_starts_before_it_is_needed() -> None:
    async def job(verifier: Verifier) -> None:
        before = children(os.getpid())
        assert (await verifier.verify("7", Gold("7"))).kind == "correct"
        assert children(os.getpid()) == before

    run(job)


def test_an_event_loop_in_another_thread() -> None:
    found: list[Verdict] = []

    async def job(verifier: Verifier) -> None:
        found.append(await verifier.verify("\\sqrt{8}", Gold("2\\sqrt{2}")))

    thread = threading.Thread(target=run, args=(job,))
    thread.start()
    thread.join()
    assert found[0].kind == "correct"


def test_a_worker_killed_from_outside_costs_no_verdict() -> None:
    async def job(verifier: Verifier) -> None:
        assert (await verifier.verify("\\sqrt{8}", Gold("2\\sqrt{2}"))).kind == "correct"
        for round_ in range(3):
            for worker in list(verifier._idle):
                os.kill(worker._pid, signal.SIGKILL)
            verdict = await verifier.verify("\\sqrt{18}", Gold(f"3\\sqrt{{2}} + {round_}"))
            assert verdict.kind == ("correct" if round_ == 0 else "wrong")

    run(job, workers=1)


def test_a_killed_server_is_replaced() -> None:
    async def job(verifier: Verifier) -> None:
        assert (await verifier.verify("\\sqrt{8}", Gold("2\\sqrt{2}"))).kind == "correct"
        assert verifier._server is not None
        pids = [verifier._server._process.pid, *children(verifier._server._process.pid)]
        os.kill(pids[0], signal.SIGKILL)
        assert await asyncio.to_thread(gone, pids[1:])
        assert (await verifier.verify("\\sqrt{18}", Gold("3\\sqrt{2}"))).kind == "correct"

    run(job, workers=1)


def test_an_endless_item_ends_at_its_cpu_limit_and_slows_no_other() -> None:
    async def job(verifier: Verifier) -> None:
        assert (await verifier.verify("\\sqrt{8}", Gold("2\\sqrt{2}"))).kind == "correct"
        hostile = [asyncio.create_task(verifier.verify(text, Gold("7"))) for text in ENDLESS[:3]]
        found = await asyncio.gather(*(verifier.verify(f"{n}+x", Gold(f"x+{n}")) for n in range(200)))
        assert {verdict.kind for verdict in found} == {"correct"}
        for task in hostile:
            assert await task == Verdict("undecided", "cpu-limit")

    run(job, workers=2, limit=0.3)


def test_a_cancelled_caller_does_not_take_the_verdict_from_another() -> None:
    async def job(verifier: Verifier) -> None:
        first, second = (
            asyncio.create_task(verifier.verify("\\sqrt{8}", Gold("2\\sqrt{2}"))) for _ in range(2)
        )
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).kind == "correct"

    run(job)


def test_verdicts_do_not_depend_on_workers_or_order() -> None:
    rows = [json.loads(line) for line in (CASES / "compare.jsonl").read_text("utf-8").splitlines()]
    golds = [(row["answer"], Gold(row["gold"], row.get("answer_type"))) for row in rows]

    async def decide(workers: int, seed: int) -> list[Verdict]:
        order = list(range(len(golds)))
        random.Random(seed).shuffle(order)
        async with Verifier(workers=workers, limit=20) as verifier:
            found = await asyncio.gather(*(verifier.verify(*golds[at]) for at in order))
        return [verdict for _, verdict in sorted(zip(order, found, strict=True), key=lambda pair: pair[0])]

    one, three = asyncio.run(decide(1, 1)), asyncio.run(decide(3, 2))
    assert one == three
    for row, verdict in zip(rows, one, strict=True):
        assert verdict.kind == row["expected"] or (
            row["expected"] == "not correct" and verdict.kind != "correct"
        )


def test_own_rules_run_only_when_code_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_checks.py").write_text(
        "import os\n"
        "def last_digit(answer, gold):\n    return answer[-1] == gold[-1]\n"
        "def spins(answer, gold):\n    while True: pass\n"
        "def unsure(answer, gold):\n    return None\n"
        "def leaks(answer, gold):\n    return 'SECRET_KEY' in os.environ\n"
        "def writes(answer, gold):\n    with open('here.txt', 'w') as file:\n        file.write('x')\n    return True\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SECRET_KEY", "x")

    async def decide(name: str, *, allowed: bool) -> Verdict:
        async with Verifier(workers=1, limit=0.3, allow_code=allowed) as verifier:
            return await verifier.verify("15", Gold("25", f"python:my_checks:{name}"))

    assert asyncio.run(decide("last_digit", allowed=True)).kind == "correct"
    assert asyncio.run(decide("last_digit", allowed=False)).kind == "undecided"
    assert asyncio.run(decide("spins", allowed=True)) == Verdict("undecided", "cpu-limit")
    assert asyncio.run(decide("unsure", allowed=True)).kind == "undecided"
    assert asyncio.run(decide("leaks", allowed=True)).kind == "wrong"
    assert asyncio.run(decide("writes", allowed=True)).kind == "undecided"
    assert asyncio.run(decide("missing", allowed=True)) == Verdict("undecided", "error: AttributeError")


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc whether a worker waits for a CPU")
def test_a_starved_worker_gets_its_time_and_a_sleeping_one_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_sleep.py").write_text("import time\ndef nap(answer, gold):\n    time.sleep(600)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("porism.verify.pool.WALL", 0.2)

    async def job() -> None:
        async with Verifier(workers=1, limit=0.3, allow_code=True) as verifier:
            assert (await verifier.verify("\\sqrt{8}", Gold("2\\sqrt{2}"))).kind == "correct"
            pid = verifier._idle[0]._pid
            os.kill(pid, signal.SIGSTOP)  # as good as no CPU at all
            waiting = asyncio.create_task(verifier.verify("\\sqrt{18}", Gold("3\\sqrt{2}")))
            await asyncio.sleep(4)
            assert not waiting.done()
            os.kill(pid, signal.SIGCONT)
            assert (await waiting).kind == "correct"
            nap = await verifier.verify("1", Gold("2", "python:my_sleep:nap"))
            assert nap == Verdict("undecided", "wall-limit")

    asyncio.run(job())


@pytest.mark.slow
def test_hostile_items_are_all_answered_in_time() -> None:
    """No item is lost, none outlives its limit, workers stay small, the machine is free afterwards."""
    before = children(os.getpid())
    items = [*ENDLESS, *(f"\\binom{{{10**9 + n}}}{{{10**8}}}+\\sqrt{{x}}" for n in range(50)),
             *(f"{n}^{{{n}^{{{n}^{{x}}}}}}" for n in range(2, 50)), *("(" * 10_000 + str(n) for n in range(20)),
             *("9" * 19_000 + str(n) for n in range(20)), "{" * 10**6, "\x00\u202e" * 50, "\\frac" * 5000]  # fmt: skip

    async def job(verifier: Verifier) -> None:
        await verifier.verify("x+1", Gold("x+\\sqrt{2}"))

        async def timed(text: str) -> float:
            async with slots:
                start = time.monotonic()
                assert (await verifier.verify(text, Gold("7"))).kind in ("wrong", "undecided")
                return time.monotonic() - start

        slots = asyncio.Semaphore(2)
        assert (
            max(await asyncio.gather(*map(timed, items))) < 10
        )  # CPU time is what is bounded; others may run

    run(job, limit=0.2)
    assert children(os.getpid()) == before


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_is_left_running() -> None:
    script = """
import asyncio, sys
from porism.types import Gold
from porism.verify.pool import Verifier
async def main():
    async with Verifier(workers=2, limit=60) as verifier:
        print((await verifier.verify("\\\\sqrt{8}", Gold("2\\\\sqrt{2}"))).kind, flush=True)
        if sys.argv[1] == "stay":
            await asyncio.sleep(600)
asyncio.run(main())
"""
    for how in ("leave", "stay"):
        process = subprocess.Popen([sys.executable, "-c", script, how], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "correct\n"
        below = children(process.pid)
        if how == "stay":
            assert len(below) >= 2
            process.kill()
        process.wait(60)
        process.stdout.close()
        assert gone(below)
