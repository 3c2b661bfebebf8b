"""One model that several servers serve: as a Model it is one, with one identity.

Before a server's first call, and again after it was away, what it says of its weights is compared with what the
others said: under one name they must serve one model, or the scores would be a mixture that nobody asked for. A
server that cannot be reached at the start is looked at when it answers. Which server gets which call is the
engine's affair (porism.router).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from porism.errors import ConfigError, ModelError
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
        self._members = {model.base_url: _Member(model, self) for model in models}
        first = models[0]
        self.name, self.identity, self.chain = first.name, first.identity, first.chain
        self.concurrency = sum(model.concurrency for model in models)
        self.context: int | None = None
        self.max_n = 1
        self.weights: dict[str, tuple[str, str]] = {}  # fact -> (what, told by which server)
        self._stack = AsyncExitStack()

    @property
    def servers(self) -> Mapping[str, Model]:
        return {_short(url): member for url, member in self._members.items()}

    @property
    def models(self) -> list[OpenAIModel]:
        """The model at each server, in the order given."""
        return [member.model for member in self._members.values()]

    @property
    def hosts(self) -> list[str]:
        """Where text leaves to; those on this machine left out."""
        return list(dict.fromkeys(model.host for model in self.models if model.host is not None))

    async def __aenter__(self) -> Fleet:
        async with AsyncExitStack() as stack:
            for member in self._members.values():
                await stack.enter_async_context(member)
            for member in self._members.values():
                await member.look()
            self._stack = stack.pop_all()
        known = [m.context for m in self._members.values() if m.context is not None]
        self.context = min(known, default=None)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    async def generate(self, call: Call) -> Reply:
        """The completions of `call` from the first server."""
        return await next(iter(self._members.values())).generate(call)

    async def probe(self) -> list[str]:
        """What the trial of each server found, with its address; a larger context of some goes unused, and is told."""
        import asyncio

        found = await asyncio.gather(*(member.probe() for member in self._members.values()))
        warnings = [
            f"{_short(url)}: {warning}"
            for url, told in zip(self._members, found, strict=True)
            for warning in told
        ]
        contexts = {_short(url): m.context for url, m in self._members.items() if m.context is not None}
        if len(set(contexts.values())) > 1:
            told = ", ".join(f"{url} {context:,}" for url, context in contexts.items())
            warnings.append(
                f"the endpoints have different contexts ({told}): a prompt too long for one is missing there"
            )
        tried = [m for m in self._members.values() if m.seen]
        self.max_n = min((m.max_n for m in tried), default=1)
        for member in self._members.values():
            if (
                not member.seen
            ):  # if it comes later: what it does not honor, the client finds out and does without
                member.model.max_n = self.max_n
        return warnings


class _Member:
    """One server, compared with its fellows when there is reason to doubt what it serves."""

    def __init__(self, model: OpenAIModel, fleet: Fleet) -> None:
        self.model, self._fleet = model, fleet
        self.name, self.identity, self.chain = model.name, model.identity, model.chain
        self.concurrency = model.concurrency
        self.seen = False  # it has answered
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
                await self.look()
            except ConfigError as error:
                raise ModelError(str(error), fatal=True, kind="other_model") from None
            if self._doubted and self._tells:
                raise ModelError(
                    f"{_short(self.model.base_url)} does not answer", retry="transient", kind="connection"
                )
        try:
            reply = await self.model.generate(call)
        except ModelError as error:
            self._doubted = self._doubted or error.kind in _DOUBTFUL
            raise
        self.seen, self._doubted = True, False
        return reply

    async def probe(self) -> list[str]:
        return await self.model.probe()

    async def look(self) -> None:
        """Ask the server what it serves. ConfigError where that is not what the others serve."""
        from porism.models.recognize import recognize

        found = await recognize(self.model)
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
        self.seen, self._tells, self._doubted = True, True, False


def _short(url: str) -> str:
    return url.partition("://")[2].removesuffix("/v1")


__all__ = ["Fleet"]
