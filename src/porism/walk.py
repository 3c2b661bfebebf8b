"""A walk through items with a person: show one, take an answer, go on, go back, leave; `label` and `review` share it.

Answers are lines, so a walk is the same on a terminal, through a pipe and in a test. The first word of a line is the
choice, the rest of it a note. The end of the input means quit. What a person decides is appended to a log at once, so
a walk can be left at any point and taken up again. All talk goes to stderr.
"""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TextIO, TypeVar

import msgspec

from porism.errors import InputError
from porism.progress import printable, printable_text

Move = Literal["next", "back", "quit"]
LEAVE = ("skip", "back", "quit")  # choices that every walk offers after its own

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Answer:
    """A choice as its whole word, and what was written after it."""

    choice: str
    note: str = ""


class Terminal:
    """Asks a person who reads `out` and types into `source`; either may be a pipe."""

    def __init__(self, source: TextIO, out: TextIO) -> None:
        self._source, self._out = source, out
        self._bold = out.isatty() and "NO_COLOR" not in os.environ
        self._width = shutil.get_terminal_size().columns if out.isatty() else 0

    def show(self, text: str) -> None:
        """Show a text to be read, with its line breaks; long lines are broken between words on a terminal."""
        text = printable_text(text)
        if self._width > 20:
            text = "\n".join(map(self._wrapped, text.split("\n")))
        self._write(f"{text}\n")

    def say(self, text: str = "", *, bold: bool = False) -> None:
        """Show a heading or a remark as it is: a command in it can be copied."""
        text = printable_text(text)
        self._write(f"\x1b[1m{text}\x1b[0m\n" if bold and self._bold else f"{text}\n")

    def ask(self, question: str, choices: Sequence[str]) -> Answer:
        """The first line that begins with one of the choices, or with its first letters; `quit` where input ends."""
        shown = " ".join(f"[{word[0]}]{word[1:]}" for word in choices)
        while True:
            self._write(f"{printable(question, 400)}  {shown}: ")
            line = self._line()
            if line is None:
                return Answer("quit")
            word, _, note = line.strip().partition(" ")
            found = [choice for choice in choices if word and choice.startswith(word.lower())]
            if len(found) == 1:
                return Answer(found[0], printable(note, 2000))
            letters = ", ".join(choice[0] for choice in choices)
            self.say(
                f"Type one of {letters} and Enter; a note may follow it, as in `{choices[0][0]} a note`."
            )

    def _line(self) -> str | None:
        try:
            line = self._source.readline()
        except UnicodeDecodeError:
            return ""
        if not self._source.isatty():
            self._write("\n")  # nobody typed one
        return line or None

    def _wrapped(self, line: str) -> str:
        if len(line) < self._width:
            return line
        indent = line[: len(line) - len(line.lstrip())]
        return textwrap.fill(
            line, self._width - 1, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def walk(count: int, settled: Callable[[int], bool], visit: Callable[[int], Move]) -> bool:
    """True when the end was reached, False when the person left before it.

    Visits the items 0 .. count - 1 in order, without those that are settled already; going back shows any.
    """
    at = next((i for i in range(count) if not settled(i)), count)
    while at < count:
        match visit(at):
            case "quit":
                return False
            case "back":
                at = max(0, at - 1)
            case "next":
                at = next((i for i in range(at + 1, count) if not settled(i)), count)
    return True


class Log(Generic[_T]):
    """An append-only file of JSON lines: `rows` as read, then as added; `unreadable` counts lines that could not be."""

    def __init__(self, path: Path, kind: type[_T]) -> None:
        """Raises InputError where the file is there and cannot be read."""
        self.path = path
        self.rows: list[_T] = []
        self.unreadable = 0
        decode = msgspec.json.Decoder(kind).decode
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = b""
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
        for line in filter(bytes.strip, data.split(b"\n")):
            try:
                self.rows.append(decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError):
                self.unreadable += 1
        self._torn = bool(data) and not data.endswith(b"\n")

    def add(self, row: _T) -> None:
        """Append a row, on disk when this returns. InputError where it cannot be written."""
        self._append((b"\n" if self._torn else b"") + msgspec.json.encode(row) + b"\n")
        self._torn = False
        self.rows.append(row)

    def trial(self) -> None:
        """Raises InputError now where a row could not be added later."""
        self._append(b"")

    def _append(self, data: bytes) -> None:
        try:
            with self.path.open("ab", buffering=0) as stream:
                if data:
                    stream.write(data)
                    os.fsync(stream.fileno())
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written: {error.strerror or error}") from error


def in_editor(text: str, name: str) -> str:
    """The text as the person leaves it in $VISUAL or $EDITOR (vi where neither is set), as a file of that name.

    Raises InputError where the editor cannot be started, fails, or leaves what is not text.
    """
    import shlex
    import signal
    import subprocess
    import tempfile

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    # Ctrl-C belongs to the editor while it is open; a handler, unlike SIG_IGN, is not passed on to it.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / name
            file.write_text(text, encoding="utf-8")
            code = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode  # noqa: S603
            if code:
                raise InputError(f"the editor {editor!r} ended with {code}: nothing is changed")
            return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(
            f"the editor {editor!r} did not work ({error}): set EDITOR to one that does"
        ) from None
    finally:
        signal.signal(signal.SIGINT, before)


def beside(path: Path, what: str) -> Path:
    """Where the log of a problem file lies: FILE.WHAT.jsonl, or WHAT.jsonl inside a folder problem."""
    return path / f"{what}.jsonl" if path.is_dir() else path.with_name(f"{path.name}.{what}.jsonl")


__all__ = ["LEAVE", "Answer", "Log", "Move", "Terminal", "beside", "in_editor", "walk"]
