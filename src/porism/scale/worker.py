"""What runs in an actor: one replica, with an engine of its own that is entered once and asked until the end.

Failures are told as values, not raised: what Ray raises is then always about the actor, never about a call. Nothing
is written here; answers go back to the driver.
"""

from __future__ import annotations

import os
import socket

from msgspec import Struct

from porism import __version__
from porism.errors import ConfigError, InputError, ModelError, PorismError, Retry
from porism.types import Call, Model, Reply


class Setup(Struct, frozen=True, kw_only=True):
    """The engine of a replica. base_url: the servers that replicas speak to, instead of engines of their own, in turn.

    cpus, gpus: what the replica was given. max_n: the largest n of a call, where a trial has shown it.
    """

    spec: str
    base_url: tuple[str, ...] = ()
    context: int | None = None
    concurrency: int | None = None
    cpus: int = 1
    gpus: int = 0
    engine_args: tuple[str, ...] = ()
    max_n: int | None = None

    @property
    def starts_vllm(self) -> bool:
        """Whether the replica runs vLLM itself."""
        return self.spec.startswith("vllm/") and not self.base_url

    @property
    def owns_engine(self) -> bool:
        """Whether an engine lives and dies with the replica."""
        return self.starts_vllm or self.spec.startswith("local/")


class Facts(Struct, frozen=True, kw_only=True):
    """What an entered engine is. weights: facts that are equal wherever the same weights are served."""

    identity: str
    concurrency: int
    max_n: int
    context: int | None
    chain: bool
    host: str | None
    weights: dict[str, str]


class Place(Struct, frozen=True):
    """Where an actor runs, and under which version of porism."""

    node: str
    pid: int
    porism: str = __version__


class Failed(Struct, frozen=True, kw_only=True):
    """A PorismError on its way to the driver."""

    message: str
    mendable: bool = False  # by the user: an InputError
    retry: Retry = "no"
    retry_after: float | None = None
    fatal: bool = False
    kind: str = "model"

    @classmethod
    def of(cls, error: PorismError) -> Failed:
        """The record of an error."""
        if isinstance(error, ModelError):
            return cls(
                message=str(error),
                retry=error.retry,
                retry_after=error.retry_after,
                fatal=error.fatal,
                kind=error.kind,
            )
        return cls(message=str(error), mendable=isinstance(error, InputError), fatal=True)

    def error(self, where: str = "") -> PorismError:
        """The error again, with the place where it happened."""
        message = f"{where}: {self.message}" if where else self.message
        if self.mendable:
            return ConfigError(message)
        return ModelError(
            message, retry=self.retry, retry_after=self.retry_after, fatal=self.fatal, kind=self.kind
        )


class Worker:
    """The actor's class. Every method but `place` answers with a Failed where the engine raised."""

    def __init__(self, setup: Setup, number: int) -> None:
        self._setup, self._number = setup, number
        self._model: Model | None = None

    async def place(self) -> Place:
        """Where this actor runs; told as soon as it does."""
        return Place(socket.gethostname(), os.getpid())

    async def start(self) -> Facts | Failed:
        """Enter the engine: load the model, or reach the server. May take minutes."""
        try:
            model = _engine(self._setup, self._number)
            await model.__aenter__()
            self._model = model
            if self._setup.max_n is not None:
                model.max_n = self._setup.max_n
            return await self._facts(model)
        except PorismError as error:
            return Failed.of(error)

    async def probe(self) -> tuple[list[str], Facts] | Failed:
        """The warnings of a short trial, and what is known after it."""
        try:
            return await self._entered.probe(), await self._facts(self._entered)
        except PorismError as error:
            return Failed.of(error)

    async def generate(self, call: Call) -> Reply | Failed:
        """One attempt at a call."""
        try:
            return await self._entered.generate(call)
        except PorismError as error:
            return Failed.of(error)

    async def stop(self) -> None:
        """Leave the engine, and with it end its processes."""
        model, self._model = self._model, None
        if model is not None:
            await model.__aexit__(None, None, None)

    @property
    def _entered(self) -> Model:
        assert self._model is not None, "start comes first"
        return self._model

    async def _facts(self, model: Model) -> Facts:
        from porism.models.openai import OpenAIModel
        from porism.models.recognize import recognize

        weights = (await recognize(model)).weights if isinstance(model, OpenAIModel) else {}
        return Facts(
            identity=model.identity,
            concurrency=model.concurrency,
            max_n=model.max_n,
            context=model.context,
            chain=model.chain,
            host=getattr(model, "host", None),
            weights=weights,
        )


def _engine(setup: Setup, number: int) -> Model:
    if setup.starts_vllm:
        from porism.scale.vllm import VllmModel

        return VllmModel(
            setup.spec.partition("/")[2],
            gpus=setup.gpus,
            arguments=setup.engine_args,
            context=setup.context,
            concurrency=setup.concurrency,
        )
    if setup.spec.startswith("local/"):
        from porism.models.local import LocalModel

        return LocalModel(
            setup.spec.partition("/")[2],
            context=setup.context,
            parallel=setup.concurrency,
            threads=setup.cpus,
        )
    from porism.models import open_model

    url = setup.base_url[number % len(setup.base_url)] if setup.base_url else None
    return open_model(setup.spec, base_url=url, context=setup.context, concurrency=setup.concurrency)


__all__ = ["Facts", "Failed", "Place", "Setup", "Worker"]
