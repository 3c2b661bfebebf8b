"""One model that several servers serve: as a Model it is one, with one identity.

Before a server's first call, and again after it was away, what it says of its weights is compared with what the
others said: under one name they must serve one model, or the scores would be a mixture that nobody asked for. A
server that cannot be reached at the start is looked at when it answers. Which server gets which call is the
engine's affair (porism.router).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from porism.errors import ConfigError, ModelError
from porism.models.probe import probe
from porism.models.recognize import Server, recognize
from porism.types import Call, Model, Reply

if TYPE_CHECKING:
    from porism.models.openai import OpenAIModel

_DOUBTFUL = (
    "connection",
    "server",
    "timeout",
    "unknown_model",
    "key",
    "redirect",
)  # may be another one afterwards


class Fleet:
    """A Model at each of several endpoints. Entering raises ConfigError where they serve different models.

    servers: by address, in the order given. concurrency counts all of them.
    """

    def __init__(self, models: Sequence[OpenAIModel]) -> None:
        names = [model.base_url.partition("://")[2].removesuffix("/v1") for model in models]
        if len(set(names)) < len(names):
            names = [model.base_url for model in models]
        self._members = {name: _Member(model, self) for name, model in zip(names, models, strict=True)}
        first = models[0]
        self.name, self.identity, self.chain = first.name, first.identity, first.chain
        self.concurrency = sum(model.concurrency for model in models)
        self.context: int | None = None
        self.max_n = 1
        self.weights: dict[str, tuple[str, str]] = {}  # fact -> (what, told by which server)
        self._stack = AsyncExitStack()

    @property
    def servers(self) -> Mapping[str, Model]:
        return dict(self._members)

    @property
    def models(self) -> list[OpenAIModel]:
        """The model at each server, in the order given."""
        return [member.model for member in self._members.values()]

    @property
    def hosts(self) -> list[str]:
        """Where text leaves to; those on this machine left out."""
        return list(dict.fromkeys(model.host for model in self.models if model.host is not None))

    async def __aenter__(self) -> Fleet:
        members = self._members.values()
        async with AsyncExitStack() as stack:
            entered = (stack.enter_async_context(member) for member in members)
            for fault in await asyncio.gather(*entered, return_exceptions=True):
                if isinstance(fault, BaseException):
                    raise fault
            for member, found in zip(
                members, await asyncio.gather(*(recognize(m.model) for m in members)), strict=True
            ):
                member.compare(found)
            self._stack = stack.pop_all()
        self.context = min((m.context for m in members if m.context is not None), default=None)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    async def generate(self, call: Call) -> Reply:
        """The completions of `call` from the first server."""
        return await next(iter(self._members.values())).generate(call)

    async def probe(self) -> list[str]:
        """What the trial of each server found, with its address. One that does not answer may come later."""
        members = self._members.items()
        trials = await asyncio.gather(*(probe(member.model) for _, member in members))
        answered = [member for (_, member), trial in zip(members, trials, strict=True) if trial.n is not None]
        self.max_n = min((member.max_n for member in answered), default=1)
        warnings = []
        for (name, member), trial in zip(members, trials, strict=True):
            warnings += [f"{name}: {warning}" for warning in trial.warnings]
            if answered and member not in answered:
                warnings.append(f"{name}: the others do its share until it answers")
                member.max_n = (
                    self.max_n
                )  # what it does not honor then, the client finds out and does without
        contexts = {name: member.context for name, member in members if member.context is not None}
        if len(set(contexts.values())) > 1:
            told = ", ".join(f"{name} {context:,}" for name, context in contexts.items())
            warnings.append(f"different contexts ({told}): a prompt too long for one is missing there")
        return warnings


class _Member:
    """One server, compared with its fellows when there is reason to doubt what it serves."""

    def __init__(self, model: OpenAIModel, fleet: Fleet) -> None:
        self.model, self._fleet = model, fleet
        self.name, self.identity, self.chain = model.name, model.identity, model.chain
        self.concurrency = model.concurrency
        self._tells = False  # what it serves
        self._doubted = True

    @property
    def max_n(self) -> int:
        return self.model.max_n

    @max_n.setter
    def max_n(self, value: int) -> None:
        self.model.max_n = value

    @property
    def context(self) -> int | None:
        return self.model.context

    @context.setter
    def context(self, value: int | None) -> None:
        self.model.context = value

    async def __aenter__(self) -> _Member:
        await self.model.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.model.__aexit__(*exc)

    async def generate(self, call: Call) -> Reply:
        """Raises ModelError as the server's model does, and a fatal one where it serves another model by now."""
        if self._doubted:
            try:
                self.compare(await recognize(self.model))
            except ConfigError as error:
                raise ModelError(str(error), fatal=True, kind="other_model") from None
            if self._doubted and self._tells:
                raise ModelError("it does not answer", retry="transient", kind="connection")
        try:
            reply = await self.model.generate(call)
        except ModelError as error:
            self._doubted = self._doubted or error.kind in _DOUBTFUL
            raise
        self._doubted = False
        return reply

    async def probe(self) -> list[str]:
        return await self.model.probe()

    def compare(self, found: Server) -> None:
        """Take note of what the server says it serves. ConfigError where the others serve something else."""
        if not found.answers:
            return
        here = self.model.base_url
        for fact, what in found.weights.items():
            known, where = self._fleet.weights.setdefault(fact, (what, here))
            if known != what:
                raise ConfigError(
                    f"the endpoints serve different models as {self.identity!r}: {fact} is {known} at {where}, and "
                    f"{what} at {here}; give one run the endpoints of one model"
                )
        self._tells, self._doubted = True, False


__all__ = ["Fleet"]
