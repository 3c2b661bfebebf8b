"""Parquet, both ways: one row a problem, candidates and neighbors as lists of structs.

Families, metadata and provenance are free-form, which columns are not: they are JSON text. Columns are checked once,
before any row, so that a foreign file gives one line and not one a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from porism.data.finding import FileFaultError, Finding, Row

_SLICE = 1000  # rows held as Python values at a time

_CANDIDATE: dict[str, Any] = {
    "id": pl.String,
    "text": pl.String,
    "answer": pl.String,
    "correct": pl.Boolean,
    "kind": pl.String,
    "human": pl.Boolean,
    "derived_from": pl.String,
    "source": pl.String,
    "metadata": pl.String,
}
_NEIGHBOR: dict[str, Any] = {
    "id": pl.String,
    "question": pl.String,
    "answer": pl.String,
    "answer_type": pl.String,
    "kind": pl.String,
    "solution": pl.String,
    "provenance": pl.String,
    "flags": pl.List(pl.String),
    "source": pl.String,
    "metadata": pl.String,
}
SCHEMA: dict[str, Any] = {
    "schema": pl.Int64,
    "id": pl.String,
    "question": pl.String,
    "candidates": pl.List(pl.Struct(_CANDIDATE)),
    "neighbors": pl.List(pl.Struct(_NEIGHBOR)),
    "group": pl.String,
    "answer": pl.String,
    "solution": pl.String,
    "subject": pl.String,
    "family": pl.String,
    "metadata": pl.String,
}


def parquet_rows(file: Path) -> Iterator[Row | Finding]:
    """One row a row; its line is its number, from 1."""
    try:
        frame = pl.read_parquet(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise FileFaultError(file, None, f"not a Parquet file that can be read: {_short(error)}") from None
    findings = list(_columns(file, frame.schema))
    if findings:
        yield from findings
        return
    if not frame.height:
        raise FileFaultError(file, None, "the table has no rows")
    number = 0
    for part in frame.iter_slices(_SLICE):
        for value in part.iter_rows(named=True):
            number += 1
            yield Row(_unpack(value), lambda _, number=number: (str(file), number))  # type: ignore[misc]


def _short(error: BaseException) -> str:
    return str(error).partition("\n")[0][:200]


def _columns(file: Path, schema: Any) -> Iterator[Finding]:
    """A finding for each column that is missing or unknown."""
    meant: list[str] = []
    for name in schema:
        if name not in SCHEMA:
            near = get_close_matches(name, SCHEMA, n=1)
            meant += near
            hint = f"did you mean {near[0]!r}?" if near else f"known columns: {', '.join(SCHEMA)}"
            yield Finding("error", str(file), None, name, f"unknown column; {hint}")
    for name in ("id", "question"):
        if name not in schema and name not in meant:
            yield Finding("error", str(file), None, name, "the column is missing")
    for name, known in (("candidates", _CANDIDATE), ("neighbors", _NEIGHBOR)):
        kind = schema.get(name, pl.Null())
        inner = getattr(kind, "inner", None)
        if isinstance(inner, pl.Struct):
            for field in inner.fields:
                if field.name not in known:
                    near = get_close_matches(field.name, known, n=1)
                    hint = f"did you mean {near[0]!r}?" if near else f"known fields: {', '.join(known)}"
                    yield Finding("error", str(file), None, f"{name}.{field.name}", f"unknown field; {hint}")
        elif kind != pl.Null and inner != pl.Null:
            yield Finding("error", str(file), None, name, f"must be a list of structs, not {kind}")


def _unpack(value: dict[str, Any]) -> dict[str, Any]:
    """A row without its nulls."""
    row: dict[str, Any] = {}
    for key, item in value.items():
        if item is None:
            continue
        if key in ("candidates", "neighbors"):
            item = [_unpack(entry) if isinstance(entry, dict) else entry for entry in item]
        row[key] = item
    return row


def parquet_bytes(rows: list[dict[str, Any]]) -> bytes:
    """A table of rows as `write.as_columns` makes them."""
    buffer = BytesIO()
    pl.DataFrame(rows, schema=SCHEMA).write_parquet(buffer)
    return buffer.getvalue()
