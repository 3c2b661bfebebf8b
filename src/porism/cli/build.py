"""porism data build: from labelled problem files to a benchmark set with a card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = (
    "Example: porism data build labelled.jsonl more.yaml -o bench.jsonl --parquet --right 4 --wrong 5 --human "
    "--solve-rate .05,.5 --run runs/labelled-1f2e3d4c5b6a"
)


def build(
    files: Annotated[list[Path], typer.Argument(help="Labelled problem files or folder problems.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The set, a .jsonl file; its card goes beside it as .md.")
    ],
    parquet: Annotated[bool, typer.Option("--parquet", help="Also write the set as .parquet.")] = False,
    right: Annotated[int, typer.Option(help="Right candidates in every pool.")] = 4,
    wrong: Annotated[int, typer.Option(help="Wrong candidates in every pool.")] = 5,
    human: Annotated[
        bool,
        typer.Option(
            "--human",
            help="Add one human solution to every pool: a right candidate with `human`, else the key `solution`.",
        ),
    ] = False,
    solve_rate: Annotated[
        str | None,
        typer.Option(help="LOW,HIGH: only problems the solver solves that often alone; needs --run."),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            help="Run folder of `porism rank` or `porism sample` that holds the solver's own attempts."
        ),
    ] = None,
    variants_per_group: Annotated[int | None, typer.Option(help="Most problems of one group.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed draws other candidates and variants.")] = 0,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that are there; copies are kept as .bak.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="What was kept and left out as JSON on stdout.")
    ] = False,
) -> None:
    """Make a benchmark set: balanced pools of labelled candidates, filters, and a card that counts all of it."""
    from porism.data import load
    from porism.data.build import Recipe, size
    from porism.data.build import build as build_set
    from porism.data.card import card
    from porism.data.parquet import parquet_bytes
    from porism.data.write import as_columns, save
    from porism.errors import ConfigError, InputError

    if output.suffix.lower() != ".jsonl":
        raise ConfigError(f"-o {output}: name a .jsonl file; --parquet writes a .parquet beside it")
    bounds = _bounds(solve_rate)
    if (bounds is None) != (run is None):
        raise ConfigError("--solve-rate and --run go together: the run holds the solver's own attempts")
    recipe = Recipe(
        right=right, wrong=wrong, human=human, solve_rate=bounds, variants=variants_per_group, seed=seed
    )
    targets = [output, *([output.with_suffix(".parquet")] if parquet else []), output.with_suffix(".md")]
    for target in targets:
        if target.exists() and not force:
            raise InputError(f"{target}: exists already; add --force to replace it (a copy is kept as .bak)")
    loaded = [(str(file), load(file).problems) for file in files]
    rates = None
    if run is not None:
        import asyncio

        from porism.solve_rate import solve_rates

        rates = asyncio.run(solve_rates(run, [problem for _, problems in loaded for problem in problems]))
    built = build_set(loaded, recipe, rates)
    lines = [f"read: {built.read[0]} problems, {built.read[1]} candidates"]
    lines += [
        f"  {-step.problems:+} problems, {-step.candidates:+} candidates: {step.what}"
        for step in built.steps
        if step.problems or step.candidates
    ]
    if not built.problems:
        raise InputError("\n".join([f"{output}: no problem is left, so nothing is written", *lines]))
    rows = [as_columns(problem) for problem in built.problems]
    text = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    save(output, text.encode(), force=force)
    if parquet:
        save(targets[1], parquet_bytes(rows), force=force)
    names = [target.name for target in targets[:-1]]
    save(targets[-1], card(built, recipe, files, names, rates).encode(), force=force)
    problems, candidates = size(built.problems)
    lines.append(f"{', '.join(map(str, targets))}: {problems} problems, {candidates} candidates")
    typer.echo("\n".join(lines), err=True)
    if as_json:
        document = {
            "files": [str(target) for target in targets],
            "problems": problems,
            "candidates": candidates,
            "read": {"problems": built.read[0], "candidates": built.read[1]},
            "removed": [
                {"filter": s.what, "problems": s.problems, "candidates": s.candidates} for s in built.steps
            ],
        }
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))


def _bounds(text: str | None) -> tuple[float, float] | None:
    from porism.errors import ConfigError

    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--solve-rate {text}: write two numbers, as in --solve-rate .05,.5") from None
    return low, high
