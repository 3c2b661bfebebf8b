"""Reward models: three shapes of a served number, what is no number, and the method over them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from porism.engine import Engine, replay
from porism.errors import ConfigError, ModelError
from porism.lane import RetryPolicy
from porism.methods.reward import Reward, reward_prompt
from porism.models import open_reward
from porism.models.reward import SHAPES, RewardModel, Shape, parse
from porism.progress import SilentWatch
from porism.store import Store
from porism.types import Call, Completion, Model, Result, Usage
from porism.verify.pool import Verifier
from samples import problem
from server import Server, closed_port, misbehaving

T = TypeVar("T")
PROBLEM = problem(candidates=4)


def use(act: Callable[[RewardModel, Server], Awaitable[T]], shape: Shape = "pooling", **faults: Any) -> T:
    async def run() -> T:
        async with (
            misbehaving(**faults) as server,
            RewardModel("test-model", shape=shape, name="vllm/test-model", base_url=server.url) as model,
        ):
            return await act(model, server)

    return asyncio.run(run())


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_gives_the_number(shape: Shape) -> None:
    async def act(model: RewardModel, server: Server) -> None:
        for text, expected in (("It [[helps]].", 30 - 0.013), ("No.", -0.003)):
            reply = await model.generate(Call(reward_prompt(model.identity, "Why?", text), 0))
            (completion,) = reply.completions
            assert float(completion.text) == pytest.approx(expected)
            assert reply.usage == Usage((4 + len(text)) // 4, 0, 0, 1)
        body = server.stats.bodies[0]
        assert body["model"] == "test-model"
        assert body["use_activation"] is False
        shown = (
            [m["content"] for m in body["messages"]] if shape != "score" else [body["text_1"], body["text_2"]]
        )
        assert shown == ["Why?", "It [[helps]]."]
        assert model.identity == f"test-model ({shape})"

    use(act, shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_method_over_a_run(shape: Shape, tmp_path: Path) -> None:
    async def act(model: RewardModel, server: Server) -> None:
        method = Reward(model=model.identity)
        for _ in range(2):  # the second time from the store
            with Store(tmp_path / "run") as store:
                async with Verifier(workers=1) as checker:
                    engine = Engine({model.identity: model}, store, checker, SilentWatch())
                    outcome = await engine.run([PROBLEM], [method])
                    assert await replay(store, checker, [PROBLEM], [method]) == outcome.seen
            assert outcome.stopped is None
            assert server.stats.requests == 4
        scores = method.score(PROBLEM, outcome.seen["p", "reward"])
        for candidate in PROBLEM.candidates:
            score = scores[candidate.id]
            expected = ("[[helps]]" in candidate.text) * 30 - len(candidate.text) / 1000
            assert score.value == score.low == score.high == pytest.approx(expected)

    use(act, shape)


def test_a_candidate_that_does_not_fit_is_missing_and_said(tmp_path: Path) -> None:
    async def act(model: RewardModel, server: Server) -> None:
        method = Reward(model=model.identity)
        with Store(tmp_path / "run") as store:
            async with Verifier(workers=1) as checker:
                engine = Engine(
                    {model.identity: model},
                    store,
                    checker,
                    SilentWatch(),
                    policy=RetryPolicy(first_wait=0.001),
                )
                outcome = await engine.run([PROBLEM], [method])
        assert outcome.stopped is None
        scores = method.score(PROBLEM, outcome.seen["p", "reward"])
        assert all(s.value is None for s in scores.values())
        assert all("context" in s.flags[0] for s in scores.values())

    use(act, context_chars=20)


@pytest.mark.parametrize(
    ("shape", "document", "complaint", "fatal"),
    [
        ("pooling", {"data": [{"data": [[0.1, 0.9], [0.2, 0.8]]}]}, "2 numbers", True),
        ("pooling", {"data": [{"data": [0.1, 0.9, 0.4]}]}, "3 numbers", True),
        ("pooling", {"data": [{"data": []}]}, "0 numbers", True),
        ("pooling", {"data": [{"data": "AAAA"}]}, "'AAAA'", False),
        ("classify", {"data": [{"probs": [0.3, 0.7]}]}, "2 numbers", True),
        ("score", {"data": [{"score": None}]}, "None", False),
        ("score", {"data": []}, "no readable reward", False),
        ("score", {"data": [{"probs": [1.0]}]}, "no readable reward", False),
        ("score", ["?"], "no readable reward", False),
    ],
)
def test_what_is_no_scalar(shape: Shape, document: object, complaint: str, fatal: bool) -> None:
    with pytest.raises(ModelError, match=complaint) as caught:
        parse(json.dumps(document).encode(), shape)
    assert caught.value.fatal == fatal


def test_numbers_as_servers_write_them() -> None:
    assert parse(b'{"data": [{"data": [[-1.5], [2]]}]}', "pooling") == (2.0, Usage(0, 0, 0, 1, counted=False))
    assert parse(b'{"data": [{"data": [0.25]}], "usage": {"prompt_tokens": 9}}', "pooling")[0] == 0.25
    assert parse(b'{"data": [{"probs": [1e-3]}]}', "classify")[0] == 0.001
    for broken in (b"", b"<html>", b'{"data": [{"score": NaN}]}', b"[" * 10_000):
        with pytest.raises(ModelError):
            parse(broken, "score")


def test_the_trial_tells_of_batches_that_change_rewards() -> None:
    async def act(model: RewardModel, server: Server) -> list[str]:
        return await model.probe()

    assert use(act, latency=0.01) == []
    (warning,) = use(act, latency=0.01, batch_error=0.5)
    assert "several are asked at once" in warning
    assert "concurrency 1" in warning


def test_errors_name_what_to_do() -> None:
    async def refused(served: str, key: str, complaint: str) -> None:
        async with (
            misbehaving(key="sk-right-key-000") as server,
            RewardModel(served, name=f"vllm/{served}", base_url=server.url, key=key) as model,
        ):
            with pytest.raises(ModelError, match=complaint) as caught:
                await model.probe()
            assert caught.value.fatal
            assert "sk-" not in str(caught.value)

    asyncio.run(refused("test-model", "sk-wrong-key-000", "OPENAI_API_KEY"))
    asyncio.run(refused("tset-model", "sk-right-key-000", "'tset-model': it lists test-model"))

    async def down() -> None:
        async with RewardModel("m", name="vllm/m", base_url=closed_port()) as model:
            with pytest.raises(ModelError, match="no connection") as caught:
                await model.generate(Call(reward_prompt(model.identity, "Q", "C"), 0))
            assert caught.value.retry == "transient"

    asyncio.run(down())


def test_opened_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_BASE_URL", "http://127.0.0.1:9/v1")
    model: Model = open_reward("vllm/nvidia/AceMath-7B-RM", shape="classify")
    assert isinstance(model, RewardModel)
    assert (model.served_name, model.shape) == ("nvidia/AceMath-7B-RM", "classify")
    for spec in ("local/x", "fake/x", "vllm"):
        with pytest.raises(ConfigError, match="served"):
            open_reward(spec)
    with pytest.raises(ConfigError, match="pooling, classify, score"):
        open_reward("vllm/x", shape="embed")  # type: ignore[arg-type]


def test_reading() -> None:
    method = Reward(model="r")
    ask = method.plan(PROBLEM, [])[0]
    for text, score in (("-1.5", -1.5), ("2", 2.0), ("nan", None), ("inf", None), ("good", None)):
        assert method.read(ask, Result(Completion(0, text), None, None)).score == score
    assert method.score(PROBLEM, [])["a"].flags == ("no reward: nothing seen",)
    with pytest.raises(ConfigError, match="name a reward model"):
        Reward(model="")
