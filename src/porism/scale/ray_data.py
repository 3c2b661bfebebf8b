"""Batches of requests to a server through Ray Data's own processor, and which models Ray Data can ask at all.

Ray Data moves rows and our client does the asking: its body goes out as it is, and a failure becomes the answer of its
row, where Ray's own session would end the whole batch for a busy server. Rows hold text alone, since Arrow gives all
rows of a block the same fields.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from porism.errors import ConfigError, ModelError
from porism.models import open_model, wire
from porism.models.endpoint import resolve
from porism.models.openai import OpenAIModel
from porism.scale.batch import BatchModel
from porism.scale.cluster import Cluster
from porism.scale.replicas import set_up
from porism.scale.rows import beside, quiet, through
from porism.scale.vllm_rows import VllmRows
from porism.scale.worker import Failed, Setup
from porism.types import Call, Reply


def open_batches(
    cluster: Cluster,
    turn: asyncio.Lock,
    spec: str,
    *,
    base_url: str | Sequence[str] | None = None,
    context: int | None = None,
    concurrency: int | None = None,
) -> BatchModel:
    """The model that `provider/model-id` names, asked by Ray Data on the cluster, to be entered before use.

    The rest is as in open_replicas. Raises ConfigError for a model that Ray Data cannot ask.
    """
    setup = set_up(cluster.placement, spec, base_url=base_url, context=context, concurrency=concurrency)
    if spec.startswith(("local/", "fake/")) or len(setup.base_url) > 1:
        raise ConfigError(
            f"{spec}: --executor ray-data asks one server (one --base-url), or runs vLLM (vllm/MODEL without "
            "--base-url): take --executor ray for others"
        )
    pipeline = VllmRows(setup, cluster) if setup.starts_vllm else _Http(setup, cluster)
    return BatchModel(pipeline, turn=turn)


class _Http:
    """Rows are requests to one server: each replica posts a block of them at once."""

    def __init__(self, setup: Setup, cluster: Cluster) -> None:
        self.name = setup.spec
        self._setup, self._cluster = setup, cluster
        self._base_url = setup.base_url[0] if setup.base_url else None
        self._model = _client(setup.spec, self._base_url, setup.concurrency, setup.context)
        self._key = resolve(setup.spec.partition("/")[0], self._base_url).key
        self.identity = self._model.identity

    @property
    def context(self) -> int | None:
        return self._model.context

    @property
    def host(self) -> str | None:
        found = [*self._cluster.hosts, *filter(None, [self._model.host])]
        return " and ".join(found) or None

    async def __aenter__(self) -> _Http:
        self._cluster.check(self._setup)
        await self._model.__aenter__()
        self._cluster.note(f"{self.name}: asked in batches by {self._cluster.placement}")
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._model.__aexit__(*exc)

    async def probe(self) -> list[str]:
        return await self._model.probe()

    def run(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply | ModelError]]:
        quiet()
        from ray.data.llm import HttpRequestProcessorConfig, build_processor

        model = self._model
        rows = [
            {"row": i, "payload": wire.payload(call, model.served_name, model.quirks).decode()}
            for i, call in enumerate(calls)
        ]
        replicas = self._cluster.placement.replicas
        block = max(1, min(model.concurrency, -(-len(rows) // replicas)))
        config = HttpRequestProcessorConfig(
            url=f"{model.base_url}/chat/completions",
            batch_size=block,
            concurrency=(replicas, replicas),
            http_request_stage={"num_cpus": self._setup.cpus},
            session_factory=_Sessions(self.name, self._base_url, model.concurrency, model.context),
        )
        processor = build_processor(config, postprocess=_answer, **beside())
        for row in through(processor, rows, block):
            yield row["row"], self._read(calls[row["row"]], row)

    def _read(self, call: Call, row: dict[str, Any]) -> Reply | ModelError:
        if row["failed"]:
            error = msgspec.json.decode(row["failed"], type=Failed).error()
            return error if isinstance(error, ModelError) else ModelError(str(error), fatal=True)
        try:
            return wire.parse(row["body"], call, self._key)
        except ModelError as error:
            return error


def _client(spec: str, base_url: str | None, concurrency: int | None, context: int | None) -> OpenAIModel:
    model = open_model(spec, base_url=base_url, concurrency=concurrency, context=context)
    assert isinstance(model, OpenAIModel)
    return model


def _answer(row: dict[str, Any]) -> dict[str, Any]:
    return {"row": row["row"], **row["http_response"]}


@dataclass(frozen=True, slots=True)
class _Sessions:
    """Makes in Ray's processes what its stage takes for an aiohttp session. The key is read there, and never sent."""

    spec: str
    base_url: str | None
    concurrency: int
    context: int | None

    def __call__(self) -> _Session:
        return _Session(_client(self.spec, self.base_url, self.concurrency, self.context))


class _Session:
    """Posts at once, where aiohttp's would wait to be awaited, one after another; a failure is an answer."""

    def __init__(self, model: OpenAIModel) -> None:
        self._model = model

    async def __aenter__(self) -> _Session:
        await self._model.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._model.__aexit__(*exc)

    def post(self, url: str, *, data: str, **_: object) -> asyncio.Task[_Response]:
        """data: the body as JSON text, which the stage has made JSON once more."""
        return asyncio.ensure_future(self._post(url, json.loads(data).encode()))

    async def _post(self, url: str, body: bytes) -> _Response:
        try:
            return _Response(await self._model.post(url, body))
        except ModelError as error:
            return _Response(b"", msgspec.json.encode(Failed.of(error)))


@dataclass(frozen=True, slots=True)
class _Response:
    body: bytes
    failed: bytes = b""
    status: int = 200  # for the stage, which would try some others again by itself

    async def __aenter__(self) -> _Response:
        return self

    async def __aexit__(self, *exc: object) -> None: ...

    async def json(self) -> dict[str, bytes]:
        return {"body": self.body, "failed": self.failed}


__all__ = ["open_batches"]
