"""`porism report`: a run as one HTML file to read and to mail, or as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

EXAMPLE = (
    "Examples: porism report runs/necklaces-1f2e3d4c5b6a --open   |   "
    "porism report runs/necklaces-1f2e3d4c5b6a --format csv -o ranking.csv"
)


def report(
    run: Annotated[Path, typer.Argument(help="A run folder, finished or not.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write. [html: RUN/report.html; else stdout]"),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the file in the browser.")] = False,
    problems: Annotated[
        str | None,
        typer.Option(
            help="IDS, with commas: html shows these in full however large the run; else only these."
        ),
    ] = None,
    format: Annotated[Literal["html", "md", "csv"], typer.Option("--format", help="What to write.")] = "html",
) -> None:
    """Write a report of a run. Asks nothing, costs no token."""
    import asyncio

    from porism.errors import ConfigError
    from porism.report import write

    if show and format != "html":
        raise ConfigError(f"--open --format {format}: a browser opens html only")
    ids = [part.strip() for part in (problems or "").split(",") if part.strip()]
    file = output or (run / "report.html" if format == "html" else None)
    text = asyncio.run(write(run, file, format=format, problems=ids))
    if file is None:
        typer.echo(text, nl=False)
        return
    typer.echo(str(file))
    if show:
        import webbrowser

        webbrowser.open(file.resolve().as_uri())
