"""What a server is told to be, from the shapes that each program exposes, and what a ping finds out on the wire."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from porism.errors import ConfigError
from porism.models import open_model
from porism.models.openai import OpenAIModel
from porism.models.ping import Ping, ping
from porism.models.recognize import Server as Recognized
from porism.models.recognize import recognize
from server import Faults, Server, closed_port, serving

VLLM = {
    "/version": {"version": "0.27.1"},
    "/v1/models": {
        "data": [
            {"id": "test-model", "owned_by": "vllm", "root": "/models/Qwen3-8B/", "max_model_len": 40960}
        ]
    },
}
SGLANG = {
    "/get_model_info": {"model_path": "Qwen/Qwen3-8B", "is_generation": True, "weight_version": "default"},
    "/get_server_info": {
        "version": "0.5.20",
        "context_length": None,
        "max_running_requests": 128,
        "enable_cache_report": False,
        "internal_states": [{}],
    },
    "/v1/models": {
        "data": [{"id": "test-model", "owned_by": "sglang", "root": "test-model", "max_model_len": 32768}]
    },
}
LLAMA = {
    "/props": {
        "default_generation_settings": {"n_ctx": 8192, "params": {}},
        "total_slots": 4,
        "model_path": "models/qwen.gguf",
        "build_info": "b7079-abc",
    },
    "/v1/models": {
        "data": [
            {"id": "qwen.gguf", "owned_by": "llamacpp", "meta": {"n_params": 8190735360, "size": 5022341120}}
        ]
    },
}
OLLAMA = {
    "/api/version": {"version": "0.12.11"},
    "/api/ps": {"models": [{"name": "test-model:latest", "context_length": 4096}]},
    "/api/tags": {
        "models": [{"name": "other:8b", "digest": "x"}, {"name": "test-model:latest", "digest": "a80c"}]
    },
    "/v1/models": {"data": [{"id": "test-model:latest", "owned_by": "library"}]},
}


@asynccontextmanager
async def shaped(shape: dict[str, Any], **faults: Any) -> AsyncIterator[str]:
    """The address of a server that tells of itself as `shape` says, by path, and answers chats."""

    @web.middleware
    async def told(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        return web.json_response(shape[request.path]) if request.path in shape else await handler(request)

    app = Server(Faults(**faults)).app()
    app.middlewares.append(told)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def seen(shape: dict[str, Any]) -> Recognized:
    async def work() -> Recognized:
        async with shaped(shape) as url, open_model("generic/test-model", base_url=url) as model:
            assert isinstance(model, OpenAIModel)
            return await recognize(model)

    return asyncio.run(work())


def pinged(shape: dict[str, Any], **faults: Any) -> Ping:
    async def work() -> Ping:
        async with shaped(shape, **faults) as url, open_model("generic/test-model", base_url=url) as model:
            return await ping(model)

    return asyncio.run(work())


def test_each_program_is_recognized() -> None:
    vllm, sglang, llama, ollama = map(seen, (VLLM, SGLANG, LLAMA, OLLAMA))
    assert (vllm.program, vllm.version, vllm.context, vllm.weights) == (
        "vLLM",
        "0.27.1",
        40960,
        {"model": "Qwen3-8B"},
    )
    assert (sglang.program, sglang.version, sglang.context, sglang.at_once) == (
        "SGLang",
        "0.5.20",
        32768,
        128,
    )
    assert sglang.report is False
    assert sglang.weights == {"model": "Qwen3-8B", "version": "default"}
    assert (llama.program, llama.version, llama.context, llama.at_once) == ("llama.cpp", "b7079-abc", 8192, 4)
    assert llama.weights == {"parameters": "8190735360", "bytes": "5022341120"}
    assert (ollama.program, ollama.version, ollama.context) == ("Ollama", "0.12.11", 4096)
    assert ollama.weights == {"digest": "a80c"}


@pytest.mark.parametrize(
    ("root", "name"),
    [
        ("/hub/models--Qwen--Qwen3-8B/snapshots/0a1b2c", "Qwen3-8B"),
        ("Qwen/Qwen3-8B", "Qwen3-8B"),
        ("qwen", "qwen"),
    ],
)
def test_a_models_name_is_the_same_wherever_it_lies(root: str, name: str) -> None:
    assert seen({"/v1/models": {"data": [{"id": "test-model", "root": root}]}}).weights == {"model": name}


@pytest.mark.parametrize("nonsense", [[], "x", 7, {"version": {"a": 1}, "models": 3}, {"data": [1, None]}])
def test_nonsense_is_no_error(nonsense: Any) -> None:
    paths = (
        "/version",
        "/props",
        "/get_model_info",
        "/get_server_info",
        "/api/version",
        "/api/ps",
        "/api/tags",
    )
    found = seen(dict.fromkeys((*paths, "/v1/models"), nonsense))
    assert found.weights == {}
    assert found.context is None


def test_what_a_server_says_of_itself_cannot_reach_the_terminal_raw() -> None:
    assert seen({"/version": {"version": "1\x1b[31m" + "9" * 500}}).version == "1[31m" + "9" * 95


def test_a_plain_server_is_unknown_and_one_that_is_down_answers_nothing() -> None:
    assert seen({}).program == "unknown"

    async def work() -> Recognized:
        async with open_model("generic/test-model", base_url=closed_port()) as model:
            assert isinstance(model, OpenAIModel)
            return await recognize(model)

    assert not asyncio.run(work()).answers


def test_what_is_honored_is_found_out_by_asking() -> None:
    good = pinged(VLLM)
    assert (good.honors.seed, good.honors.n, good.honors.logprobs, good.honors.cached_tokens) == (True,) * 4
    assert not good.warnings
    assert not good.advice
    bad = pinged(VLLM, ignores_seed=True, refuses_n=True, no_usage=True)
    assert (bad.honors.seed, bad.honors.n, bad.honors.cached_tokens) == (False, False, False)
    assert not bad.usage.counted


def test_advice_fits_the_program() -> None:
    def advice(shape: dict[str, Any], **faults: Any) -> str:
        return "\n".join(pinged(shape, **faults).advice)

    assert "--enable-prompt-tokens-details" in advice(VLLM, no_usage=True)
    sglang = advice(SGLANG, ignores_seed=True)
    assert "--enable-cache-report" in sglang
    assert "--enable-deterministic-inference" in sglang
    llama = advice(LLAMA, llama=True)
    assert "-np" in llama
    assert "8,192 tokens" in llama
    assert "OLLAMA_CONTEXT_LENGTH=32768" in advice(OLLAMA)
    unloaded = {path: told for path, told in OLLAMA.items() if path != "/api/ps"}
    assert "cuts prompts" in advice(unloaded)


def test_other_weights_under_one_name_are_told_apart_by_what_each_program_tells() -> None:
    def other(shape: dict[str, Any], old: str, new: str) -> dict[str, Any]:
        changed: dict[str, Any] = json.loads(json.dumps(shape).replace(old, new))
        return changed

    async def work(first: dict[str, Any], second: dict[str, Any]) -> None:
        async with shaped(first) as a, shaped(second) as b, open_model("generic/test-model", base_url=[a, b]):
            pass

    for shape, old, new in (
        (VLLM, "Qwen3-8B", "Llama-8B"),
        (SGLANG, "Qwen3-8B", "Llama-8B"),
        (LLAMA, "5022341120", "4022341120"),
        (OLLAMA, "a80c", "b91d"),
    ):
        asyncio.run(work(shape, shape))
        with pytest.raises(ConfigError, match="different models as 'test-model'"):
            asyncio.run(work(shape, other(shape, old, new)))
    asyncio.run(work(VLLM, SGLANG))


def command(*flags: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "porism", "models", "ping", "generic/test-model", *flags]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_tells_it_all() -> None:
    with serving(llama=True) as url:
        shown = command("--base-url", url)
        both = command("--base-url", url, "--base-url", closed_port(), "--json")
    assert shown.returncode == 0
    for words in (
        "server        llama.cpp",
        "context       2048",
        "seed yes, n yes, logprobs yes, cached tokens yes",
    ):
        assert words in shown.stdout
    assert "advice: a request may have 2,048 tokens" in shown.stdout
    assert both.returncode == 1
    first, second = json.loads(both.stdout)["endpoints"]
    assert first["server"]["program"] == "llama.cpp"
    assert first["honors"]["seed"] is True
    assert "no connection" in second["error"]
