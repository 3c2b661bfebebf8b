"""porism models: the embedded models, and a first word with any model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from porism.types import Model

app = typer.Typer(
    name="models", help="The embedded models, and a trial of any model or endpoint.", no_args_is_help=True
)

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


@app.command("list", epilog="Example: porism models list")
def list_models(as_json: AsJson = False) -> None:
    """The embedded models: name, size, license, and whether each is on this machine."""
    from porism.models.catalog import CATALOG, is_cached

    rows: list[dict[str, Any]] = [
        {
            "name": f"local/{model.name}",
            "bytes": model.size,
            "license": model.license,
            "sha256": model.sha256,
            "path": str(model.path) if is_cached(model) else None,
        }
        for model in CATALOG.values()
    ]
    if as_json:
        typer.echo(json.dumps({"models": rows}, indent=2))
        return
    for row in rows:
        where = row["path"] or "not downloaded"
        typer.echo(f"{row['name']:26} {row['bytes'] / 1e6:6.0f} MB   {row['license']}   {where}")


@app.command(epilog="Example: porism models pull qwen2.5-coder-0.5b")
def pull(
    name: Annotated[str, typer.Argument(help="A name from `porism models list`, with or without local/.")],
) -> None:
    """Download an embedded model, check it, and print where it lies.

    An interrupted download goes on where it was. PORISM_CACHE names another folder than the user's cache;
    HF_ENDPOINT a mirror of the hub.
    """
    from porism.models import catalog

    typer.echo(catalog.pull(catalog.find(name.removeprefix("local/"))))


@app.command(epilog="Example: porism models ping vllm/Qwen/Qwen3-8B --base-url http://127.0.0.1:8000/v1")
def ping(
    model: Annotated[str, typer.Argument(help="provider/model-id, as in `porism rank --model`.")],
    base_url: Annotated[str | None, typer.Option(help="Where it is served, with or without /v1.")] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a model one tiny question, and tell how it behaves.

    Shows how long it took, what it counts, and whether seeds and several answers a call are honored: a server
    that returns the same answer again and again makes every rollout after the first worthless.
    """
    import asyncio

    from porism.models import open_model

    found = asyncio.run(_trial(open_model(model, base_url=base_url)))
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, indent=2))
        return
    usage = found["usage"]
    counted = "as the server counts" if usage["counted"] else "our estimate: the server does not count"
    typer.echo(f"{found['model']} answered in {found['seconds']:.2f} s: {found['answer']!r}")
    typer.echo(f"  identity      {found['identity']}")
    typer.echo(f"  at            {found['base_url'] or 'a process of ours'}")
    typer.echo(f"  context       {found['context'] or 'unknown'} tokens")
    typer.echo(f"  a call        up to {found['max_n']} answers; up to {found['concurrency']} calls at once")
    typer.echo(f"  tokens        {usage['prompt']} + {usage['completion']} ({counted})")
    typer.echo(f"  when repeated {usage['cached_again']} of {usage['prompt']} prompt tokens from its cache")
    for warning in found["warnings"]:
        typer.echo(f"  warning: {warning}")
    if not found["warnings"]:
        typer.echo("  seeds honored, answers drawn anew")


async def _trial(model: Model) -> dict[str, Any]:
    import time

    from porism.types import Call, Message, Prompt, Sampling

    async with model:
        prompt = Prompt(
            model.identity, (Message("user", "Say hello in one short sentence."),), Sampling(max_tokens=64)
        )
        start = time.perf_counter()
        reply = await model.generate(Call(prompt, 0))
        seconds = time.perf_counter() - start
        again = await model.generate(Call(prompt, 1))
        warnings = await model.probe()
        first = reply.completions[0]
        return {
            "model": model.name,
            "identity": model.identity,
            "base_url": getattr(model, "base_url", None),
            "answer": " ".join((first.text or first.reasoning).split())[:200],
            "finish_reason": first.finish_reason,
            "seconds": round(seconds, 3),
            "context": model.context,
            "concurrency": model.concurrency,
            "max_n": model.max_n,
            "usage": {
                "prompt": reply.usage.prompt,
                "completion": reply.usage.completion,
                "cached_again": again.usage.cached,
                "counted": reply.usage.counted,
            },
            "warnings": warnings,
        }


__all__ = ["app"]
