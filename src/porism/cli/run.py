"""`porism run`: several methods over a labelled set, as a TOML file says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from porism.cli.options import (
    Address,
    AllowCode,
    Cpus,
    EngineArgs,
    Executor,
    Gpus,
    Json,
    ReplicaCount,
    resume,
)

EXAMPLE = "Example: porism run examples/bench.toml --set limit=4 --dry-run"


def run(
    config: Annotated[Path, typer.Argument(help="A TOML file: data, models, methods, what is compared.")],
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE instead of what the file says, as methods.utility.rollouts=4."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Run folder. [runs/NAME-HASH, found again]")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what each method would ask; ask nothing.")
    ] = False,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="Go on in a run whose methods had other settings.")
    ] = False,
    allow_code: AllowCode = False,
    executor: Executor = None,
    address: Address = None,
    replicas: ReplicaCount = None,
    cpus: Cpus = None,
    gpus: Gpus = None,
    engine_args: EngineArgs = None,
    as_json: Json = False,
) -> None:
    """Run several methods over a labelled set and compare them. The same command resumes and extends a run."""
    import asyncio
    import json

    from porism.bench import table
    from porism.bench.config import read_config
    from porism.bench.run import arun, plan
    from porism.cli.rank import confirm
    from porism.display import choose
    from porism.progress import printable

    cluster = {
        "executor": executor,
        "cluster.address": address,
        "cluster.replicas": replicas,
        "cluster.cpus": cpus,
        "cluster.gpus": gpus,
        "cluster.engine_args": engine_args,
    }
    flags = [f"{key}={json.dumps(value)}" for key, value in cluster.items() if value is not None]
    settings = read_config(config, [*(change or ()), *flags])
    if output is not None:
        settings = settings.model_copy(update={"output": output})
    if dry_run:
        plans = plan(settings, config, allow_code=allow_code)
        table.show_plan(plans, executor=str(settings.placement or "local"), as_json=as_json)
        return
    go_on = resume()
    agreed = (lambda _: True) if accept_changes else confirm
    try:
        result = asyncio.run(arun(settings, config, watch=choose(), confirm=agreed, allow_code=allow_code))
    except KeyboardInterrupt:  # before the first call or after the last: all that landed is stored
        typer.echo(f"porism: interrupted\n{go_on}", err=True)
        raise typer.Exit(130) from None
    table.show(result, as_json=as_json)
    if result.stopped is not None:
        typer.echo(f"porism: {printable(result.stopped, 2000)}", err=True)
    if result.stopped is not None or result.missing:
        typer.echo(go_on, err=True)
    raise typer.Exit(result.exit_code)


__all__ = ["EXAMPLE", "run"]
