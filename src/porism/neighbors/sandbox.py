"""A program that a model wrote, run where it can compute and do nothing else.

The limits are set by jail.py inside the subprocess and held by the kernel. From here come a clean environment, an
empty folder that is removed afterwards, no input, bounded output, and an end to whatever sleeps. A machine that lacks
one of the protections runs nothing: ConfigError says which, and `check` finds out beforehand by trying them all.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import IO

from msgspec import Struct

from porism.errors import ConfigError

JAIL = Path(__file__).with_name("jail.py")
LOOK = 0.05  # seconds between two looks at the clock and the folder
FILES = 1000  # files a program may make
FILE_SIZE = 1 << 20  # bytes of each, and of the output: the kernel holds this one
FOLDER_SIZE = 16 << 20  # bytes of all, looked at now and then
LINE = 500  # characters of an error that are kept
# One thread of linear algebra, for there is one; and sets in the same order every time.
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}


class Limits(Struct, frozen=True, kw_only=True):
    """What a program may use: seconds of CPU and of waiting, bytes of memory and output, characters of source."""

    cpu: int = 10
    wall: float = 30.0
    memory: int = 1 << 30
    output: int = 1 << 16
    source: int = 100_000


class Ran(Struct, frozen=True, kw_only=True):
    """What a program printed, and why it was stopped, if it was.

    error: how it failed by itself: an exception, an exit code. held: the protections it ran under, in words. The
    output is whole only where stopped and error are both None.
    """

    output: str
    stopped: str | None = None
    error: str | None = None
    held: tuple[str, ...] = ()


async def run_program(source: str, limits: Limits | None = None) -> Ran:
    """What a Python program prints, run in a subprocess that can do nothing but compute.

    It sees the standard library, sympy, and one empty folder. Never raises for what the program does; ConfigError
    where this machine lacks a protection, and then the program has not begun. Cancelling ends the program.
    """
    cancelled = Event()
    try:
        return await asyncio.to_thread(_run, source, limits or Limits(), cancelled)
    finally:
        cancelled.set()


async def check() -> tuple[str, ...]:
    """The protections that hold here, in words; each was tried. ConfigError where one is missing or does not hold."""
    ran = await run_program(_TRIAL.format(outside=tempfile.gettempdir()))
    if ran.stopped or ran.error or set(ran.output.split()) != {"refused"}:
        raise ConfigError(f"{_OFF}: the trial went wrong: {ran.stopped or ran.error or ran.output!r}")
    return ran.held


_OFF = "programs written by models are not run on this machine"
_TRIAL = """
import os, socket, sympy, mpmath, threading
open("here", "w").close()
outside = {outside!r}
for act in (
    os.fork,
    threading.Thread(target=int).start,
    lambda: os.execv("/bin/true", ["true"]),
    socket.socket,
    lambda: open(outside + "/porism-trial", "w"),
    lambda: os.listdir(outside),
    lambda: os.listdir("/proc"),
    lambda: os.kill(os.getppid(), 0),
    lambda: os.chmod(".", 0o777),
):
    try:
        act()
    except (OSError, RuntimeError):
        print("refused")
    else:
        print("done")
"""


def _run(source: str, limits: Limits, cancelled: Event) -> Ran:
    if len(source) > limits.source:
        return Ran(output="", stopped=f"the program is longer than {limits.source} characters")
    with (
        tempfile.TemporaryDirectory(prefix="porism-program-") as folder,
        tempfile.TemporaryFile() as order,
        tempfile.TemporaryFile() as status,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        settings = {
            "source": source,
            "status": status.fileno(),
            "packages": _packages(),
            "folder": folder,
            "cpu": limits.cpu,
            "memory": limits.memory,
            "file_size": FILE_SIZE,
            "parent": os.getpid(),
        }
        order.write(json.dumps(settings).encode())
        order.seek(0)
        process = subprocess.Popen(  # noqa: S603  (our own file, no shell)
            [sys.executable, "-I", "-S", str(JAIL)],
            stdin=order,
            stdout=output,
            stderr=errors,
            cwd=folder,
            env=ENVIRONMENT,
            pass_fds=[status.fileno()],
            process_group=0,  # Ctrl-C at the terminal is for us
        )
        try:
            stopped = _watch(process, Path(folder), (output, errors), limits, cancelled)
        finally:
            process.kill()
            process.wait()
        printed, said = _text(output, limits.output), _text(errors, limits.output).strip()
        held = _held(_text(status, LINE * 10), said)
    if stopped is None and process.returncode == -signal.SIGXCPU:
        stopped = f"it used more than {limits.cpu} s of CPU"
    failed = stopped is None and process.returncode != 0
    return Ran(
        output=printed, stopped=stopped, error=_fault(said, process.returncode) if failed else None, held=held
    )


def _watch(
    process: subprocess.Popen[bytes],
    folder: Path,
    outputs: tuple[IO[bytes], ...],
    limits: Limits,
    cancelled: Event,
) -> str | None:
    """Wait for the end of the program; the reason why it has to be stopped, or None where it ended by itself."""
    deadline = time.monotonic() + limits.wall
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK)
        if any(os.fstat(file.fileno()).st_size > limits.output for file in outputs):
            return f"it printed more than {limits.output} bytes"
        if process.returncode is not None:
            return None
        with os.scandir(folder) as entries:
            sizes = [entry.stat(follow_symlinks=False).st_size for entry in entries]
        if len(sizes) > FILES or sum(sizes) > FOLDER_SIZE:
            return f"it wrote more than {FILES} files or {FOLDER_SIZE >> 20} MiB"
        if time.monotonic() > deadline:
            return f"it took longer than {limits.wall:g} s"
        if cancelled.is_set():
            return "it was no longer wanted"


def _held(status: str, said: str) -> tuple[str, ...]:
    """The protections that were reported before the program began. ConfigError where they were not all there."""
    try:
        report: dict[str, list[str]] = json.loads(status)
        return tuple(report["held"])
    except KeyError:
        raise ConfigError(f"{_OFF}: {'; '.join(report['missing'])}") from None
    except ValueError:
        reason = said.rpartition("\n")[2] or "the subprocess ended before it was confined"
        raise ConfigError(f"{_OFF}: {reason[:LINE]}") from None


def _text(file: IO[bytes], most: int) -> str:
    file.seek(0)
    return file.read(most).decode("utf-8", "replace")


def _fault(said: str, code: int) -> str:
    """How a program failed: the last line of its traceback, or what ended it."""
    if code == -signal.SIGKILL:
        return "the kernel killed it, for its CPU time or its memory"
    if code < 0:
        return f"it ended by signal {signal.Signals(-code).name}"
    return said.rpartition("\n")[2][:LINE] or f"it ended with exit code {code}"


@cache
def _packages() -> list[str]:
    """The folders that hold sympy and what it needs. Nothing is imported here."""
    specs = [find_spec(name) for name in ("sympy", "mpmath")]
    return sorted({str(Path(spec.origin).parents[1]) for spec in specs if spec and spec.origin})


__all__ = ["Limits", "Ran", "check", "run_program"]
