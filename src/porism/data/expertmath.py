"""The CSV shape of the public ExpertMath files: one variant a row, beside its original.

Rows with the same original question are one problem, its variants are the neighbors. There are no
candidates in it: `porism sample` or a convert to YAML is the next step.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from porism.data.finding import MAX_JSON, FileFaultError, Finding, KeyPath, Row
from porism.data.texts import read_text

_REQUIRED = ("original question", "variant question", "variant answer")
_COLUMNS = (
    "original question",
    "source",
    "original answer",
    "variant source",
    "variant question",
    "variant answer",
)
_VARIANT = ("variant question", "variant answer", "variant source")


@dataclass
class _Group:
    value: dict[str, Any]
    lines: list[int] = field(default_factory=list)  # of the original, then of each variant


def expertmath_rows(file: Path) -> Iterator[Row | Finding]:
    """One row an original question, in order of first appearance; ids are q001, q002, ..."""
    table = csv.reader(io.StringIO(read_text(file, most=MAX_JSON), newline=""), strict=True)
    groups: dict[str, _Group] = {}
    bare = True
    try:
        header = next(table)
        names = [" ".join(re.split(r"[\s_-]+", name.strip().lower())) for name in header]
        yield from _header(file, header, names)
        end = table.line_num
        for cells in table:
            line, end = end + 1, table.line_num  # a cell may hold several lines
            if not any(cell.strip() for cell in cells):
                continue
            bare = False
            if len(cells) != len(names):
                message = f"{len(cells)} cells under {len(names)} columns"
                yield Finding("error", str(file), line, "", message)
                continue
            yield from _add(
                groups, file, line, dict(zip(names, (cell.strip() for cell in cells), strict=True))
            )
    except csv.Error as error:
        raise FileFaultError(file, table.line_num, f"not valid CSV: {error}") from None
    if bare:
        raise FileFaultError(file, None, "no rows under the header")
    for group in groups.values():

        def place(path: KeyPath, lines: list[int] = group.lines) -> tuple[str, int | None]:
            at = path[1] + 1 if len(path) > 1 and isinstance(path[1], int) else 0
            return str(file), lines[at]

        yield Row(group.value, place)


def _header(file: Path, header: list[str], names: list[str]) -> Iterator[Finding]:
    """Warns of columns that are not read; FileFaultError where one is missing or given twice."""
    missing = [name for name in _REQUIRED if name not in names]
    unknown = [title for title, name in zip(header, names, strict=True) if name not in _COLUMNS]
    if missing:
        near = get_close_matches(missing[0], unknown, n=1)
        hint = f"; did you mean it by {near[0]!r}?" if near else f"; there are: {', '.join(header)}"
        raise FileFaultError(file, 1, f"the column {missing[0]!r} is missing{hint}")
    if len(set(names)) < len(names):
        raise FileFaultError(file, 1, "a column is given twice")
    for title in unknown:
        yield Finding("warning", str(file), 1, title, "this column is not read")


def _add(groups: dict[str, _Group], file: Path, line: int, row: dict[str, str]) -> Iterator[Finding]:
    """Put a row under its original; warns where rows tell different things of it."""
    question = row["original question"]
    if not question:
        yield Finding("error", str(file), line, "original question", "is empty")
        return
    answer, source = row.get("original answer") or None, row.get("source") or None
    if question not in groups:
        id = f"q{len(groups) + 1:03d}"
        value: dict[str, Any] = {
            "id": id,
            "group": id,
            "question": question,
            "answer": answer,
            "neighbors": [],
        }
        groups[question] = _Group(value | {"metadata": {"source": source} if source else None}, [line])
    group = groups[question]
    if answer != group.value["answer"]:
        told = f"differs from the one in line {group.lines[0]}, which is kept"
        yield Finding("warning", str(file), line, "original answer", told)
    if any(row.get(name) for name in _VARIANT):
        group.lines.append(line)
        group.value["neighbors"].append(
            {
                "id": f"v{len(group.lines) - 1}",
                "question": row["variant question"],
                "answer": row["variant answer"],
                "source": row.get("variant source") or None,
            }
        )
