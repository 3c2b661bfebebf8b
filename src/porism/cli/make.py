"""`porism neighbors make`: reads the flags, shows the run, prints what was made."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from porism.cli.options import DryRun, Json, MaxCost, MaxRequests, MaxTokensTotal, Price, resume
from porism.cli.rank import price_of

if TYPE_CHECKING:
    from porism.neighbors.making import Made

EXAMPLE = (
    "Example: porism neighbors make problem.yaml --generator openai/gpt-oss-120b --solver vllm/a --solver vllm/b "
    "--solver vllm/c --program-check"
)


def make(
    file: Annotated[
        Path, typer.Argument(help="A problem file (.yaml, .jsonl, .parquet) or a folder problem.")
    ],
    generator: Annotated[
        str, typer.Option("--generator", "-g", help="The model that proposes, as provider/model-id.")
    ],
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            help="perturb, special-case, sub-skill, related-theorem; repeat for several. [all that can be]",
        ),
    ] = None,
    wanted: Annotated[
        int, typer.Option("-n", "--proposals", help="Proposals of each strategy for each problem.")
    ] = 5,
    text: Annotated[
        Path | None, typer.Option(help="A text to take statements from, such as those of an earlier paper.")
    ] = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(
            "--solver", "-m", help="A model that solves the proposals; several are better. [generator]"
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(help="Solves by each solver. [8 of one, 4 of each of two, 1 of each of more]"),
    ] = None,
    agreement: Annotated[float, typer.Option(help="Least share of all solves with one answer.")] = 0.8,
    program_check: Annotated[
        bool,
        typer.Option(
            "--program-check", help="A program of the first solver must print that answer too (Linux)."
        ),
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write. [FILE, kept as FILE.bak]")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file of -o; a copy is kept as .bak.")
    ] = False,
    as_json: Json = False,
    limit: Annotated[int | None, typer.Option(help="Only the first K problems.")] = None,
    base_url: Annotated[
        list[str] | None,
        typer.Option(
            help="Where the models are served, with or without /v1; given again: several servers share the work."
        ),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Sampling temperature. [1.0; embedded models: 0.5]")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Most tokens of an answer. [16384; embedded models: 1024]")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(help="Most rollouts in flight. [by provider]")] = None,
    max_requests: MaxRequests = None,
    max_tokens_total: MaxTokensTotal = None,
    max_cost: MaxCost = None,
    price: Price = None,
    dry_run: DryRun = False,
) -> None:
    """Make neighbors with a model, and keep those on whose answer independent solves agree.

    What is kept is added to FILE with its votes; what is not is written to FILE.aside.jsonl. The same command resumes.
    """
    import asyncio

    from porism import table
    from porism.display import choose
    from porism.neighbors.make import make as made_by
    from porism.neighbors.making import MakeConfig, plan
    from porism.progress import printable
    from porism.table import print_json

    config = MakeConfig(
        generator=generator,
        strategies=tuple(strategy or ()),
        n=wanted,
        text=text,
        solvers=tuple(solver or ()),
        samples=samples,
        agreement=agreement,
        program_check=program_check,
        output=output,
        force=force,
        limit=limit,
        base_url=tuple(base_url or ()) or None,
        temperature=temperature,
        max_tokens=max_tokens,
        concurrency=concurrency,
        max_requests=max_requests,
        max_tokens_total=max_tokens_total,
        max_cost=max_cost,
        price=price_of(price),
    )
    if dry_run:
        table.show_plan(plan(file, config), as_json=as_json, price=config.price)
        return
    go_on = resume()
    try:
        made = asyncio.run(made_by(file, config, choose()))
    except KeyboardInterrupt:  # before the first call or after the last: all that landed is stored
        typer.echo(f"porism: interrupted\n{go_on}", err=True)
        raise typer.Exit(130) from None
    if as_json:
        print_json(made)
    else:
        _show(made, config.price)
    if made.stopped is not None:
        typer.echo(f"porism: {printable(made.stopped, 2000)}", err=True)
    if made.stopped is not None or made.missing:
        typer.echo(go_on, err=True)
    raise typer.Exit(made.exit_code)


def _show(made: Made, price: tuple[float, float] | None) -> None:
    """The table by strategy over all problems, the reasons, where things lie, and the cost."""
    columns = ("proposed", "malformed", "left out", "in the file", "kept", "set aside", "open")
    rows: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for problem in made.problems:
        for one in problem.strategies:
            row = rows.setdefault(one.name, Counter())
            row += Counter(
                {
                    "proposed": one.proposed,
                    "malformed": sum(one.malformed.values()),
                    "left out": sum(one.dropped.values()),
                    "in the file": one.known,
                    "kept": one.kept,
                    "set aside": sum(one.aside.values()),
                    "open": one.open,
                }
            )
            for name, by_reason in (
                ("malformed", one.malformed),
                ("left out", one.dropped),
                ("set aside", one.aside),
            ):
                reasons.update({f"{name}: {reason}": number for reason, number in by_reason.items()})
    width = max(map(len, rows))
    typer.echo(" ".join([" " * width, *columns]))
    for name, row in rows.items():
        typer.echo(
            " ".join([name.ljust(width), *(str(row[column]).rjust(len(column)) for column in columns)])
        )
    for reason, number in reasons.most_common():
        typer.echo(f"  {number} {reason}")
    if made.file is None:
        kept = any(problem.neighbors for problem in made.problems)
        why = "the file of -o is written when all is decided" if kept else "no new neighbor was kept"
        typer.echo(f"no problem file was written: {why}")
    else:
        typer.echo(f"neighbors  {made.file}")
    if made.aside_file is not None:
        typer.echo(f"set aside  {made.aside_file}")
    if made.protections:
        typer.echo(f"programs ran under: {'; '.join(made.protections)}")
    usage = made.usage
    cost = f"{usage.requests:,} requests, {usage.prompt:,} prompt and {usage.completion:,} completion tokens"
    if price is not None:
        cost += f", about ${(usage.prompt * price[0] + usage.completion * price[1]) / 1e6:,.2f}"
    typer.echo(f"run        {made.run}: {cost}")


__all__ = ["EXAMPLE", "make"]
