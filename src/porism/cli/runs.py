"""Commands that look at a run folder and cost no token: `score` and `status`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from porism.cli.options import AllowCode, Json

if TYPE_CHECKING:
    from porism.store import Store

Run = Annotated[Path, typer.Argument(help="A run folder.")]


def score(run: Run, as_json: Json = False, allow_code: AllowCode = False) -> None:
    """Rank again from what a run folder holds, without asking anything."""
    import asyncio

    from porism import table
    from porism.run import score as score_run
    from porism.store import Store

    with Store(run, write=False) as store:
        benchmark = _is_benchmark(store)
    if benchmark:
        from porism.bench import table as bench_table
        from porism.bench.run import score as score_benchmark

        bench_table.show(asyncio.run(score_benchmark(run, allow_code=allow_code)), as_json=as_json)
        return
    table.show(asyncio.run(score_run(run, allow_code=allow_code)), as_json=as_json)


def status(run: Run) -> None:
    """How far a run is: answered, missing, tokens, failed attempts."""
    from dataclasses import replace

    from porism.methods.utility import Utility
    from porism.store import Store
    from porism.stored import stored_methods
    from porism.totals import planned, totals

    found = totals(run)
    with Store(run, write=False) as store:  # for the settings alone: its index is not read
        settings = store.read_json("run.json") or {}
        problems, methods = stored_methods(store)
    adaptive = any(isinstance(m, Utility) and m.allocation is not None for m in methods)
    # An allocation asks no more than rollouts shared out evenly.
    most = [replace(m, allocation=None) if isinstance(m, Utility) else m for m in methods]
    plan = planned(problems, most)
    owed = sum(len(numbers - found.rollouts.get(key, set())) for key, numbers in plan.items())
    still = "at most" if adaptive else f"{owed} of them still to be asked"
    typer.echo(f"run        {run}")
    typer.echo(f"models     {', '.join(settings.get('models', {})) or 'unknown'}")
    typer.echo(f"answered   {found.answered} rollouts, {found.missing} missing")
    typer.echo(f"planned    {sum(map(len, plan.values()))} rollouts, {still}")
    typer.echo(
        f"tokens     {found.usage.prompt:,} prompt ({found.usage.cached:,} from cache), "
        f"{found.usage.completion:,} completion, in {found.usage.requests:,} requests"
    )
    typer.echo(f"failures   {found.failures} attempts (errors.jsonl)")
    if found.torn:
        typer.echo(f"torn       {found.torn} unreadable lines: asked again by the same command")
    for session in settings.get("sessions", []):
        end = session.get("ended", "not ended: running, or killed")
        typer.echo(f"session    {session['started']} .. {end}  {session.get('stopped') or ''}".rstrip())


def _is_benchmark(store: Store) -> bool:
    from porism.stored import is_benchmark

    return is_benchmark(store.read_json("run.json"))
