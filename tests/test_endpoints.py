"""Several servers of one model: the same scores as one, a home for each prefix, and servers that come and go."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from porism.engine import Engine, Outcome
from porism.errors import CircuitOpen, ConfigError
from porism.lane import RetryPolicy
from porism.methods.utility import Utility
from porism.models import open_model, open_reward
from porism.models.fleet import Fleet
from porism.models.openai import OpenAIModel
from porism.prepare import enter
from porism.store import Store
from porism.types import Model, Problem, Sampling, Usage
from porism.verify.pool import Verifier
from samples import problem
from server import Server, closed_port, misbehaving

QUICK = RetryPolicy(first_wait=0.02, longest_wait=0.2, patience=3.0)
SERVER = Path(__file__).parent / "server.py"


class Watcher:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.rollouts = 0
        self.reasons: list[str | None] = []
        self.notes: list[str] = []

    def started(self, total: int, stored: int) -> None: ...

    def landed(self, rollouts: int, usage: Usage) -> None:
        self.rollouts += rollouts

    def waiting(self, reason: str | None, until: float | None) -> None:
        self.reasons.append(reason)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def finished(self) -> None: ...


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110  what it waits for is told to a watch, which knows no events
        await asyncio.sleep(0.01)


def several(count: int) -> list[Problem]:
    return [problem(f"p{i}") for i in range(count)]


@asynccontextmanager
async def servers(*faults: dict[str, Any]) -> AsyncIterator[list[Server]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(misbehaving(**each)) for each in faults]


async def run(
    path: Path,
    urls: str | Sequence[str],
    *,
    problems: Sequence[Problem],
    rollouts: int = 4,
    watch: Watcher | None = None,
    policy: RetryPolicy = QUICK,
    concurrency: int | None = None,
    probed: bool = True,
) -> tuple[Outcome, Utility]:
    """A run as the command line makes it, over the servers at `urls`."""
    look = watch or Watcher()
    async with AsyncExitStack() as stack:
        model: Model = open_model("generic/test-model", base_url=urls, concurrency=concurrency)
        if probed:
            model = await enter(stack, model, look, [])
        else:
            await stack.enter_async_context(model)
        method = Utility(
            solvers=(model.identity,), sampling=Sampling(max_tokens=100), rollouts=rollouts, target_samples=2
        )
        store = stack.enter_context(Store(path))
        checker = await stack.enter_async_context(Verifier(workers=1))
        engine = Engine({model.identity: model}, store, checker, look, policy=policy)
        return await engine.run(problems, [method]), method


def told(outcome: Outcome, method: Utility, problems: Sequence[Problem]) -> object:
    """All that a run says of candidates, to the last bit."""
    return {p.id: method.score(p, outcome.seen[p.id, "utility"]) for p in problems}


def rows(path: Path) -> dict[str, tuple[Any, ...]]:
    with Store(path, write=False) as store:
        return {id: (r.cell, r.finish, r.answer, r.rule, r.text_key) for id, r in store.rows.items()}


def asked_at(server: Server, problems: Sequence[Problem]) -> Counter[str]:
    """How many rollouts of each candidate's a server was asked for."""
    found: Counter[str] = Counter()
    for body in server.stats.bodies:
        text = body["messages"][-1]["content"]
        for p in problems:
            found.update({p.id + c.id: body.get("n", 1) for c in p.candidates if c.text in text})
    return found


class Process:
    """A server in a process of its own, on a port that it keeps from one life to the next."""

    def __init__(self, **faults: Any) -> None:
        self.url = closed_port()
        port = self.url.rpartition(":")[2]
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in faults.items()]
        self._command = [sys.executable, str(SERVER), f"--port={port}", *flags]
        self._life: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self._life = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._life.stdout is not None
        assert self._life.stdout.readline().strip() == self.url

    def kill(self) -> None:
        if self._life is not None:
            with self._life as process:
                process.kill()
            self._life = None

    async def stats(self) -> dict[str, Any]:
        import aiohttp

        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/stats") as answer:
            document: dict[str, Any] = await answer.json()
            return document


@contextmanager
def process(**faults: Any) -> Iterator[Process]:
    one = Process(**faults)
    try:
        yield one
    finally:
        one.kill()


def test_scores_do_not_depend_on_how_many_servers_there_are(tmp_path: Path) -> None:
    problems = several(2)

    async def work() -> None:
        async with servers({}, {}, {}) as three:
            alone, method = await run(tmp_path / "one", three[0].url, problems=problems)
            shared, _ = await run(tmp_path / "three", [s.url for s in three], problems=problems)
            turned, _ = await run(tmp_path / "turned", [s.url for s in reversed(three)], problems=problems)
        assert alone.stopped is shared.stopped is turned.stopped is None
        assert (
            told(alone, method, problems) == told(shared, method, problems) == told(turned, method, problems)
        )
        assert rows(tmp_path / "one") == rows(tmp_path / "three") == rows(tmp_path / "turned")

    asyncio.run(work())


def test_a_candidate_keeps_to_one_server(tmp_path: Path) -> None:
    """Each run is small enough to be in flight at once, so that nobody helps out."""
    problems = [problem(f"p{i}", candidates=6) for i in range(4)]

    async def work() -> None:
        async with servers({}, {}) as two:
            for one in problems:
                urls = [server.url for server in two]
                outcome, _ = await run(tmp_path / one.id, urls, problems=[one], rollouts=1)
                assert outcome.stopped is None
        here, there = (asked_at(server, problems) for server in two)
        assert not here.keys() & there.keys()
        assert len(here) + len(there) == 24
        assert min(len(here), len(there)) >= 3

    asyncio.run(work())


def test_most_rollouts_stay_at_home_under_load(tmp_path: Path) -> None:
    problems = several(8)

    async def work() -> None:
        async with servers(*[{"latency": 0.02, "refuses_n": True}] * 2) as two:
            outcome, _ = await run(
                tmp_path / "run",
                [s.url for s in two],
                problems=problems,
                rollouts=16,
                concurrency=8,
                probed=False,
            )
        assert outcome.stopped is None
        here, there = (asked_at(server, problems) for server in two)
        at_home = sum(max(here[id], there[id]) for id in here | there)
        assert at_home > 0.7 * (here.total() + there.total())
        # Both were kept busy: neither did less than a third.
        assert min(here.total(), there.total()) * 3 > here.total() + there.total()

    asyncio.run(work())


def test_a_dead_servers_share_moves_and_comes_back(tmp_path: Path) -> None:
    problems, watch = several(4), Watcher()

    async def work(lives: Process, dies: Process) -> tuple[Outcome, Utility]:
        lives.start()
        dies.start()

        async def meddle() -> None:
            await until(lambda: watch.rollouts >= 40)
            dies.kill()
            await until(lambda: any("away" in note for note in watch.notes))
            at = watch.rollouts
            await until(lambda: watch.rollouts >= at + 60)
            dies.start()

        task = asyncio.ensure_future(meddle())
        outcome = await run(
            tmp_path / "run",
            [lives.url, dies.url],
            problems=problems,
            rollouts=16,
            watch=watch,
            concurrency=8,
        )
        await task
        assert (await dies.stats())["rollouts"] > 20  # since it came back
        return outcome

    with process(latency=0.05, refuses_n=True) as lives, process(latency=0.05, refuses_n=True) as dies:
        outcome, method = asyncio.run(work(lives, dies))
    name = dies.url.removeprefix("http://")
    assert outcome.stopped is None
    assert not outcome.missing
    assert [n for n in watch.notes if n.startswith(f"{name} is away")]
    assert watch.notes[-1] == f"{name} answers again"
    assert any(reason and name in reason for reason in watch.reasons)
    assert watch.reasons[-1] is None

    async def alone() -> tuple[Outcome, Utility]:
        async with misbehaving() as server:
            return await run(tmp_path / "alone", server.url, problems=problems, rollouts=16)

    one, _ = asyncio.run(alone())
    assert told(outcome, method, problems) == told(one, method, problems)


def test_a_slow_server_is_helped(tmp_path: Path) -> None:
    problems = several(4)

    async def work() -> None:
        async with servers({"latency": 0.5}, {"latency": 0.01}) as (slow, fast):
            start = time.monotonic()
            outcome, _ = await run(
                tmp_path / "run",
                [slow.url, fast.url],
                problems=problems,
                rollouts=8,
                concurrency=4,
                probed=False,
            )
            seconds = time.monotonic() - start
        assert outcome.stopped is None
        # Half of 264 rollouts at the slow one, four at once, would take 16 s.
        assert seconds < 6
        assert fast.stats.requests > 4 * slow.stats.requests > 0

    asyncio.run(work())


def test_too_many_requests_at_one_slow_only_that_one(tmp_path: Path) -> None:
    problems, watch = several(4), Watcher()

    async def work() -> None:
        async with servers({"capacity": 1, "latency": 0.02, "retry_after": "0.3"}, {"latency": 0.02}) as (
            small,
            large,
        ):
            outcome, _ = await run(
                tmp_path / "run",
                [small.url, large.url],
                problems=problems,
                rollouts=8,
                watch=watch,
                probed=False,
            )
        assert outcome.stopped is None
        assert not outcome.missing
        assert small.stats.faults["capacity"] < 30
        assert small.stats.answered
        assert large.stats.most_in_flight > 8
        name = small.url.removeprefix("http://")
        held = [reason for reason in watch.reasons if reason]
        assert held
        assert all(reason.startswith(f"{name}: too many requests") for reason in held)

    asyncio.run(work())


def test_a_server_that_was_down_at_the_start_joins(tmp_path: Path) -> None:
    problems, watch, url = several(4), Watcher(), closed_port()

    async def work() -> None:
        async with AsyncExitStack() as stack, misbehaving(latency=0.05, refuses_n=True) as up:

            async def come() -> Server:
                await until(lambda: watch.rollouts >= 60)
                port = int(url.rpartition(":")[2])
                return await stack.enter_async_context(misbehaving(port=port, latency=0.05, refuses_n=True))

            task = asyncio.ensure_future(come())
            outcome, _ = await run(
                tmp_path / "run", [up.url, url], problems=problems, rollouts=16, watch=watch, concurrency=8
            )
            assert outcome.stopped is None
            assert not outcome.missing
            assert (await task).stats.requests > 10

    asyncio.run(work())


def test_faults_everywhere_lose_nothing_and_change_nothing(tmp_path: Path) -> None:
    problems, faults = several(3), {"limited": 0.04, "error": 0.04, "cut": 0.04, "short": 0.04}

    async def work() -> None:
        async with servers(*({**faults, "seed": i} for i in range(3)), {}) as four:
            outcome, method = await run(
                tmp_path / "run", [s.url for s in four[:3]], problems=problems, rollouts=8
            )
            alone, _ = await run(tmp_path / "alone", four[3].url, problems=problems, rollouts=8)
        assert outcome.stopped is None
        assert not outcome.missing
        assert sum(sum(s.stats.faults.values()) for s in four[:3]) > 5
        assert told(outcome, method, problems) == told(alone, method, problems)

    asyncio.run(work())


def test_where_no_server_answers_the_run_stops_and_names_them(tmp_path: Path) -> None:
    urls = [closed_port(), closed_port()]
    quick = RetryPolicy(first_wait=0.01, longest_wait=0.1, patience=0.5)
    outcome, _ = asyncio.run(run(tmp_path / "run", urls, problems=several(1), policy=quick, probed=False))
    assert isinstance(outcome.stopped, CircuitOpen)
    for url in urls:
        assert url.removeprefix("http://") in str(outcome.stopped)


def test_two_models_under_one_name_are_an_error() -> None:
    async def work() -> str:
        async with servers(
            {"root": "/data/qwen-7b"}, {"root": "Qwen/Qwen-7B"}, {"root": "/x/qwen-7b/"}
        ) as three:
            with pytest.raises(ConfigError) as caught:
                async with open_model("generic/test-model", base_url=[three[0].url, three[1].url]):
                    pass
            async with open_model("generic/test-model", base_url=[three[0].url, three[2].url]) as same:
                assert same.identity == "test-model"
            message = str(caught.value)
            assert f"{three[0].url}/v1" in message
            assert f"{three[1].url}/v1" in message
            return message

    message = asyncio.run(work())
    assert "qwen-7b" in message
    assert "Qwen-7B" in message


def test_a_server_that_comes_back_with_another_model_stays_away(tmp_path: Path) -> None:
    problems, watch, url = several(4), Watcher(), closed_port()

    async def work() -> None:
        port = int(url.rpartition(":")[2])
        async with AsyncExitStack() as stack, misbehaving(latency=0.05, refuses_n=True, root="a") as up:

            async def come() -> Server:
                await until(lambda: watch.rollouts >= 30)
                return await stack.enter_async_context(misbehaving(port=port, root="b"))

            task = asyncio.ensure_future(come())
            outcome, _ = await run(
                tmp_path / "run", [up.url, url], problems=problems, rollouts=16, watch=watch, concurrency=8
            )
            assert outcome.stopped is None
            assert not outcome.missing
            assert (await task).stats.requests == 0
        assert any(reason and "different models" in reason for reason in watch.reasons)

    asyncio.run(work())


def test_a_refused_key_at_one_server_leaves_the_work_to_the_others(tmp_path: Path) -> None:
    async def work() -> None:
        async with servers({"key": "sesame"}, {}) as (locked, open_):
            watch = Watcher()
            outcome, _ = await run(
                tmp_path / "run", [locked.url, open_.url], problems=several(2), watch=watch, probed=False
            )
        assert outcome.stopped is None
        assert not outcome.missing
        assert any("wants a key" in note for note in watch.notes)

    asyncio.run(work())


def test_every_host_is_announced() -> None:
    model = open_model(
        "vllm/m", base_url=["http://a.example:8000", "http://127.0.0.1:1", "http://b.example:8000/v1"]
    )
    assert isinstance(model, Fleet)
    assert model.hosts == ["a.example:8000", "b.example:8000"]
    assert model.concurrency == 3 * 256


def test_one_host_by_two_protocols_is_two_servers() -> None:
    model = open_model("vllm/m", base_url=["http://a:1", "https://a:1"])
    assert isinstance(model, Fleet)
    assert list(model.servers) == ["http://a:1/v1", "https://a:1/v1"]


def test_one_address_is_one_server_and_the_same_twice_an_error() -> None:
    assert isinstance(open_model("vllm/m", base_url="http://a:1"), OpenAIModel)
    assert isinstance(open_model("vllm/m", base_url=["http://a:1/v1"]), OpenAIModel)
    with pytest.raises(ConfigError, match="twice"):
        open_model("vllm/m", base_url=("http://a:1", "http://a:1/v1/"))
    with pytest.raises(ConfigError, match="one address"):
        open_reward("vllm/m", base_url=("http://a:1", "http://b:1"))


def test_the_file_of_a_benchmark_takes_a_list(tmp_path: Path) -> None:
    from porism.bench.config import BenchConfig, read_config

    file = tmp_path / "bench.toml"
    file.write_text(
        'data = "set.jsonl"\n[methods.vote]\n[models.a]\nmodel = "vllm/m"\n'
        'base_url = ["http://a:1", "http://b:1"]\n[models.b]\nmodel = "vllm/n"\nbase_url = "http://c:1"\n'
    )
    config = read_config(file)
    assert config.models["a"].base_url == ("http://a:1", "http://b:1")
    assert config.models["b"].base_url == "http://c:1"
    assert BenchConfig.model_validate(config.model_dump(mode="json")).models == config.models


def test_python_takes_a_list() -> None:
    from porism.prepare import resolve

    assert resolve({"base_url": ["http://a:1", "http://b:1"]}).base_url == ("http://a:1", "http://b:1")
    assert resolve({"base_url": "http://a:1"}).base_url == "http://a:1"


def test_the_command_line_takes_several(tmp_path: Path) -> None:
    from porism.data.write import write_problems

    file = tmp_path / "problem.jsonl"
    write_problems([problem()], file)

    def ranked(name: str, *urls: str) -> dict[str, Any]:
        flags = [flag for url in urls for flag in ("--base-url", url)]
        command = [
            sys.executable,
            "-m",
            "porism",
            "rank",
            str(file),
            "-m",
            "generic/test-model",
            "-n",
            "4",
            "--json",
        ]
        done = subprocess.run(
            [*command, "-o", str(tmp_path / name), *flags],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    with process() as first, process() as second:
        first.start()
        second.start()
        both = ranked("both", first.url, second.url)
        assert both["problems"] == ranked("one", first.url)["problems"]
        assert asyncio.run(second.stats())["rollouts"] > 3
