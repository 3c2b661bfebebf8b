"""The OpenAI-compatible client against a real server on loopback that does to order what servers do wrong."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, TypeVar

import aiohttp
import pytest
from aiohttp import web

from porism.errors import ConfigError, ModelError
from porism.models import open_model, openai, wire
from porism.models.endpoint import is_loopback, normal_url, proxy, resolve
from porism.models.openai import OpenAIModel
from porism.types import Call, Completion, Message, Prompt, Reply, Sampling, Token, Usage
from server import Server, closed_port, misbehaving, serving

SECRET = "sk-very-secret-000111222"
PROMPT = Prompt("test-model", (Message("user", "How many? [[answer: 12]]"),), Sampling(max_tokens=100))


def client(url: str, model_id: str = "test-model", **settings: Any) -> OpenAIModel:
    return OpenAIModel(model_id, name=f"generic/{model_id}", base_url=url, **settings)


T = TypeVar("T")


def against(
    act: Callable[[OpenAIModel, Server], Awaitable[T]],
    *,
    settings: dict[str, Any] | None = None,
    **faults: Any,
) -> T:
    """What `act` gives with a client entered against a server with these faults."""

    async def run() -> T:
        async with misbehaving(**faults) as server, client(server.url, **(settings or {})) as model:
            return await act(model, server)

    return asyncio.run(run())


async def one(model: OpenAIModel, _: Server) -> Reply:
    return await model.generate(Call(PROMPT, 0))


def refusal(*, settings: dict[str, Any] | None = None, **faults: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        against(one, settings=settings, **faults)
    return caught.value


def kind(error: ModelError) -> tuple[str, str, bool]:
    return error.kind, error.retry, error.fatal


@asynccontextmanager
async def answering(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """The address of a server whose every answer `handler` gives."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def reply_to(response: Callable[[], web.StreamResponse], **settings: Any) -> Reply:
    async def handler(request: web.Request) -> web.StreamResponse:
        return response() if request.method == "POST" else web.Response(status=404)

    async def run() -> Reply:
        async with answering(handler) as url, client(url, **settings) as model:
            return await model.generate(Call(PROMPT, 0))

    return asyncio.run(run())


# What is asked and what is read


def test_a_bundle_gives_the_rollouts_that_single_calls_give() -> None:
    async def act(model: OpenAIModel, server: Server) -> None:
        model.max_n = 16
        bundle = await model.generate(Call(PROMPT, 2, 4))
        single = [await model.generate(Call(PROMPT, rollout)) for rollout in range(2, 6)]
        assert bundle.completions == tuple(c for reply in single for c in reply.completions)
        assert [c.rollout for c in bundle.completions] == [2, 3, 4, 5]
        assert len({c.text for c in bundle.completions}) == 4
        assert server.stats.requests == 5
        assert bundle.usage.requests == 1
        assert bundle.usage.completion == sum(reply.usage.completion for reply in single)

    against(act)
    against(act, shuffled=True)


def test_the_body_holds_what_was_set_and_no_more() -> None:
    full = Sampling(temperature=0.7, max_tokens=9, top_p=0.9, top_k=40, min_p=0.05, stop=("END",))

    async def act(model: OpenAIModel, server: Server) -> None:
        call = Call(PROMPT, 5)
        await model.generate(call)
        messages = [{"role": "user", "content": PROMPT.messages[0].content}]
        plain = {
            "model": "test-model",
            "messages": messages,
            "temperature": 1.0,
            "max_tokens": 100,
            "seed": call.seed,
        }
        assert server.stats.bodies[0] == plain
        await model.generate(Call(Prompt("test-model", PROMPT.messages, full), 0))
        more = {
            "temperature": 0.7,
            "max_tokens": 9,
            "top_p": 0.9,
            "top_k": 40,
            "min_p": 0.05,
            "stop": ["END"],
        }
        assert server.stats.bodies[1].items() >= more.items()

    against(act)


def test_usage_reasoning_and_finish_reasons() -> None:
    reply = against(one)
    assert (reply.usage.prompt, reply.usage.cached, reply.usage.counted) == (6, 1, True)
    assert against(one, llama=True).usage.cached == 1
    assert against(one, reasoning=True).completions[0].reasoning == "thinking"
    assert against(one, truncate=1.0).completions[0].truncated
    assert against(one, null=1.0).completions[0].text == ""
    guessed = against(one, no_usage=True).usage
    assert not guessed.counted
    assert guessed.prompt > 0
    assert guessed.completion > 0


def test_usage_of_a_bundle_where_the_server_counts_one_choice_of_it() -> None:
    async def act(model: OpenAIModel, _: Server) -> Usage:
        model.max_n = 16
        return (await model.generate(Call(PROMPT, 0, 16))).usage

    counted, guessed = against(act), against(act, llama=True)
    assert counted.counted
    assert not guessed.counted
    assert guessed.completion == pytest.approx(counted.completion, rel=0.15)


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "thinking"}, {"text": "b"}]}, "ab", ""),
        ({"content": "x", "reasoning": "why"}, "x", "why"),
        ({"content": None, "refusal": "No."}, "No.", ""),
        ({}, "", ""),
    ],
)
def test_content_of_other_shapes(message: dict[str, Any], text: str, reasoning: str) -> None:
    document = {"choices": [{"message": message, "finish_reason": None}], "usage": {"prompt_tokens": "many"}}
    completion = reply_to(lambda: web.json_response(document)).completions[0]
    assert (completion.text, completion.reasoning, completion.finish_reason) == (text, reasoning, "unknown")


# Peculiar servers


TOP = [{"token": "7", "logprob": -0.1}, {"token": "8", "logprob": -3}]


@pytest.mark.parametrize(
    ("logprobs", "ending"),
    [
        (None, ()),
        ({"content": [{"token": "7", "top_logprobs": TOP}]}, (Token("7", {"7": -0.1, "8": -3.0}),)),
        ({"content": [{"token": "a", "top_logprobs": []}] * 99}, (Token("a", {}),) * wire.ENDING),
        ({"content": None}, ()),
        ({"content": [{"token": "7"}]}, ()),
        ({"content": [{"token": "7", "top_logprobs": [{"token": "7", "logprob": None}]}]}, ()),
        ({"content": "7"}, ()),
        ({"tokens": ["7"], "token_logprobs": [-0.1]}, ()),
        ([0.1], ()),
    ],
)
def test_log_probabilities_of_other_shapes_cost_no_answer(logprobs: Any, ending: tuple[Token, ...]) -> None:
    choice = {"index": 0, "message": {"content": "7"}, "finish_reason": "stop", "logprobs": logprobs}
    reply = wire.parse(json.dumps({"choices": [choice]}).encode(), Call(PROMPT, 0))
    assert reply.completions == (Completion(0, "7", ending=ending),)


def test_a_server_that_wants_another_name_for_max_tokens_is_remembered() -> None:
    async def act(model: OpenAIModel, server: Server) -> list[str]:
        for rollout in range(3):
            await model.generate(Call(PROMPT, rollout))
        return [name for body in server.stats.bodies for name in body if name.startswith("max_")]

    assert against(act, refuses_max_tokens=True) == ["max_tokens"] + ["max_completion_tokens"] * 3


@pytest.mark.parametrize("fault", ["refuses_n", "ignores_n"])
def test_without_n_the_rollouts_are_asked_one_by_one(fault: str) -> None:
    async def act(model: OpenAIModel, server: Server) -> None:
        model.max_n = 16
        reply = await model.generate(Call(PROMPT, 0, 4))
        assert [c.rollout for c in reply.completions] == [0, 1, 2, 3]
        assert model.max_n == 1
        asked = server.stats.requests
        await model.generate(Call(PROMPT, 4, 2))
        assert server.stats.requests == asked + 2
        assert server.stats.repeats == 0
        assert [b["seed"] for b in server.stats.bodies if "n" not in b][-2:] == [
            PROMPT.seed(4),
            PROMPT.seed(5),
        ]

    faults: dict[str, Any] = {fault: True}
    against(act, **faults)


def test_greedy_answers_are_asked_one_by_one_and_others_still_together() -> None:
    async def act(model: OpenAIModel, server: Server) -> list[int]:
        model.max_n = 16
        for temperature in (0.0, 1.0):
            prompt = Prompt(model.identity, PROMPT.messages, Sampling(temperature=temperature, max_tokens=9))
            await model.generate(Call(prompt, 0, 3))
        return [body.get("n", 1) for body in server.stats.bodies]

    assert against(act, refuses_greedy_n=True) == [1, 1, 1, 3]


def test_a_refused_seed_is_left_out_from_then_on() -> None:
    async def act(model: OpenAIModel, server: Server) -> list[bool]:
        for rollout in range(2):
            await model.generate(Call(PROMPT, rollout))
        return ["seed" in body for body in server.stats.bodies]

    assert against(act, refuses_seed=True) == [True, False, False]


def test_a_refusal_that_only_mentions_a_parameter_teaches_nothing() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"detail": [{"msg": "bad", "input": "the seed of 'n'"}]}, status=422)

    async def run() -> tuple[ModelError, OpenAIModel]:
        async with answering(handler) as url, client(url) as model:
            with pytest.raises(ModelError) as caught:
                await model.generate(Call(PROMPT, 0))
            return caught.value, model

    error, model = asyncio.run(run())
    assert kind(error) == ("refused", "no", False)
    assert model.quirks == frozenset()


# Failures


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        ({"limited": 1}, ("rate_limit", "rate_limit", False)),
        ({"error": 1}, ("server", "transient", False)),
        ({"unavailable": 1}, ("server", "transient", False)),
        ({"cut": 1}, ("connection", "transient", False)),
        ({"garbage": 1}, ("model", "transient", False)),
        ({"html": 1}, ("model", "transient", False)),
        ({"empty": 1}, ("model", "transient", False)),
        ({"key": "right"}, ("key", "no", True)),
        ({"models": "alpha,beta"}, ("unknown_model", "no", True)),
        ({"context_chars": 10}, ("context", "no", False)),
    ],
)
def test_failures_say_whether_to_ask_again(faults: dict[str, Any], expected: tuple[str, str, bool]) -> None:
    assert kind(refusal(**faults)) == expected


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_a_server_that_does_not_finish_is_left(fault: str) -> None:
    begun = time.monotonic()
    error = refusal(settings={"timeout": 0.3}, **{fault: 1})
    assert kind(error) == ("connection", "transient", False)
    assert "0.3 s" in str(error)
    assert time.monotonic() - begun < 3


def test_entering_a_server_that_says_nothing_does_not_take_long() -> None:
    begun = time.monotonic()
    refusal(settings={"timeout": 0.3}, silent=True)
    assert time.monotonic() - begun < 3


def test_a_missing_choice_of_several_is_asked_again() -> None:
    async def act(model: OpenAIModel, _: Server) -> None:
        model.max_n = 16
        await model.generate(Call(PROMPT, 0, 4))

    with pytest.raises(ModelError, match="3 answers of 4") as caught:
        against(act, short=1)
    assert caught.value.retry == "transient"


@pytest.mark.parametrize("choice", [{"index": 1}, {"index": 0, "finish_reason": "error"}])
def test_one_choice_of_several_is_not_taken_for_another(choice: dict[str, Any]) -> None:
    document = {"choices": [{"message": {"content": "b"}, **choice}]}
    with pytest.raises(ModelError, match=r"sent \d answers of 2"):
        wire.parse(json.dumps(document).encode(), Call(PROMPT, 0, 2))


def test_interrupted_while_entering_it_leaves_nothing_open() -> None:
    async def run() -> None:
        async with misbehaving(silent=True) as server:
            model = client(server.url)
            entering = asyncio.ensure_future(model.__aenter__())
            await asyncio.sleep(0.1)
            entering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await entering
            with pytest.raises(RuntimeError, match="enter the model first"):
                await model.generate(Call(PROMPT, 0))

    asyncio.run(run())


def test_a_server_that_is_down() -> None:
    async def run() -> None:
        async with client(closed_port()) as model:
            await model.generate(Call(PROMPT, 0))

    with pytest.raises(ModelError, match="no connection") as caught:
        asyncio.run(run())
    assert kind(caught.value) == ("connection", "transient", False)


def test_a_server_without_tls_asked_for_it() -> None:
    async def run() -> None:
        async with misbehaving() as server, client(server.url.replace("http:", "https:")) as model:
            await model.generate(Call(PROMPT, 0))

    with pytest.raises(ModelError, match="no secure connection") as caught:
        asyncio.run(run())
    assert caught.value.fatal


def test_a_redirect_is_named_and_not_followed() -> None:
    followed = []

    async def handler(request: web.Request) -> web.Response:
        followed.append(request.path)
        return web.Response(status=307, headers={"Location": "http://localhost:9/else"})

    async def run() -> None:
        async with answering(handler) as url, client(url, key=SECRET, context=1) as model:
            await model.generate(Call(PROMPT, 0))

    with pytest.raises(ModelError, match="redirected to http://localhost:9/else") as caught:
        asyncio.run(run())
    assert caught.value.fatal
    assert followed == ["/v1/chat/completions"]


def test_a_body_without_end_is_refused_before_it_fills_the_memory() -> None:
    """65 MB of blanks, packed to 64 kB: what counts is the unpacked size."""
    packed = gzip.compress(b" " * (openai.MAX_BODY + 2**20))
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    with pytest.raises(ModelError, match="longer than 64 MB") as caught:
        reply_to(lambda: web.Response(body=packed, headers=headers))
    assert caught.value.retry == "no"


def test_an_unknown_model_is_answered_with_the_nearest_names() -> None:
    text = str(refusal(models="zeta,test-modell,alpha"))
    assert "'test-model'" in text
    assert text.index("test-modell") < text.index("zeta") < text.index("alpha")


def test_a_wrong_path_asks_about_the_base_url() -> None:
    with pytest.raises(ModelError, match="Is the base URL right") as caught:
        reply_to(lambda: web.Response(status=404, text="<html><title>404 Not Found</title></html>"))
    assert caught.value.fatal


def test_an_error_inside_a_good_answer_is_an_error() -> None:
    limited = {"error": {"code": 429, "message": "slow down"}}
    with pytest.raises(ModelError) as caught:
        reply_to(lambda: web.json_response(limited))
    assert caught.value.retry == "rate_limit"
    with pytest.raises(ModelError) as caught:
        reply_to(lambda: web.json_response({"error": "overloaded", "choices": None}))
    assert caught.value.retry == "transient"


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b'"text"', b"[" * 100_000, b'{"choices": [1]}', b"\xff" * 9]
)
def test_no_body_breaks_the_client(body: bytes) -> None:
    with pytest.raises(ModelError) as caught:
        reply_to(lambda: web.Response(body=body, content_type="application/json"))
    assert caught.value.retry == "transient"
    for status in (400, 404, 429, 500):
        assert isinstance(wire.failure(status, {}, body), ModelError)


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
        "the request exceeds the available context size. try increasing the context size",
        "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 4096",
        "Input is too long for requested model.",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ],
)
def test_context_wordings(text: str) -> None:
    error = wire.failure(400, {}, json.dumps({"error": {"message": text}}).encode())
    assert kind(error) == ("context", "no", False)
    assert wire.remedy(error, Call(PROMPT, 0, 2), frozenset()) is None


@pytest.mark.parametrize("status", [402, 429])
def test_no_credit_is_fatal(status: int) -> None:
    body = {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}}
    assert kind(wire.failure(status, {}, json.dumps(body).encode())) == ("quota", "no", True)


def test_waits_as_servers_write_them() -> None:
    def wait(**headers: str) -> float | None:
        return wire.failure(429, {k.replace("_", "-"): v for k, v in headers.items()}, b"").retry_after

    later = datetime.now(UTC) + timedelta(seconds=30)
    assert wait(Retry_After="7") == 7
    assert wait(Retry_After="7", Retry_After_Ms="250") == 0.25
    assert wait(Retry_After=format_datetime(later, usegmt=True)) == pytest.approx(30, abs=2)
    assert wait(Retry_After="Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert wait(Retry_After="-5") == 0
    assert [wait(Retry_After=text) for text in ("soon", "nan", "inf", "")] == [None] * 4
    assert wire.failure(503, {"Retry-After": "3"}, b"").retry_after == 3
    assert refusal(limited=1, retry_after="2").retry_after == 2


# Secrets, hosts and text that others wrote


def test_the_key_never_stands_in_an_error() -> None:
    async def handler(request: web.Request) -> web.Response:
        echo = "x" * 290 + request.headers["Authorization"]
        status = int(request.query_string or 401)
        return web.Response(status=status, text=json.dumps({"error": {"message": echo, "code": SECRET}}))

    error = refusal(settings={"key": SECRET}, key="another")
    assert "set OPENAI_API_KEY" in str(error)
    assert "refused the key" in str(error)
    assert "wants a key" in str(refusal(key="another"))

    async def run() -> ModelError:
        async with answering(handler) as url, client(url, key=SECRET) as model:
            assert SECRET not in repr(model)
            with pytest.raises(ModelError) as caught:
                await model.generate(Call(PROMPT, 0))
            return caught.value

    for each in (error, asyncio.run(run())):
        shown = "".join(traceback.format_exception(each)) + repr(each) + repr(each.__context__)
        assert SECRET[:12] not in shown


def test_quoted_words_are_short_and_printable() -> None:
    text = "a\x1b[31m\u202eb\x00\n\tc " + "long " * 1000
    error = wire.failure(400, {}, json.dumps({"error": {"message": text}}).encode())
    assert str(error).startswith("HTTP 400: a[31mb c long")
    assert len(str(error)) < wire.QUOTED + 20
    assert str(error).isprintable()
    split = f"{SECRET[:8]}\x00{SECRET[8:]}"
    assert SECRET not in str(wire.failure(400, {}, split.encode(), SECRET))


@pytest.mark.parametrize(
    "url",
    [
        "http://h:1",
        "http://h:1/",
        "http://h:1/v1",
        "http://h:1/v1/",
        " http://h:1/v1/chat/completions/",
        "http://h:1/v1/models",
    ],
)
def test_base_urls_as_people_give_them(url: str) -> None:
    assert normal_url(url) == "http://h:1/v1"


def test_base_urls_with_a_path_keep_it() -> None:
    assert normal_url("https://h/api/v3/chat/completions") == "https://h/api/v3"


@pytest.mark.parametrize(
    "url", ["h:1", "ftp://h", "http://", "http://h:x", "http://me:pw@h", "http://h/v1?key=1", "http://[h"]
)
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base URL") as caught:
        normal_url(url)
    assert "pw" not in str(caught.value)


def test_loopback_and_the_host_that_text_leaves_for() -> None:
    near = [
        "localhost",
        "127.0.0.1",
        "127.9.9.9:80",
        "[::1]:8",
        "[::ffff:127.0.0.1]",
        "a.localhost",
        "0.0.0.0",
    ]
    far = ["example.org", "10.0.0.1", "localhost.example.org", "127.0.0.1.example.org", "[::2]"]
    assert all(is_loopback(f"http://{host}/v1") for host in near)
    assert not any(is_loopback(f"http://{host}/v1") for host in far)
    assert client("http://127.0.0.1:8000").host is None
    assert client("https://example.org:8443/v1").host == "example.org:8443"
    assert client("https://example.org:8443/v1").identity == "test-model"


def test_a_proxy_is_used_beyond_loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://me:pw@127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "inside.example.org")
    assert proxy("http://example.org/v1") == "http://me:pw@127.0.0.1:9"
    assert proxy("http://inside.example.org/v1") is None

    async def beyond() -> None:
        async with client("http://solver.invalid/v1", context=9) as model:
            await model.generate(Call(PROMPT, 0))

    with pytest.raises(ModelError, match="no connection") as caught:
        asyncio.run(beyond())
    assert "pw" not in str(caught.value)
    assert against(one).completions  # loopback, though the proxy is dead


def test_a_proxy_of_another_kind_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "socks5://me:pw@127.0.0.1:9")
    with pytest.raises(ConfigError, match="https_proxy names a socks5 proxy") as caught:
        proxy("https://example.org/v1")
    assert "pw" not in str(caught.value)


def test_text_goes_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.extend((request.raw_path, request.headers["Proxy-Authorization"]))
        return web.json_response({"choices": [{"message": {"content": "hi"}}]})

    async def run() -> Reply:
        async with answering(handler) as url:
            monkeypatch.setenv("http_proxy", url.replace("//", "//me:pw@"))
            async with client("http://solver.invalid/v1", context=9) as model:
                return await model.generate(Call(PROMPT, 0))

    assert asyncio.run(run()).completions[0].text == "hi"
    assert seen == ["http://solver.invalid/v1/chat/completions", aiohttp.encode_basic_auth("me", "pw")]


# Providers


def test_providers_read_their_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "VLLM_BASE_URL", "VLLM_API_KEY", "GENERIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="set OPENAI_API_KEY"):
        open_model("openai/gpt-oss-120b")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gpu7:8000")
    model = open_model("openai/openai/gpt-oss-120b", concurrency=3, context=999)
    assert isinstance(model, OpenAIModel)
    assert (model.identity, model.name) == ("openai/gpt-oss-120b", "openai/openai/gpt-oss-120b")
    assert (model.base_url, model.concurrency, model.context) == ("http://gpu7:8000/v1", 3, 999)
    assert resolve("vllm").base_url == "http://127.0.0.1:8000/v1"
    monkeypatch.setenv("VLLM_BASE_URL", "https://a/v1/")
    monkeypatch.setenv("VLLM_API_KEY", f" {SECRET}\n")
    assert resolve("vllm").base_url == "https://a/v1"
    assert resolve("vllm").key == SECRET
    assert SECRET not in repr(resolve("vllm"))
    assert resolve("vllm", "http://b").base_url == "http://b/v1"
    monkeypatch.setenv("VLLM_API_KEY", "two words")
    with pytest.raises(ConfigError, match="VLLM_API_KEY holds"):
        resolve("vllm")
    with pytest.raises(ConfigError, match="set GENERIC_BASE_URL"):
        open_model("generic/x")


@pytest.mark.parametrize(
    ("spec", "word"), [("olama/x", "ollama/"), ("gpt-4", "provider/model-id"), ("openai/", "provider/")]
)
def test_a_spec_that_names_no_provider(spec: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        open_model(spec)


@pytest.mark.parametrize(
    ("faults", "context"), [({"max_model_len": 4096}, 4096), ({"llama": True}, 2048), ({}, None)]
)
def test_the_context_is_found_where_the_server_tells_it(faults: dict[str, Any], context: int | None) -> None:
    async def act(model: OpenAIModel, _: Server) -> int | None:
        return model.context

    assert against(act, **faults) == context


# The trial before a run


def trial(**faults: Any) -> tuple[list[str], int, int]:
    async def act(model: OpenAIModel, server: Server) -> tuple[list[str], int, int]:
        warnings = await model.probe()
        return warnings, model.max_n, server.stats.requests

    return against(act, settings={"timeout": 0.5}, **faults)


@pytest.mark.parametrize(
    ("faults", "words", "max_n"),
    [
        ({}, [], 16),
        ({"shuffled": True, "reasoning": True}, [], 16),
        ({"refuses_max_tokens": True}, [], 16),
        ({"ignores_n": True}, ["ignores n"], 1),
        ({"refuses_n": True}, ["ignores n"], 1),
        ({"ignores_seed": True}, ["ignores seed"], 16),
        ({"refuses_seed": True}, ["refuses a seed"], 16),
        ({"identical": True}, ["for n > 1", "two seeds"], 1),
        ({"ignores_n": True, "identical": True}, ["ignores n", "two seeds"], 1),
        ({"limited": 1}, ["trial of generic/test-model failed"], 1),
        ({"hang": 1}, ["trial of generic/test-model failed"], 1),
    ],
)
def test_a_trial_finds_what_would_spoil_a_run(faults: dict[str, Any], words: list[str], max_n: int) -> None:
    warnings, found, requests = trial(**faults)
    assert found == max_n
    assert len(warnings) == len(words)
    assert all(word in warning for word, warning in zip(words, warnings, strict=True))
    assert requests <= 5


@pytest.mark.parametrize("faults", [{"key": "right"}, {"models": "other"}])
def test_a_trial_raises_what_no_call_survives(faults: dict[str, Any]) -> None:
    with pytest.raises(ModelError) as caught:
        trial(**faults)
    assert caught.value.fatal


# Many calls


def test_under_all_faults_at_once_asking_again_gives_the_undisturbed_answers() -> None:
    faults = dict.fromkeys(
        ("limited", "error", "unavailable", "cut", "garbage", "html", "empty", "short", "hang"), 0.05
    )

    async def everything(model: OpenAIModel, server: Server) -> list[str]:
        model.max_n = 4

        async def patiently(first: int) -> list[str]:
            while True:
                try:
                    return [c.text for c in (await model.generate(Call(PROMPT, first, 4))).completions]
                except ModelError as error:
                    if error.retry == "no":
                        raise

        said = await asyncio.gather(*(patiently(first) for first in range(0, 400, 4)))
        assert server.stats.repeats == 0
        assert len(server.stats.answered) == 400
        return [text for texts in said for text in texts]

    disturbed = against(everything, settings={"timeout": 2.0}, **faults)
    assert disturbed == against(everything)


def test_the_pool_is_as_large_as_the_concurrency() -> None:
    async def act(model: OpenAIModel, server: Server) -> int:
        await asyncio.gather(*(model.generate(Call(PROMPT, i)) for i in range(100)))
        return server.stats.most_in_flight

    assert 8 <= against(act, settings={"concurrency": 8}, latency=0.02) <= 12


def test_a_cancelled_call_ends_at_once() -> None:
    async def act(model: OpenAIModel, server: Server) -> None:
        task = asyncio.create_task(model.generate(Call(PROMPT, 0)))
        await asyncio.sleep(0.2)
        assert server.stats.in_flight == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    against(act, hang=1)


def test_the_server_in_a_process_of_its_own() -> None:
    async def run(url: str) -> tuple[str, dict[str, Any]]:
        async with client(url) as model, aiohttp.ClientSession() as session:
            reply = await model.generate(Call(PROMPT, 0))
            return reply.completions[0].text, await (await session.get(f"{url}/stats")).json()

    with serving(rate_wrong=1.0, reasoning=True, max_model_len=77) as url:
        text, stats = asyncio.run(run(url))
    assert r"\boxed{12}" in text
    assert (stats["requests"], stats["rollouts"], stats["repeats"]) == (1, 1, 0)
