"""Text segments: the files in text/, appended to until they are full, then compressed where they lie.

A full segment becomes NNNNN.jsonl.gz in the BGZF layout of the SAM specification: independent gzip members of at most
64 KiB, each telling its own length. So `zcat` reads it, offsets in the index stay those of the plain lines, and one row
costs one or two members. (Compressing row by row keeps that too, and is less than half as good: docs/running.md.)
The plain file goes only when the compressed one is whole, on the disk and read back; until then both say the same.
"""

from __future__ import annotations

import gzip
import os
import re
import struct
import threading
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from porism.errors import StoreError

FULL = 64 * 2**20  # bytes of plain text after which a segment is closed
PATIENCE = (
    5.0  # seconds that closing waits for the segment being compressed; the next session takes it up again
)

_BLOCK = 65280  # bytes of text a member; even incompressible ones then fit 64 KiB with their frame
_HEADER = struct.Struct(
    "<4sLBBHccHH"
)  # magic and flags, mtime, xfl, os, length of the extra field, "BC", 2, size - 1
_TAIL = struct.Struct("<LL")  # crc32, bytes of text
_MAGIC = b"\x1f\x8b\x08\x04"
_NAME = re.compile(r"(\d+)\.jsonl(\.gz)?")


class _Table(NamedTuple):
    """Where the members of a segment begin: in the text, and in the file; both end with the total."""

    text: array[int]
    file: array[int]


class Segments:
    """The segments of a folder, for reading. A segment may be compressed between two reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._table = lru_cache(maxsize=None)(self._read_table)
        self._block = lru_cache(maxsize=64)(self._read_block)

    def path(self, number: int) -> Path:
        """Where a segment's plain lines are, or were."""
        return self.folder / f"{number:05}.jsonl"

    def numbers(self) -> list[int]:
        """The segments that are there, in the order they were written."""
        found = (_NAME.fullmatch(file.name) for file in self.folder.glob("*.jsonl*"))
        return sorted({int(match[1]) for match in found if match})

    def full(self, size: int) -> list[Path]:
        """Plain segments of at least so many bytes."""
        plain = (self.path(number) for number in self.numbers())
        return [file for file in plain if file.is_file() and file.stat().st_size >= size]

    def line(self, number: int, offset: int) -> bytes:
        """The line that begins there. Raises OSError or StoreError where it cannot be read."""
        try:
            with self.path(number).open("rb") as lines:
                lines.seek(offset)
                return lines.readline()
        except FileNotFoundError:
            return next(self._compressed_lines(number, offset), b"")

    def lines(self, number: int) -> Iterator[bytes]:
        """All lines of a segment. Raises OSError or StoreError where they cannot be read."""
        try:
            lines = self.path(number).open("rb")
        except FileNotFoundError:
            yield from self._compressed_lines(number, 0)
            return
        with lines:
            yield from lines

    def _compressed_lines(self, number: int, offset: int) -> Iterator[bytes]:
        table = self._table(number)
        block = max(0, bisect_right(table.text, offset) - 1)
        rest = b""
        for at in range(block, len(table.text) - 1):
            text = self._block(number, at)
            *whole, last = (text[offset - table.text[at] :] if at == block else text).split(b"\n")
            if whole:
                yield rest + whole[0] + b"\n"
                yield from (line + b"\n" for line in whole[1:])
                rest = last
            else:
                rest += last
        if rest:
            yield rest

    def _compressed(self, number: int) -> Path:
        return compressed(self.path(number))

    def _read_table(self, number: int) -> _Table:
        path = self._compressed(number)
        text, file = array("Q", [0]), array("Q", [0])
        with path.open("rb", buffering=0) as members:
            end = members.seek(0, os.SEEK_END)
            while file[-1] < end:
                at = file[-1] + _member_size(os.pread(members.fileno(), _HEADER.size, file[-1]))
                if at > end or at == file[-1]:
                    raise StoreError(
                        f"{path}: cut short, or compressed by another program, not in blocks; in that case decompress "
                        "it (gunzip), and porism reads it again"
                    )
                _, length = _TAIL.unpack(os.pread(members.fileno(), _TAIL.size, at - _TAIL.size))
                file.append(at)
                text.append(text[-1] + length)
        return _Table(text, file)

    def _read_block(self, number: int, block: int) -> bytes:
        path, table = self._compressed(number), self._table(number)
        with path.open("rb", buffering=0) as members:
            member = os.pread(members.fileno(), table.file[block + 1] - table.file[block], table.file[block])
        try:
            return zlib.decompress(member, wbits=31)
        except zlib.error as error:
            raise StoreError(f"{path}: its part at byte {table.file[block]} is damaged: {error}") from error


class Compressor:
    """Compresses full segments in a thread of its own, one after another, while the run goes on."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "porism-compress")
        self._stop = threading.Event()
        self._last: Future[None] | None = None

    def add(self, path: Path) -> None:
        """Compress a segment that nobody writes any more."""
        self._last = self._thread.submit(self._compress, path)

    def _compress(self, path: Path) -> None:
        if not self._stop.is_set():
            compress(path, self._stop)

    def close(self) -> None:
        """Wait a little for what is queued, then leave it: a plain segment is as good as a compressed one."""
        try:
            if self._last is not None:
                wait([self._last], PATIENCE)
        finally:
            self._stop.set()
            self._thread.shutdown(cancel_futures=True)


def compressed(path: Path) -> Path:
    """Where the compressed form of a plain segment lies."""
    return path.with_name(f"{path.name}.gz")


def compress(path: Path, stop: threading.Event | None = None) -> bool:
    """Whether a plain segment has been replaced by its compressed form; left as it is when stopped or without room.

    Killed anywhere, it leaves the plain file, the compressed one, or both, each of them whole.
    """
    part = path.with_name(f".{path.name}.gz.tmp")
    try:
        with path.open("rb") as text, part.open("wb") as members:
            while block := text.read(_BLOCK):
                if stop is not None and stop.is_set():
                    return False
                members.write(_member(block))
            members.write(_member(b""))  # the mark of a BGZF file that was not cut short
            members.flush()
            os.fsync(members.fileno())
        if not _same(path, part):
            return False
        part.replace(compressed(path))
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name is on the disk before the old one goes
        finally:
            os.close(folder)
        path.unlink()
    except (OSError, EOFError, zlib.error):  # the last two: what was written does not read back
        return False
    finally:
        part.unlink(missing_ok=True)
    return True


def _same(plain: Path, packed: Path) -> bool:
    with plain.open("rb") as one, gzip.open(packed) as two:
        while block := one.read(2**20):
            if two.read(len(block)) != block:
                return False
        return not two.read(1)


def _member(text: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-15)
    body = deflate.compress(text) + deflate.flush()
    size = _HEADER.size + len(body) + _TAIL.size
    header = _HEADER.pack(_MAGIC, 0, 0, 255, 6, b"B", b"C", 2, size - 1)
    return header + body + _TAIL.pack(zlib.crc32(text), len(text))


def _member_size(header: bytes) -> int:
    """Bytes of the member that begins so; 0 where it is none of BGZF."""
    if len(header) < _HEADER.size:
        return 0
    magic, _, _, _, extra, b, c, length, size = _HEADER.unpack(header)
    return int(size) + 1 if (magic, extra, b, c, length) == (_MAGIC, 6, b"B", b"C", 2) else 0


__all__ = ["FULL", "PATIENCE", "Compressor", "Segments", "compress", "compressed"]
