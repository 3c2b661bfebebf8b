"""Problem files: read, check and write them; see docs/problem-files.md for the formats.

Every reader turns its format into rows of plain values, each able to say where a key stands; one checker
turns rows into records. So a fault reads the same whatever the format, and all faults of a file are
found in one pass. Nothing is half read: `load` gives every problem or raises with every finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from porism.data.answers import same_answer
from porism.data.finding import Finding, Report
from porism.data.write import write_problems
from porism.errors import DataError
from porism.types import Problem

SHOWN = 50  # findings in an exception's message; `check` holds all


def check(path: Path | str, *, limit: int | None = None) -> Report:
    """The problems of a file or folder that hold, and every finding in it. Raises nothing about content."""
    from porism.data.read import rows
    from porism.data.rows import check_rows

    return check_rows(rows(Path(path), limit=limit))


def load(path: Path | str, *, limit: int | None = None) -> Report:
    """The problems of a file or folder (the first `limit` of them) with warnings. DataError on any error."""
    report = check(path, limit=limit)
    if report.errors:
        lines = [str(finding) for finding in report.errors[:SHOWN]]
        if len(report.errors) > SHOWN:
            lines.append(f"... and {len(report.errors) - SHOWN} more: porism data check {path}")
        raise DataError(lines)
    return report


def read_problems(path: Path | str, *, limit: int | None = None) -> list[Problem]:
    """The problems of a file or folder, in its order. DataError on any error; warnings are dropped."""
    return list(load(path, limit=limit).problems)


def data_hash(problems: Iterable[Problem]) -> str:
    """12 hex digits over the ids and questions, whatever their order.

    Candidates and neighbors stand outside: adding some finds the same run folder again.
    """
    digest = blake2b(digest_size=6)
    for id, question in sorted((problem.id, problem.question) for problem in problems):
        for text in (id, question):
            data = text.encode()
            digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


__all__ = [
    "Finding", "Report", "check", "data_hash", "load", "read_problems", "same_answer", "write_problems",
]  # fmt: skip
