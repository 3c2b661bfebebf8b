"""Batches of prompts to vLLM through Ray Data's own processor, which does everything from messages to text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from porism.errors import ConfigError, ModelError
from porism.models import wire
from porism.scale.cluster import Cluster
from porism.scale.rows import beside, quiet, through
from porism.scale.worker import Setup
from porism.types import Call, Completion, Reply, Usage

VLLM_ROWS = 64  # of a block


class VllmRows:
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

    async def __aenter__(self) -> VllmRows:
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
        for row in through(self._processor(), rows, VLLM_ROWS):
            yield row["row"], self._read(calls[row["row"]], row)

    def _processor(self) -> Any:
        quiet()
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
        return build_processor(config, postprocess=_generated, **beside())

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


__all__ = ["VllmRows", "engine_options"]
