"""porism data: look into problem files, turn one format into another, make a benchmark set of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from porism.cli.build import EXAMPLE, build
from porism.cli.options import Json

app = typer.Typer(
    name="data", help="Check and convert problem files, and build benchmark sets.", no_args_is_help=True
)

app.command(epilog=EXAMPLE)(build)

File = Annotated[
    Path, typer.Argument(help="JSONL, JSON, YAML, Parquet, ExpertMath CSV, or a folder problem.")
]


@app.command("check", epilog="Example: porism data check problems.jsonl")
def check_file(
    file: File,
    as_json: Json = False,
) -> None:
    """Report everything that is wrong or doubtful in a problem file.

    Exit code 2 if there is an error, 0 otherwise.
    """
    from porism.data import check, data_hash

    report = check(file)
    if as_json:
        document = {"file": str(file), **report.as_dict(), "hash": data_hash(report.problems)}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        for finding in report.findings:
            typer.echo(f"{'warning: ' if finding.severity == 'warning' else ''}{finding}")
        counts = report.counts
        typer.echo(
            f"{file}: {_many(counts['problems'], 'problem')}, {_many(counts['candidates'], 'candidate')} "
            f"({counts['right']} labelled right, {counts['wrong']} wrong), "
            f"{_many(counts['neighbors'], 'neighbor')}; "
            f"{_many(len(report.errors), 'error')}, {_many(len(report.warnings), 'warning')}"
        )
    if report.errors:
        raise typer.Exit(2)


@app.command(epilog="Example: porism data convert problem.yaml problem.parquet")
def convert(
    source: Annotated[Path, typer.Argument(help="What to read: a file of any format, or a folder problem.")],
    target: Annotated[Path, typer.Argument(help="What to write: .jsonl, .json, .yaml or .parquet.")],
    force: Annotated[bool, typer.Option("--force", help="Replace TARGET; a copy is kept as .bak.")] = False,
) -> None:
    """Write the problems of SOURCE to TARGET, in the format of its ending, without loss."""
    from porism.data import load, write_problems

    report = load(source)
    for finding in report.warnings:
        typer.echo(f"warning: {finding}", err=True)
    write_problems(report.problems, target, force=force)
    typer.echo(f"{target}: {_many(len(report.problems), 'problem')}", err=True)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
