"""Verdicts from processes that can be killed, so that no answer can stop or slow the caller.

The certain rules run in place; everything else goes to a worker forked from a server that has sympy
loaded (see worker.py). A worker has a CPU limit for each item, so a verdict does not depend on how busy
the machine is; one that only sleeps is given up after a while. A worker that dies takes one item with it, which
is undecided, or tried once more when the death was not its own doing. Equal questions are asked once.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

import msgspec

from porism.types import Gold, Verdict
from porism.verify import VERSION
from porism.verify.compare import quick
from porism.verify.custom import is_custom
from porism.verify.worker import EVENT, FORK, Reply

Key: TypeAlias = tuple[str, str, str | None]
WALL = 10.0  # seconds after which a worker that uses no CPU is looked at, and after as many again given up
KEPT = 100_000  # verdicts kept in memory
_ENVIRONMENT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "VIRTUAL_ENV",
    "PYTHONHOME",
    "SYSTEMROOT",
    "LD_LIBRARY_PATH",
)


class WorkerLostError(Exception):
    """A worker died on an item; `own` says whether the item's CPU limit ended it."""

    def __init__(self, reason: str, *, own: bool) -> None:
        self.reason = reason
        self.own = own
        super().__init__(reason)


class Verifier:
    """Decides answers, concurrently and within limits. Usable from any event loop, in any thread.

    workers: processes, one for each CPU by default. limit: CPU seconds an item. Nothing starts before
    the first item that needs a worker, or `warm`. allow_code: answer types may name a checker of the user's,
    which is then imported and called in the workers (see custom.py); without it such items stay undecided.
    """

    version = VERSION

    def __init__(self, *, workers: int | None = None, limit: float = 1.0, allow_code: bool = False) -> None:
        self.workers = workers or os.cpu_count() or 1
        self.limit = limit
        self.allow_code = allow_code
        self._asked: dict[Key, asyncio.Task[Verdict]] = {}
        self._decided: dict[Key, Verdict] = {}
        self._server: _Server | None = None
        self._idle: list[_Worker] = []
        self._slots = asyncio.Semaphore(self.workers)
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = list(self._asked.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for worker in self._idle:
            worker.close()
        self._idle.clear()
        if self._server is not None:
            await self._server.close()
            self._server = None

    async def warm(self) -> None:
        """Start the server that workers are forked from, ahead of the first item that needs it."""
        async with self._starting:
            if self._server is not None and self._server.lost:
                await self._server.close()
                self._server = None
            if self._server is None:
                self._server = _Server(self.limit, here=self.allow_code)

    async def verify(self, answer: str, gold: Gold) -> Verdict:
        """The verdict on an answer: correct, wrong or undecided. Never raises for what stands in it."""
        key = (answer, gold.answer, gold.answer_type)
        if (known := self._decided.get(key)) is not None:
            return known
        task = self._asked.get(key)
        if task is None:
            if is_custom(gold.answer_type) and not self.allow_code:
                return Verdict("undecided", "own rule: code is not allowed")
            verdict = quick(*key)
            if verdict is not None:
                return verdict
            task = self._asked[key] = asyncio.create_task(self._ask(key))
            task.add_done_callback(lambda done: self._keep(key, done))
        return await asyncio.shield(task)

    def _keep(self, key: Key, task: asyncio.Task[Verdict]) -> None:
        del self._asked[key]
        if not task.cancelled() and task.exception() is None:
            self._decided[key] = task.result()
            if len(self._decided) > KEPT:
                del self._decided[next(iter(self._decided))]

    async def _ask(self, key: Key) -> Verdict:
        item = msgspec.msgpack.encode(key)
        async with self._slots:
            for last in (False, True):
                try:
                    return await self._once(item)
                except WorkerLostError as lost:
                    if lost.own or last:
                        return Verdict("undecided", lost.reason)
        raise AssertionError  # the loop returns

    async def _once(self, item: bytes) -> Verdict:
        worker = self._idle.pop() if self._idle else await self._new()
        task = asyncio.create_task(worker.decide(item))
        try:
            await self._watch(task, worker)
            reply = await task
        except (ConnectionError, EOFError):
            status = await worker.ended()
            limit = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF
            raise WorkerLostError("cpu-limit" if limit else "worker-died", own=limit) from None
        except BaseException:
            task.cancel()
            worker.kill()
            raise
        if reply.alive:
            self._idle.append(worker)
        else:
            worker.close()
        return reply.verdict

    async def _watch(self, task: asyncio.Task[Reply], worker: _Worker) -> None:
        """Wait for an item. A worker that only waits for a CPU gets its time; one that sleeps is given up."""
        spent = None
        while not (await asyncio.wait({task}, timeout=WALL + 5 * self.limit))[0]:
            before, spent = spent, worker.spent()
            if spent is None or spent == before != math.inf:
                raise WorkerLostError("wall-limit", own=True)

    async def _new(self) -> _Worker:
        await self.warm()
        assert self._server is not None
        return await self._server.fork()


class _Worker:
    """One end of a worker's socket."""

    def __init__(self, link: socket.socket, pid: int, ended: asyncio.Future[int]) -> None:
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._link = link
        self._pid = pid
        self._ended = ended

    async def open(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(sock=self._link)
        return self

    async def decide(self, item: bytes) -> Reply:
        self._writer.write(len(item).to_bytes(4, "big") + item)
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        return msgspec.msgpack.decode(await self._reader.readexactly(size), type=Reply)

    def spent(self) -> float | None:
        """The CPU seconds of a worker that sleeps; infinity while it runs or waits for a CPU.

        None where there is no /proc to ask.
        """
        try:
            state, *fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        if state != "S":
            return math.inf
        return (int(fields[10]) + int(fields[11])) / os.sysconf("SC_CLK_TCK")

    async def ended(self) -> int:
        """The wait status of a worker that closed its socket."""
        self._writer.close()
        return await self._ended

    def kill(self) -> None:
        self._writer.close()
        if not self._ended.done():
            os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        self._writer.close()


class _Server:
    """The process that workers are forked from, seen from here."""

    def __init__(self, limit: float, *, here: bool) -> None:
        self._event = EVENT
        self._request = FORK.pack(limit)
        ours, theirs = socket.socketpair()
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        paths = [path for path in sys.path if path] + ([str(Path.cwd())] if here else [])
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  (our own module, no shell)
                [sys.executable, "-P", "-m", "porism.verify.worker", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=environment,
                process_group=0,  # Ctrl-C is for us; no session of its own, or the kernel would not see it is nice
            )
        ours.setblocking(False)
        self._control = ours
        self._started: asyncio.Queue[int] = asyncio.Queue()
        self._ended: dict[int, asyncio.Future[int]] = {}
        self._forking = asyncio.Lock()
        self._listener = asyncio.create_task(self._listen())

    @property
    def lost(self) -> bool:
        return self._listener.done()

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        buffer = b""
        try:
            while data := await loop.sock_recv(self._control, 4096):
                buffer += data
                while len(buffer) >= self._event.size:
                    pid, status = self._event.unpack(buffer[: self._event.size])
                    buffer = buffer[self._event.size :]
                    if status == -1:
                        self._ended[pid] = loop.create_future()
                        self._started.put_nowait(pid)
                    else:
                        self._ended.pop(pid).set_result(status)
        except ConnectionError:
            pass
        finally:
            self._started.put_nowait(0)
            for future in self._ended.values():
                if not future.done():
                    future.set_result(signal.SIGKILL)
            self._ended.clear()

    async def fork(self) -> _Worker:
        """A new worker. Raises WorkerLostError when the server is gone."""
        ours, theirs = socket.socketpair()
        async with self._forking:
            try:
                with theirs:
                    socket.send_fds(self._control, [self._request], [theirs.fileno()])
                pid = await self._started.get()
            except OSError:
                pid = 0
        if not pid:
            self._started.put_nowait(0)
            ours.close()
            raise WorkerLostError("server-died", own=False)
        return await _Worker(ours, pid, self._ended[pid]).open()

    async def close(self) -> None:
        self._listener.cancel()
        await asyncio.gather(self._listener, return_exceptions=True)
        self._control.close()
        self._process.kill()
        await asyncio.to_thread(self._process.wait)


__all__ = ["Verifier"]
