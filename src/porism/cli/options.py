"""Options that mean the same in every command, and the line that says how to go on: written once."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be asked; ask nothing.")]
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Import and call checkers that answer types name.")
]
BaseUrl = Annotated[
    list[str] | None,
    typer.Option(
        help="Where the model is served, with or without /v1; given again: several servers share the work."
    ),
]
MaxRequests = Annotated[int | None, typer.Option(help="Stop after so many requests (exit 3).")]
MaxTokensTotal = Annotated[int | None, typer.Option(help="Stop after so many tokens (exit 3).")]
MaxCost = Annotated[float | None, typer.Option(help="Stop after so many dollars (exit 3); needs --price.")]
Price = Annotated[str | None, typer.Option(help="IN,OUT: dollars per million prompt and completion tokens.")]


def resume() -> str:
    """What to tell a user whose command ended early."""
    return f"porism: to go on: {shlex.join(['porism', *sys.argv[1:]])}"


__all__ = [
    "AllowCode",
    "BaseUrl",
    "DryRun",
    "Json",
    "MaxCost",
    "MaxRequests",
    "MaxTokensTotal",
    "Price",
    "resume",
]
