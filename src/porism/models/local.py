"""The embedded model: llama.cpp in a child process of ours, reached like any other endpoint.

A process of its own because llama.cpp is not safe to call from several threads, and because a crash there must
not take the run with it. It listens on loopback with a random key and is spoken to by OpenAIModel, so everything
above knows one protocol. The process is started when the model is entered and again after a crash, a few times.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from importlib.util import find_spec
from pathlib import Path
from threading import Event

import msgspec

from porism.errors import MissingExtra, ModelError
from porism.models.catalog import locate
from porism.models.local_server import Settings
from porism.models.openai import OpenAIModel
from porism.types import Call, Reply

SLOTS = 8  # answers written at once, where the caller does not say
CONTEXT = 4096  # tokens of one prompt and answer, where the caller does not say
RESTARTS = 3
START = 180.0  # seconds that loading a model may take
LOG = 16 * 1024  # bytes kept of what llama.cpp says


class LocalModel:
    """The catalog model or GGUF file `name_or_path`, as a Model.

    context: tokens of the longest prompt with its answer; parallel: answers written at once; threads: by default one
    for each core. Entering it downloads a catalog model that is not there yet and starts the server. Raises InputError
    for an unknown name, MissingExtra without xllamacpp, ModelError (fatal) where the server cannot start.
    """

    def __init__(
        self,
        name_or_path: str,
        *,
        context: int | None = None,
        parallel: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.name = f"local/{name_or_path}"
        self.identity = ""
        self.context: int | None = context or CONTEXT
        self.concurrency = self.max_n = parallel or SLOTS
        self.chain = True
        self._name_or_path, self._threads = name_or_path, threads
        self._path = Path()
        self._server: _Server | None = None
        self._starts = 0
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> LocalModel:
        if find_spec("xllamacpp") is None:
            raise MissingExtra("the embedded model", "local")
        self._path, self.identity = await _located(self._name_or_path)
        await self._running()
        return self

    async def __aexit__(self, *exc: object) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    async def generate(self, call: Call) -> Reply:
        """The completions of `call` in rollout order. Raises ModelError: transient after a crash of the server,
        which the next call starts anew, and fatal when that did not help several times.
        """
        server = await self._running()
        try:
            return await server.client.generate(call)
        except ModelError as error:
            if error.kind == "connection" and await server.has_ended():
                raise server.failure("ended in the middle of an answer", retry=True) from None
            raise

    async def probe(self) -> list[str]:
        """Nothing: that this server honors seed and n is known."""
        return []

    async def _running(self) -> _Server:
        """The server, started if there is none or the last one has ended."""
        async with self._starting:
            server = self._server
            if server is not None and server.runs:
                return server
            if server is not None:
                await server.stop()
                if self._starts > RESTARTS:
                    raise server.failure(f"ended {self._starts} times", retry=False)
            self._starts += 1
            settings = Settings(
                path=str(self._path),
                key=secrets.token_urlsafe(24),
                slots=self.concurrency,
                context=self.context or CONTEXT,
                threads=self._threads or physical_cores(),
            )
            self._server = await _Server.start(self.name, self.identity, settings)
            return self._server


class _Server:
    """One run of the child process, with the client that speaks to it."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.client: OpenAIModel
        self._name = name
        self._process = process
        self._log = b""
        self._reader = asyncio.create_task(self._read_log())

    @classmethod
    async def start(cls, name: str, identity: str, settings: Settings) -> _Server:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "porism.models.local_server"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            process_group=0,  # Ctrl-C is for us; what is in flight may still land
        )
        server = cls(name, process)
        try:
            await server._open(identity, settings)
        except BaseException:
            await server.stop()
            raise
        return server

    async def _open(self, identity: str, settings: Settings) -> None:
        """Hand over the settings and wait for the address. Raises ModelError."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(msgspec.json.encode(settings) + b"\n")
        try:
            async with asyncio.timeout(START):
                url = (await stdout.readline()).decode().strip()
        except TimeoutError:
            raise self.failure(f"was not ready within {START:g} s", retry=False) from None
        if not url:
            await self.has_ended()
            raise self.failure("could not start", retry=False)
        self.client = OpenAIModel(
            identity,
            name=self._name,
            base_url=url,
            key=settings.key,
            concurrency=settings.slots,
            context=settings.context,
        )
        self.client.max_n = settings.slots  # child i gets the seed + i, and shares the prefill
        await self.client.__aenter__()

    @property
    def runs(self) -> bool:
        return self._process.returncode is None

    async def has_ended(self) -> bool:
        """Whether the process has ended."""
        return await has_ended(self._process, self._reader)

    async def stop(self) -> None:
        """End the process and the client; both may have ended before."""
        if hasattr(self, "client"):
            await self.client.__aexit__()
        if self.runs:
            self._process.kill()
        await self._process.wait()
        await self._reader

    def failure(self, what: str, *, retry: bool) -> ModelError:
        said = "\n".join(f"    {line}" for line in self._log.decode("utf-8", "replace").splitlines()[-8:])
        code = self._process.returncode
        how = "" if code is None else f" (signal {-code})" if code < 0 else f" (exit code {code})"
        return ModelError(
            f"the server of {self._name} {what}{how}" + (f"; it said last:\n{said}" if said else ""),
            retry="transient" if retry else "no",
            fatal=not retry,
            kind="connection",
        )

    async def _read_log(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(4096):
            self._log = (self._log + chunk)[-LOG:]


def physical_cores() -> int:
    """Cores that this process may use, hyperthreads not counted: more threads only wait for each other."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    siblings = set()
    for cpu in usable:
        try:
            siblings.add(Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text())
        except OSError:
            siblings.add(str(cpu))
    return max(1, len(siblings))


async def _located(name_or_path: str) -> tuple[Path, str]:
    """The GGUF file and its sha256, in a thread: it may take a download."""
    stop = Event()
    try:
        return await asyncio.to_thread(locate, name_or_path, stop=stop)
    finally:
        stop.set()


async def has_ended(process: asyncio.subprocess.Process, reader: asyncio.Task[None]) -> bool:
    """Whether a process has ended, and all it said is read. One that dropped its connections is given a moment."""
    try:
        async with asyncio.timeout(1.0):
            await process.wait()
    except TimeoutError:
        return False
    await reader
    return True


__all__ = ["LocalModel", "has_ended", "physical_cores"]
