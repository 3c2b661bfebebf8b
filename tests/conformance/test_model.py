"""What every Model must hold, as one class: subclass ModelConformance and say how yours is opened.

    class TestMine(ModelConformance):
        @asynccontextmanager
        async def opened(self):
            async with MyModel(...) as model:
                yield model

`deterministic = False` leaves out what a seed must settle, for models that cannot promise it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import msgspec
import pytest

from porism.errors import ModelError
from porism.models.fake import FakeModel
from porism.models.openai import OpenAIModel
from porism.types import Call, Message, Model, Prompt, Reply, Sampling
from server import misbehaving

T = TypeVar("T")


class ModelConformance:
    deterministic = True

    def opened(self) -> AbstractAsyncContextManager[Model]:
        raise NotImplementedError

    def use(self, act: Callable[[Model], Awaitable[T]]) -> T:
        async def run() -> T:
            async with self.opened() as model:
                return await act(model)

        return asyncio.run(run())

    @staticmethod
    def prompt(
        model: Model, text: str = "What is 6 times 7? [[answer: 42]]", max_tokens: int = 200
    ) -> Prompt:
        return Prompt(model.identity, (Message("user", text),), Sampling(max_tokens=max_tokens))

    def test_it_tells_what_it_is(self) -> None:
        async def act(model: Model) -> None:
            assert "/" in model.name
            assert model.identity
            assert "http" not in model.identity
            assert model.concurrency >= 1
            assert model.max_n >= 1
            assert model.context is None or model.context > 0
            assert isinstance(model.chain, bool)

        self.use(act)

    def test_its_trial_gives_warnings_and_no_more_than_it_keeps(self) -> None:
        async def act(model: Model) -> None:
            warnings = await model.probe()
            assert all(isinstance(warning, str) and warning for warning in warnings)
            reply = await model.generate(Call(self.prompt(model), 0, model.max_n))
            assert len(reply.completions) == model.max_n

        self.use(act)

    def test_a_call_is_answered_whole_and_in_order(self) -> None:
        async def act(model: Model) -> None:
            for n in {1, 2, model.max_n}:
                reply = await model.generate(Call(self.prompt(model), 5, n))
                assert [c.rollout for c in reply.completions] == list(range(5, 5 + n))
                assert reply.usage.requests >= 1
                assert reply.usage.prompt > 0
                assert 0 <= reply.usage.cached <= reply.usage.prompt
                assert all(c.finish_reason for c in reply.completions)

        self.use(act)

    def test_replies_survive_the_store(self) -> None:
        async def act(model: Model) -> None:
            reply = await model.generate(Call(self.prompt(model), 0))
            assert msgspec.json.decode(msgspec.json.encode(reply), type=Reply) == reply

        self.use(act)

    def test_a_short_limit_truncates(self) -> None:
        async def act(model: Model) -> None:
            reply = await model.generate(Call(self.prompt(model, max_tokens=1), 0))
            assert reply.completions[0].truncated

        self.use(act)

    def test_calls_in_flight_do_not_mix(self) -> None:
        async def act(model: Model) -> None:
            prompts = [self.prompt(model, f"Question {k}. [[answer: {k}]]") for k in range(6)]
            calls = [Call(p, first) for p in prompts for first in (0, 1)]
            together = await asyncio.gather(*(model.generate(call) for call in calls))
            assert [r.completions[0].rollout for r in together] == [call.first for call in calls]
            if self.deterministic:
                alone = [await model.generate(call) for call in calls]
                assert [r.completions for r in together] == [r.completions for r in alone]

        self.use(act)

    def test_a_rollout_is_the_same_however_bundled(self) -> None:
        if not self.deterministic:
            pytest.skip("not promised")

        async def act(model: Model) -> None:
            prompt = self.prompt(model)
            bundle = (await model.generate(Call(prompt, 3, 4))).completions
            single = [(await model.generate(Call(prompt, first))).completions[0] for first in range(3, 7)]
            assert list(bundle) == single
            assert len({c.text for c in bundle}) > 1

        self.use(act)

    def test_it_can_be_entered_again(self) -> None:
        async def act(model: Model) -> None:
            await model.generate(Call(self.prompt(model), 0))

        self.use(act)
        self.use(act)

    def test_a_cancelled_call_leaves_it_usable(self) -> None:
        async def act(model: Model) -> None:
            task = asyncio.ensure_future(model.generate(Call(self.prompt(model), 0)))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await model.generate(Call(self.prompt(model), 0))).completions

        self.use(act)


class TestFakeModel(ModelConformance):
    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Model]:
        async with FakeModel("fake/delay=0.002") as model:
            yield model


class TestOpenAIModel(ModelConformance):
    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Model]:
        async with (
            misbehaving() as server,
            OpenAIModel("test-model", name="generic/test-model", base_url=server.url) as model,
        ):
            yield model


class TestOpenAIModelOneByOne(ModelConformance):
    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Model]:
        async with (
            misbehaving(ignores_n=True, llama=True, reasoning=True) as server,
            OpenAIModel("test-model", name="generic/test-model", base_url=server.url) as model,
        ):
            yield model


@pytest.mark.parametrize("spec", ["fake/fail=1", "fake/busy=1"])
def test_one_attempt_a_call(spec: str) -> None:
    """Retries are the engine's: a model that fails says so at once."""

    async def run() -> None:
        async with FakeModel(spec) as model:
            await model.generate(Call(ModelConformance.prompt(model), 0))

    with pytest.raises(ModelError) as caught:
        asyncio.run(run())
    assert caught.value.retry != "no"


@pytest.mark.parametrize("fault", ["limited", "error", "cut", "garbage", "empty"])
def test_one_attempt_a_request(fault: str) -> None:
    async def run() -> int:
        faults: dict[str, Any] = {fault: 1.0}
        async with (
            misbehaving(**faults) as server,
            OpenAIModel("test-model", name="generic/test-model", base_url=server.url) as model,
        ):
            with pytest.raises(ModelError) as caught:
                await model.generate(Call(ModelConformance.prompt(model), 0))
            assert caught.value.retry != "no"
            return server.stats.requests

    assert asyncio.run(run()) == 1
