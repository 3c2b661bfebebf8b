"""porism models: the embedded models, and a first word with any model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from porism.cli.options import Json

if TYPE_CHECKING:
    from porism.types import Model

app = typer.Typer(
    name="models", help="The embedded models, and a trial of any model or endpoint.", no_args_is_help=True
)

AsJson = Json


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
    base_url: Annotated[
        list[str] | None,
        typer.Option(help="Where it is served, with or without /v1; given again: each in turn."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a model a few tiny questions, and tell what serves it and how it behaves.

    Shows what the server is, its context, how long it took, what it counts, and whether seeds, several answers a call
    and log-probabilities are honored; and how to start it well for this work. A server that returns the same answer
    again and again makes every rollout after the first worthless.
    """
    import asyncio

    from porism.models import open_model

    found = asyncio.run(_pings(open_model(model, base_url=base_url)))
    if as_json:
        document = found[0] if len(found) == 1 else {"endpoints": found}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        for each in found:
            _show(each)
    if any("error" in each for each in found):
        raise typer.Exit(1)


async def _pings(model: Model) -> list[dict[str, Any]]:
    """One document a server. Where there are several, one that fails is told and does not hide the others."""
    from porism.errors import ModelError
    from porism.models.fleet import Fleet

    async with model:
        if not isinstance(model, Fleet):
            return [await _one(model)]
        found = []
        for server in model.models:
            try:
                found.append(await _one(server))
            except ModelError as error:
                found.append({"model": server.name, "base_url": server.base_url, "error": str(error)})
        return found


async def _one(model: Model) -> dict[str, Any]:
    import msgspec

    from porism.models.ping import ping as ping_

    found = await ping_(model)
    first, server = found.completion, found.server
    return {
        "model": model.name,
        "identity": model.identity,
        "base_url": getattr(model, "base_url", None),
        "server": None if server is None else msgspec.to_builtins(server),
        "answer": " ".join((first.text or first.reasoning).split())[:200],
        "finish_reason": first.finish_reason,
        "seconds": round(found.seconds, 3),
        "context": model.context or (server.context if server else None),
        "concurrency": model.concurrency,
        "max_n": model.max_n,
        "usage": {
            "prompt": found.usage.prompt,
            "completion": found.usage.completion,
            "prompt_again": found.again.prompt,
            "cached_again": found.again.cached,
            "counted": found.usage.counted,
        },
        "honors": msgspec.to_builtins(found.honors),
        "warnings": found.warnings,
        "advice": found.advice,
    }


def _show(found: dict[str, Any]) -> None:
    from porism.progress import printable

    if "error" in found:
        typer.echo(f"{found['model']} at {found['base_url']} failed: {printable(found['error'], 500)}")
        return
    usage, server = found["usage"], found["server"]
    counted = "as the server counts" if usage["counted"] else "our estimate: the server does not count"
    answer = printable(found["answer"])
    typer.echo(f"{found['model']} answered in {found['seconds']:.2f} s: {answer!r}")
    typer.echo(f"  identity      {found['identity']}")
    typer.echo(f"  at            {found['base_url'] or 'a process of ours'}")
    if server is not None:
        slots = f", {server['at_once']} requests at once" if server["at_once"] else ""
        typer.echo(f"  server        {server['program']} {server['version'] or ''}".rstrip() + slots)
    typer.echo(f"  context       {found['context'] or 'unknown'} tokens")
    typer.echo(f"  a call        up to {found['max_n']} answers; up to {found['concurrency']} calls at once")
    typer.echo(f"  tokens        {usage['prompt']} + {usage['completion']} ({counted})")
    typer.echo(
        f"  when repeated {usage['cached_again']} of {usage['prompt_again']} prompt tokens from its cache"
    )
    words = {True: "yes", False: "no", None: "unknown"}
    told = ", ".join(f"{name.replace('_', ' ')} {words[value]}" for name, value in found["honors"].items())
    typer.echo(f"  honors        {told}")
    for warning in found["warnings"]:
        typer.echo(f"  warning: {warning}")
    for line in found["advice"]:
        typer.echo(f"  advice: {line}")


__all__ = ["app"]
