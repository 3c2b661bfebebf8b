"""What a reader hands to the checker, and what the checker hands to people.

A reader yields rows and findings in file order. A row is one problem as plain values, with a `place` that
tells the file and line of any key in it: found on demand, since a good file never asks. Numbers and
booleans stay in `Raw` text until the checker knows whether their place wants text: `answer: 0.10` is
the answer 0.10, not 0.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from porism.types import Problem

MAX_LINE = 50_000_000  # bytes that may be parsed as one piece: a JSONL line, a text or a YAML file
MAX_JSON = 500_000_000  # bytes of a .json file, which is parsed whole

KeyPath: TypeAlias = tuple[str | int, ...]
Severity: TypeAlias = Literal["error", "warning"]
Doubt: TypeAlias = tuple[Severity, KeyPath, str]  # a finding without its place: severity, path, message
Place: TypeAlias = Callable[[KeyPath], tuple[str, int | None]]


class Raw(str):
    """A number or boolean as its author wrote it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault or doubt. line counts from 1; in Parquet it is the row. key is a path such as candidates[0].text."""

    severity: Severity
    file: str
    line: int | None
    key: str
    message: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.key}: {self.message}" if self.key else f"{where}: {self.message}"


class FileFaultError(Exception):
    """The rest of a file cannot be read; carries the one finding that says why."""

    def __init__(self, file: Path, line: int | None, message: str) -> None:
        self.finding = Finding("error", str(file), line, "", message)
        super().__init__(str(self.finding))


@dataclass(frozen=True, slots=True)
class Row:
    """One problem as read, and where its keys stand."""

    value: object
    place: Place


@dataclass(frozen=True, slots=True)
class Report:
    """What a file holds and what is wrong with it. A problem with an error is not among the problems."""

    problems: tuple[Problem, ...]
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "warning"]

    @property
    def counts(self) -> dict[str, int]:
        """Problems, candidates, those labelled right and wrong, and neighbors."""
        candidates = [candidate for problem in self.problems for candidate in problem.candidates]
        return {
            "problems": len(self.problems),
            "candidates": len(candidates),
            "right": sum(candidate.correct is True for candidate in candidates),
            "wrong": sum(candidate.correct is False for candidate in candidates),
            "neighbors": sum(len(problem.neighbors) for problem in self.problems),
        }

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {
            "ok": not self.errors,
            "errors": [asdict(finding) for finding in self.errors],
            "warnings": [asdict(finding) for finding in self.warnings],
            "counts": self.counts,
        }


def key_text(path: KeyPath) -> str:
    """A path as people write it: candidates[0].text."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
