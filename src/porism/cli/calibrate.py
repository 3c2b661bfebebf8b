"""`porism calibrate`: from the scores of a labelled run to probabilities of being right, and how good they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from porism.cli.options import AllowCode, Json

if TYPE_CHECKING:
    from porism.calibrate import Measured
    from porism.right import Calibrated

EXAMPLE = "Example: porism calibrate runs/bench-1f2e3d4c5b6a --with judge -o calibration.json"


def calibrate(
    run: Annotated[Path, typer.Argument(help="The folder of a labelled run.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where the calibration goes, for `porism rank --calibration`."),
    ] = None,
    method: Annotated[
        str, typer.Option("--method", help="The utility method, by its name in the run.")
    ] = "utility",
    others: Annotated[
        str | None,
        typer.Option("--with", help="Other methods, parted by commas: measured alone and together."),
    ] = None,
    features: Annotated[
        str,
        typer.Option(
            help="What the calibration is made of: utility, lift, margin, spread, methods of --with."
        ),
    ] = "utility",
    force: Annotated[
        bool, typer.Option("--force", help="Replace an older file; it is kept as FILE.bak.")
    ] = False,
    as_json: Json = False,
    allow_code: AllowCode = False,
) -> None:
    """Fit P(right) on labelled candidates and measure it on groups it has not seen. Asks nothing."""
    import asyncio

    from porism.right import calibrate as calibrate_run
    from porism.table import print_json

    found = asyncio.run(
        calibrate_run(
            run, method=method, others=_names(others), chosen=_names(features), allow_code=allow_code
        )
    )
    if output is not None:
        from porism.analysis.pictures import reliability_picture
        from porism.calibrate import save
        from porism.data.write import save as put

        save(found.calibration, output, force=force)
        put(output.with_suffix(".svg"), reliability_picture([*found.sets.items()]).encode(), force=force)
    if as_json:
        print_json(found)
        return
    _show(found)
    if output is not None:
        typer.echo(f"calibration: {output}   reliability: {output.with_suffix('.svg')}")


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name for part in (text or "").split(",") if (name := part.strip()))


def _show(found: Calibrated) -> None:
    from rich.console import Console
    from rich.table import Table

    from porism.progress import printable

    console = Console(highlight=False, width=None if Console().is_terminal else 120)
    table = Table(box=None, pad_edge=False)
    table.add_column("features", no_wrap=True)
    for name in ("log loss", "Brier", "accuracy", "ECE"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, a in found.sets.items():
        table.add_row(printable(name, 40), *map(_measured, (a.log_loss, a.brier, a.accuracy, a.ece)))
    console.print(table)
    made = found.calibration
    own = made.assessment
    left = f"; {found.left_out} without some score left out" if found.left_out else ""
    for line in (
        f"on unseen groups, with 95 % intervals by group: {own.n} candidates in {own.groups} groups{left}",
        f"always saying the share of right ones has a log loss of {own.base_log_loss:.3f}; perfect probabilities of so "
        f"many candidates show an ECE of about {own.ece_chance:.3f}",
    ):
        console.print(line, markup=False, soft_wrap=True)
    console.print()
    rows = Table(box=None, pad_edge=False)
    for name in ("predicted P(right)", "candidates", "mean predicted", "share right", "95 %"):
        rows.add_column(name, justify="right", no_wrap=True)
    for b in own.reliability:
        span = f"{b.ci95[0]:.2f}-{b.ci95[1]:.2f}"
        rows.add_row(f"{b.low:.1f}-{b.high:.1f}", str(b.n), f"{b.predicted:.2f}", f"{b.right:.2f}", span)
    console.print(rows)
    parts = zip(made.features, made.coefficients, made.means, made.scales, strict=True)
    terms = " ".join(
        f"{w:+.2f} * ({printable(name, 40)} - {mean:.3g}) / {scale:.3g}" for name, w, mean, scale in parts
    )
    console.print(
        f"calibration of {', '.join(made.features)}: log odds = {made.intercept:.2f} {terms}, where "
        f"{made.base_rate:.0%} of candidates are right",
        markup=False,
        soft_wrap=True,
    )


def _measured(found: Measured) -> str:
    span = f" ({found.ci95[0]:.3f} .. {found.ci95[1]:.3f})" if found.ci95 else ""
    return f"{found.value:.3f}{span}"


__all__ = ["EXAMPLE", "calibrate"]
