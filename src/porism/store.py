"""The run folder: what was asked and answered, on disk the moment it lands.

    run.json        the resolved settings, versions and data hash     index.jsonl   one small row a rollout
    problems.jsonl  the problems as last run                          text/         prompts and answers, each once
    verdicts/       (answer, gold, type, version) -> verdict          errors.jsonl  every failed attempt

JSONL is the truth: append-only, one writer a file, flushed line by line. An answer's text is written before its
index row, so a row always has its text; a torn last line is owed again, never a crash. Every session writes text
segments of its own; a full one is compressed (segments.py). Everything else in the folder is derived. A later row of
the same text replaces an earlier one: its answer was found anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from porism.errors import ConfigError, StoreError
from porism.lines import decoded
from porism.records import MISSING, NO_USAGE, Failure, Row, StoredPrompt, TextRow, VerdictRow
from porism.segments import FULL, Compressor, Segments
from porism.types import SCHEMA, Ask, Cell, Completion, Gold, Prompt, Usage, Verdict

_encode = msgspec.json.Encoder().encode
_T = TypeVar("_T")


@dataclass(slots=True)
class _Index:
    rows: dict[str, Row]
    usage: Usage


def total(usages: Sequence[Usage]) -> Usage:
    """The sum of many, which costs far less than adding them one by one."""
    return Usage(
        sum(u.prompt for u in usages),
        sum(u.completion for u in usages),
        sum(u.cached for u in usages),
        sum(u.requests for u in usages),
        all(u.counted for u in usages),
    )


class Store:
    """The run folder opened for one session: `rows` by rollout id, appended to as answers land.

    full: bytes of text after which a segment is closed and compressed. Raises ConfigError where no folder is,
    StoreError where it cannot be made, written or read, and where another process has it open.
    """

    def __init__(self, path: Path, *, write: bool = True, full: int = FULL) -> None:
        self.path = path
        self._prompts: set[str] = set()
        self._files: dict[str, BinaryIO] = {}
        self._lock: BinaryIO | None = None
        self._texts = Segments(path / "text")
        self._segment = 1
        self._full = full
        self._compressor: Compressor | None = None
        self._torn = 0
        if path.exists() and not path.is_dir():
            raise ConfigError(f"{path}: is a file, and a run is a folder")
        if not write:
            if not path.is_dir():
                raise ConfigError(f"{path}: there is no run here")
            return
        try:
            self._open_for_writing()
            _ = self.torn  # reads it all
        except BaseException:
            self.close()
            raise

    # Reading: of a folder that is only looked at, each part when it is first wanted

    @property
    def rows(self) -> dict[str, Row]:
        """Every stored rollout by its id."""
        return self._index.rows

    @property
    def usage(self) -> Usage:
        """What all stored rollouts have cost."""
        return self._index.usage

    @property
    def torn(self) -> int:
        """Unreadable lines: owed again."""
        _ = self._index, self._verdicts, self.failures
        return self._torn

    @cached_property
    def failures(self) -> int:
        """Failed attempts."""
        return sum(1 for _ in self._lines("errors.jsonl", Failure))

    @cached_property
    def _index(self) -> _Index:
        # A million rows fit into memory because what they have in common is there once.
        cells: dict[Cell, Cell] = {}
        words: dict[str, str] = {}
        rows: dict[str, Row] = {}
        usage = Usage()
        for row in self._lines("index.jsonl", Row):
            force_setattr(row, "cell", cells.setdefault(row.cell, row.cell))
            force_setattr(row, "rule", words.setdefault(row.rule, row.rule))
            force_setattr(row, "finish", words.setdefault(row.finish, row.finish))
            if row.answer is not None:
                force_setattr(row, "answer", words.setdefault(row.answer, row.answer))
            old = rows.get(row.id)
            if old is None or old.finish == MISSING:
                rows[row.id] = row
            elif (old.segment, old.offset) == (row.segment, row.offset):
                rows[row.id] = replace(row, usage=old.usage)
            if row.usage is not NO_USAGE:
                usage += row.usage
        return _Index(rows, usage)

    @cached_property
    def _verdicts(self) -> dict[tuple[str, Gold], dict[str, Verdict]]:
        found: dict[tuple[str, Gold], dict[str, Verdict]] = {}
        for file in sorted((self.path / "verdicts").glob("*.jsonl")):
            for line in self._lines(f"verdicts/{file.name}", VerdictRow):
                found.setdefault((line.answer, line.gold), {})[line.version] = line.verdict
        return found

    def _lines(self, name: str, kind: type[_T]) -> Iterator[_T]:
        for record in decoded(self.path / name, kind):
            if record is None:
                self._torn += 1
            else:
                yield record

    def completion(self, row: Row, rollout: int) -> Completion:
        """The stored answer of a row, text and all."""
        try:
            found = msgspec.json.decode(self._texts.line(row.segment, row.offset), type=TextRow)
        except (OSError, msgspec.DecodeError) as error:
            raise StoreError(
                f"{self._texts.path(row.segment)}: the text of rollout {row.id} cannot be read: {error}"
            ) from error
        return Completion(rollout, found.text, row.finish, found.reasoning, found.ending)

    def failed(self) -> Iterator[Failure]:
        """Every failed attempt, in the order they happened."""
        return (failure for failure in decoded(self.path / "errors.jsonl", Failure) if failure is not None)

    def prompts(self) -> Iterator[StoredPrompt]:
        """Every prompt that was asked, each once, in the order of asking. Reads all texts through."""
        told: set[str] = set()
        for number in self._texts.numbers():
            try:
                for line in self._texts.lines(number):
                    if line.startswith(b'{"prompt":'):
                        with contextlib.suppress(msgspec.DecodeError):  # torn: asked again under the same key
                            found = msgspec.json.decode(line, type=StoredPrompt)
                            if found.prompt not in told:
                                told.add(found.prompt)
                                yield found
            except OSError as error:
                raise StoreError(f"{self._texts.path(number)}: cannot be read: {error.strerror}") from error

    def verdict(self, answer: str, gold: Gold, version: str) -> Verdict | None:
        """The verdict stored for this answer under this version of the verifier; None where it was never decided.

        Raises ConfigError where only other versions decided it: one result never stands on two of them.
        """
        known = self.verdicts(answer, gold)
        if known and version not in known:
            raise self._other_version([*known][-1], version)
        return known.get(version)

    def verdicts(self, answer: str, gold: Gold) -> Mapping[str, Verdict]:
        """What was decided on this answer, by version of the verifier, the latest last."""
        return self._verdicts.get((answer, gold), {})

    @property
    def decided(self) -> list[tuple[str, Gold]]:
        """Every (answer, gold) that was ever decided, under whatever version."""
        return list(self._verdicts)

    def check_version(self, version: str, asks: Iterable[Ask] = ()) -> None:
        """Raises ConfigError where answers were found or decided by another version of the verifier.

        Decided: among the answers to `asks`. Found: in the whole run, as its settings say.
        """
        found = (self.read_json("run.json") or {}).get("verifier", version)
        if found != version:
            raise self._other_version(found, version)
        for ask in asks:
            row = self.rows.get(ask.work.id)
            if ask.gold is not None and row is not None and row.answer is not None:
                self.verdict(row.answer, ask.gold, version)

    def _other_version(self, found: str, version: str) -> ConfigError:
        return ConfigError(
            f"{self.path}: its answers were checked by version {found} of the verifier and this is version {version}; "
            "a result must not mix them. To decide every stored answer anew (this asks no model): "
            f"porism verify --run {shlex.quote(str(self.path))} --again"
        )

    def read_json(self, name: str) -> Any:
        """A derived or settings file of the folder, decoded; None if there is none."""
        file = self.path / name
        try:
            return msgspec.json.decode(file.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise StoreError(
                f"{file}: cannot be read: {error}; no answer is in it: move it away, and the command that "
                "made the run writes it anew"
            ) from error

    # Writing

    def _open_for_writing(self) -> None:
        with self._writing(self.path):
            for folder in (self.path, self.path / "text", self.path / "verdicts"):
                folder.mkdir(parents=True, exist_ok=True)
            self._lock = (self.path / ".lock").open("wb")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(
                    f"{self.path}: another porism process is writing this run; wait for it, or choose "
                    "another folder with -o"
                ) from None
            # A run that cannot store its first answer should say so before it asks for it.
            trial = self.path / ".trial"
            trial.write_bytes(_encode(Row("", Cell("", None, None, "", "", 0), "")) * 64)
            trial.unlink()
        self._compressor = Compressor()
        self._segment = max(self._texts.numbers(), default=0) + 1
        for segment in self._texts.full(self._full):
            self._compressor.add(segment)

    @contextlib.contextmanager
    def _writing(self, file: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{file}: cannot be written: {error.strerror}; what was stored before is whole, and the same "
                "command goes on once there is room and permission"
            ) from error

    def _append(self, name: str, record: Struct) -> int:
        """Write one line, unbuffered; the offset it starts at."""
        with self._writing(self.path / name):
            file = self._files.get(name)
            if file is None:
                # "a+b": reading tells whether the last session left a torn line to close.
                file = self._files[name] = (self.path / name).open("a+b", buffering=0)
                end = file.seek(0, os.SEEK_END)
                if end:
                    file.seek(end - 1)
                    if file.read(1) != b"\n":
                        file.write(b"\n")
            offset = file.seek(0, os.SEEK_END)
            line = memoryview(_encode(record) + b"\n")
            try:
                while line:
                    line = line[file.write(line) :]
            except OSError:
                self._files.pop(name).close()  # whoever opens it again closes the torn line first
                raise
            return offset

    @property
    def _text(self) -> str:
        return f"text/{self._segment:05}.jsonl"

    def add_prompt(self, prompt: Prompt) -> None:
        """Keep what a prompt says, once a session."""
        if prompt.key not in self._prompts:
            self._prompts.add(prompt.key)
            self._append(
                self._text,
                StoredPrompt(prompt.key, prompt.messages, prompt.sampling, prompt.model),
            )

    def add(self, row: Row, completion: Completion | None = None) -> Row:
        """Store a rollout; an answered one with its text. Returns the row as stored."""
        if completion is not None:
            text = TextRow(
                id=row.id, text=completion.text, reasoning=completion.reasoning, ending=completion.ending
            )
            segment, offset = self._segment, self._append(self._text, text)
            row = replace(row, segment=segment, offset=offset)
            if offset >= self._full:
                self._roll()
        self._append("index.jsonl", row)
        self._index.rows[row.id] = row
        self._index.usage += row.usage
        return row

    def _roll(self) -> None:
        """Close the segment and begin the next; compressing goes on beside the run."""
        file = self._files.pop(self._text)
        with self._writing(self.path / self._text), file:
            os.fsync(file.fileno())
        if self._compressor is not None:
            self._compressor.add(self.path / self._text)
        self._segment += 1

    def add_answer(self, row: Row, answer: str | None, rule: str) -> None:
        """Store that another answer was found in the text of a stored row. What it has cost stays counted once."""
        found = replace(row, answer=answer, rule=rule)
        self._append("index.jsonl", replace(found, usage=Usage()))
        self._index.rows[row.id] = found

    def add_verdict(self, answer: str, gold: Gold, version: str, verdict: Verdict) -> None:
        self._verdicts.setdefault((answer, gold), {})[version] = verdict
        self._append("verdicts/00001.jsonl", VerdictRow(answer, gold, version, verdict))

    def add_failure(self, failure: Failure) -> None:
        self.failures += 1
        self._append("errors.jsonl", failure)

    def write(self, name: str, content: bytes) -> None:
        """Replace a whole file of the folder in one step."""
        file = self.path / name
        with self._writing(file):
            temporary = file.with_name(f".{file.name}.tmp")
            temporary.write_bytes(content)
            temporary.replace(file)

    def write_json(self, name: str, value: object) -> None:
        """Replace a JSON file of the folder in one step, indented for people."""
        self.write(name, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")

    def update_settings(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Rewrite run.json from what stands there (an empty dict in a new run)."""
        self.write_json("run.json", change(self.read_json("run.json") or {"schema": SCHEMA}))

    def close(self) -> None:
        """Bring everything to the disk and let the next process in."""
        for file in self._files.values():
            with self._writing(self.path):
                os.fsync(file.fileno())
            file.close()
        self._files.clear()
        if self._compressor is not None:
            self._compressor.close()
            self._compressor = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


__all__ = ["MISSING", "Failure", "Row", "Store"]
