"""Every stored rollout of a run as Parquet, for training and for whatever reads tables.

Two folders, `rollouts` and `prompts`, of files that any reader takes as one table: no column hides in a folder's name.
Rows are read one by one where the index says and written in pieces of bounded size, so a run of any size fits; what is
held in memory is the index. The text of model and user is data here, and nothing of it is interpreted.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from porism.errors import ConfigError, StoreError
from porism.store import MISSING, Row, Store
from porism.types import Gold, Problem

if TYPE_CHECKING:
    from polars._typing import SchemaDict

By = Literal["part", "problem"]

ROWS = 50_000  # most rows of a file, so that a reader of one needs little memory
TEXT = 64 * 2**20  # most characters of text in it

COLUMNS: dict[str, type] = {
    **dict.fromkeys(("id", "prompt"), str),
    **dict.fromkeys(("problem", "candidate", "neighbor", "against", "method", "solver"), str),
    **dict.fromkeys(("round", "rollout"), int),
    **dict.fromkeys(("finish", "answer", "rule", "gold", "verdict", "verdict_rule", "suspicious"), str),
    **dict.fromkeys(("requests", "prompt_tokens", "cached_tokens", "completion_tokens"), int),
    "text_key": str,
}
TEXTS: dict[str, type] = {"text": str, "reasoning": str}
PROMPTS: dict[str, type] = dict.fromkeys(("prompt", "model", "messages", "sampling"), str)

_Line = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Where the tables lie, and how many rows and files they have."""

    folder: str
    rollouts: int
    prompts: int
    files: int


def export(run: Path, folder: Path, *, by: By = "part", texts: bool = True) -> Exported:
    """Write the run's rollouts and prompts as Parquet into a new folder, which appears when it is whole.

    by: files in the order of answering, or files of one problem each. texts: with what the models wrote.
    Raises ConfigError where something is in the way, StoreError for what cannot be read or written.
    """
    if folder.exists() or folder.is_symlink():
        raise ConfigError(f"{folder}: something is there already; name another folder with -o, or remove it")
    part = folder.with_name(f".{folder.name}.tmp")
    try:
        shutil.rmtree(part, ignore_errors=True)
        with Store(run, write=False) as store:
            columns = COLUMNS | TEXTS if texts else COLUMNS
            golds = _golds(store)
            rollouts = files = 0
            for name, rows in _parted(store, by):
                lines = (_line(store, row, golds, texts=texts) for row in rows)
                written = _write(part / "rollouts", name, lines, columns)
                rollouts, files = rollouts + sum(written), files + len(written)
            prompts = _write(part / "prompts", "part", _prompts(store), PROMPTS)
        part.replace(folder)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return Exported(folder=str(folder), rollouts=rollouts, prompts=sum(prompts), files=files + len(prompts))


def _parted(store: Store, by: By) -> Iterator[tuple[str, Iterable[Row]]]:
    """Groups of rows with the names of their files; within each in the order of their texts, which reads them fast."""
    rows = list(store.rows.values())
    if by == "part" or not rows:
        yield "part", sorted(rows, key=lambda row: (row.segment, row.offset))
        return
    rows.sort(key=lambda row: (row.cell.problem, row.segment, row.offset))
    for number, (problem, group) in enumerate(groupby(rows, key=lambda row: row.cell.problem)):
        yield f"{number:05}-{re.sub('[^A-Za-z0-9_.-]+', '_', problem)[:60]}", group


def _golds(store: Store) -> dict[tuple[str, str | None], Gold]:
    """The known answer of every neighbor, by problem and neighbor id; those of the problems as last run."""
    try:
        lines = (store.path / "problems.jsonl").read_bytes().splitlines()
        problems = [msgspec.json.decode(line, type=Problem) for line in lines]
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreError(f"{store.path / 'problems.jsonl'}: cannot be read: {error}") from error
    return {(p.id, n.id): Gold(n.answer, n.answer_type) for p in problems for n in p.neighbors}


def _line(store: Store, row: Row, golds: dict[tuple[str, str | None], Gold], *, texts: bool) -> _Line:
    cell, usage = row.cell, row.usage
    prompt, _, rollout = row.id.rpartition("-")
    gold = golds.get((cell.problem, cell.neighbor))
    written: tuple[str | None, ...] = (None, None) if texts else ()
    if texts and row.finish != MISSING:
        found = store.completion(row, 0)
        written = (found.text, found.reasoning or None)
    return (
        *(row.id, prompt),
        *(cell.problem, cell.candidate, cell.neighbor, cell.against, cell.method, cell.solver),
        *(cell.round, int(rollout) if rollout.isdecimal() else None),
        *(row.finish, row.answer, row.rule or None),
        *_verdict(store, row, gold),
        *(usage.requests, usage.prompt, usage.cached, usage.completion),
        row.text_key or None,
        *written,
    )


def _verdict(store: Store, row: Row, gold: Gold | None) -> tuple[str | None, ...]:
    """The known answer; the latest verdict on this one, its rule, and why it may be doubted."""
    if gold is None:
        return None, None, None, None
    if row.finish == MISSING or row.answer is None:
        return gold.answer, "missing" if row.finish == MISSING else "no_answer", None, None
    known = [*store.verdicts(row.answer, gold).values()]
    if not known:
        return gold.answer, None, None, None
    return gold.answer, known[-1].kind, known[-1].rule, known[-1].suspicious


def _prompts(store: Store) -> Iterator[_Line]:
    for found in store.prompts():
        messages, sampling = (msgspec.json.encode(part).decode() for part in (found.messages, found.sampling))
        yield found.prompt, found.model, messages, sampling


def _write(folder: Path, name: str, lines: Iterable[_Line], columns: dict[str, type]) -> list[int]:
    """Write lines as files of bounded size, at least one; the number of rows of each."""
    import polars as pl

    schema: SchemaDict = {column: pl.String if kind is str else pl.Int64 for column, kind in columns.items()}
    folder.mkdir(parents=True, exist_ok=True)
    counts: list[int] = []
    for batch in _batches(lines):
        frame = pl.DataFrame(batch, schema=schema, orient="row")
        frame.write_parquet(folder / f"{name}-{len(counts):05}.parquet")
        counts.append(len(batch))
    return counts


def _batches(lines: Iterable[_Line]) -> Iterator[list[_Line]]:
    """Lines by the file; one empty batch where there is none, so that every table has its columns somewhere."""
    batch: list[_Line] = []
    size = count = 0
    for line in lines:
        batch.append(line)
        size += sum(len(value) for value in line if isinstance(value, str))
        if len(batch) == ROWS or size >= TEXT:
            yield batch
            batch, size, count = [], 0, count + 1
    if batch or not count:
        yield batch


__all__ = ["COLUMNS", "PROMPTS", "TEXTS", "By", "Exported", "export"]
