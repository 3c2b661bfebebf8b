"""Batches through Ray Data's own LLM processors: of requests to a server, or of prompts to vLLM.

For a server, Ray Data moves rows and our client does the asking: its body goes out as it is, and a failure becomes the
answer of its row, where Ray's own session would end the whole batch for a busy server. Rows hold text alone, since
Arrow gives all rows of a block the same fields. For vLLM, Ray's processor does everything from messages to text.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec

from porism.errors import ConfigError, ModelError
from porism.models import open_model, wire
from porism.models.endpoint import resolve
from porism.models.openai import OpenAIModel
from porism.scale.batch import BatchModel
from porism.scale.cluster import Cluster
from porism.scale.replicas import set_up
from porism.scale.worker import Failed, Setup
from porism.types import Call, Completion, Reply, Usage

BESIDE = {
    "num_cpus": 0.01
}  # for tasks that only turn rows: they must not wait for the CPUs that replicas hold
VLLM_ROWS = 64  # of a block


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
    pipeline = _Vllm(setup, cluster) if setup.starts_vllm else _Http(setup, cluster)
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
        _quiet()
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
        processor = build_processor(
            config, postprocess=_answer, preprocess_map_kwargs=BESIDE, postprocess_map_kwargs=BESIDE
        )
        for row in _through(processor, rows, block):
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


class _Vllm:
    """Rows are prompts to vLLM engines that Ray Data starts for every batch anew, one for each replica."""

    def __init__(self, setup: Setup, cluster: Cluster) -> None:
        self.name, self.identity = setup.spec, setup.spec.partition("/")[2]
        self._setup, self._cluster = setup, cluster
        self._options = engine_options(setup.engine_args)
        self.context: int | None = self._options.get("max_model_len")
        if setup.gpus < 1:
            raise ConfigError(f"{setup.spec}: vLLM in Ray Data needs a GPU: leave --gpus 0 out")

    @property
    def host(self) -> str | None:
        return " and ".join(self._cluster.hosts) or None

    async def __aenter__(self) -> _Vllm:
        self._cluster.check(self._setup)
        try:
            await asyncio.to_thread(self._processor)
        except ImportError as error:
            raise ConfigError(
                f"{self.name} in Ray Data needs Ray's packages for language models on every machine: pip install "
                f"'ray[llm]' ({error})"
            ) from None
        self._cluster.note(f"{self.name}: asked in batches by {self._cluster.placement}")
        return self

    async def __aexit__(self, *exc: object) -> None: ...

    async def probe(self) -> list[str]:
        return []

    def run(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply | ModelError]]:
        rows = [{"row": i, **_request(call)} for i, call in enumerate(calls)]
        for row in _through(self._processor(), rows, VLLM_ROWS):
            yield row["row"], self._read(calls[row["row"]], row)

    def _processor(self) -> Any:
        _quiet()
        from ray.data.llm import build_processor, vLLMEngineProcessorConfig

        replicas = self._cluster.placement.replicas
        config = vLLMEngineProcessorConfig(
            model_source=self.identity,
            engine_kwargs={**self._options, "tensor_parallel_size": self._setup.gpus},
            batch_size=VLLM_ROWS,
            concurrency=(replicas, replicas),
            should_continue_on_error=True,
            log_engine_metrics=False,
        )
        return build_processor(
            config, postprocess=_generated, preprocess_map_kwargs=BESIDE, postprocess_map_kwargs=BESIDE
        )

    def _read(self, call: Call, row: dict[str, Any]) -> Reply | ModelError:
        if said := row.get("__inference_error__"):
            return wire.failure(400, {}, said.encode())
        prompt, completion = row["num_input_tokens"], row["num_generated_tokens"]
        # Ray keeps no reason for the end: an answer that fills what it may is one that was cut.
        full = completion >= call.prompt.sampling.max_tokens
        full = full or (self.context is not None and prompt + completion >= self.context)
        text = Completion(call.first, row["generated_text"], "length" if full else "stop")
        return Reply((text,), Usage(prompt, completion, requests=1))


def _request(call: Call) -> dict[str, Any]:
    """A row for vLLM. Everything is stated: what one row leaves open and another does not would be null in Arrow."""
    sampling = call.prompt.sampling
    return {
        "messages": [{"role": m.role, "content": m.content} for m in call.prompt.messages],
        "sampling_params": {
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
            "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
            "top_k": 0 if sampling.top_k is None else sampling.top_k,
            "min_p": 0.0 if sampling.min_p is None else sampling.min_p,
            "stop": list(sampling.stop),
            "seed": call.seed,
        },
    }


def _generated(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("row", "generated_text", "num_input_tokens", "num_generated_tokens")}


def engine_options(arguments: Sequence[str]) -> dict[str, Any]:
    """Options of `vllm serve` as its engine's keyword arguments. Raises ConfigError for what is no option."""
    found: dict[str, Any] = {}
    words = [word for argument in arguments for word in argument.split("=", 1 if argument[:2] == "--" else 0)]
    for word, value in pairwise([*words, "--"]):
        if word.startswith("--"):
            name = word[2:].replace("-", "_")
            if value.startswith("--"):
                found[name.removeprefix("no_")] = not name.startswith("no_")
            else:
                found[name] = _value(value)
        elif not found:
            raise ConfigError(f"engine arguments: {word!r} is no option, as in --max-model-len 32768")
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _through(processor: Any, rows: list[dict[str, Any]], block: int) -> Iterator[dict[str, Any]]:
    """The rows that come out, as they come."""
    import ray.data

    data = processor(ray.data.from_items(rows, override_num_blocks=-(-len(rows) // block)))
    for table in data.iter_batches(batch_size=None, prefetch_batches=0, batch_format="pyarrow"):
        yield from table.to_pylist()


def _quiet() -> None:
    """Ray Data's talk is for its log file: on the terminal stand rankings and the display."""
    import ray.data

    logger = logging.getLogger("ray.data")
    for handler in logger.handlers:
        if type(handler).__name__ == "PlainRayHandler":
            logger.removeHandler(handler)
    ray.data.DataContext.get_current().enable_progress_bars = False


__all__ = ["engine_options", "open_batches"]
