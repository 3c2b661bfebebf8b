"""vLLM in a child process of ours, spoken to as the endpoint that it is.

Started with its own command rather than as a library in this process: its options are then those that its users
know, what runs is what they run by hand, an engine that dies takes nothing with it, and there is one client to trust.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import aiohttp

from porism.errors import ModelError
from porism.models.local import has_ended
from porism.models.openai import OpenAIModel
from porism.types import Call, Reply

COMMAND = ("vllm", "serve")
CONCURRENCY = 256  # requests side by side that vLLM takes by default
LOG = 16 * 1024  # bytes kept of what it says


class VllmModel:
    """The model `model_id` in a vLLM server of our own, over `gpus` GPUs (0: its CPU build), as a Model.

    arguments: more options of `vllm serve`. command: what is started instead, with the same options. Entering it
    loads the model, which takes minutes, and raises ModelError (fatal) where the server ends before it answers.
    """

    def __init__(
        self,
        model_id: str,
        *,
        gpus: int = 1,
        arguments: Sequence[str] = (),
        context: int | None = None,
        concurrency: int | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self.name = f"vllm/{model_id}"
        self._port = _free_port()
        self._key = secrets.token_urlsafe(24)
        self._client = OpenAIModel(
            model_id,
            name=self.name,
            base_url=f"http://127.0.0.1:{self._port}",
            key=self._key,
            concurrency=concurrency or CONCURRENCY,
            context=context,
        )
        self.identity, self.chain = self._client.identity, self._client.chain
        self.concurrency = self._client.concurrency
        # Without the last two it tells of no cached tokens, and draws as the model's file says where we are silent.
        self._command = [
            *command,
            model_id,
            *("--host", "127.0.0.1", "--port", str(self._port)),
            *(("--tensor-parallel-size", str(gpus)) if gpus > 1 else ()),
            *("--enable-prompt-tokens-details", "--generation-config", "vllm"),
            *arguments,
        ]
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._log = b""

    @property
    def max_n(self) -> int:
        return self._client.max_n

    @max_n.setter
    def max_n(self, value: int) -> None:
        self._client.max_n = value

    @property
    def context(self) -> int | None:
        return self._client.context

    @context.setter
    def context(self, value: int | None) -> None:
        self._client.context = value

    async def __aenter__(self) -> VllmModel:
        path = os.pathsep.join(filter(None, (os.environ.get("PATH"), str(Path(sys.executable).parent))))
        if shutil.which(self._command[0], path=path) is None:
            raise ModelError(
                f"{self.name} needs vLLM on the machines that serve it: pip install vllm there, or give the address of "
                "a server with --base-url",
                fatal=True,
            )
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "porism.scale.guard", *self._command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "PATH": path, "VLLM_API_KEY": self._key},
        )
        self._reader = asyncio.create_task(self._read_log(self._process))
        try:
            await self._answering()
            await self._client.__aenter__()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._client.__aexit__()
        process, self._process = self._process, None
        if process is None or self._reader is None:
            return
        if process.stdin is not None:
            process.stdin.close()  # the guard ends the whole family
        await process.wait()
        await self._reader

    async def generate(self, call: Call) -> Reply:
        """The completions of `call`. Raises ModelError; a fatal one of kind "connection" once the server has ended."""
        try:
            return await self._client.generate(call)
        except ModelError as error:
            if error.kind == "connection" and await self._has_ended():
                raise self._failure("ended") from None
            raise

    async def probe(self) -> list[str]:
        return await self._client.probe()

    async def _answering(self) -> None:
        """Wait until the server says that it is well."""
        url = f"http://127.0.0.1:{self._port}/health"
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
            while True:
                try:
                    async with session.get(url) as answer:
                        if answer.status == 200:
                            return
                except (aiohttp.ClientError, TimeoutError):
                    pass
                if await self._has_ended():
                    raise self._failure("could not start")

    async def _has_ended(self) -> bool:
        """Whether the server has ended, after a moment to do so."""
        assert self._process is not None
        assert self._reader is not None
        return await has_ended(self._process, self._reader)

    def _failure(self, what: str) -> ModelError:
        said = "\n".join(f"    {line}" for line in self._log.decode("utf-8", "replace").splitlines()[-12:])
        return ModelError(
            f"the server of {self.name} {what}; it said last:\n{said.replace(self._key, '(key)')}",
            fatal=True,
            kind="connection",
        )

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while chunk := await process.stdout.read(4096):
            self._log = (self._log + chunk)[-LOG:]


def _free_port() -> int:
    """A port that is free, and below those that systems take for outgoing connections: it is bound seconds later."""
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        with socket.socket() as trial, suppress(OSError):
            trial.bind(("127.0.0.1", port))
            return port


__all__ = ["VllmModel"]
