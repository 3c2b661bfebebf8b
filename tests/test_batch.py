"""A model that is asked in batches, without Ray: what goes together, what fails alone, and what fails at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence, Set
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from porism.bench.config import read_config
from porism.bench.run import plan
from porism.config import Placement, RankConfig
from porism.data import write_problems
from porism.errors import ConfigError, ModelError
from porism.lane import Lane, RetryPolicy
from porism.scale.batch import BatchModel
from porism.scale.cluster import Cluster
from porism.scale.ray_data import open_batches
from porism.scale.vllm_rows import VllmRows, engine_options
from porism.types import Call, Completion, Message, Prompt, Reply, Sampling, Usage
from samples import problem

PROMPT = Prompt("test-model", (Message("user", "And 5?"),), Sampling(max_tokens=60))


def alone(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """The same test in an event loop of its own."""

    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Echo:
    """A pipeline that answers with the rollout's number. bad: rollouts that fail; gate: what the last row waits for."""

    name, identity = "test/echo", "echo"
    context: int | None = None
    host: str | None = None

    def __init__(
        self, *, bad: Set[int] = frozenset(), broken: str = "", gate: threading.Event | None = None
    ) -> None:
        self.bad, self.broken, self.gate = bad, broken, gate
        self.batches: list[list[int]] = []

    async def __aenter__(self) -> Echo:
        return self

    async def __aexit__(self, *exc: object) -> None: ...

    async def probe(self) -> list[str]:
        return []

    def run(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply | ModelError]]:
        self.batches.append([call.first for call in calls])
        if self.broken:
            raise ValueError(f"a trace\n{self.broken}")
        for place in reversed(range(len(calls))):
            if place == 0 and self.gate is not None:
                self.gate.wait(20)
            first = calls[place].first
            if first in self.bad:
                yield place, ModelError("bad row", retry="transient")
            else:
                yield place, Reply((Completion(first, str(first)),), Usage(requests=1))


def model(pipeline: Echo, **settings: float) -> BatchModel:
    return BatchModel(pipeline, turn=asyncio.Lock(), silence=0.1, **settings)  # type: ignore[arg-type]


async def asked(batches: BatchModel, rollouts: range) -> list[Reply | BaseException]:
    calls = (batches.generate(Call(PROMPT, i)) for i in rollouts)
    return await asyncio.gather(*calls, return_exceptions=True)


@alone
async def test_what_is_asked_together_is_one_batch() -> None:
    pipeline = Echo(bad={3})
    async with model(pipeline) as batches:
        answers = await asked(batches, range(50))
        assert pipeline.batches == [list(range(50))]
        assert isinstance(answers[3], ModelError)
        texts = [answer.completions[0].text for answer in answers if isinstance(answer, Reply)]
        assert texts == [str(i) for i in range(50) if i != 3]
        await asked(batches, range(2))
    assert pipeline.batches[1:] == [[0, 1]]


@alone
async def test_a_batch_has_at_most_so_many_rows() -> None:
    pipeline = Echo()
    async with model(pipeline, rows=20) as batches:
        assert all(isinstance(answer, Reply) for answer in await asked(batches, range(50)))
    assert [len(batch) for batch in pipeline.batches] == [20, 20, 10]


@alone
async def test_what_is_done_is_told_while_the_batch_goes_on() -> None:
    gate = threading.Event()
    async with model(Echo(gate=gate)) as batches:
        slow = asyncio.create_task(batches.generate(Call(PROMPT, 0)))
        await asked(batches, range(1, 5))
        assert not slow.done()
        gate.set()
        assert (await slow).completions[0].rollout == 0


@alone
async def test_a_pipeline_that_fails_is_the_error_of_all_its_calls() -> None:
    async with model(Echo(broken="no room for the weights")) as batches:
        answers = await asked(batches, range(5))
    for answer in answers:
        assert isinstance(answer, ModelError)
        assert str(answer) == "the batch failed: ValueError: no room for the weights"
        assert answer.retry == "transient"


@alone
async def test_what_was_given_up_is_not_asked() -> None:
    pipeline = Echo()
    async with model(pipeline) as batches:
        dropped = asyncio.create_task(batches.generate(Call(PROMPT, 9)))
        await asyncio.sleep(0)
        dropped.cancel()
        await asked(batches, range(2))
    assert pipeline.batches == [[0, 1]]


@alone
async def test_a_lane_sends_all_at_once_and_waits_for_it() -> None:
    def lane(of: BatchModel) -> Lane:
        nothing = {"landed": print, "lost": print, "failed": print, "waiting": print, "stop": print}
        return Lane(of, RetryPolicy(attempt_deadline=0.01), may_start=lambda: True, **nothing)  # type: ignore[arg-type]

    batches = model(Echo())
    assert lane(batches).limit == 10_000
    assert lane(batches)._policy.attempt_deadline == float("inf")


def test_an_allocation_is_refused(tmp_path: Path) -> None:
    for policy in ("toptwo", "lucb", "halving", "uniform"):
        with pytest.raises(ConfigError, match="leave the allocation out, or take --executor ray"):
            RankConfig(executor="ray-data", allocation=policy)
    assert str(RankConfig(executor="ray-data").placement) == "1 replica with Ray Data on the cluster at auto"
    problems, file = tmp_path / "problems.jsonl", tmp_path / "bench.toml"
    write_problems([problem("p", candidates=2, neighbors=1)], problems)
    file.write_text(
        f'data = ["{problems}"]\nmetrics = []\nexecutor = "ray-data"\n[models.m]\nmodel = "generic/m"\n'
        '[methods.utility]\nmodel = "m"\nallocation = { policy = "toptwo" }\n'
    )
    with pytest.raises(ConfigError, match=r"methods\.utility: --executor ray-data"):
        plan(read_config(file, []), file)


def test_faults_of_the_user_are_told(tmp_path: Path) -> None:
    file = tmp_path / "problems.jsonl"
    write_problems([problem()], file)
    command = [
        sys.executable,
        "-m",
        "porism",
        "rank",
        str(file),
        "--executor",
        "ray-data",
        "-o",
        str(tmp_path / "run"),
    ]
    wrong = {"leave the allocation out": ["--allocation", "toptwo"]}
    if not all(map(find_spec, ("ray", "pandas", "pyarrow"))):
        wrong["--executor ray-data needs the extra 'ray-data'"] = ["--model", "generic/m"]
    for reason, flags in wrong.items():
        ended = subprocess.run([*command, *flags], capture_output=True, text=True, timeout=60)
        assert ended.returncode == 2, ended.stderr
        assert reason in " ".join(ended.stderr.split())


def test_what_ray_data_cannot_ask_is_refused() -> None:
    cluster = Cluster(Placement(batches=True), print)
    both = ["http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"]
    for spec, where in (("local/qwen2.5-coder-0.5b", None), ("fake/default", None), ("generic/m", both)):
        with pytest.raises(ConfigError, match="asks one server"):
            open_batches(cluster, asyncio.Lock(), spec, base_url=where)
    with pytest.raises(ConfigError, match="needs a GPU"):
        open_batches(Cluster(Placement(batches=True, gpus=0), print), asyncio.Lock(), "vllm/m")
    assert open_batches(cluster, asyncio.Lock(), "vllm/org/m").identity == "org/m"


def test_a_row_of_vllm_is_a_reply() -> None:
    cluster = Cluster(Placement(batches=True, engine_args="--max-model-len 100"), print)
    pipeline = open_batches(cluster, asyncio.Lock(), "vllm/org/m")._pipeline
    assert isinstance(pipeline, VllmRows)

    def read(prompt: int, completion: int, error: str = "") -> Reply | ModelError:
        row = {"generated_text": "5", "num_input_tokens": prompt, "num_generated_tokens": completion}
        return pipeline._read(Call(PROMPT, 7), {**row, "__inference_error__": error})

    ended = [read(10, 20), read(10, 60), read(80, 20)]  # of 60 tokens at most, in a context of 100
    assert [answer.completions[0] for answer in ended if isinstance(answer, Reply)] == [
        Completion(7, "5", reason) for reason in ("stop", "length", "length")
    ]
    assert isinstance(ended[0], Reply)
    assert ended[0].usage == Usage(10, 20, requests=1)
    failed = read(0, 0, "ValueError: the prompt is longer than the maximum context length of 100")
    assert isinstance(failed, ModelError)
    assert failed.kind == "context"


def test_options_of_vllm_become_arguments() -> None:
    words = ["--max-model-len", "32768", "--enforce-eager", "--dtype=half", "--no-enable-prefix-caching"]
    assert engine_options(words) == {
        "max_model_len": 32768,
        "enforce_eager": True,
        "dtype": "half",
        "enable_prefix_caching": False,
    }
    with pytest.raises(ConfigError, match="'half' is no option"):
        engine_options(["half"])
