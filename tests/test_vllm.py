"""A real vLLM: what the client, the trial, `porism models ping`, `porism rank` and reward models do with one.

`make test-vllm` makes it and runs these; it serves the smallest model of the catalog on the CPU (see vllm_cpu.py).
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import subprocess
import sys
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

import vllm_cpu
from porism.data import write_problems
from porism.errors import ModelError
from porism.methods.reward import reward_prompt
from porism.models import open_model, open_reward
from porism.models.openai import OpenAIModel
from porism.models.probe import probe
from porism.models.reward import SHAPES, RewardModel, Shape
from porism.types import Call, Message, Prompt, Reply, Sampling
from samples import problem

T = TypeVar("T")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.vllm,
    pytest.mark.timeout(2 * vllm_cpu.PATIENCE),
    pytest.mark.skipif(bool(vllm_cpu.missing()), reason=vllm_cpu.missing() or ""),
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with vllm_cpu.serving() as url:
        yield url


def use(url: str, act: Callable[[OpenAIModel], Awaitable[T]], name: str = vllm_cpu.MODEL) -> T:
    async def run() -> T:
        async with open_model(f"vllm/{name}", base_url=url) as model:
            assert isinstance(model, OpenAIModel)
            return await act(model)

    return asyncio.run(run())


def ask(text: str, rollout: int = 0, n: int = 1, **sampling: Any) -> Call:
    sampling = {"max_tokens": 8} | sampling
    return Call(Prompt(vllm_cpu.MODEL, (Message("user", text),), Sampling(**sampling)), rollout, n)


def asked(url: str) -> int:
    """How many chat requests this server has had, by its own count."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as page:
        told = page.read().decode()
    counts = re.findall(r'^http_requests_total{handler="/v1/chat/completions".*} (\S+)$', told, re.M)
    return round(sum(map(float, counts)))


def test_it_answers_counts_and_says_why_it_ends(url: str) -> None:
    async def act(model: OpenAIModel) -> tuple[int | None, Reply, Reply]:
        cut = await model.generate(ask("Name one fruit.", stop=("zzzz",)))
        whole = await model.generate(ask("Tell me a story of the sea.", max_tokens=100, stop=("e",)))
        return model.context, cut, whole

    context, cut, whole = use(url, act)
    assert context == vllm_cpu.CONTEXT
    assert [c.finish_reason for c in cut.completions + whole.completions] == ["length", "stop"]
    assert cut.usage.counted
    assert (cut.usage.completion, cut.usage.requests) == (8, 1)
    assert 5 < cut.usage.prompt < 100
    assert "e" not in whole.completions[0].text


def test_several_answers_are_one_call_and_all_counted(url: str) -> None:
    async def act(model: OpenAIModel) -> tuple[Reply, int]:
        assert (await probe(model)).n
        before = await asyncio.to_thread(asked, url)
        reply = await model.generate(ask("Tell me a long story of the sea.", 5, 4))
        return reply, await asyncio.to_thread(asked, url) - before

    reply, requests = use(url, act)
    assert requests == 1
    assert [c.rollout for c in reply.completions] == [5, 6, 7, 8]
    assert len({c.text for c in reply.completions}) > 1
    assert {c.finish_reason for c in reply.completions} == {"length"}
    assert (reply.usage.requests, reply.usage.completion) == (1, 32)


def test_a_seed_settles_the_answer_or_the_trial_warns(url: str) -> None:
    async def act(model: OpenAIModel) -> tuple[bool | None, list[str], list[str]]:
        trial = await probe(model)
        replies = [await model.generate(ask("Name ten random nouns.", i, max_tokens=16)) for i in (0, 0, 1)]
        return trial.seed, trial.warnings, [reply.completions[0].text for reply in replies]

    seed, warnings, (first, again, other) = use(url, act)
    assert seed is (not any("seed" in warning for warning in warnings))
    assert first != other
    if seed:
        assert first == again


def test_a_prefix_is_computed_once_and_said_to_be(url: str) -> None:
    async def act(model: OpenAIModel) -> list[Reply]:
        long = f"Here are numbers: {', '.join(map(str, range(300)))}. Which is odd?"
        return [await model.generate(ask(long, i, max_tokens=1)) for i in range(2)]

    first, second = use(url, act)
    assert first.usage.prompt == second.usage.prompt > 500
    assert first.usage.cached < 0.1 * first.usage.prompt
    assert second.usage.cached > 0.7 * second.usage.prompt


def test_log_probabilities_of_each_token_are_told(url: str) -> None:
    async def act(model: OpenAIModel) -> Reply:
        return await model.generate(
            ask("Is 7 odd? Say yes or no.", max_tokens=4, top_logprobs=5, stop=("zzzz",))
        )

    (completion,) = use(url, act).completions
    assert "".join(token.text for token in completion.ending) == completion.text
    for token in completion.ending:
        assert len(token.top) >= 5
        assert sum(map(math.exp, token.top.values())) <= 1.001


def test_what_cannot_be_answered_says_why(url: str) -> None:
    async def act(model: OpenAIModel) -> list[ModelError]:
        found = []
        for call in (ask("word " * 2500), ask("Hello", max_tokens=3000)):
            with pytest.raises(ModelError) as caught:
                await model.generate(call)
            found.append(caught.value)
        return found

    for error in use(url, act):
        assert (error.kind, error.retry, error.fatal) == ("context", "no", False)

    async def unknown(model: OpenAIModel) -> None:
        with pytest.raises(ModelError, match=f"serves no model 'other'.*{vllm_cpu.MODEL}") as caught:
            await model.generate(ask("Hello"))
        assert caught.value.fatal

    use(url, unknown, "other")


def porism(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "porism", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)


def test_ping_names_it_and_what_it_honors(url: str) -> None:
    done = porism("models", "ping", f"vllm/{vllm_cpu.MODEL}", "--base-url", url, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    server = found["server"]
    assert (server["program"], server["version"]) == ("vLLM", vllm_cpu.VLLM)
    assert (server["context"], found["context"]) == (vllm_cpu.CONTEXT, vllm_cpu.CONTEXT)
    assert server["weights"] == {"model": vllm_cpu.MODEL}
    honors = found["honors"]
    assert (honors["n"], honors["logprobs"], honors["cached_tokens"]) == (True, True, True)
    assert honors["seed"] is (not found["warnings"])
    (advice,) = found["advice"]
    assert re.search(r"2,048 tokens.*--max-model-len", advice)
    assert found["answer"]


def test_rank_runs_to_its_end_over_a_stop(url: str, tmp_path: Path) -> None:
    write_problems([problem(candidates=2)], tmp_path / "p.yaml")
    words = ["rank", "p.yaml", "-m", f"vllm/{vllm_cpu.MODEL}", "--base-url", url]
    words += ["-n", "2", "--max-tokens", "24", "--target-samples", "0", "--json"]
    stopped = porism(*words, "--max-requests", 2, cwd=tmp_path)
    assert stopped.returncode == 3, stopped.stderr
    done = porism(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (one,) = document["problems"]
    assert {row["candidate"] for row in one["ranking"]} == {"a", "b"}
    before = asked(url)
    again = porism(*words, cwd=tmp_path)
    assert json.loads(again.stdout)["problems"] == document["problems"]
    assert asked(url) - before in (3, 4)  # the trial, and no rollout
    (index,) = tmp_path.glob("runs/*/index.jsonl")
    rows = [json.loads(line) for line in index.read_text().splitlines()]
    assert len(rows) == len({row["id"] for row in rows}) == 2 * 2 * 3  # with no example, too
    assert {row["finish"] for row in rows} <= {"stop", "length"}


@pytest.fixture(scope="module")
def reward_url() -> Iterator[str]:
    with vllm_cpu.serving(vllm_cpu.REWARD, "--runner=pooling") as url:
        yield url


@pytest.mark.parametrize("shape", SHAPES)
def test_a_reward_model_gives_its_raw_number(reward_url: str, shape: Shape) -> None:
    async def act() -> tuple[float, float, ModelError]:
        async with open_reward(f"vllm/{vllm_cpu.REWARD}", shape=shape, base_url=reward_url) as model:
            assert isinstance(model, RewardModel)
            first, other = [
                await model.generate(Call(reward_prompt(model.identity, "What is 2 plus 3?", text), 0))
                for text in ("It is 5.", "It is 6, as the two are added.")
            ]
            assert first.usage.counted
            assert 10 < first.usage.prompt < other.usage.prompt
            with pytest.raises(ModelError) as caught:
                await model.generate(Call(reward_prompt(model.identity, "Why?", "word " * 2500), 0))
            return float(first.completions[0].text), float(other.completions[0].text), caught.value

    first, other, error = asyncio.run(act())
    assert first != other
    assert error.kind == "context"
    assert sigmoid_of(reward_url, shape) == pytest.approx(1 / (1 + math.exp(-first)), abs=0.01)


def sigmoid_of(url: str, shape: Shape) -> float:
    """The first reward of the test above as the server gives it unless it is asked for the raw one."""
    body: dict[str, Any] = {"model": vllm_cpu.REWARD}
    if shape == "score":
        body |= {"text_1": "What is 2 plus 3?", "text_2": "It is 5."}
    else:
        turns = (("user", "What is 2 plus 3?"), ("assistant", "It is 5."))
        body["messages"] = [{"role": role, "content": content} for role, content in turns]
    request = urllib.request.Request(
        f"{url}/{shape}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        (row,) = json.load(answer)["data"]
    found = row[{"pooling": "data", "classify": "probs", "score": "score"}[shape]]
    while isinstance(found, list):
        found = found[-1]
    return float(found)
