"""porism capacity: what a run would need of machines, before it is asked for."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from porism.cli.options import Json

if TYPE_CHECKING:
    from porism.capacity import Need

EXAMPLE = (
    "Examples: porism capacity --problems 192 --candidates 10 --neighbors 2 -n 64 --tokens 3000,12000 "
    "--throughput 2500 --replicas 8   |   porism capacity --problems 20 --run runs/pilot-1f2e3d4c5b6a "
    "--throughput 2500 --adaptive 0.5"
)


class Sharing(StrEnum):
    """What of a prompt is computed once."""

    NONE = "none"
    CALLS = "calls"
    PREFIX = "prefix"


def capacity(
    problems: Annotated[int, typer.Option(help="Questions.")] = 1,
    candidates: Annotated[int, typer.Option(help="Candidates of each.")] = 10,
    neighbors: Annotated[int, typer.Option(help="Neighbors of each.")] = 2,
    rollouts: Annotated[
        int, typer.Option("-n", "--rollouts", help="Rollouts of each candidate and neighbor.")
    ] = 8,
    skip_no_example: Annotated[
        bool, typer.Option("--skip-no-example", help="Without the row without example.")
    ] = False,
    target_samples: Annotated[int, typer.Option(help="The solver's own attempts at each question.")] = 4,
    tokens: Annotated[
        str | None,
        typer.Option(
            help="Completion tokens of a rollout: one number, or LOW,HIGH. [3200,12300: the paper's]"
        ),
    ] = None,
    prefix_tokens: Annotated[
        float, typer.Option(help="Tokens of instructions, question and candidate (an assumption; see --run).")
    ] = 4000,
    neighbor_tokens: Annotated[float, typer.Option(help="Tokens of a neighbor (an assumption).")] = 300,
    run: Annotated[
        Path | None, typer.Option(help="Take the tokens of a rollout from this run folder, as measured.")
    ] = None,
    throughput: Annotated[
        str,
        typer.Option(
            help="Completion tokens a second of a replica under load, or the name of a reported figure."
        ),
    ] = "qwen2.5-7b/a10g",
    prefill: Annotated[
        float | None,
        typer.Option(help="Prompt tokens a second of a replica. [not known: left out of the hours]"),
    ] = None,
    sharing: Annotated[
        Sharing,
        typer.Option(help="What is computed once: nothing, a call's prompt, or a candidate's prefix too."),
    ] = Sharing.PREFIX,
    gpus: Annotated[int | None, typer.Option(help="GPUs of a replica. [1]")] = None,
    replicas: Annotated[int, typer.Option(help="Replicas of the model.")] = 1,
    adaptive: Annotated[
        float | None,
        typer.Option(help="Also with this share of the rollouts, as an adaptive allocation leaves."),
    ] = None,
    price: Annotated[float | None, typer.Option(help="Dollars per GPU hour.")] = None,
    as_json: Json = False,
) -> None:
    """GPU hours and wall time of a run, from its counts, its tokens and a throughput. Asks nothing."""
    import dataclasses

    from porism.capacity import PAPER_TOKENS, Machine, Workload, need
    from porism.errors import ConfigError

    notes: list[str] = []
    if tokens is not None and run is not None:
        raise ConfigError("give --tokens or --run, not both")
    lengths = (
        _lengths(tokens) if tokens is not None else [_measured(run)] if run is not None else [*PAPER_TOKENS]
    )
    notes.append(
        f"completion tokens: {'as given' if tokens is not None else f'mean of {run}' if run is not None else PAPER}"
    )
    rate, figure_gpus, source = _throughput(throughput)
    notes.append(f"throughput: {source}")
    if prefill is None:
        notes.append("prefill is not in the hours: its throughput is not known (--prefill)")
    machine = Machine(
        replicas=replicas, gpus=figure_gpus if gpus is None else gpus, throughput=rate, prefill=prefill
    )
    shares = [1.0] if adaptive is None else [1.0, adaptive]
    works = [
        Workload(
            problems=problems,
            candidates=candidates,
            neighbors=neighbors,
            rollouts=rollouts,
            completion_tokens=length,
            prefix_tokens=prefix_tokens,
            neighbor_tokens=neighbor_tokens,
            no_example=not skip_no_example,
            target_samples=target_samples,
        )
        for length in lengths
    ]
    found = [
        (work, need(work, machine, share=share, sharing=sharing.value)) for work in works for share in shares
    ]
    if as_json:
        import msgspec

        rows = [
            {"workload": dataclasses.asdict(work), **dataclasses.asdict(one), "cost": _cost(one, price)}
            for work, one in found
        ]
        document = {"machine": dataclasses.asdict(machine), "needs": rows, "notes": notes}
        typer.echo(msgspec.json.encode(document))
        return
    _table([(work.completion_tokens, one) for work, one in found], price)
    for note in notes:
        typer.echo(note)


PAPER = "the paper's range over its solvers, 3,200 to 12,300"


def _lengths(text: str) -> list[float]:
    from porism.errors import ConfigError

    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not 1 <= len(found) <= 2 or not all(0 < one < float("inf") for one in found):
        raise ConfigError(f"--tokens {text}: one number above 0, or two as LOW,HIGH")
    return found


def _measured(run: Path) -> float:
    """Completion tokens of a rollout in a run folder, on average."""
    from porism.errors import ConfigError
    from porism.totals import totals

    found = totals(run)
    if not found.answered or not found.usage.completion:
        raise ConfigError(f"{run}: nothing was answered there yet; give --tokens instead")
    return found.usage.completion / found.answered


def _throughput(text: str) -> tuple[float, int, str]:
    """Tokens a second of a replica, its GPUs, and where that comes from."""
    from porism.capacity import FIGURES
    from porism.errors import ConfigError

    if (figure := FIGURES.get(text)) is not None:
        return figure.tokens_per_second, figure.gpus, f"{figure.source}; give your own with --throughput"
    try:
        return float(text.replace("_", "")), 1, "as given"
    except ValueError:
        raise ConfigError(f"--throughput {text}: tokens a second, or one of {', '.join(FIGURES)}") from None


def _cost(one: Need, price: float | None) -> float | None:
    return None if price is None else round(one.gpu_hours * price, 2)


def _table(rows: list[tuple[float, Need]], price: float | None) -> None:
    for tokens, one in rows:
        prompts = one.prompt_tokens
        lines: dict[str, Any] = {
            "rollouts": f"{one.rollouts:,} of {tokens:,.0f} completion tokens",
            "completion": f"{one.completion_tokens:,} tokens",
            "prompt": f"{prompts['prefix']:,} tokens with the prefix shared, {prompts['calls']:,} with calls only, "
            f"{prompts['none']:,} with nothing",
            "GPU hours": f"{one.gpu_hours:,.1f}",
            "wall time": _time(one.wall_hours),
        }
        if price is not None:
            lines["cost"] = f"${_cost(one, price):,.2f}"
        typer.echo(one.allocation)
        for name, value in lines.items():
            typer.echo(f"  {name:12}{value}")


def _time(hours: float) -> str:
    if hours >= 48:
        return f"{hours / 24:,.1f} days"
    return f"{hours:.1f} hours" if hours >= 1 else f"{hours * 60:.1f} minutes"
