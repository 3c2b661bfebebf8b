"""porism sample: candidates written by a model, added to a problem file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from porism.cli.options import BaseUrl, DryRun, Json, MaxCost, MaxRequests, MaxTokensTotal, Price, resume
from porism.config import DEFAULT_MODEL

if TYPE_CHECKING:
    from porism.sample import Sampled

EXAMPLE = (
    "Examples: porism sample problem.yaml -n 8 --generator local/qwen2.5-coder-1.5b   |   "
    "porism sample set.jsonl -n 16 --generator openai/gpt-5 -o with-candidates.jsonl --dry-run"
)


def sample(
    file: Annotated[Path, typer.Argument(help="A problem file of any format, or a folder problem.")],
    n: Annotated[int, typer.Option("-n", help="Solutions asked of each generator for every problem.")] = 8,
    generator: Annotated[
        list[str] | None,
        typer.Option(
            "--generator", "-g", help=f"Who writes, as provider/model-id; several may. [{DEFAULT_MODEL}]"
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write here. [FILE itself, the old one kept as .bak]"),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file of -o; a copy is kept as .bak.")
    ] = False,
    one_per_answer: Annotated[
        bool, typer.Option("--one-per-answer", help="Keep one candidate for each different final answer.")
    ] = False,
    run: Annotated[
        Path | None, typer.Option("--run", help="Run folder. [runs/NAME-HASH-sample, found again]")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Ask only for the first K problems.")] = None,
    base_url: BaseUrl = None,
    temperature: Annotated[
        float | None, typer.Option(help="Sampling temperature. [1.0; embedded models: 0.8]")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Nucleus sampling. [the server's; embedded models: 0.95]")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Most tokens of a solution. [16384; embedded models: 1024]")
    ] = None,
    template: Annotated[Path | None, typer.Option(help="Your own prompt (jinja2: question).")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Most requests in flight. [by provider]")] = None,
    max_requests: MaxRequests = None,
    max_tokens_total: MaxTokensTotal = None,
    max_cost: MaxCost = None,
    price: Price = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Add candidate solutions written by models. The same command goes on where it stopped; a larger -n adds more.

    What stands in the file stays. Solutions with the same text are dropped; those cut off are marked as truncated.
    """
    import asyncio

    from porism import sample as sampling
    from porism import table
    from porism.cli.rank import price_of
    from porism.display import choose

    settings = {
        "models": tuple(generator or [DEFAULT_MODEL]),
        "rollouts": n,
        "output": run,
        "limit": limit,
        "base_url": base_url,
        "temperature": temperature,
        "top_p": top_p,
        "max_tokens": max_tokens,
        "template": template,
        "concurrency": concurrency,
        "max_requests": max_requests,
        "max_tokens_total": max_tokens_total,
        "max_cost": max_cost,
        "price": price_of(price),
    }
    if dry_run:
        table.show_plan(sampling.plan(file, **settings), as_json=as_json, price=price_of(price))
        return
    watch = choose()
    go_on = resume()
    try:
        result = asyncio.run(
            sampling.asample(
                file, goal=output, force=force, one_per_answer=one_per_answer, watch=watch, **settings
            )
        )
    except KeyboardInterrupt:
        typer.echo(f"porism: interrupted\n{go_on}", err=True)
        raise typer.Exit(130) from None
    finally:
        watch.finished()
    if as_json:
        table.print_json(result)
    _say(result)
    if result.stopped is not None or result.missing:
        typer.echo(go_on, err=True)
    raise typer.Exit(result.exit_code)


def _say(result: Sampled) -> None:
    """What was added and what was not, on stderr."""
    from porism.progress import printable

    for added in result.problems:
        parts = [f"{len(added.candidates)} added"]
        parts += [f"{added.truncated} of them truncated"] * bool(added.truncated)
        parts += [f"dropped {count}: {reason}" for reason, count in added.dropped.items()]
        parts.append(f"{added.answers} different final answers now")
        typer.echo(f"{printable(added.id, 80)}: {', '.join(parts)}", err=True)
    for reason, count in list(result.missing.items())[:10]:
        typer.echo(f"missing: {count} solutions of {printable(reason, 400)}", err=True)
    if result.stopped is not None:
        typer.echo(f"porism: {printable(result.stopped, 2000)}", err=True)
        typer.echo(
            f"{result.solutions} solutions are kept in {result.run}; no problem file is written", err=True
        )
    else:
        typer.echo(f"written: {', '.join(result.written) or 'nothing new'}", err=True)
    usage = result.usage
    typer.echo(
        f"run: {result.run}   {usage.requests:,} requests, {usage.prompt:,} prompt tokens, "
        f"{usage.completion:,} completion tokens",
        err=True,
    )
