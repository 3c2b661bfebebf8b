"""Rows to records, with every fault and doubt in them.

Three looks at each row, none of which stops at a first fault: `_Settle` gives every scalar its type, pydantic
compares with the records' fields, and `meaning.py` asks what no type can. Each yields (severity, path,
message); the row's place then says where that is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from porism.data.families import inlined
from porism.data.finding import Doubt, FileFaultError, Finding, KeyPath, Place, Raw, Report, Row, key_text
from porism.data.jsontree import parse
from porism.data.meaning import doubts
from porism.types import SCHEMA, Candidate, Neighbor, Problem

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

_AS_WRITTEN = ("id", "group", "answer", "derived_from", "source")  # a number here is text
_BOOLEAN = ("correct", "human")
_FREE = ("family", "metadata", "provenance")
_DEPTH = 100
_INTEGER = re.compile(r"[-+]?[0-9]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MUST_BE = {
    "string_type": "text",
    "string_unicode": "text",
    "tuple_type": "a list",
    "dict_type": "keys and values",
    "dataclass_type": "keys and values",
}


def check_rows(rows: Iterable[Row | Finding]) -> Report:
    """The problems that hold, and every finding in file order."""
    problems: list[Problem] = []
    findings: list[Finding] = []
    used: dict[str, str] = {}  # where each id was first used
    places: list[Place] = []  # of each problem
    for row in rows:
        if isinstance(row, Finding):
            findings.append(row)
            continue
        raw, unread = inlined(row)
        value, problem, found = _check(raw)
        found = unread + found
        id = value.get("id")
        if isinstance(id, str) and id:
            if id in used:
                found.append(("error", ("id",), f"{id!r} is used already: {used[id]}"))
            else:
                file, line = row.place(("id",))
                used[id] = file if line is None else f"{file}:{line}"
        here = [
            Finding(severity, *row.place(path), key_text(path), message) for severity, path, message in found
        ]
        findings += sorted(here, key=lambda finding: (finding.file, finding.line or 0))
        if problem and all(severity != "error" for severity, _, _ in found):
            problems.append(problem)
            places.append(row.place)
    findings += _unfinished(problems, places)
    return Report(tuple(problems), tuple(findings))


def _unfinished(problems: list[Problem], places: list[Place]) -> Iterator[Finding]:
    """One warning for all problems without candidates, and one for those without neighbors."""
    for key in ("candidates", "neighbors"):
        bare = [
            place
            for problem, place in zip(problems, places, strict=True)
            if not getattr(problem, key) and not (key == "neighbors" and problem.family is not None)
        ]
        if bare:
            file, line = bare[0](())
            many = f"{len(bare)} problems have" if len(bare) > 1 else "1 problem has"
            yield Finding("warning", file, line, key, f"{many} no {key} yet, and cannot be ranked without")


def _check(raw: object) -> tuple[dict[str, Any], Problem | None, list[Doubt]]:
    """A row with its scalars settled, the problem if its types hold, and what is wrong with it."""
    from pydantic import ValidationError

    if not isinstance(raw, dict):
        message = f"a problem must be keys and values (id, question, ...), not {_noun(raw)}"
        return {}, None, [("error", (), message)]
    settle = _Settle()
    value: dict[str, Any] = {"candidates": [], "neighbors": []} | settle.record(raw, ())
    found = settle.found
    settled = {path for _, path, _ in found}
    problem = None
    try:
        problem = _adapter().validate_python(value)
    except ValidationError as error:
        found += [doubt for doubt in _typed(error.errors(include_url=False)) if doubt[1] not in settled]
    found += doubts(value)
    if problem is not None and problem.family is not None and all(kind != "error" for kind, _, _ in found):
        from porism.neighbors.expand import doubts as family_doubts

        found += family_doubts(problem)
    return value, problem, found


@cache
def _adapter() -> TypeAdapter[Problem]:
    from pydantic import TypeAdapter

    return TypeAdapter(Problem)


def settled(raw: dict[str, Any]) -> tuple[dict[str, Any], list[Doubt]]:
    """Keys and values from a file with every number a number, and what cannot be one."""
    settle = _Settle()
    return {key: settle.free(item, (key,)) for key, item in raw.items()}, settle.found


class _Settle:
    """Gives each scalar of a row the type its place asks for; collects what cannot have one."""

    def __init__(self) -> None:
        self.found: list[Doubt] = []

    def fault(self, path: KeyPath, message: str) -> None:
        self.found.append(("error", path, message))

    def record(self, raw: dict[str, object], path: KeyPath) -> dict[str, object]:
        """A problem, candidate or neighbor without its nulls."""
        value: dict[str, object] = {}
        for key, item in raw.items():
            here = (*path, key)
            if item is None:
                continue
            if key in ("candidates", "neighbors") and isinstance(item, list):
                value[key] = [
                    self.record(entry, (*here, i))
                    if isinstance(entry, dict)
                    else self.free(entry, (*here, i))
                    for i, entry in enumerate(item)
                ]
            elif key in _AS_WRITTEN and isinstance(item, Raw | int | float):
                value[key] = str(item).lower() if isinstance(item, bool) else str(item)
            elif key in _FREE and isinstance(item, str) and not isinstance(item, Raw):
                value[key] = self.free(self.json_text(item, here), here)
            else:
                value[key] = self.free(item, here)
                if key in _BOOLEAN and not isinstance(value[key], bool):
                    self.fault(here, f"must be true or false, not {item!r}"[:100])
                    del value[key]
        return value

    def free(self, raw: object, path: KeyPath) -> object:
        """A value that may hold what JSON may hold."""
        if len(path) > _DEPTH:
            self.fault(path[:4], f"nested more than {_DEPTH} deep")
            return None
        if isinstance(raw, Raw):
            return self.number(raw, path)
        if isinstance(raw, str):
            if "\0" in raw:
                self.fault(path, "holds a NUL character")
            if not raw.isascii() and _SURROGATE.search(raw):
                self.fault(path, "holds half of a surrogate pair (\\ud800 .. \\udfff)")
            return raw
        if isinstance(raw, dict):
            return {key: self.free(item, (*path, key)) for key, item in raw.items()}
        if isinstance(raw, list):
            return [self.free(item, (*path, i)) for i, item in enumerate(raw)]
        if raw is not None and not isinstance(raw, bool | int | float):
            self.fault(path, f"holds a {type(raw).__name__}, which JSON cannot")
        return raw

    def json_text(self, text: str, path: KeyPath) -> object:
        """Keys and values as JSON text, which is how a table of plain columns holds them."""
        try:
            return parse(text, Path())
        except FileFaultError as fault:
            self.fault(path, f"must be keys and values, or those as JSON text ({fault.finding.message})")
            return None

    def number(self, raw: Raw, path: KeyPath) -> bool | int | float | None:
        if raw.lower() in ("true", "false"):
            return raw.lower() == "true"
        try:
            number = int(raw) if _INTEGER.fullmatch(raw) else float(raw)
        except ValueError:
            self.fault(path, f"a number of {len(raw)} digits: write it in quotes")
            return None
        if isinstance(number, float) and not isfinite(number):
            self.fault(path, f"the number {raw[:40]} is too large: write it in quotes")
        return number


def _typed(errors: list[ErrorDetails]) -> Iterator[Doubt]:
    """pydantic's errors in our words; a misspelt key is one fault, not an unknown key and a missing one."""
    near: dict[KeyPath, str] = {}
    for error in errors:
        path = error["loc"]
        if error["type"] == "unexpected_keyword_argument":
            close = get_close_matches(str(path[-1]), _keys(path), n=1)
            if close:
                near[(*path[:-1], close[0])] = close[0]
            hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(_keys(path))}"
            yield "error", path, f"unknown key; {hint}"
    for error in errors:
        path, kind = error["loc"], error["type"]
        if kind == "unexpected_keyword_argument" or (kind == "missing" and path in near):
            continue
        if kind == "missing":
            known = ": a neighbor is a question with a known answer" if path[-1] == "answer" else ""
            yield "error", path, f"is missing{known}"
        elif kind == "literal_error" and path == ("schema",):
            yield "error", path, f"schema {error['input']!r} is not known; this version reads schema {SCHEMA}"
        elif kind == "literal_error":
            expected = error.get("ctx", {}).get("expected", "")
            yield "error", path, f"must be one of {expected}, not {error['input']!r}"
        elif kind in _MUST_BE:
            yield "error", path, f"must be {_MUST_BE[kind]}, not {_noun(error['input'])}"
        else:
            yield "error", path, error["msg"]


def _keys(path: KeyPath) -> list[str]:
    """The keys a record knows at a path."""
    record = {"candidates": Candidate, "neighbors": Neighbor}.get(str(path[0])) if len(path) > 1 else Problem
    return [field.name for field in fields(record or Problem)]


def _noun(value: object) -> str:
    match value:
        case Raw():
            return f"the number {value}"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value}"
        case str():
            return "text"
        case dict():
            return "keys and values"
        case list():
            return "a list"
    return "nothing" if value is None else f"a {type(value).__name__}"
