"""`porism neighbors check`: what each neighbor is worth, and what to keep, drop and add."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from porism.cli.options import AllowCode, BaseUrl, DryRun, Json, MaxRequests, MaxTokensTotal
from porism.config import DEFAULT_MODEL, ROLLOUTS

if TYPE_CHECKING:
    from porism.neighbors.check import Checked, Neighborhood
    from porism.neighbors.measure import CheckedNeighborhoods

EXAMPLE = "Examples: porism neighbors check problem.yaml -n 16   |   porism neighbors check problem.yaml --texts-only"


def check(
    file: Annotated[
        Path, typer.Argument(help="A problem file or a folder problem; candidates are optional.")
    ],
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help=f"Solver as provider/model-id. [{DEFAULT_MODEL}]"),
    ] = None,
    rollouts: Annotated[
        int, typer.Option("-n", "--rollouts", help="Rollouts for every candidate and neighbor.")
    ] = ROLLOUTS,
    run: Annotated[Path | None, typer.Option("--run", help="Judge by this run folder; ask nothing.")] = None,
    texts_only: Annotated[
        bool, typer.Option("--texts-only", help="Duplicates, leaks and known answers; ask nothing.")
    ] = False,
    sweet_spot: Annotated[
        str, typer.Option(help="LOW,HIGH: solve rates without example between which a neighbor may speak.")
    ] = "0.05,0.8",
    write: Annotated[
        bool, typer.Option("--write", help="Write the flags into FILE; the file before is kept as .bak.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Run folder, as for rank. [runs/NAME-HASH]")
    ] = None,
    base_url: BaseUrl = None,
    max_requests: MaxRequests = None,
    max_tokens_total: MaxTokensTotal = None,
    allow_code: AllowCode = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Tell which neighbors are worth anything: difficulty, discrimination, duplicates, leaks, known answers, cost.

    Asks what `porism rank` would ask, in the same run folder, so one pays for both.
    """
    import asyncio

    from porism import prepare, table
    from porism.data.rewrite import may_rewrite
    from porism.display import choose
    from porism.errors import ConfigError
    from porism.neighbors.measure import check_problems, check_run, check_texts

    if run is not None and texts_only:
        raise ConfigError("--run and --texts-only exclude each other: give one of them")
    span = _span(sweet_spot)
    if write:
        may_rewrite(file)
    chosen, _, warnings = prepare.read(file, None, candidates=False, allow_code=allow_code)
    settings: dict[str, Any] = {
        "models": tuple(model or [DEFAULT_MODEL]),
        "rollouts": rollouts,
        "output": output,
        "base_url": base_url,
        "max_requests": max_requests,
        "max_tokens_total": max_tokens_total,
        "allow_code": allow_code,
    }
    if dry_run:
        table.show_plan(prepare.plan(file, candidates=False, **settings), as_json=as_json)
        return
    if texts_only:
        for warning in warnings:
            typer.echo(f"porism: {warning}", err=True)
        found = asyncio.run(check_texts(chosen))
    elif run is not None:
        found = asyncio.run(check_run(run, sweet_spot=span, allow_code=allow_code))
    else:
        found = asyncio.run(check_problems(file, sweet_spot=span, watch=choose(), **settings))
    _show(found, as_json=as_json)
    if write and found.stopped is None:
        _write(file, found)
    if found.stopped is not None:
        typer.echo(f"porism: {found.stopped}; the same command goes on", err=True)
    raise typer.Exit(found.exit_code)


def _span(text: str) -> tuple[float, float]:
    from porism.errors import ConfigError

    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low, high = 1.0, 0.0
    if not 0 <= low < high <= 1:
        raise ConfigError(f"--sweet-spot {text}: write two rates, as in --sweet-spot 0.05,0.8")
    return low, high


def _write(file: Path, found: CheckedNeighborhoods) -> None:
    import dataclasses

    from porism.data import read_problems
    from porism.data.rewrite import rewrite
    from porism.neighbors.check import flagged

    by_id = {neighborhood.id: neighborhood for neighborhood in found.problems}
    problems = [  # as the file stands now: it may have been edited while models were asked
        dataclasses.replace(p, neighbors=flagged(p, by_id[p.id])) if p.id in by_id else p
        for p in read_problems(file)
    ]
    for written in rewrite(file, problems):
        typer.echo(f"{written}: flags written; the file before is {written.name}.bak", err=True)


def _show(found: CheckedNeighborhoods, *, as_json: bool) -> None:
    if as_json:
        from porism.table import print_json

        print_json(found)
        return
    for neighborhood in found.problems:
        _print(neighborhood)
    if found.run is not None:
        usage = found.usage
        typer.echo(f"run: {found.run}   {usage.requests:,} requests, {usage.completion:,} completion tokens")


def _print(neighborhood: Neighborhood) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from porism.progress import printable

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    console.print(Text(printable(neighborhood.id, 70), style="bold"))
    table = Table(box=None, pad_edge=False)
    measured = any(checked.rates for checked in neighborhood.neighbors)
    columns = ("no example", "shown", "differ", "right - wrong", "tokens") if measured else ()
    table.add_column("neighbor", no_wrap=True, overflow="ellipsis", max_width=20)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("advice", no_wrap=True)
    table.add_column("why", overflow="fold")
    for checked in neighborhood.neighbors:
        cells = _cells(checked) if measured else []
        row = [printable(checked.id, 40), *cells, checked.advice, printable("; ".join(checked.why), 300)]
        table.add_row(*map(Text, row))
    console.print(table)
    console.print(Text(printable(neighborhood.message, 1000), style="bold"))
    console.print()


def _cells(checked: Checked) -> list[str]:
    found = checked.rates
    if found is None:
        return [""] * 5
    return [
        _value(found.no_example, found.no_example_ci95),
        _value(found.shown, None),
        _value(found.discrimination, found.discrimination_ci95),
        _value(found.gap, found.gap_ci95),
        "-" if found.tokens is None else f"{found.tokens:.0f}",
    ]


def _value(value: float | None, span: tuple[float, float] | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" + (f" ({span[0]:.2f} .. {span[1]:.2f})" if span else "")


__all__ = ["EXAMPLE", "check"]
