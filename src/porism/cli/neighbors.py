"""porism neighbors: where neighbors come from, and which of them are worth anything."""

from __future__ import annotations

import typer

from porism.cli import check, make, review

app = typer.Typer(
    name="neighbors", help="Make, check and review the neighbors of a question.", no_args_is_help=True
)
app.command("make", epilog=make.EXAMPLE)(make.make)
app.command("check", epilog=check.EXAMPLE)(check.check)
app.command("review", epilog=review.EXAMPLE)(review.review)

__all__ = ["app"]
