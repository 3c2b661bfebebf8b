"""How `porism verify` shows what it found: documents for programs, tables and lists for people.

Answers, golds and texts come from files and models, so whatever is shown of them goes through `printable`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from porism.audit import Again, Checked
from porism.cases import Case, confusion
from porism.progress import printable

if TYPE_CHECKING:
    from porism.opinions import Opinions

_COLUMNS = ("rows", "right", "false_correct", "false_other", "undecided")
_KINDS = ("correct", "wrong", "no_answer", "undecided", "missing")


def show_cases(
    rows: Sequence[Case], checked: Sequence[Checked], opinions: Opinions | None, *, as_json: bool
) -> bool:
    """Print the verdicts on a file's rows. True where one says the opposite of what the row expects."""
    table = confusion(rows, checked)
    if as_json:
        found = _verdicts(checked, opinions)
        lines = [{"id": row["id"], **line} for row, line in zip(rows, found, strict=True)]
        document = {"rows": lines, **_counts(checked, opinions)}
        if table:
            document["by_kind"] = {
                kind: {name: line[name] for name in _COLUMNS} for kind, line in table.items()
            }
        _echo_json(document)
    else:
        for row, line in zip(checked, _verdicts(checked, opinions), strict=True):
            opinion = line.get("second_opinion")
            typer.echo(
                f"{printable(row.id)}\t{row.verdict.kind}\t{printable(row.verdict.rule)}"
                + (f"  ({row.verdict.suspicious})" if row.verdict.suspicious else "")
                + (f"  [second opinion: {opinion}]" if opinion else "")
            )
        counts = Counter(row.verdict.kind for row in checked)
        typer.echo(
            ", ".join(f"{count} {kind}" for kind, count in counts.most_common()) or "no rows", err=True
        )
        _show_opinions(opinions)
        _show_confusion(table)
    return any(line["false_correct"] or line["false_other"] for line in table.values())


def show_run(
    run: Path,
    checked: Sequence[Checked],
    opinions: Opinions | None,
    changes: Again | None,
    *,
    audit: bool,
    as_json: bool,
) -> None:
    """Print what a run's verdicts are: counts, or with `audit` the doubted rows one by one, and what has changed."""
    lines = [
        line
        for row, line in zip(checked, _run_rows(checked, opinions), strict=True)
        if row.doubted or not audit
    ]
    if as_json:
        document = {"run": str(run), "rows": lines, **_counts(checked, opinions)}
        rules = _rules(checked)
        document["by_rule"] = {kind: dict(rules[kind].most_common()) for kind in _KINDS if rules[kind]}
        if changes is not None:
            document["changed"] = {
                f"{before} -> {after}": n for (before, after), n in changes.changed.most_common()
            }
            document["answers_found_anew"] = changes.answers
        _echo_json(document)
        return
    if audit:
        for line in lines:
            _show_doubted(line)
    else:
        _show_counts(checked)
    doubted = sum(row.doubted for row in checked)
    typer.echo(
        f"{doubted} of {len(checked)} verdicts are undecided or suspicious"
        + (f": porism verify --run {run} --audit lists them" if doubted and not audit else ""),
        err=True,
    )
    if changes is not None:
        _show_changes(run, changes, len(checked))
    _show_opinions(opinions)


# Documents


def _verdicts(checked: Sequence[Checked], opinions: Opinions | None) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = [
        {"verdict": row.verdict.kind, "rule": row.verdict.rule, "suspicious": row.verdict.suspicious}
        for row in checked
    ]
    if opinions is not None:
        for line, opinion in zip(lines, opinions.given, strict=True):
            line["second_opinion"] = opinion
    return lines


def _run_rows(checked: Sequence[Checked], opinions: Opinions | None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for row, verdict in zip(checked, _verdicts(checked, opinions), strict=True):
        assert row.cell is not None
        names = {"problem": row.cell.problem, "candidate": row.cell.candidate, "neighbor": row.cell.neighbor}
        rows.append({"id": row.id, **names, "answer": row.answer, "gold": row.gold, **verdict})
        if row.doubted:
            rows[-1]["last_lines"] = row.text
    return rows


def _counts(checked: Sequence[Checked], opinions: Opinions | None) -> dict[str, Any]:
    counts: dict[str, Any] = {"counts": dict(Counter(row.verdict.kind for row in checked))}
    if opinions is not None:
        doubted = sum(row.doubted for row in checked)
        counts["second_opinion"] = {"model": opinions.model, "doubted": doubted, **opinions.counts}
    return counts


def _rules(checked: Sequence[Checked]) -> dict[str, Counter[str]]:
    rules: dict[str, Counter[str]] = {kind: Counter() for kind in _KINDS}
    for row in checked:
        kind, rule = row.verdict.kind, row.verdict.rule
        rules[kind][rule.partition(":")[0] if kind == "missing" else rule] += 1
    return rules


def _echo_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2).encode("utf-8", "replace").decode())


# For people


def _show_confusion(table: dict[str, Counter[str]]) -> None:
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


def _show_counts(checked: Sequence[Checked]) -> None:
    rules = _rules(checked)
    typer.echo(f"{'verdict':10}{'rollouts':>9}  by rule")
    for kind in _KINDS:
        if rules[kind]:
            by_rule = ", ".join(f"{printable(rule)} {n}" for rule, n in rules[kind].most_common())
            typer.echo(f"{kind:10}{rules[kind].total():>9}  {by_rule}")


def _show_doubted(line: dict[str, Any]) -> None:
    candidate = "no example" if line["candidate"] is None else f"candidate {printable(line['candidate'])}"
    why = line["suspicious"] or f"rule {line['rule']}"
    typer.echo(f"problem {printable(line['problem'])}, {candidate}, neighbor {printable(line['neighbor'])}")
    typer.echo(f"  rollout  {line['id']}")
    typer.echo(f"  verdict  {line['verdict']}: {printable(why)}")
    if opinion := line.get("second_opinion"):
        typer.echo(f"  second   {opinion}")
    typer.echo(f"  gold     {printable(line['gold'], 500)}")
    typer.echo(f"  answer   {'-' if line['answer'] is None else printable(line['answer'], 500)}")
    for number, text in enumerate(line["last_lines"].splitlines() or ["-"]):
        end = text if len(text) <= 500 else f"…{text[-500:]}"  # an answer stands at the end
        typer.echo(f"  {'text' if number == 0 else '':7}| {printable(end, 501)}")
    typer.echo()


def _show_changes(run: Path, changes: Again, total: int) -> None:
    changed = changes.changed.total()
    ways = ", ".join(f"{n} {before} -> {after}" for (before, after), n in changes.changed.most_common())
    typer.echo(
        f"decided anew: {changed} of {total} verdicts changed{': ' if ways else ''}{ways}; "
        f"{changes.answers} answers found differently in their texts"
    )
    if changed or changes.answers:
        typer.echo(f"porism score {run} ranks by what is stored now", err=True)


def _show_opinions(opinions: Opinions | None) -> None:
    if opinions is None:
        return
    counts, given = opinions.counts, opinions.counts.total()
    rest = "".join(f", {n} {opinion}" for opinion, n in counts.most_common() if opinion != "equal")
    typer.echo(
        f"second opinion ({printable(opinions.model)}): {counts['equal']} of {given} doubted are equal{rest}; "
        "it changes no verdict",
        err=True,
    )
    for why, count in list(opinions.generated.missing.items())[:5]:
        typer.echo(f"without a second opinion: {count} of {printable(why)}", err=True)
    if opinions.generated.stopped is not None:
        typer.echo(f"porism: {printable(opinions.generated.stopped, 2000)}", err=True)


__all__ = ["show_cases", "show_run"]
