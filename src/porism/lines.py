"""JSONL as it is found on a disk: read in large pieces, unreadable lines told apart from the others.

A piece is decoded in one call, several times faster than line by line; only one that has a fault in it is gone
through again by line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from porism.errors import StoreError

_PIECE = 2**20
_T = TypeVar("_T")


def decoded(file: Path, kind: type[_T]) -> Iterator[_T | None]:
    """The records of a JSONL file in their order, None for each line that is none; nothing where there is no file.

    Raises StoreError where the file cannot be read.
    """
    decoder = msgspec.json.Decoder(kind)
    try:
        with file.open("rb") as lines:
            while piece := lines.read(_PIECE):
                piece += lines.readline()
                try:
                    yield from decoder.decode_lines(piece)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    yield from _by_line(decoder, piece)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror}") from error


def _by_line(decoder: msgspec.json.Decoder[_T], piece: bytes) -> Iterator[_T | None]:
    for line in filter(bytes.strip, piece.split(b"\n")):
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            yield None


__all__ = ["decoded"]
