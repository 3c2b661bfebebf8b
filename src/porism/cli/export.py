"""porism export: the rollouts of a run as a table for other programs."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from porism.cli.options import Json

EXAMPLE = (
    "Examples: porism export runs/necklaces-1f2e3d4c5b6a   |   "
    "porism export runs/necklaces-1f2e3d4c5b6a --by problem -o necklaces-parquet"
)


class Format(StrEnum):
    """What can be written."""

    PARQUET = "parquet"


class By(StrEnum):
    """How the rows are shared out over files."""

    PART = "part"
    PROBLEM = "problem"


def export(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    to: Annotated[Format, typer.Option("--to", help="The format.")] = Format.PARQUET,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A new folder. [RUN/parquet]")] = None,
    by: Annotated[
        By, typer.Option("--by", help="Files in the order of answering, or files of one problem each.")
    ] = By.PART,
    text: Annotated[
        bool, typer.Option("--text/--no-text", help="With or without what the models wrote.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Write every stored rollout, with its prompt and verdict, as Parquet; costs no token.

    Reads runs of any size in bounded memory. `rollouts` and `prompts` in the new folder are one table each.
    """
    from porism.export import export as write

    done = write(run, output or run / to.value, by=by.value, texts=text)
    if as_json:
        import msgspec

        typer.echo(msgspec.json.encode(dataclasses.asdict(done)))
        return
    typer.echo(
        f"{done.folder}: {done.rollouts:,} rollouts and {done.prompts:,} prompts in {done.files:,} files"
    )
    typer.echo(f'To read them: polars.read_parquet("{done.folder}/rollouts/*.parquet")', err=True)
