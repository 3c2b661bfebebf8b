"""porism neighbors: where neighbors come from, and which of them are worth anything."""

from __future__ import annotations

import typer

from porism.cli import check, draw, make, review

app = typer.Typer(
    name="neighbors", help="Draw, make, check and review the neighbors of a question.", no_args_is_help=True
)
app.command("make", epilog=make.EXAMPLE)(make.make)
app.command("check", epilog=check.EXAMPLE)(check.check)
app.command("draw", epilog=draw.EXAMPLE)(draw.draw)
app.command("review", epilog=review.EXAMPLE)(review.review)

__all__ = ["app"]
