"""Coroutines for callers that cannot await: scripts, and notebooks whose own event loop already runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


def blocking(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What the coroutine of `work()` returns or raises; blocks until it has ended, in a notebook as well.

    Where a loop runs in this thread already, ours gets a thread of its own. Ctrl-C cancels it and waits for its end.
    """
    from threading import Event, Thread

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    result: list[T] = []
    fault: list[BaseException] = []
    stops: list[Callable[[], object]] = []
    ended = Event()

    async def whole() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        if task is not None:
            stops.append(lambda: loop.call_soon_threadsafe(task.cancel))
        return await work()

    def run() -> None:
        try:
            result.append(asyncio.run(whole()))
        except BaseException as error:  # noqa: BLE001  raised again in the caller's thread
            fault.append(error)
        finally:
            ended.set()

    Thread(target=run, name="porism").start()
    try:
        ended.wait()
    except KeyboardInterrupt:
        with suppress(RuntimeError):  # it has just ended by itself
            for stop in stops:
                stop()
        ended.wait()
        raise
    if fault:
        raise fault[0]
    return result[0]


__all__ = ["blocking"]
