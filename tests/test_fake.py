"""The fake model: the same answers always, rates as ordered, faults that pass, settings checked."""

from __future__ import annotations

import asyncio

import pytest

from porism.errors import ConfigError, ModelError
from porism.models import open_model
from porism.models.fake import FakeModel
from porism.types import Call, Completion, Message, Prompt, Reply, Sampling


def ask(text: str, max_tokens: int = 200) -> Prompt:
    return Prompt("fake", (Message("user", text),), Sampling(max_tokens=max_tokens))


def texts(model: FakeModel, prompt: Prompt, n: int = 400) -> list[str]:
    async def run() -> list[str]:
        async with model:
            return [c.text for c in (await model.generate(Call(prompt, 0, n))).completions]

    return asyncio.run(run())


def share_right(model: FakeModel, text: str, gold: str) -> float:
    said = texts(model, ask(text))
    return sum(rf"\boxed{{{gold}}}" in t for t in said) / len(said)


def test_rates_follow_the_exemplar() -> None:
    model = FakeModel("fake/rate_right=0.7,rate_wrong=0.2")
    assert share_right(
        model, "shown [[helps]] now [[answer: 1]] and then [[answer: 12]]", "12"
    ) == pytest.approx(0.7, abs=0.08)
    assert share_right(model, "shown no way, now [[answer: 12]]", "12") == pytest.approx(0.2, abs=0.08)
    assert share_right(model, "[[answer: 3/4]] [[helps]]", "3/4") == pytest.approx(0.2, abs=0.08)
    assert share_right(FakeModel("fake/rate=1"), "[[answer: x]]", "x") == 1
    assert share_right(FakeModel("fake/rate=0"), r"[[helps]] [[answer: \frac{1}{2}]]", r"\frac{1}{2}") == 0


def test_answers_are_fixed_by_identity_whatever_the_bundling_and_the_faults() -> None:
    prompt = ask("[[answer: 5]]")
    faulty = FakeModel("fake/fail=0.4,busy=0.3,delay=0.0001")

    seen: set[tuple[str, bool]] = set()

    async def patiently() -> list[str]:
        said = []
        for rollout in range(40):
            while True:
                try:
                    reply = await faulty.generate(Call(prompt, rollout))
                except ModelError as error:
                    seen.add((error.retry, error.fatal))
                else:
                    break
            said.append(reply.completions[0].text)
        return said

    assert asyncio.run(patiently()) == texts(FakeModel("fake/default"), prompt, 40)
    assert seen == {("transient", False), ("rate_limit", False)}
    assert len(set(texts(FakeModel(), prompt, 40))) == 40
    assert texts(FakeModel(), ask("other [[answer: 5]]"), 40) != texts(FakeModel(), prompt, 40)
    assert faulty.identity == FakeModel("fake/default").identity != FakeModel("fake/rate=0.5").identity


def test_faults_are_as_frequent_as_ordered() -> None:
    model = FakeModel("fake/fail=0.3,busy=0.2")

    async def run() -> list[str]:
        kinds: list[str] = []
        for rollout in range(600):
            try:
                await model.generate(Call(ask("q"), rollout))
            except ModelError as error:
                kinds.append(error.retry)
        return kinds

    kinds = asyncio.run(run())
    assert kinds.count("transient") / 600 == pytest.approx(0.3, abs=0.06)
    assert kinds.count("rate_limit") / 600 == pytest.approx(0.2, abs=0.06)


def test_lengths_truncation_and_blanks() -> None:
    async def run(spec: str, max_tokens: int = 200) -> Reply:
        return await FakeModel(spec).generate(Call(ask("[[answer: 1]]", max_tokens), 0, 300))

    def cut(reply: Reply) -> float:
        return sum(c.truncated for c in reply.completions) / 300

    reply = asyncio.run(run("fake/truncate=0.25,tokens=60"))
    assert cut(reply) == pytest.approx(0.25, abs=0.07)
    assert reply.usage.completion / 300 == pytest.approx(60, abs=4)
    assert all("boxed" in c.text for c in reply.completions if not c.truncated)
    assert cut(asyncio.run(run("fake/tokens=60", max_tokens=10))) == 1
    blank = asyncio.run(run("fake/blank=1")).completions
    assert not any("boxed" in c.text or c.truncated for c in blank)


def test_the_hook_writes_the_answer() -> None:
    model = FakeModel(answer=lambda prompt, rollout: f"{prompt.messages[0].content} {rollout}")
    reply = asyncio.run(model.generate(Call(ask("q"), 3, 2)))
    assert reply.completions == (Completion(3, "q 3"), Completion(4, "q 4"))
    assert set(model.answered.values()) == {1}


def test_a_prompt_beyond_the_context_is_lost_alone() -> None:
    with pytest.raises(ModelError) as caught:
        asyncio.run(FakeModel("fake/context=60").generate(Call(ask("long " * 100, 10), 0)))
    assert (caught.value.kind, caught.value.retry, caught.value.fatal) == ("context", "no", False)


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("fake/rat=0.4", "rate="),
        ("fake/rate=much", "a number"),
        ("fake/tokens=1.5", "whole number"),
        ("fake/fail=1.5", "from 0 to 1"),
        ("fake/delay=-1", "at least 0"),
        ("fake/delay=nan", "at least 0"),
        ("fake/delay", "not a setting"),
    ],
)
def test_a_wrong_setting_is_named(spec: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        open_model(spec)


def test_open_model_reads_the_settings() -> None:
    model = open_model("fake/rate=0.4, tokens=80,max_n=4", concurrency=3, context=500)
    assert isinstance(model, FakeModel)
    assert (model.spec.rate_right, model.spec.rate_wrong, model.spec.tokens) == (0.4, 0.4, 80)
    assert (model.max_n, model.concurrency, model.context, model.host) == (4, 3, 500, None)
