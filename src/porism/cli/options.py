"""Options that mean the same in every command, and the line that says how to go on: written once."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be asked; ask nothing.")]
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Import and call checkers that answer types name.")
]
BaseUrl = Annotated[
    list[str] | None,
    typer.Option(
        help="Where the model is served, with or without /v1; given again: several servers share the work."
    ),
]
MaxRequests = Annotated[int | None, typer.Option(help="Stop after so many requests (exit 3).")]
MaxTokensTotal = Annotated[int | None, typer.Option(help="Stop after so many tokens (exit 3).")]
MaxCost = Annotated[float | None, typer.Option(help="Stop after so many dollars (exit 3); needs --price.")]
Executor = Annotated[
    str | None,
    typer.Option(
        help="Who asks: this process (local), replicas on a cluster (ray), or batches of Ray Data (ray-data). [local]"
    ),
]
Address = Annotated[
    str | None, typer.Option(help="Ray: auto, HOST:PORT of the head, or local (this machine alone). [auto]")
]
ReplicaCount = Annotated[
    int | None, typer.Option("--replicas", help="Ray: so many actors, each with its engine. [1]")
]
Cpus = Annotated[int | None, typer.Option(help="Ray: CPUs of a replica; threads of an embedded model. [1]")]
Gpus = Annotated[
    int | None, typer.Option(help="Ray: GPUs of a replica, over which its vLLM spreads the model. [1]")
]
EngineArgs = Annotated[
    str | None, typer.Option(help="Ray: more options of vllm serve, as in '--max-model-len 32768'.")
]
Price = Annotated[str | None, typer.Option(help="IN,OUT: dollars per million prompt and completion tokens.")]


def resume() -> str:
    """What to tell a user whose command ended early."""
    return f"porism: to go on: {shlex.join(['porism', *sys.argv[1:]])}"


__all__ = [
    "Address",
    "AllowCode",
    "BaseUrl",
    "Cpus",
    "DryRun",
    "EngineArgs",
    "Executor",
    "Gpus",
    "Json",
    "MaxCost",
    "MaxRequests",
    "MaxTokensTotal",
    "Price",
    "ReplicaCount",
    "resume",
]
