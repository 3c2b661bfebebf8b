"""porism neighbors: where neighbors come from and what they are worth."""

from __future__ import annotations

import typer

from porism.cli.draw import EXAMPLE, draw

app = typer.Typer(name="neighbors", help="Draw neighbors from a family of questions.", no_args_is_help=True)
app.command(epilog=EXAMPLE)(draw)
