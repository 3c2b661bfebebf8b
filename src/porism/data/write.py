"""Records to files, whole or not at all.

Everything is written to a temporary file beside its goal, synced, and put in its place in one step. A key
that holds its default is left out. YAML is written for people: texts of several lines as blocks, unicode
as it is, and quotes wherever a reader of YAML 1.1 or 1.2 could take text for something else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from porism.data.finding import MAX_JSON, MAX_LINE
from porism.errors import InputError
from porism.types import Candidate, Neighbor, Problem

FREE_FORM = ("family", "metadata", "provenance")  # keys and values of any kind, which columns are not
WRITE = (".jsonl", ".ndjson", ".json", ".yaml", ".yml", ".parquet")


def write_problems(problems: Sequence[Problem], path: Path | str, *, force: bool = False) -> None:
    """Write problems in the format of the path's ending.

    With `force` an existing file is kept as FILE.bak. InputError where the file exists without it,
    cannot be written, or could not hold the problems.
    """
    path = Path(path)
    if not problems:
        raise InputError(f"{path}: there are no problems to write")
    lines = [_line(problem) for problem in problems]
    match path.suffix.lower():
        case ".jsonl" | ".ndjson":
            too_long = next((p.id for p, s in zip(problems, lines, strict=True) if len(s) >= MAX_LINE), None)
            if too_long is not None:
                raise InputError(f"{path}: problem {too_long!r} is larger than {MAX_LINE // 10**6} MB")
            save(path, b"".join(line + b"\n" for line in lines), force=force)
        case ".json":
            _bounded(path, lines, MAX_JSON)
            save(path, b"[\n" + b",\n".join(lines) + b"\n]\n", force=force)
        case ".yaml" | ".yml":
            from porism.data.yamlwrite import yaml_text

            text = yaml_text([json.loads(line) for line in lines]).encode()
            _bounded(path, [text], MAX_LINE)
            save(path, text, force=force)
        case ".parquet":
            from porism.data.parquet import parquet_bytes

            save(path, parquet_bytes([as_columns(problem) for problem in problems]), force=force)
        case ending:
            raise InputError(
                f"{path}: {ending or 'no ending'!r} is not written: use one of {', '.join(WRITE)}"
            )


def as_dict(record: Problem | Candidate | Neighbor) -> dict[str, Any]:
    """A record as plain values, without the keys that hold their default; `schema` always stands."""
    value: dict[str, Any] = {}
    for field in fields(record):
        item = getattr(record, field.name)
        if field.name in ("candidates", "neighbors"):
            value[field.name] = [as_dict(entry) for entry in item]
        elif field.name == "schema" or field.default is MISSING or item != field.default:
            value[field.name] = list(item) if isinstance(item, tuple) else item
    return value


def as_columns(record: Problem | Candidate | Neighbor) -> dict[str, Any]:
    """A record with every key, the same in all rows: null where nothing stands, free-form values as JSON text."""
    value: dict[str, Any] = {}
    for field in fields(record):
        item = getattr(record, field.name)
        if field.name in ("candidates", "neighbors"):
            value[field.name] = [as_columns(entry) for entry in item]
        elif field.name in FREE_FORM and item is not None:
            value[field.name] = json.dumps(item, ensure_ascii=False)
        else:
            value[field.name] = list(item) if isinstance(item, tuple) else item
    return value


def save(path: Path, data: bytes, *, force: bool = False) -> None:
    """Put a file at the path, or leave what is there. InputError where that cannot be."""
    goal = path.resolve()  # a link stays a link
    temporary = goal.with_name(f".{goal.name}.{os.urandom(4).hex()}.tmp")
    try:
        if goal.is_dir():
            raise InputError(f"{path}: is a folder")
        if goal.exists() and not force:
            raise InputError(f"{path}: exists already; add --force to replace it (a copy is kept as .bak)")
        goal.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            if goal.exists():
                import shutil  # ten milliseconds that no other path needs

                shutil.copy2(goal, goal.with_name(goal.name + ".bak"))
            temporary.replace(goal)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _line(problem: Problem) -> bytes:
    """A problem as one line of JSON. InputError where it holds what JSON cannot."""
    try:
        return json.dumps(as_dict(problem), ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"problem {problem.id!r} cannot be written: {error}") from None


def _bounded(path: Path, parts: list[bytes], most: int) -> None:
    """Refuse to write what could not be read again."""
    if sum(len(part) + 2 for part in parts) >= most:
        raise InputError(f"{path}: would be larger than {most // 10**6} MB; write .jsonl or .parquet instead")
