"""A model that is asked in batches: calls wait until no more of them come, and leave together.

The engine asks one call at a time of thousands; an offline processor wants rows by the thousand. Between them stands a
queue: a short silence closes a batch, a thread runs it, and every call gets its answer as its row comes out, so what is
done is stored while the batch goes on. One batch at a time runs; what failed in one is asked again in the next.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Literal, Protocol

from porism.errors import ModelError
from porism.types import Call, Reply

SILENCE = 0.5  # seconds without another call that close a batch
ROWS = 10_000  # of one batch


class Pipeline(Protocol):
    """What a batch is run by. context and host are known once it is entered."""

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str: ...

    @property
    def context(self) -> int | None: ...

    @property
    def host(self) -> str | None:
        """Where text leaves to; None where it stays on this machine."""
        ...

    async def __aenter__(self) -> object: ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def probe(self) -> list[str]:
        """Warnings of a short trial."""
        ...

    def run(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply | ModelError]]:
        """Each call's place with its answer, as they come, in any order. Blocks. What it raises is all calls' error."""
        ...


class BatchModel:
    """A Model whose calls `pipeline` answers in batches. turn: held by the one batch of a run that is under way."""

    batched: Literal[True] = True

    def __init__(
        self, pipeline: Pipeline, *, turn: asyncio.Lock, silence: float = SILENCE, rows: int = ROWS
    ) -> None:
        self.name, self.identity = pipeline.name, pipeline.identity
        self.concurrency, self.max_n, self.chain = rows, 1, False
        self.context: int | None = None
        self._pipeline, self._turn, self._silence = pipeline, turn, silence
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue()
        self._left = threading.Event()
        self._server: asyncio.Task[None] | None = None

    @property
    def host(self) -> str | None:
        return self._pipeline.host

    async def __aenter__(self) -> BatchModel:
        await self._pipeline.__aenter__()
        self.context = self._pipeline.context
        self._server = asyncio.create_task(self._serve())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._left.set()
        if self._server is not None:
            self._server.cancel()
        await self._pipeline.__aexit__(*exc)

    async def probe(self) -> list[str]:
        return await self._pipeline.probe()

    async def generate(self, call: Call) -> Reply:
        """The completions of `call`, when its row comes out of a batch. Raises ModelError for its row or its batch."""
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((call, answer))
        return await answer

    async def _serve(self) -> None:
        while True:
            first = await self._queue.get()
            async with self._turn:
                await self._run(await self._gather(first))

    async def _gather(self, first: _Waiting) -> list[_Waiting]:
        """What is asked until a silence; without what was given up meanwhile."""
        found = [first]
        with suppress(TimeoutError):
            while len(found) < self.concurrency:
                async with asyncio.timeout(self._silence):
                    found.append(await self._queue.get())
        return [waiting for waiting in found if not waiting[1].done()]

    async def _run(self, batch: Sequence[_Waiting]) -> None:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def settle(place: int, answer: Reply | ModelError) -> None:
            future = batch[place][1]
            if future.done():
                return
            if isinstance(answer, Reply):
                future.set_result(answer)
            else:
                future.set_exception(answer)

        def end(error: ModelError) -> None:
            for place in range(len(batch)):
                settle(place, error)
            if not ended.done():
                ended.set_result(None)

        def tell(what: Callable[..., None], *arguments: object) -> None:
            with suppress(RuntimeError):  # nobody is there any more
                loop.call_soon_threadsafe(what, *arguments)

        def work() -> None:
            error = _failed("it ended without an answer")
            try:
                for place, answer in self._pipeline.run([call for call, _ in batch]):
                    tell(settle, place, answer)
                    if self._left.is_set():
                        break
            except ModelError as raised:
                error = raised
            except Exception as fault:  # noqa: BLE001  whatever a foreign library raises is its batch's end
                error = _failed(_reason(fault))
            tell(end, error)

        # A daemon: a batch that nobody waits for any more must not keep the process.
        threading.Thread(target=work, name="porism-batch", daemon=True).start()
        await ended


_Waiting = tuple[Call, "asyncio.Future[Reply]"]


def _failed(why: str) -> ModelError:
    return ModelError(f"the batch failed: {why}", retry="transient", kind="batch")


def _reason(fault: BaseException) -> str:
    """The last line of what was raised, cut short: the rest is a trace of foreign code."""
    lines = str(fault).split("\n")
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"{type(fault).__name__}: {said[:200]}" if said else type(fault).__name__


__all__ = ["BatchModel", "Pipeline"]
