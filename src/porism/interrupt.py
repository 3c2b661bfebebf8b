"""Ctrl-C and the polite kill, for whatever an engine runs: what is in flight lands and is stored, then the run ends."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from porism.engine import Engine
from porism.errors import Interrupted


@contextmanager
def interruptible(engine: Engine) -> Iterator[None]:
    """Ctrl-C ends the run gently, a second one at once; so does the polite kill. In the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    asked = False
    aborting: set[asyncio.Task[None]] = set()

    def interrupt() -> None:
        nonlocal asked
        if asked:
            aborting.add(loop.create_task(engine.abort()))
        asked = True
        engine.stop(Interrupted("interrupted: what was in flight has landed and is stored"))

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            if handler is not None:  # None: set outside of Python
                signal.signal(number, handler)


__all__ = ["interruptible"]
