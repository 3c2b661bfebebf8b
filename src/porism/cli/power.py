"""`porism power`: how many neighbors and rollouts it takes to tell the best candidate apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from porism.cli.options import AllowCode, Json

if TYPE_CHECKING:
    from porism.power import Draw, Power

EXAMPLE = (
    "Examples: porism power --best 0.5 --others 0.2 --candidates 10   |   "
    "porism power --run runs/necklaces-1f2e3d4c5b6a --target 0.9"
)
_BARS = " ▁▂▃▄▅▆▇█"


def power(
    best: Annotated[float | None, typer.Option(help="Guess: the best candidate's solve rate.")] = None,
    others: Annotated[float | None, typer.Option(help="Guess: the solve rate of the rest.")] = None,
    candidates: Annotated[int, typer.Option(help="Guess: how many candidates.")] = 10,
    spread: Annotated[
        float, typer.Option(help="Guess: how neighbors differ in difficulty (standard deviation, log odds).")
    ] = 0.5,
    run: Annotated[
        Path | None, typer.Option("--run", help="A pilot run: its solve rates instead of a guess.")
    ] = None,
    target: Annotated[float, typer.Option(help="The wanted chance that the best is told apart.")] = 0.8,
    neighbors: Annotated[str, typer.Option(help="Numbers of neighbors to try.")] = "1,2,3,5,8",
    rollouts: Annotated[str, typer.Option("-n", "--rollouts", help="Rollouts a neighbor to try.")] = (
        "4,8,16,32,64"
    ),
    runs: Annotated[int, typer.Option(help="Simulated rankings of each design.")] = 300,
    allow_code: AllowCode = False,
    as_json: Json = False,
) -> None:
    """Tell how many neighbors and rollouts it takes to tell the best candidate apart. Asks no model anything."""
    from porism import power as simulation
    from porism.errors import ConfigError

    if not 0 < target < 1 or runs < 1 or spread < 0:
        raise ConfigError("--target lies between 0 and 1, --runs is at least 1, --spread at least 0")
    given = best is not None and others is not None
    if given == (run is not None) or (best is None) != (others is None):
        raise ConfigError("give either --best and --others, or --run with a pilot run")
    if best is not None and others is not None:
        if not 0 <= others <= best <= 1 or candidates < 2:
            raise ConfigError(
                "solve rates lie between 0 and 1, --best is not below --others, --candidates is at least 2"
            )
        pools = [simulation.guess(best, others, candidates, spread=spread)]
    else:
        assert run is not None
        pools = _pilots(run, allow_code=allow_code)
    found = simulation.power(
        pools,
        target=target,
        neighbors=_numbers("--neighbors", neighbors),
        rollouts=_numbers("--rollouts", rollouts),
        runs=runs,
    )
    if as_json:
        from porism.table import print_json

        print_json(found)
    else:
        _show(found)


def _pilots(run: Path, *, allow_code: bool) -> list[Draw]:
    import asyncio

    from porism.errors import InputError
    from porism.power import pilot
    from porism.run import score

    pools = []
    for ranking in asyncio.run(score(run, allow_code=allow_code)).problems:
        counts = [[place.by_neighbor[n.id].counts for n in ranking.neighbors] for place in ranking.ranking]
        if len(counts) > 1 and all(c.decided > 1 for row in counts for c in row):
            pools.append(pilot(counts))
    if not pools:
        raise InputError(
            f"{run}: no problem here has two candidates with two decided rollouts on every neighbor: "
            "run porism rank with -n 4 or more first"
        )
    return pools


def _numbers(option: str, text: str) -> list[int]:
    from porism.errors import ConfigError

    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        numbers = [0]
    if not 1 <= numbers[0] <= numbers[-1] <= 10_000:
        raise ConfigError(f"{option} {text}: write whole numbers of at least 1, as in {option} 2,4,8")
    return numbers


def _show(found: Power) -> None:
    """The chances that the best is told apart from all others, as figures and bars."""
    columns = sorted({design.rollouts for design in found.designs})
    rows: dict[int, dict[int, float]] = {design.neighbors: {} for design in found.designs}
    for design in found.designs:
        rows[design.neighbors][design.rollouts] = design.alone
    typer.echo("chance that the best candidate is told apart from all others")
    typer.echo("neighbors" + "".join(f"{f'n = {n}':>9}" for n in columns))
    for number, row in rows.items():
        typer.echo(f"{number:>9}" + "".join(f"{_BARS[round(8 * row[n])]:>4}{row[n]:5.2f}" for n in columns))
    typer.echo(f"n: rollouts of each candidate on each neighbor; {found.runs} simulated rankings each")
    typer.echo(found.message)


__all__ = ["EXAMPLE", "power"]
