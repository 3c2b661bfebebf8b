"""porism neighbors: make, check and review the questions that candidates are judged by."""

from __future__ import annotations

import typer

from porism.cli.review import EXAMPLE, review

app = typer.Typer(name="neighbors", help="Look after the neighbors of problems.", no_args_is_help=True)
app.command(epilog=EXAMPLE)(review)
