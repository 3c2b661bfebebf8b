"""porism neighbors draw: look at what a family gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from porism.cli.options import Json

if TYPE_CHECKING:
    from porism.neighbors.family import RunCode
    from porism.types import Neighbor

EXAMPLE = "Example: porism neighbors draw examples/families/necklaces.yaml -n 5"


def draw(
    file: Annotated[
        Path,
        typer.Argument(help="A family in YAML or JSON, or a problem file with one problem that has one."),
    ],
    n: Annotated[
        int | None,
        typer.Option("-n", min=1, help="How many neighbors; by default 5, or as the problem says."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Other seeds draw other neighbors.")
    ] = None,
    as_json: Json = False,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Run an answer rule that is python:package.module:function.")
    ] = False,
) -> None:
    """Draw neighbors from a family, as they stand in a problem file under `neighbors`.

    Every answer follows from the family's rule; the same seed draws the same neighbors. Of a problem, those are shown
    that `porism rank` would draw.
    """
    from porism.data.write import as_dict
    from porism.neighbors.code import run_code

    neighbors = [as_dict(item) for item in _drawn(file, n, seed, run_code if allow_code else None)]
    if as_json:
        typer.echo(json.dumps({"file": str(file), "neighbors": neighbors}, ensure_ascii=False, indent=2))
    else:
        from porism.data.yamlwrite import yaml_text

        typer.echo(yaml_text([{"neighbors": neighbors}]), nl=False)


def _drawn(file: Path, n: int | None, seed: int | None, run: RunCode | None) -> Sequence[Neighbor]:
    from dataclasses import replace

    from porism.data import read_problems
    from porism.errors import DataError
    from porism.neighbors.definition import read_family
    from porism.neighbors.expand import NEIGHBORS, expanded

    mapping = family_mapping(file)
    if "family" not in mapping:
        if "candidates" in mapping or "neighbors" in mapping:
            raise DataError([f"{file}: family: is missing; a problem without one has nothing to draw from"])
        return read_family(mapping).draw(n or NEIGHBORS, seed or 0, run=run)
    (problem,) = read_problems(file)
    if problem.family is None:
        raise DataError([f"{file}: family: is empty"])
    told = {key: value for key, value in (("neighbors", n), ("seed", seed)) if value is not None}
    return expanded(replace(problem, family=problem.family | told), run=run).neighbors[
        len(problem.neighbors) :
    ]


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
