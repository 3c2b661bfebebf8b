"""Parts that break where none should, and ends at bad moments: a run ends with its reason, and never hangs."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import porism
import porism.run
from porism.data import write_problems
from porism.engine import Engine, Outcome, replay
from porism.errors import CircuitOpen, ConfigError, DataError, Interrupted, ModelError
from porism.lane import RetryPolicy
from porism.methods.utility import Utility
from porism.models.fake import FakeModel
from porism.progress import SilentWatch
from porism.store import Store
from porism.types import Ask, Call, Completion, Observation, Problem, Reply, Result, Sampling, Usage
from porism.verify.pool import Verifier
from samples import problem
from server import serving

QUICK = RetryPolicy(first_wait=0.001, longest_wait=0.01)


def stats(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/stats") as answer:
        found: dict[str, Any] = json.load(answer)
    return found


class Broken(Exception):
    """A fault of ours."""


def utility(model: FakeModel, **more: Any) -> Utility:
    settings = {"rollouts": 4, "target_samples": 2, **more}
    return Utility(solvers=(model.identity,), sampling=Sampling(max_tokens=100), **settings)


def go(
    path: Path,
    model: FakeModel,
    *,
    method: Utility | None = None,
    watch: Any = None,
    stop: Callable[[Engine], None] | None = None,
    on_round: Any = None,
    policy: RetryPolicy = QUICK,
    problems: tuple[Problem, ...] = (problem(),),
) -> Outcome:
    async def work() -> Outcome:
        with Store(path) as store:
            async with model, Verifier(workers=1) as checker:
                engine = Engine(
                    {model.identity: model},
                    store,
                    checker,
                    watch or SilentWatch(),
                    policy=policy,
                    on_round=on_round,
                )
                if stop is not None:
                    stop(engine)
                return await engine.run(problems, [method or utility(model)])

    async def within() -> Outcome:
        try:
            async with asyncio.timeout(60):
                return await work()
        finally:
            assert asyncio.all_tasks() == {asyncio.current_task()}, "something is left running"

    return asyncio.run(within())


def replayed(path: Path, method: Utility, *problems: Problem) -> dict[tuple[str, str], list[Observation]]:
    async def work() -> dict[tuple[str, str], list[Observation]]:
        with Store(path, write=False) as store:
            async with Verifier(workers=1) as checker:
                return await replay(store, checker, problems or [problem()], [method])

    return asyncio.run(work())


# Replies no server should give


class Shifting(FakeModel):
    """Numbers its rollouts as `change` says."""

    change: Callable[[Call, tuple[Completion, ...]], tuple[Completion, ...]]

    async def generate(self, call: Call) -> Reply:
        reply = await super().generate(call)
        return Reply(type(self).change(call, reply.completions), reply.usage)


def test_rollouts_that_were_not_asked_for_are_not_taken(tmp_path: Path) -> None:
    class Ahead(Shifting):
        @staticmethod
        def change(call: Call, found: tuple[Completion, ...]) -> tuple[Completion, ...]:
            return tuple(msgspec.structs.replace(c, rollout=c.rollout + 2) for c in found)

    outcome = go(tmp_path / "run", Ahead("fake/max_n=2"))
    assert isinstance(outcome.stopped, CircuitOpen)
    assert not Store(tmp_path / "run", write=False).rows


def test_a_rollout_given_twice_counts_once_and_the_other_is_asked_again(tmp_path: Path) -> None:
    class Twice(Shifting):
        @staticmethod
        def change(call: Call, found: tuple[Completion, ...]) -> tuple[Completion, ...]:
            return (*found[:1], *found[:1])

    outcome = go(tmp_path / "run", Twice("fake/max_n=2"))
    assert outcome.stopped is None
    assert outcome.seen == go(tmp_path / "calm", FakeModel("fake/")).seen


def test_text_that_is_no_unicode_is_stored_all_the_same(tmp_path: Path) -> None:
    model = FakeModel("fake/", answer=lambda prompt, rollout: "half a pair \ud83d, so \\boxed{100}")
    outcome = go(tmp_path / "run", model)
    assert outcome.stopped is None
    assert replayed(tmp_path / "run", utility(model)) == outcome.seen


# Faults of ours


class CancelsItself(FakeModel):
    async def generate(self, call: Call) -> Reply:
        raise asyncio.CancelledError


class Falls(FakeModel):
    async def generate(self, call: Call) -> Reply:
        raise Broken


class LandsBadly(SilentWatch):
    def landed(self, rollouts: int, usage: Usage) -> None:
        raise Broken


class WaitsBadly(SilentWatch):
    def waiting(self, reason: str | None, until: float | None) -> None:
        if reason is None:
            raise Broken


class ReadsBadly(Utility):
    def read(self, ask: Ask, result: Result) -> Observation:
        raise Broken


class PlansBadly(Utility):
    def plan(self, problem: Problem, seen: list[Observation]) -> list[Ask]:
        if seen:
            raise Broken
        return super().plan(problem, seen)


def broken_round(*_: object) -> None:
    raise Broken


def bad(kind: type[Utility]) -> Utility:
    return kind(solvers=("fake/x",), sampling=Sampling(max_tokens=100), rollouts=4)


@pytest.mark.parametrize("part", ["model", "landed", "waiting", "read", "plan", "round"])
def test_a_part_that_breaks_ends_the_run_with_its_fault(tmp_path: Path, part: str) -> None:
    model = Falls("fake/") if part == "model" else FakeModel("fake/delay=0.01,concurrency=3,fail=0.3")
    kinds = {"read": ReadsBadly, "plan": PlansBadly}
    method = kinds.get(part, Utility)(
        solvers=(model.identity,), sampling=Sampling(max_tokens=100), rollouts=4
    )
    watches = {"landed": LandsBadly, "waiting": WaitsBadly}
    watch = watches.get(part, SilentWatch)()
    with pytest.raises(Broken):
        go(
            tmp_path / "run",
            model,
            method=method,
            watch=watch,
            on_round=broken_round if part == "round" else None,
            problems=tuple(problem(f"p{i}") for i in range(3)),
        )


def test_a_model_that_cancels_itself_does_not_leave_its_call_open(tmp_path: Path) -> None:
    assert isinstance(go(tmp_path / "run", CancelsItself("fake/")).stopped, CircuitOpen)


def test_a_solver_without_a_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="fake/x"):
        raise go(tmp_path / "run", FakeModel("fake/"), method=bad(Utility)).stopped or AssertionError


def test_a_cancelled_run_leaves_nothing_running(tmp_path: Path) -> None:
    async def work() -> None:
        model = FakeModel("fake/delay=0.05,concurrency=2,max_n=1")
        with Store(tmp_path / "run") as store:
            async with model, Verifier(workers=1) as checker:
                engine = Engine({model.identity: model}, store, checker, SilentWatch())
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(engine.run([problem()], [utility(model)]), 0.1)
            rows = len(store.rows)
            assert asyncio.all_tasks() == {asyncio.current_task()}
        await asyncio.sleep(0.15)
        assert len(store.rows) == rows

    asyncio.run(work())


# What is reported


def test_a_missing_rollout_is_reported_alike_by_run_and_replay_and_the_next_session(tmp_path: Path) -> None:
    class Refuses(FakeModel):
        error = ModelError("no", kind="refused")

        async def generate(self, call: Call) -> Reply:
            if "Method 1" in call.prompt.messages[0].content:
                raise self.error
            return await super().generate(call)

    model = Refuses("fake/max_n=1")
    outcome = go(tmp_path / "run", model)
    assert outcome.stopped is None
    assert sum(outcome.missing.values()) == 8
    assert replayed(tmp_path / "run", utility(model)) == outcome.seen
    at_once = go(tmp_path / "run", model, stop=lambda engine: engine.stop(Interrupted("at once")))
    assert isinstance(at_once.stopped, Interrupted)
    assert at_once.seen == outcome.seen


def test_what_stays_missing_is_told_by_every_session(tmp_path: Path) -> None:
    class Small(FakeModel):
        async def generate(self, call: Call) -> Reply:
            if "Method 1" in call.prompt.messages[0].content:
                raise ModelError("does not fit", kind="context")
            return await super().generate(call)

    model = Small("fake/max_n=1")
    assert go(tmp_path / "run", model).missing == go(tmp_path / "run", model).missing != {}


def test_scoring_writes_nothing(tmp_path: Path) -> None:
    model = FakeModel("fake/")
    outcome = go(tmp_path / "run", model)
    for file in (tmp_path / "run" / "verdicts").iterdir():
        file.unlink()
    before = {path: path.stat().st_size for path in (tmp_path / "run").rglob("*")}
    assert replayed(tmp_path / "run", utility(model)) == outcome.seen
    assert {path: path.stat().st_size for path in (tmp_path / "run").rglob("*")} == before


# A server in trouble


class Blinking(FakeModel):
    """Refuses everything between two moments, in seconds from its first call."""

    dark = (0.3, 1.2)
    begun = 0.0
    refused = 0

    async def generate(self, call: Call) -> Reply:
        self.begun = self.begun or time.monotonic()
        if self.dark[0] < time.monotonic() - self.begun < self.dark[1]:
            self.refused += 1
            raise ModelError("HTTP 502", retry="transient", kind="server")
        return await super().generate(call)


def test_a_short_trouble_ends_no_run_and_is_met_with_few_calls(tmp_path: Path) -> None:
    problems = tuple(problem(f"p{i}", neighbors=4) for i in range(20))
    model = Blinking("fake/delay=0.1,concurrency=48,max_n=1")
    outcome = go(tmp_path / "run", model, problems=problems, policy=RetryPolicy(first_wait=0.1))
    assert outcome.stopped is None
    assert not outcome.missing
    assert 24 <= model.refused < 200


def test_a_server_that_wants_to_be_asked_tomorrow_ends_the_run_with_its_words(tmp_path: Path) -> None:
    class Tomorrow(FakeModel):
        async def generate(self, call: Call) -> Reply:
            if call.first:
                raise ModelError("daily quota", retry="rate_limit", retry_after=86400, kind="rate_limit")
            return await super().generate(call)

    outcome = go(tmp_path / "run", Tomorrow("fake/max_n=2"))
    assert isinstance(outcome.stopped, CircuitOpen)
    assert "86,400 s: daily quota" in str(outcome.stopped)
    assert not outcome.missing


# The Python function


def test_records_are_checked_as_files_are() -> None:
    one = problem()
    with pytest.raises(DataError, match="'p' is used already"):
        porism.rank([one, one], model="fake/default")
    with pytest.raises(DataError, match=r"candidates\[1\].id: 'a' is used already"):
        porism.rank(dataclasses.replace(one, candidates=one.candidates[:1] * 2), model="fake/default")
    with pytest.raises(DataError, match="is a dict"):
        porism.rank([{"id": "p"}], model="fake/default")  # type: ignore[list-item]


def test_paths_and_models_may_be_plain_text(tmp_path: Path) -> None:
    done = porism.rank(problem(), models="fake/default", output=str(tmp_path / "run"), rollouts=2)
    assert done.exit_code == 0
    assert (tmp_path / "run" / "run.json").exists()


@pytest.mark.parametrize("price", [(-1.0, 1.0), (float("nan"), 1.0), (1.0,)])
def test_a_price_no_budget_can_be_kept_with(price: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="price"):
        porism.rank(problem(), model="fake/default", price=price, max_cost=1)


def test_a_dry_run_counts_what_is_to_be_asked_again(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"model": "fake/default", "output": tmp_path / "run", "rollouts": 2}
    porism.rank(problem(), **settings)
    with Store(tmp_path / "run") as store:
        row = next(iter(store.rows.values()))
    index = tmp_path / "run" / "index.jsonl"
    lost = msgspec.structs.replace(row, finish="missing", rule="cut: off", again=True)
    others = index.read_bytes().splitlines(keepends=True)[1:]
    index.write_bytes(b"".join([msgspec.json.encode(lost) + b"\n", *others]))
    assert porism.run.plan(problem(), **settings).requests == 1
    assert porism.rank(problem(), **settings).exit_code == 0
    assert porism.run.plan(problem(), **settings).requests == 0


def test_an_interrupt_in_a_notebook_ends_the_run(tmp_path: Path) -> None:
    code = f"""
import asyncio, os, signal, sys, threading
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
import porism
from porism.store import Store
from samples import problem

async def cell():
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    porism.rank(problem(), model="fake/delay=0.5,concurrency=1,max_n=1", output={str(tmp_path / "run")!r})

try:
    asyncio.new_event_loop().run_until_complete(cell())  # as a notebook has it: Ctrl-C raises
except KeyboardInterrupt:
    Store(Path({str(tmp_path / "run")!r})).close()  # nobody holds it
    print("ended")
"""
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "ended", done.stderr
    assert time.monotonic() - started < 20


def test_signal_handlers_of_the_caller_are_put_back(tmp_path: Path) -> None:
    def mine(*_: object) -> None: ...

    before = signal.signal(signal.SIGTERM, mine)
    try:
        porism.rank(problem(), model="fake/default", output=tmp_path / "run", rollouts=2)
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_interrupt_while_the_server_is_tried_says_how_to_go_on(tmp_path: Path) -> None:
    write_problems([problem()], tmp_path / "p.yaml")
    with serving(latency=30) as url:
        command = f"-m porism rank p.yaml -m generic/test-model --base-url {url}".split()
        process = subprocess.Popen(
            [sys.executable, *command], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        while not stats(url)["requests"]:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "to go on: porism rank p.yaml" in told
    assert "Traceback" not in told


def test_a_run_that_is_not_whole_cannot_be_scored(tmp_path: Path) -> None:
    porism.rank(problem(), model="fake/default", output=tmp_path / "run", rollouts=2)
    (tmp_path / "run" / "problems.jsonl").unlink()
    with pytest.raises(ConfigError, match="cannot be scored"):
        asyncio.run(porism.run.score(tmp_path / "run"))
