"""`porism rank`: the main job. Reads the flags, shows the run, prints the ranking."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from porism.cli.options import (
    Address,
    AllowCode,
    BaseUrl,
    Cpus,
    DryRun,
    EngineArgs,
    Executor,
    Gpus,
    Json,
    MaxCost,
    MaxRequests,
    MaxTokensTotal,
    Price,
    ReplicaCount,
    resume,
)
from porism.config import DEFAULT_MODEL, EMBEDDED, ROLLOUTS, SERVED

EXAMPLE = (
    "Examples: porism rank examples/necklaces.yaml   |   "
    "porism rank problem.yaml --model vllm/gpt-oss-20b --base-url http://localhost:8000 -n 16"
)


def _default(name: str, what: str) -> str:
    served = SERVED[name] if SERVED[name] is not None else "the server's"
    return f"{what} [{served}; embedded models: {EMBEDDED[name]}]"


def rank(
    file: Annotated[
        Path, typer.Argument(help="A problem file (.yaml, .jsonl, .parquet) or a folder problem.")
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", "-m", help=f"Solver as provider/model-id; several give their mean. [{DEFAULT_MODEL}]"
        ),
    ] = None,
    rollouts: Annotated[
        int, typer.Option("-n", "--rollouts", help="Rollouts for every candidate and neighbor.")
    ] = (ROLLOUTS),
    method: Annotated[str, typer.Option("--method", help="How to score: utility.")] = "utility",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Run folder. [runs/NAME-HASH, found again]")
    ] = None,
    as_json: Json = False,
    limit: Annotated[int | None, typer.Option(help="Only the first K problems.")] = None,
    base_url: BaseUrl = None,
    temperature: Annotated[
        float | None, typer.Option(help=_default("temperature", "Sampling temperature."))
    ] = None,
    top_p: Annotated[float | None, typer.Option(help=_default("top_p", "Nucleus sampling."))] = None,
    top_k: Annotated[int | None, typer.Option(help=_default("top_k", "Sample from the k likeliest."))] = None,
    min_p: Annotated[
        float | None, typer.Option(help=_default("min_p", "Least relative probability."))
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help=_default("max_tokens", "Most tokens of an answer."))
    ] = None,
    template: Annotated[
        Path | None, typer.Option(help="Your own prompt (jinja2: question, candidate, neighbor).")
    ] = None,
    solve_template: Annotated[
        Path | None, typer.Option(help="Your own prompt without example (question).")
    ] = None,
    skip_no_example: Annotated[
        bool, typer.Option("--skip-no-example", help="Leave out the row without example.")
    ] = False,
    target_samples: Annotated[int, typer.Option(help="The solver's own attempts at the question.")] = 4,
    concurrency: Annotated[int | None, typer.Option(help="Most rollouts in flight. [by provider]")] = None,
    max_requests: MaxRequests = None,
    max_tokens_total: MaxTokensTotal = None,
    max_cost: MaxCost = None,
    price: Price = None,
    calibration: Annotated[
        Path | None, typer.Option(help="A file of `porism calibrate`: print P(right) as well.")
    ] = None,
    prior: Annotated[
        float | None, typer.Option(help="The share of right candidates in these pools. [a range is shown]")
    ] = None,
    dry_run: DryRun = False,
    accept_changes: Annotated[
        bool,
        typer.Option("--accept-changes", help="Go on in a run made with another model, prompt or sampling."),
    ] = False,
    allow_code: AllowCode = False,
    allocation: Annotated[
        str | None,
        typer.Option(
            help="Share rollouts out: toptwo, lucb, halving; uniform stops early only. [evenly, all]"
        ),
    ] = None,
    goal: Annotated[
        str | None, typer.Option(help="Of the allocation: best, top-k or ranking. [best]")
    ] = None,
    top: Annotated[int | None, typer.Option(help="The k of top-k. [3]")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Differences in utility that do not matter. [0.05]")
    ] = None,
    confidence: Annotated[float | None, typer.Option(help="Of what the allocation claims. [0.95]")] = None,
    executor: Executor = None,
    address: Address = None,
    replicas: ReplicaCount = None,
    cpus: Cpus = None,
    gpus: Gpus = None,
    engine_args: EngineArgs = None,
    show: Annotated[
        bool, typer.Option("--open", help="At the end write the report and open it in the browser.")
    ] = False,
) -> None:
    """Rank the candidates of each problem by their consequences. The same command resumes and extends a run."""
    import asyncio

    from porism import prepare, run, table
    from porism.cli.report import browse
    from porism.display import choose
    from porism.errors import ConfigError
    from porism.progress import printable
    from porism.report import need_extra, write

    if method != "utility":
        raise ConfigError(f"--method {method}: the method is utility")
    settings: dict[str, Any] = {
        "rollouts": rollouts,
        "output": output,
        "limit": limit,
        "base_url": base_url,
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "min_p": min_p,
        "max_tokens": max_tokens,
        "template": template,
        "solve_template": solve_template,
        "no_example": not skip_no_example,
        "target_samples": target_samples,
        "concurrency": concurrency,
        "max_requests": max_requests,
        "max_tokens_total": max_tokens_total,
        "max_cost": max_cost,
        "price": price_of(price),
        "accept_changes": accept_changes,
        "allow_code": allow_code,
        "calibration": calibration,
        "prior": prior,
        "allocation": allocation,
        "goal": goal,
        "top": top,
        "epsilon": epsilon,
        "confidence": confidence,
        "executor": executor or "local",
        "address": address,
        "replicas": replicas,
        "cpus": cpus,
        "gpus": gpus,
        "engine_args": engine_args,
        "models": tuple(model or [DEFAULT_MODEL]),
    }
    if dry_run:
        table.show_plan(prepare.plan(file, **settings), as_json=as_json, price=price_of(price))
        return
    if show:
        need_extra()
    watch = choose()
    go_on = resume()
    try:
        result = asyncio.run(run.arank(file, watch=watch, confirm=confirm, **settings))
    except KeyboardInterrupt:  # before the first call or after the last: all that landed is stored
        typer.echo(f"porism: interrupted\n{go_on}", err=True)
        raise typer.Exit(130) from None
    table.show(result, as_json=as_json)
    if result.stopped is not None:
        typer.echo(f"porism: {printable(result.stopped, 2000)}", err=True)
    if result.stopped is not None or result.missing:
        typer.echo(go_on, err=True)
    if show:
        page = Path(result.run, "report.html")
        asyncio.run(write(Path(result.run), page))
        browse(page.resolve().as_uri())
    raise typer.Exit(result.exit_code)


def confirm(differences: Sequence[str]) -> bool:
    """Ask the person at the terminal; elsewhere the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    typer.echo("This run folder was made with other settings:", err=True)
    for line in differences:
        typer.echo(f"  {line[:300]}", err=True)
    return typer.confirm("Go on in it? Answers under both settings are kept; the new ones count.", err=True)


def price_of(text: str | None) -> tuple[float, float] | None:
    """The two prices that --price IN,OUT names. ConfigError where it does not."""
    if text is None:
        return None
    from porism.errors import ConfigError

    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--price {text}: write two numbers, as in --price 0.15,0.60") from None
    return low, high
