"""Which reader a path gets, and the one place where what the system refuses becomes a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from porism.data.finding import FileFaultError, Finding, Row

Items = Iterator[Row | Finding]
READ = (".jsonl", ".ndjson", ".json", ".yaml", ".yml", ".parquet", ".csv")


def rows(path: Path, *, limit: int | None = None) -> Items:
    """The problems of a file or folder in its order, and findings between them.

    Reads no further than the `limit`-th problem. Never raises for what the path holds.
    """
    left = limit
    try:
        for item in _reader(path)(path):
            yield item
            if left is not None and isinstance(item, Row):
                left -= 1
                if not left:
                    return
    except FileFaultError as fault:
        yield fault.finding
    except OSError as error:
        file = str(error.filename or path)
        yield Finding("error", file, None, "", f"cannot be read: {error.strerror or error}")


def _reader(path: Path) -> Callable[[Path], Items]:
    """Imports only what the format needs."""
    if path.is_dir():
        from porism.data.folder import folder_rows

        return folder_rows
    if not path.exists():
        raise FileFaultError(path, None, "no such file or folder")
    match path.suffix.lower():
        case ".jsonl" | ".ndjson":
            from porism.data.jsontree import jsonl_rows

            return jsonl_rows
        case ".json":
            from porism.data.jsontree import json_rows

            return json_rows
        case ".yaml" | ".yml":
            from porism.data.yamltree import yaml_rows

            return yaml_rows
        case ".parquet":
            from porism.data.parquet import parquet_rows

            return parquet_rows
        case ".csv":
            from porism.data.expertmath import expertmath_rows

            return expertmath_rows
    raise FileFaultError(
        path,
        None,
        f"{path.suffix or 'a name without an ending'} is not read: use a folder or {', '.join(READ)}",
    )
