"""A chat completions server that misbehaves to order, for tests of everything that talks to one.

In a test:     async with misbehaving(limited=0.2, cut=0.1) as server: ... server.url, server.stats
In a process:  with serving(limited=0.2) as url: ...          or: python tests/server.py --limited 0.2
               (its address is the first line it prints; counts at GET /stats)

Answer i of a request depends on its messages and seed + i alone, as with real servers, so equal rollouts
get equal answers however often they are asked and however they are bundled. Faults depend on the request
and on how often it came, so asking again succeeds in the end. Marks in the prompt (see porism.models.fake)
say what a right answer is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

from aiohttp import web

from porism.models.fake import FakeSpec, draw, solve


@dataclass(frozen=True, kw_only=True)
class Faults:
    """What to do wrong: shares of requests (0 to 1), switches, and limits (0: none)."""

    limited: float = 0.0  # 429, with Retry-After: retry_after
    error: float = 0.0  # 500
    unavailable: float = 0.0  # 503
    cut: float = 0.0  # half a body, then the connection is closed
    garbage: float = 0.0
    html: float = 0.0  # 200 with a web page
    empty: float = 0.0  # no choices
    short: float = 0.0  # the last choice is missing (of n > 1)
    drip: float = 0.0  # a byte every 50 ms
    hang: float = 0.0  # nothing, until the client leaves
    null: float = 0.0  # content is null
    ignores_n: bool = False
    ignores_seed: bool = False  # draws anew every time
    identical: bool = False  # one answer to a prompt, whatever the seed
    refuses_n: bool = False  # 400
    refuses_greedy_n: bool = False  # 400 for n > 1 at temperature 0, as vLLM
    refuses_seed: bool = False  # 400
    refuses_max_tokens: bool = False  # 400, wants max_completion_tokens
    no_usage: bool = False
    shuffled: bool = False  # choices in reverse order
    reasoning: bool = False  # with reasoning_content
    llama: bool = False  # as llama.cpp: /props, timings, and the tokens of the first choice alone
    silent: bool = False  # hangs on every request, /v1/models too
    retry_after: str = "0"
    key: str = ""  # 401 for any other
    models: str = "test-model"  # separated by commas; 404 for any other
    context_chars: int = 0  # longer prompts get a 400
    max_model_len: int = 0  # told at /v1/models
    root: str = ""  # told at /v1/models, as vLLM names the weights behind a served name
    capacity: int = 0  # 429 above so many in flight
    ends: str = ""  # the last line of every answer
    latency: float = 0.0  # seconds
    batch_error: float = 0.0  # by how much each other request in flight changes a reward
    rate_right: float = 0.8
    rate_wrong: float = 0.1
    tokens: int = 20
    truncate: float = 0.0
    seed: int = 0
    says: str = ""  # the text of every answer
    # A JSON file of [text in the prompt, replies in turn]; the first that fits answers.
    script: str = ""


_DRAWN = (
    "limited",
    "error",
    "unavailable",
    "cut",
    "garbage",
    "html",
    "empty",
    "short",
    "drip",
    "hang",
    "null",
)


@dataclass
class Stats:
    """What came and what went out whole. answered: "prompt-seed" of one rollout -> times."""

    requests: int = 0
    answered: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    most_in_flight: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)  # kept in tests only

    @property
    def repeats(self) -> int:
        """How many answers were given out more than once."""
        return sum(self.answered.values()) - len(self.answered)

    def document(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "rollouts": len(self.answered),
            "repeats": self.repeats,
            "most_in_flight": self.most_in_flight,
            "faults": dict(self.faults),
            "answered": dict(self.answered),
        }


class Server:
    """The handlers; `url` is its address once started."""

    def __init__(self, faults: Faults, *, keep_bodies: bool = False) -> None:
        self.faults = faults
        self.stats = Stats()
        self.url = ""
        self._keep = keep_bodies
        self._tries: Counter[str] = Counter()
        self._script = json.loads(Path(faults.script).read_text()) if faults.script else []
        self._told: Counter[str] = Counter()
        self._spec = FakeSpec(
            rate_right=faults.rate_right,
            rate_wrong=faults.rate_wrong,
            tokens=faults.tokens,
            truncate=faults.truncate,
        )

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**28)
        app.router.add_get("/stats", self._stats)
        app.router.add_get("/health", self._health)
        app.router.add_get("/props", self._props)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        for shape in ("pooling", "classify", "score"):
            app.router.add_post(f"/{shape}", self._reward)
        return app

    async def _stats(self, _: web.Request) -> web.Response:
        return web.json_response(self.stats.document())

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _props(self, _: web.Request) -> web.Response:
        if not self.faults.llama:
            return _refusal(404, "Not Found")
        return web.json_response({"default_generation_settings": {"n_ctx": 2048}})

    async def _models(self, request: web.Request) -> web.Response:
        if self.faults.silent:
            await asyncio.sleep(3600)
        if not self._admits(request):
            return _refusal(401, "Incorrect API key provided")
        told = {"max_model_len": self.faults.max_model_len, "root": self.faults.root}
        known = {name: value for name, value in told.items() if value}
        return web.json_response({"data": [{"id": m, **known} for m in self.faults.models.split(",")]})

    def _admits(self, request: web.Request) -> bool:
        return not self.faults.key or request.headers.get("Authorization") == f"Bearer {self.faults.key}"

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = await request.json()
        stats = self.stats
        stats.requests += 1
        stats.in_flight += 1
        stats.most_in_flight = max(stats.most_in_flight, stats.in_flight)
        if self._keep:
            stats.bodies.append(body)
        try:
            return self._refused(request, body) or await self._served(request, body)
        finally:
            stats.in_flight -= 1

    async def _reward(self, request: web.Request) -> web.Response:
        """A reward as vLLM gives it: high for a text that helps, and the longer the lower."""
        body: dict[str, Any] = await request.json()
        shape = request.path.strip("/")
        self.stats.requests += 1
        self.stats.in_flight += 1
        self.stats.most_in_flight = max(self.stats.most_in_flight, self.stats.in_flight)
        if self._keep:
            self.stats.bodies.append(body)
        try:
            texts = [m["content"] for m in body.get("messages", ())] or [body["text_1"], body["text_2"]]
            refused = self._refused(request, body | {"messages": [{"content": t} for t in texts]})
            if refused is not None:
                return refused
            await asyncio.sleep(self.faults.latency)
            value = ("[[helps]]" in texts[1]) * 30 - len(texts[1]) / 1000
            value += self.faults.batch_error * (self.stats.in_flight - 1)
            rows: dict[str, dict[str, Any]] = {
                "pooling": {"object": "pooling", "data": [[0.0], [value]]},
                "classify": {"label": "LABEL_0", "probs": [value], "num_classes": 1},
                "score": {"object": "score", "score": value},
            }
            usage = {"prompt_tokens": sum(map(len, texts)) // 4, "completion_tokens": 0}
            return web.json_response(
                {"object": "list", "data": [{"index": 0, **rows[shape]}], "usage": usage}
            )
        finally:
            self.stats.in_flight -= 1

    def _refused(self, request: web.Request, body: dict[str, Any]) -> web.Response | None:
        faults, given = self.faults, request.headers.get("Authorization", "")
        length = sum(len(m["content"]) for m in body["messages"])
        if not self._admits(request):
            return _refusal(401, f"Incorrect API key provided: {given}", code="invalid_api_key")
        if body["model"] not in faults.models.split(","):
            return _refusal(404, f"The model `{body['model']}` does not exist.", code="model_not_found")
        if faults.capacity and self.stats.in_flight > faults.capacity:
            self.stats.faults["capacity"] += 1
            return _refusal(429, "too many in flight", headers={"Retry-After": faults.retry_after})
        if faults.context_chars and length > faults.context_chars:
            return _refusal(
                400, f"This model's maximum context length is {faults.context_chars // 4} tokens."
            )
        if faults.refuses_max_tokens and "max_tokens" in body:
            text = "Unsupported parameter: 'max_tokens' is not supported with this model. "
            return _refusal(400, text + "Use 'max_completion_tokens' instead.", code="unsupported_parameter")
        if faults.refuses_seed and "seed" in body:
            return _refusal(400, "Unrecognized request argument supplied: seed")
        if faults.refuses_n and body.get("n", 1) > 1:
            return _refusal(422, "Input should be less than or equal to 1", param="n")
        if faults.refuses_greedy_n and body.get("n", 1) > 1 and body["temperature"] == 0:
            return _refusal(400, f"n must be 1 when using greedy sampling, got {body['n']}.")
        return None

    async def _served(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        faults = self.faults
        prompt = blake2b(json.dumps(body["messages"]).encode(), digest_size=8).hexdigest()
        work = f"{prompt}-{body.get('seed')}"
        fault = self._fault(work)
        if faults.latency:
            await asyncio.sleep(faults.latency)
        if faults.silent or fault == "hang":
            await asyncio.sleep(3600)
        if fault in ("limited", "error", "unavailable"):
            status = {"limited": 429, "error": 500, "unavailable": 503}[fault]
            return _refusal(status, "as ordered", headers={"Retry-After": faults.retry_after})
        if fault == "html":
            page = "<!doctype html><html><title>Welcome</title></html>"
            return web.Response(text=page, content_type="text/html")
        if fault == "garbage":
            return web.Response(body=b'{"choices": [\xff\x00', content_type="application/json")
        document, seeds = self._document(body, fault)
        text = json.dumps(document).encode()
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Content-Length": str(len(text))}
        )
        await response.prepare(request)
        if fault == "cut":
            await response.write(text[: len(text) // 2])
            if request.transport is not None:
                request.transport.close()
            return response
        if fault == "drip":
            for i in range(len(text)):
                await response.write(text[i : i + 1])
                await asyncio.sleep(0.05)
        else:
            await response.write(text)
        await response.write_eof()
        if fault not in ("empty", "short"):
            self.stats.answered.update(f"{prompt}-{seed}" for seed in seeds)
        return response

    def _fault(self, work: str) -> str | None:
        rng = draw("fault", self.faults.seed, work, self._tries[work])
        self._tries[work] += 1
        luck = rng.random()
        for name in _DRAWN:
            luck -= getattr(self.faults, name)
            if luck < 0:
                self.stats.faults[name] += 1
                return name
        return None

    def _document(self, body: dict[str, Any], fault: str | None) -> tuple[dict[str, Any], list[int]]:
        faults = self.faults
        n = 1 if faults.ignores_n else body.get("n", 1)
        seeds = [body.get("seed", self.stats.requests) + i for i in range(n)]
        choices = [self._choice(body, i, seed, fault) for i, seed in enumerate(seeds)]
        usage = {
            "prompt_tokens": sum(len(m["content"]) for m in body["messages"]) // 4,
            "completion_tokens": sum(len((c["message"]["content"] or "").split()) for c in choices),
            "prompt_tokens_details": {"cached_tokens": 1},
        }
        if faults.shuffled:
            choices.reverse()
        if fault in ("empty", "short"):
            choices = [] if fault == "empty" else choices[:-1]
        document: dict[str, Any] = {"object": "chat.completion", "model": body["model"], "choices": choices}
        if faults.llama:
            usage.pop("prompt_tokens_details")
            document["timings"] = {"cache_n": 1}
            usage["completion_tokens"] = (
                len((choices[0]["message"]["content"] or "").split()) if choices else 0
            )
        return document if faults.no_usage else {**document, "usage": usage}, seeds

    def _choice(self, body: dict[str, Any], i: int, seed: int, fault: str | None) -> dict[str, Any]:
        text = "\n".join(m["content"] for m in body["messages"])
        luck: tuple[object, ...] = (seed,)
        if self.faults.identical:
            luck = ()
        elif self.faults.ignores_seed:
            luck = (self.stats.requests, i)
        said, reason = solve(text, self._spec, draw("answer", text, body["temperature"], *luck))
        if replies := next((replies for mark, replies in self._script if mark in text), None):
            said, reason = replies[self._told[text] % len(replies)], "stop"
            self._told[text] += 1
        said += f"\n{self.faults.ends}" if self.faults.ends else ""
        words, most = said.split(" "), body.get("max_tokens") or body["max_completion_tokens"]
        if len(words) > most:
            said, reason = " ".join(words[:most]), "length"
        if self.faults.says:
            said, reason = self.faults.says, "stop"
        message = {"role": "assistant", "content": None if fault == "null" else said}
        if self.faults.reasoning:
            message["reasoning_content"] = "thinking"
        choice = {"index": i, "message": message, "finish_reason": reason}
        return (
            choice | {"logprobs": _logprobs(said, body["top_logprobs"])} if body.get("logprobs") else choice
        )


def _logprobs(text: str, top: int) -> dict[str, Any]:
    """Words as tokens; a number or a decision has the next number, or the other decision, at a quarter beside it."""
    other = {"accept": "reject", "reject": "accept", "yes": "no", "no": "yes"}
    content = []
    for token in re.findall(r"\s*(?:\w+|[^\w\s])", text):
        word = token.strip()
        beside = str(int(word) - 1) if word.isdecimal() and word != "0" else other.get(word, "else")
        likely = [(token, 0.7), (token[: -len(word)] + beside, 0.25), ("\ufffd", 0.05)][:top]
        tokens = [{"token": t, "logprob": math.log(p), "bytes": None} for t, p in likely]
        content.append({**tokens[0], "top_logprobs": tokens})
    return {"content": content}


def _refusal(status: int, text: str, *, headers: dict[str, str] | None = None, **more: str) -> web.Response:
    return web.json_response({"error": {"message": text, **more}}, status=status, headers=headers)


@asynccontextmanager
async def misbehaving(*, port: int = 0, **faults: Any) -> AsyncIterator[Server]:
    """A running Server in this event loop; its bodies are kept in `stats.bodies`."""
    server = Server(Faults(**faults), keep_bodies=True)
    async with _running(server, port):
        yield server


@asynccontextmanager
async def _running(server: Server, port: int) -> AsyncIterator[None]:
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield
    finally:
        await runner.cleanup()


@contextmanager
def serving(**faults: Any) -> Iterator[str]:
    """The address of a server in a process of its own, ended with the block."""
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in faults.items()]
    command = [sys.executable, str(Path(__file__)), *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url, "the server did not start"
            yield url
        finally:
            process.kill()


def closed_port() -> str:
    """An address that refuses connections."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=Faults.__doc__)
    parser.add_argument("--port", type=int, default=0)
    for f in fields(Faults):
        kind: Any = {"bool": lambda v: v.lower() in ("1", "true", "yes")}.get(str(f.type), type(f.default))
        parser.add_argument(f"--{f.name.replace('_', '-')}", type=kind, default=f.default)
    settings = vars(parser.parse_args())
    port = settings.pop("port")

    async def run() -> None:
        server = Server(Faults(**settings))
        async with _running(server, port):
            print(server.url, flush=True)
            await asyncio.Event().wait()

    asyncio.run(run())


if __name__ == "__main__":
    main()
