"""porism neighbors draw: look at what a family gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLE = "Example: porism neighbors draw examples/families/necklaces.yaml -n 5"


def draw(
    file: Annotated[Path, typer.Argument(help="A family in YAML or JSON.")],
    n: Annotated[int, typer.Option("-n", min=1, help="How many neighbors.")] = 5,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Other seeds draw other neighbors.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Run an answer rule that is python:package.module:function.")
    ] = False,
) -> None:
    """Draw neighbors from a family, as they stand in a problem file under `neighbors`.

    Every answer follows from the family's rule; the same seed draws the same neighbors.
    """
    from porism.data.write import as_dict
    from porism.neighbors.code import run_code
    from porism.neighbors.definition import read_family

    family = read_family(family_mapping(file))
    drawn = [as_dict(item) for item in family.draw(n, seed, run=run_code if allow_code else None)]
    if as_json:
        document = {"family": family.name, "seed": seed, "neighbors": drawn}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        from porism.data.yamlwrite import yaml_text

        typer.echo(yaml_text([{"neighbors": drawn}]), nl=False)


def family_mapping(file: Path) -> dict[str, Any]:
    """What stands in a family file. DataError with what cannot be read in it."""
    from porism.data.families import read_family_file
    from porism.data.finding import FileFaultError, key_text
    from porism.data.rows import settled
    from porism.errors import DataError

    try:
        value, faults = settled(read_family_file(file))
    except FileFaultError as fault:
        raise DataError([str(fault)]) from None
    if faults:
        raise DataError([f"{file}: {key_text(path)}: {message}" for _, path, message in faults])
    return value
