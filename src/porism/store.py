"""The run folder: what was asked and answered, on disk the moment it lands.

    run.json        the resolved settings, versions and data hash     index.jsonl   one small row a rollout
    problems.jsonl  the problems as last run                          text/         prompts and answers, each once
    verdicts/       (answer, gold, type, version) -> verdict          errors.jsonl  every failed attempt

JSONL is the truth: append-only, one writer a file, flushed line by line. An answer's text is written before its
index row, so a row always has its text; a torn last line is owed again, never a crash. Every session writes a
text segment of its own. Everything else in the folder is derived. A later row of the same text replaces an earlier
one: its answer was found anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from porism.errors import ConfigError, StoreError
from porism.types import SCHEMA, Ask, Cell, Completion, Gold, Prompt, Token, Usage, Verdict

MISSING = "missing"  # the finish of a rollout that was never answered

_encode = msgspec.json.Encoder().encode
_T = TypeVar("_T")


class Row(Struct, frozen=True, omit_defaults=True, gc=False):
    """One rollout in the index.

    Large runs hold a million of these, none of them in a cycle, so the garbage collector leaves them alone (gc=False).
    usage stands on the first row of its call and is empty on the others, so sums are exact. finish is the
    server's finish reason, or `missing`; again says that a missing one may be asked again by a later session.
    """

    id: str
    cell: Cell
    finish: str
    answer: str | None = None
    rule: str = ""
    text_key: str = ""
    segment: int = 0
    offset: int = 0
    usage: Usage = Usage()
    again: bool = False


class Failure(Struct, frozen=True):
    """One failed attempt, in errors.jsonl."""

    time: str
    model: str
    prompt: str
    first: int
    n: int
    attempt: int
    kind: str
    message: str


class _VerdictRow(Struct, frozen=True, omit_defaults=True):
    answer: str
    gold: Gold
    version: str
    verdict: Verdict


class _TextRow(Struct, frozen=True, omit_defaults=True):
    id: str = ""
    text: str = ""
    reasoning: str = ""
    prompt: str = ""
    messages: Any = None
    sampling: Any = None
    model: str = ""
    ending: tuple[Token, ...] = ()


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

    Raises ConfigError where no folder is, StoreError where it cannot be made, written or read, and where another
    process has it open.
    """

    def __init__(self, path: Path, *, write: bool = True) -> None:
        self.path = path
        self.rows: dict[str, Row] = {}
        self.torn = 0  # unreadable lines met while reading: owed again
        self.usage = Usage()
        self.failures = 0
        self._verdicts: dict[tuple[str, Gold], dict[str, Verdict]] = {}
        self._prompts: set[str] = set()
        self._files: dict[str, BinaryIO] = {}
        self._lock: BinaryIO | None = None
        self._segment = 1
        if path.exists() and not path.is_dir():
            raise ConfigError(f"{path}: is a file, and a run is a folder")
        if not write and not path.is_dir():
            raise ConfigError(f"{path}: there is no run here")
        try:
            if write:
                self._open_for_writing()
            self._read()
        except BaseException:
            self.close()
            raise

    # Reading

    def _read(self) -> None:
        usages = []
        for row in self._lines(self.path / "index.jsonl", Row):
            old = self.rows.get(row.id)
            if old is None or old.finish == MISSING:
                self.rows[row.id] = row
            elif (old.segment, old.offset) == (row.segment, row.offset):
                self.rows[row.id] = replace(row, usage=old.usage)
            usages.append(row.usage)
        self.usage = total(usages)
        for file in sorted((self.path / "verdicts").glob("*.jsonl")):
            for line in self._lines(file, _VerdictRow):
                self._verdicts.setdefault((line.answer, line.gold), {})[line.version] = line.verdict
        self.failures = sum(1 for _ in self.failed())
        segments = [int(f.stem) for f in (self.path / "text").glob("*.jsonl") if f.stem.isdecimal()]
        self._segment = max(segments, default=0) + 1

    def _lines(self, file: Path, kind: type[_T]) -> Iterator[_T]:
        decode = msgspec.json.Decoder(kind).decode
        try:
            with file.open("rb") as lines:
                for line in lines:
                    try:
                        yield decode(line)
                    except (msgspec.DecodeError, UnicodeDecodeError):
                        self.torn += bool(line.strip())
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{file}: cannot be read: {error.strerror}") from error

    def completion(self, row: Row, rollout: int) -> Completion:
        """The stored answer of a row, text and all."""
        file = self.path / "text" / f"{row.segment:05}.jsonl"
        try:
            with file.open("rb") as lines:
                lines.seek(row.offset)
                found = msgspec.json.decode(lines.readline(), type=_TextRow)
        except (OSError, msgspec.DecodeError) as error:
            raise StoreError(f"{file}: the text of rollout {row.id} cannot be read: {error}") from error
        return Completion(rollout, found.text, row.finish, found.reasoning, found.ending)

    def failed(self) -> Iterator[Failure]:
        """Every failed attempt, in the order they happened."""
        return self._lines(self.path / "errors.jsonl", Failure)

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
                _TextRow(
                    prompt=prompt.key,
                    messages=prompt.messages,
                    sampling=prompt.sampling,
                    model=prompt.model,
                ),
            )

    def add(self, row: Row, completion: Completion | None = None) -> Row:
        """Store a rollout; an answered one with its text. Returns the row as stored."""
        if completion is not None:
            text = _TextRow(
                id=row.id, text=completion.text, reasoning=completion.reasoning, ending=completion.ending
            )
            row = replace(row, segment=self._segment, offset=self._append(self._text, text))
        self._append("index.jsonl", row)
        self.rows[row.id] = row
        self.usage += row.usage
        return row

    def add_answer(self, row: Row, answer: str | None, rule: str) -> None:
        """Store that another answer was found in the text of a stored row. What it has cost stays counted once."""
        found = replace(row, answer=answer, rule=rule)
        self._append("index.jsonl", replace(found, usage=Usage()))
        self.rows[row.id] = found

    def add_verdict(self, answer: str, gold: Gold, version: str, verdict: Verdict) -> None:
        self._verdicts.setdefault((answer, gold), {})[version] = verdict
        self._append("verdicts/00001.jsonl", _VerdictRow(answer, gold, version, verdict))

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
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
