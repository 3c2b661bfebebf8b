"""porism verify: decide answers against known ones, and count right and wrong verdicts where they are known."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from porism.types import Verdict
    from porism.verify.pool import Verifier


def verify(
    cases: Annotated[
        Path,
        typer.Argument(help="JSONL rows: id, gold, response (or answer), answer_type?, expected?, kind?"),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; by default one for each CPU.")
    ] = None,
    limit: Annotated[float, typer.Option("--limit", min=0.01, help="CPU seconds an item may take.")] = 1.0,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Import and call checkers that answer types name.")
    ] = False,
) -> None:
    """Extract the final answer of each response and compare it with the gold.

    Verdicts are correct, wrong, no_answer and undecided. With `expected` in the rows (true: the same answer) a
    table by kind counts the verdicts that are right, and the exit code is 1 when one says the opposite.
    """
    import asyncio

    from porism.verify.pool import Verifier

    rows = _rows(cases)
    verdicts = asyncio.run(_decide(rows, Verifier(workers=workers, limit=limit, allow_code=allow_code)))
    table = _confusion(rows, verdicts)
    if as_json:
        typer.echo(json.dumps(_document(rows, verdicts, table), ensure_ascii=False, indent=2))
    else:
        _print(rows, verdicts, table)
    if any(line["false_correct"] or line["false_other"] for line in table.values()):
        raise typer.Exit(1)


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, or one DataError with every fault in it."""
    from porism.errors import DataError, InputError

    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as fault:
        raise InputError(f"{path}: {fault.strerror or fault}; give a JSONL file of cases") from fault
    except UnicodeDecodeError as fault:
        raise InputError(f"{path}: byte {fault.start} is not UTF-8; save the file as UTF-8") from fault
    rows, findings = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as fault:
            findings.append(f"{path}:{number}: not JSON: {fault}")
            continue
        fault_of_row = _fault(row)
        if fault_of_row:
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
    if not isinstance(row.get("answer_type", ""), str | None):
        return "answer_type: a string is needed"
    return None


async def _decide(rows: list[dict[str, Any]], verifier: Verifier) -> list[Verdict]:
    import asyncio

    from porism.types import Gold, Verdict
    from porism.verify.extract import extract
    from porism.verify.suspicion import suspicion

    async def one(row: dict[str, Any]) -> Verdict:
        answer, truncated = row.get("answer"), bool(row.get("truncated"))
        if "response" in row:
            found = extract(row["response"], truncated=truncated)
            answer = found.answer
            if answer is None:
                verdict = Verdict("no_answer", found.rule)
                return Verdict("no_answer", found.rule, suspicion(verdict, row["response"], row["gold"]))
        verdict = await verifier.verify(answer or "", Gold(row["gold"], row.get("answer_type")))
        doubt = suspicion(verdict, row.get("response", ""), row["gold"], truncated=truncated)
        return Verdict(verdict.kind, verdict.rule, doubt)

    async with verifier:
        return list(await asyncio.gather(*map(one, rows)))


def _confusion(rows: list[dict[str, Any]], verdicts: list[Verdict]) -> dict[str, Counter[str]]:
    """By kind: rows, right verdicts, false correct, false others (wrong, no_answer), and undecided."""
    table: dict[str, Counter[str]] = {}
    for row, verdict in zip(rows, verdicts, strict=True):
        expected = row.get("expected")
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


_COLUMNS = ("rows", "right", "false_correct", "false_other", "undecided")


def _document(
    rows: list[dict[str, Any]], verdicts: list[Verdict], table: dict[str, Counter[str]]
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "rows": [
            {"id": row["id"], "verdict": verdict.kind, "rule": verdict.rule, "suspicious": verdict.suspicious}
            for row, verdict in zip(rows, verdicts, strict=True)
        ],
        "counts": dict(Counter(verdict.kind for verdict in verdicts)),
    }
    if table:
        document["by_kind"] = {kind: {name: line[name] for name in _COLUMNS} for kind, line in table.items()}
    return document


def _print(rows: list[dict[str, Any]], verdicts: list[Verdict], table: dict[str, Counter[str]]) -> None:
    from porism.progress import printable

    for row, verdict in zip(rows, verdicts, strict=True):
        doubt = f"  ({verdict.suspicious})" if verdict.suspicious else ""
        typer.echo(f"{printable(str(row['id']))}\t{verdict.kind}\t{verdict.rule}{doubt}")
    counts = Counter(verdict.kind for verdict in verdicts)
    typer.echo(", ".join(f"{count} {kind}" for kind, count in counts.most_common()) or "no rows", err=True)
    if not table:
        return
    width = max(map(len, (*map(printable, table), "kind")))
    total: Counter[str] = sum(table.values(), Counter())
    lines = [
        ("kind", _COLUMNS),
        *((printable(kind), [line[name] for name in _COLUMNS]) for kind, line in table.items()),
    ]
    for name, cells in (*lines, ("total", [total[name] for name in _COLUMNS])):
        typer.echo(f"{name:{width}}" + "".join(f"{cell!s:>15}" for cell in cells), err=True)


__all__ = ["verify"]
