"""What `porism models ping` finds out: what a server is, what it honors, and how to start it well for this work.

A run asks the same long prompt again and again, many at once, and for long answers. So it matters that prompts are
cached and the cached tokens told, that a prompt and its answer fit the context, and how many requests run side by
side. A few short calls are made; the longest prompt has a thousand tokens or so, since a cache works in blocks.
"""

from __future__ import annotations

import time

from msgspec import Struct

from porism.config import SERVED
from porism.errors import ModelError
from porism.models.openai import OpenAIModel
from porism.models.probe import probe
from porism.models.recognize import Server, recognize
from porism.types import Call, Completion, Message, Model, Prompt, Sampling, Usage

_HELLO = "Say hello in one short sentence."
_LONG = f"Here are some numbers: {', '.join(map(str, range(1, 401)))}. {_HELLO}"
_ROOM = 4096  # tokens of a prompt with an example solution in it


class Honors(Struct, frozen=True):
    """What a server does when asked: None where that was not found out."""

    seed: bool | None
    n: bool | None
    logprobs: bool | None
    cached_tokens: bool | None


class Ping(Struct, frozen=True):
    """A model as it answers. seconds: of the first short call. again: usage of the second of two equal prompts."""

    server: Server | None  # None: a process of ours
    completion: Completion
    seconds: float
    usage: Usage
    again: Usage
    honors: Honors
    warnings: list[str]
    advice: list[str]


async def ping(model: Model) -> Ping:
    """What a few calls to an entered model tell. Raises ModelError where it does not answer."""
    start = time.perf_counter()
    reply = await model.generate(_call(model, _HELLO, Sampling(max_tokens=64), 0))
    seconds = time.perf_counter() - start
    if not isinstance(model, OpenAIModel):
        again = await model.generate(_call(model, _HELLO, Sampling(max_tokens=64), 1))
        honors = Honors(seed=True, n=True, logprobs=None, cached_tokens=again.usage.cached > 0)
        return Ping(
            None,
            reply.completions[0],
            seconds,
            reply.usage,
            again.usage,
            honors,
            await model.probe(),
            [],
        )
    server = await recognize(model)
    for rollout in (0, 1):  # the first fills the cache
        again = await model.generate(_call(model, _LONG, Sampling(max_tokens=1), rollout))
    trial = await probe(model)
    honors = Honors(trial.seed, trial.n, await _logprobs(model), again.usage.cached > 0)
    return Ping(
        server,
        reply.completions[0],
        seconds,
        reply.usage,
        again.usage,
        honors,
        trial.warnings,
        advice(server, honors),
    )


def advice(server: Server, honors: Honors) -> list[str]:
    """What to change in how the server is started, a line each; docs/servers.md says more."""
    told = [*_ADVICE[server.program](server, honors)] if server.program in _ADVICE else []
    need = SERVED["max_tokens"] + _ROOM
    if server.context is not None and server.context < need:
        how = _CONTEXT.get(server.program, "a larger context")
        told.append(
            f"a request may have {server.context:,} tokens, and a run asks for answers of up to "
            f"{SERVED['max_tokens']:,}: start it with {how}, or give --max-tokens"
        )
    return told


_CONTEXT = {
    "vLLM": "--max-model-len 32768",
    "SGLang": "--context-length 32768",
    "llama.cpp": "a larger -c (it is shared by the slots)",
    "Ollama": "OLLAMA_CONTEXT_LENGTH=32768",
}


def _vllm(_: Server, honors: Honors) -> list[str]:
    if honors.cached_tokens:
        return []
    return [
        "it tells of no cached prompt tokens: start it with --enable-prompt-tokens-details, and without "
        "--no-enable-prefix-caching"
    ]


def _sglang(server: Server, honors: Honors) -> list[str]:
    told = []
    if server.report is False or not honors.cached_tokens:
        told.append(
            "it tells of no cached prompt tokens: start it with --enable-cache-report, and without "
            "--disable-radix-cache"
        )
    if honors.seed is False:
        told.append("seeds count only with --enable-deterministic-inference, at some cost in speed")
    return told


def _llama(server: Server, _: Honors) -> list[str]:
    if server.at_once is None or server.at_once > 4:
        return []
    return [
        f"it runs {server.at_once} requests at once: where memory allows, start it with -np 8 or more and a "
        "context (-c) larger by as much"
    ]


def _ollama(server: Server, _: Honors) -> list[str]:
    told = [
        "it cuts prompts that do not fit, and says nothing: set OLLAMA_CONTEXT_LENGTH to prompt and answer together"
    ]
    if server.context is not None:
        told = []
    return [*told, "it runs OLLAMA_NUM_PARALLEL requests at once, one by default: set it where memory allows"]


_ADVICE = {"vLLM": _vllm, "SGLang": _sglang, "llama.cpp": _llama, "Ollama": _ollama}


async def _logprobs(model: OpenAIModel) -> bool | None:
    """Whether log-probabilities come when asked for; None where the call failed for another reason."""
    try:
        reply = await model.generate(_call(model, _HELLO, Sampling(max_tokens=4, top_logprobs=2), 0))
    except ModelError as error:
        return False if error.kind == "refused" else None
    return any(token.top for token in reply.completions[0].ending)


def _call(model: Model, text: str, sampling: Sampling, rollout: int) -> Call:
    return Call(Prompt(model.identity, (Message("user", text),), sampling), rollout)


__all__ = ["Honors", "Ping", "advice", "ping"]
