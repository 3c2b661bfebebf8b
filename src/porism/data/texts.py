"""Bytes of a file to text, or one finding that says which byte is wrong.

Files are opened here and nowhere else in the package, so sizes are bounded before anything is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from porism.data.finding import MAX_LINE, FileFaultError, Finding

_BOM = b"\xef\xbb\xbf"


def megabytes(size: int) -> str:
    """A size as people read it."""
    return f"{size // 1_000_000} MB"


def decode(data: bytes, file: Path, *, line: int = 1) -> str:
    """The text of UTF-8 bytes that begin at a line. FileFaultError names the line and column of a bad byte."""
    if line == 1:
        data = data.removeprefix(_BOM)
    if (at := data.find(b"\0")) >= 0:
        raise FileFaultError(file, line + data.count(b"\n", 0, at), f"holds a NUL byte{_column(data, at)}")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        at = error.start
        message = f"byte 0x{data[at]:02x}{_column(data, at)} is not UTF-8; save the file as UTF-8"
        raise FileFaultError(file, line + data.count(b"\n", 0, at), message) from None


def _column(data: bytes, at: int) -> str:
    start = data.rfind(b"\n", 0, at)
    return f" at byte {at - start} of the line"


def _refuse_utf16(data: bytes, file: Path) -> None:
    """Say it once, rather than once for every line."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FileFaultError(file, 1, "this is UTF-16 text; save it as UTF-8")


def read_text(file: Path, *, most: int = MAX_LINE) -> str:
    """The whole text of a file, line ends as \\n. FileFaultError where it is too large, empty or not UTF-8."""
    with file.open("rb") as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise FileFaultError(file, None, f"larger than {megabytes(most)}; use one problem a line (.jsonl)")
    _refuse_utf16(data, file)
    text = decode(data, file).replace("\r\n", "\n")
    if not text.strip():
        raise FileFaultError(file, None, "the file is empty")
    return text


def read_lines(file: Path) -> Iterator[tuple[int, str] | Finding]:
    """The lines that are not blank, numbered from 1; a finding for each that cannot be read.

    Never holds more than one line, and of a line that is too long no more than the limit.
    """
    with file.open("rb") as stream:
        number = 0
        while data := stream.readline(MAX_LINE + 1):
            number += 1
            if number == 1:
                _refuse_utf16(data, file)
            if len(data) > MAX_LINE:
                while data and not data.endswith(b"\n"):
                    data = stream.readline(1_000_000)
                message = f"the line is longer than {megabytes(MAX_LINE)}: split it or shorten its texts"
                yield Finding("error", str(file), number, "", message)
                continue
            try:
                text = decode(data, file, line=number).rstrip("\r\n")
            except FileFaultError as fault:
                yield fault.finding
                continue
            if text.strip():
                yield number, text
