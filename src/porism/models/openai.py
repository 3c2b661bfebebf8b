"""A model behind any server that speaks OpenAI's chat completions, over aiohttp.

One POST, one attempt, one Reply: retries, limits and backing off are the engine's alone, so a failure is
told as a ModelError that says what may be done about it. The only second sending is of a body the server
refused for a parameter it does not know (max_tokens, seed, n): it goes again without, and that is
remembered. What a protocol body means is decided in wire.py, where a server lives in endpoint.py.
"""

from __future__ import annotations

import asyncio
import ssl
from difflib import get_close_matches
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec

from porism.errors import ModelError
from porism.models import endpoint, wire
from porism.models.wire import Quirk
from porism.types import Call, Reply, Usage

MAX_BODY = 64 * 2**20  # bytes; a longer answer is refused before it fills the memory
CONNECT = 15.0  # seconds to open a connection
KEEPALIVE = 3.0  # seconds an idle connection is kept; servers close theirs after five
DISCOVERY = 5.0  # seconds to learn the context before doing without


class OpenAIModel:
    """A Model served at `base_url`, under the identity `model_id`; `timeout` is seconds per attempt.

    host is where text leaves to, None where it stays on this machine. key_variable is named when the key
    is refused. Enter it before use; that raises ConfigError for a proxy it cannot use.
    """

    def __init__(
        self,
        model_id: str,
        *,
        name: str,
        base_url: str,
        key: str | None = None,
        key_variable: str = "OPENAI_API_KEY",
        concurrency: int = 32,
        context: int | None = None,
        timeout: float = 600.0,
    ) -> None:
        self.name = name
        self.identity = self.served_name = model_id
        self.concurrency = concurrency
        self.max_n = 1  # until a probe has seen the server honor more
        self.context = context
        self.chain = False
        self.base_url = endpoint.normal_url(base_url)
        self.host = None if endpoint.is_loopback(self.base_url) else endpoint.host_of(self.base_url)
        self.timeout = timeout
        self.quirks: frozenset[Quirk] = frozenset()
        self._key = key
        self._key_variable = key_variable
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"OpenAIModel({self.identity!r}, name={self.name!r}, base_url={self.base_url!r})"

    async def __aenter__(self) -> OpenAIModel:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self.concurrency + 4, ttl_dns_cache=300, keepalive_timeout=KEEPALIVE
            ),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT),
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=endpoint.proxy(self.base_url),
        )
        try:
            if self.context is None:
                self.context = await self._find_context()
        except BaseException:  # Ctrl-C while it waits: nobody would leave what was not entered
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def generate(self, call: Call) -> Reply:
        """The completions of `call` in rollout order. Raises ModelError.

        Where the server gives one answer a call, the others are asked one by one; and at temperature 0, where vLLM
        refuses several.
        """
        together = call.n <= self.max_n and call.prompt.sampling.temperature > 0
        if together or call.n == 1:
            reply = await self._negotiate(call)
        else:
            reply = Reply((), Usage())
        for i in range(len(reply.completions), call.n):
            more = await self._negotiate(Call(call.prompt, call.first + i))
            reply = Reply(reply.completions + more.completions, reply.usage + more.usage)
        return reply

    async def probe(self) -> list[str]:
        from porism.models.probe import probe

        return (await probe(self)).warnings

    async def served(self) -> list[dict[str, Any]]:
        """What /v1/models lists, each with its `id`; nothing where the server does not say."""
        listed = await self.get_json(f"{self.base_url}/models")
        rows = listed.get("data") if isinstance(listed, dict) else None
        return (
            [r for r in rows if isinstance(r, dict) and isinstance(r.get("id"), str)]
            if isinstance(rows, list)
            else []
        )

    async def _negotiate(self, call: Call) -> Reply:
        """One attempt, sent again only without a parameter that the server refuses to know."""
        quirks = self.quirks
        while True:
            try:
                url = f"{self.base_url}/chat/completions"
                body = await self.post(url, wire.payload(call, self.served_name, quirks))
                reply = wire.parse(body, call, self._key)
            except ModelError as error:
                learned = wire.remedy(error, call, quirks)
                if learned is None:
                    raise await self._explained(error) from None
                quirks |= {learned}
                if learned == "no_n":
                    call = Call(call.prompt, call.first)
            else:
                break
        if len(reply.completions) < call.n:
            quirks |= {"no_n"}
        if quirks != self.quirks:  # learned from an answer, never from a refusal alone
            self.quirks |= quirks
            if "no_n" in self.quirks:
                self.max_n = 1
        return reply

    async def post(self, url: str, body: bytes) -> bytes:
        """What the server answers to a JSON body. Raises ModelError."""
        headers = {"Content-Type": "application/json"}
        try:
            async with (
                asyncio.timeout(self.timeout),
                self._open.post(url, data=body, headers=headers, allow_redirects=False) as response,
            ):
                answer = await _read(response)
                if response.status == 200:
                    return answer
                raise wire.failure(response.status, response.headers, answer, self._key)
        except aiohttp.ServerTimeoutError:
            raise self._lost(f"no connection to {self._where} in {CONNECT:g} s") from None
        except TimeoutError:
            raise self._lost(f"no whole answer from {self._where} in {self.timeout:g} s") from None
        except (ssl.SSLError, ssl.CertificateError, aiohttp.ClientSSLError) as error:
            raise ModelError(
                f"no secure connection to {self._where}: {error}. Is it http:// rather than https://, or a "
                "certificate this machine does not know (SSL_CERT_FILE names one)?",
                fatal=True,
                kind="tls",
            ) from None
        except aiohttp.InvalidURL:
            raise ModelError(f"{url!r} is not an address", fatal=True) from None
        except aiohttp.ClientPayloadError:
            raise self._lost(f"{self._where} broke off in the middle of an answer") from None
        except (aiohttp.ClientError, OSError) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise self._lost(f"no connection to {self._where}: {why}") from None

    async def get_json(self, url: str) -> Any:
        """The JSON at `url`, or None: what is only good to know is never worth an error."""
        try:
            async with (
                asyncio.timeout(min(DISCOVERY, self.timeout)),
                self._open.get(url, allow_redirects=False) as response,
            ):
                return msgspec.json.decode(await _read(response)) if response.status == 200 else None
        except (
            TimeoutError,
            aiohttp.ClientError,
            OSError,
            ModelError,
            msgspec.MsgspecError,
            ValueError,
            RecursionError,
        ):
            return None

    async def _find_context(self) -> int | None:
        """The context as /v1/models tells it (vLLM, SGLang, OpenRouter) or /props (llama.cpp)."""
        root = self.base_url.removesuffix("/v1")
        rows, props = await asyncio.gather(self.served(), self.get_json(f"{root}/props"))
        own = [r for r in rows if r["id"] == self.served_name] or (rows if len(rows) == 1 else [])
        settings = props.get("default_generation_settings") if isinstance(props, dict) else None
        found = [r.get(name) for r in own for name in ("max_model_len", "context_length")]
        found += [p.get("n_ctx") for p in (settings, props) if isinstance(p, dict)]
        return next((n for n in found if isinstance(n, int) and n > 0), None)

    async def _explained(self, error: ModelError) -> ModelError:
        """The error as the user needs it: with the variable to set, or the names the server knows."""
        if error.kind == "key":
            what = "refused the key" if self._key else "wants a key"
            return _again(error, f"{self._where} {what}: set {self._key_variable} ({error})")
        if error.kind != "unknown_model":
            return error
        names = [str(r["id"]) for r in await self.served()]
        if not names:
            return _again(
                error, f"no {self.served_name!r} at {self.base_url}: {error}. Is the base URL right?"
            )
        near = get_close_matches(self.served_name, names, n=8, cutoff=0.3)
        some = near + [n for n in names if n not in near][: 8 - len(near)]
        listed = ", ".join(quote(n[:100], safe="/:@+, ()") for n in some)
        more = f" and {len(names) - len(some)} more" if len(names) > len(some) else ""
        return _again(error, f"{self._where} serves no model {self.served_name!r}: it lists {listed}{more}")

    @property
    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("enter the model first: async with model: ...")
        return self._session

    @property
    def _where(self) -> str:
        return endpoint.host_of(self.base_url)

    @staticmethod
    def _lost(message: str) -> ModelError:
        return ModelError(message, retry="transient", kind="connection")


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The body as far as MAX_BODY, unpacked. A longer one raises ModelError."""
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > MAX_BODY:
            response.close()
            raise ModelError(f"the server's answer is longer than {MAX_BODY >> 20} MB", kind="too_long")
        chunks.append(chunk)
    return b"".join(chunks)


def _again(error: ModelError, message: str) -> ModelError:
    return ModelError(
        message, retry=error.retry, retry_after=error.retry_after, fatal=error.fatal, kind=error.kind
    )


__all__ = ["MAX_BODY", "OpenAIModel"]
