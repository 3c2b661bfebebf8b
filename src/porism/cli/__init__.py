"""The command line: one typer app, whose commands import what they need when they run.

`main` is the one place where errors end: a PorismError becomes one message on stderr and its exit code, Ctrl-C
becomes 130, and a pipe closed by the reader becomes silence. A traceback is always a fault of ours.
"""

from __future__ import annotations

import os
import sys

import typer

from porism import __version__
from porism.cli import (
    analyze,
    calibrate,
    capacity,
    data,
    export,
    label,
    models,
    neighbors,
    power,
    rank,
    report,
    run,
    runs,
    sample,
    stress,
    verify,
)
from porism.cli.new import new
from porism.errors import PorismError

app = typer.Typer(
    name="porism",
    help="Rank candidate solutions of a question nobody can check, by what their methods let a solver do on "
    "neighbor questions whose answers are known.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=rank.EXAMPLE)(rank.rank)
app.command(epilog=run.EXAMPLE)(run.run)
app.command(epilog="Example: porism score runs/necklaces-1f2e3d4c5b6a --json")(runs.score)
app.command(epilog="Example: porism status runs/necklaces-1f2e3d4c5b6a")(runs.status)
app.command(epilog=export.EXAMPLE)(export.export)
app.command(epilog=capacity.EXAMPLE)(capacity.capacity)
app.command(epilog=analyze.EXAMPLE)(analyze.analyze)
app.command(epilog=calibrate.EXAMPLE)(calibrate.calibrate)
app.command(epilog=stress.EXAMPLE)(stress.stress)
app.command(epilog=report.EXAMPLE)(report.report)
app.command(epilog=report.VIEW_EXAMPLE)(report.view)
app.command(epilog="Example: porism new my-problem")(new)
app.command(epilog=power.EXAMPLE)(power.power)
app.command(epilog=sample.EXAMPLE)(sample.sample)
app.command(epilog=label.EXAMPLE)(label.label)
app.command(epilog=verify.EXAMPLE)(verify.verify)
app.add_typer(data.app, name="data")
app.add_typer(models.app, name="models")
app.add_typer(neighbors.app, name="neighbors")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"porism {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None: ...


def main() -> None:
    """Run the command line and end the process with its exit code."""
    try:
        app()
    except PorismError as error:
        from porism.progress import printable

        # A message may quote a file or a server: no escape of theirs reaches the terminal.
        lines = [printable(line, 2000) for line in str(error).split("\n")]
        typer.echo("porism: " + "\n".join(lines), err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("porism: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader has gone, as in `porism ... | head`; a second flush at exit must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


__all__ = ["app", "main"]
