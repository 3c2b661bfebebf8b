"""Rows of a JSONL file, read, decided, and counted against what is expected of them, for `porism verify CASES`."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from porism.audit import Checked, with_doubt
from porism.data.meaning import answer_type_doubts
from porism.errors import DataError, InputError
from porism.types import Gold, Verdict
from porism.verify.extract import extract
from porism.verify.pool import Verifier

Case: TypeAlias = Mapping[str, Any]
KEYS = ("id", "gold", "response", "answer", "answer_type", "question", "expected", "kind", "truncated")


def read_cases(path: Path) -> list[Case]:
    """The rows of a file, each with an id; one DataError with every fault in it, InputError if it cannot be read."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as fault:
        raise InputError(f"{path}: {fault.strerror or fault}; give a JSONL file of cases") from fault
    except UnicodeDecodeError as fault:
        raise InputError(f"{path}: byte {fault.start} is not UTF-8; save the file as UTF-8") from fault
    rows: list[Case] = []
    findings: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as fault:
            findings.append(f"{path}:{number}: not JSON: {fault}")
            continue
        if fault_of_row := _fault(row):
            findings.append(f"{path}:{number}: {fault_of_row}")
        else:
            rows.append({"id": str(number), **row})
    if findings:
        raise DataError(findings)
    return rows


def _fault(row: object) -> str | None:
    if not isinstance(row, dict):
        return "a row is an object with gold and response"
    if not isinstance(row.get("gold"), str):
        return "gold: a string is needed"
    text = row.get("response", row.get("answer"))
    if not isinstance(text, str):
        return "response: a string is needed (or answer, which is compared as it stands)"
    for key in ("answer_type", "question"):
        if not isinstance(row.get(key, ""), str | None):
            return f"{key}: a string is needed"
    return None


def doubts(path: Path, rows: Sequence[Case]) -> list[str]:
    """What rows may not mean as it stands: keys that look misspelt and types that are not known, each told once."""
    found: dict[str, str] = {}
    for row in rows:
        for key in row:
            near = [] if key in KEYS else get_close_matches(key, KEYS, n=1, cutoff=0.8)
            if near:
                found.setdefault(
                    key, f"{path}: {key!r} is no key of a case and is ignored; did you mean {near[0]!r}?"
                )
        name = row.get("answer_type") or ""
        for _, _, doubt in answer_type_doubts(name, ()):
            found.setdefault(f"answer_type {name}", f"{path}: {row['id']}: answer_type: {doubt}")
    return list(found.values())


async def check_cases(rows: Sequence[Case], verifier: Verifier) -> list[Checked]:
    """The answer of each row, found in its response or as it stands, with the verdict and what speaks against it."""

    async def one(row: Case) -> Checked:
        text, truncated = row.get("response", ""), bool(row.get("truncated"))
        answer, rule = row.get("answer"), ""
        if "response" in row:
            found = extract(text, truncated=truncated)
            answer, rule = found.answer, found.rule
        if answer is None:
            verdict = Verdict("no_answer", rule)
        else:
            verdict = await verifier.verify(answer, Gold(row["gold"], row.get("answer_type")))
        checked = Checked(
            id=str(row["id"]),
            gold=row["gold"],
            answer=answer,
            verdict=verdict,
            question=row.get("question") or "",
        )
        return with_doubt(checked, text, truncated=truncated)

    return list(await asyncio.gather(*map(one, rows)))


def confusion(rows: Sequence[Case], checked: Sequence[Checked]) -> dict[str, Counter[str]]:
    """By kind: rows, right verdicts, false correct, false others (wrong, no_answer), and undecided."""
    table: dict[str, Counter[str]] = {}
    for row, found in zip(rows, checked, strict=True):
        expected, verdict = row.get("expected"), found.verdict
        if expected is None:
            continue
        line = table.setdefault(str(row.get("kind", "all")), Counter())
        line["rows"] += 1
        equal = verdict.kind == "correct"
        if verdict.kind == "undecided":
            line["right" if expected == "undecided" else "undecided"] += 1
        elif (
            verdict.kind == expected
            or (expected in (False, "not correct") and not equal)
            or (expected is True and equal)
        ):
            line["right"] += 1
        else:
            line["false_correct" if equal else "false_other"] += 1
    return table


__all__ = ["Case", "check_cases", "confusion", "doubts", "read_cases"]
