"""`porism report` and `porism view`: a run as one HTML file to read and to mail, as tables, or live in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

EXAMPLE = (
    "Examples: porism report runs/necklaces-1f2e3d4c5b6a --open   |   "
    "porism report runs/necklaces-1f2e3d4c5b6a --format csv -o ranking.csv"
)

VIEW_EXAMPLE = "Example: porism view runs/necklaces-1f2e3d4c5b6a --open"


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
    file = output or (run / "report.html" if format == "html" else None)
    text = asyncio.run(write(run, file, format=format, problems=_ids(problems)))
    if file is None:
        typer.echo(text, nl=False)
        return
    typer.echo(str(file))
    if show:
        browse(file.resolve().as_uri())


def view(
    run: Annotated[Path, typer.Argument(help="A run folder; the run may be going on.")],
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    problems: Annotated[
        str | None, typer.Option(help="IDS, with commas: show these in full however large the run.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port on the loopback address. [any free one]")] = 0,
) -> None:
    """Show the report of a run in the browser while it goes on, on this machine only. Ctrl-C ends it."""
    import asyncio
    from contextlib import suppress

    from porism.report import need_extra

    need_extra()
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(run, _ids(problems), port, show=show))


async def _serve(run: Path, ids: list[str], port: int, *, show: bool) -> None:
    import asyncio

    from porism.report.live import Viewer

    async with Viewer(run, ids).serving(port) as address:
        typer.echo(address)
        if show:
            browse(address)
        await asyncio.Event().wait()


def browse(address: str) -> None:
    """Open an address in the person's browser; where there is none, say so."""
    import webbrowser

    if not webbrowser.open(address):
        typer.echo(f"porism: no browser can be opened here; the address is {address}", err=True)


def _ids(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]
