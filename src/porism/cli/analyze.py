"""`porism analyze`: what is behind a run's figures, as tables, pictures and a list of candidates to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from porism.cli.options import AllowCode, Json

if TYPE_CHECKING:
    from porism.analyze import Analyses
    from porism.failures import Tags

EXAMPLE = "Example: porism analyze runs/bench-1f2e3d4c5b6a -o analysis --tag openai/gpt-5-mini"


def analyze(
    run: Annotated[Path, typer.Argument(help="A run folder, of `porism run` or `porism rank`.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where tables and pictures go. [RUN/analysis]")
    ] = None,
    tag: Annotated[
        str | None,
        typer.Option("--tag", help="A model that says how wrong candidates fail on which methods disagree."),
    ] = None,
    tag_limit: Annotated[int | None, typer.Option(help="At most so many candidates are tagged.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Where the tagging model is served.")] = None,
    as_json: Json = False,
    allow_code: AllowCode = False,
) -> None:
    """Analyse a run: by hardness, by label, by rollouts, by cost, and where methods disagree. Asks nothing itself."""
    import asyncio

    from porism.analyze import analyze as analyze_run
    from porism.analyze import document, write
    from porism.table import print_json

    folder = output or run / "analysis"
    found = asyncio.run(analyze_run(run, allow_code=allow_code))
    write(found, folder)
    tags = None
    if tag is not None:
        tags = asyncio.run(_tagged(found, tag, folder, base_url=base_url, limit=tag_limit))
    files = write(found, folder, tags)
    if as_json:
        whole = document(found) | {"files": [str(f) for f in files]}
        if tags is not None:
            whole["failures"] = {"model": tags.model, **_counted(found, tags)}
        print_json(whole)
    else:
        _show(found, folder, len(files), tags)
    if tags is not None and tags.stopped is not None:
        from porism.progress import printable

        typer.echo(f"porism: {printable(tags.stopped, 2000)}", err=True)
    raise typer.Exit(tags.exit_code if tags is not None else 0)


async def _tagged(
    found: Analyses, model: str, folder: Path, *, base_url: str | None, limit: int | None
) -> Tags:
    from porism.analysis import Disagreement
    from porism.bench.config import ModelTable
    from porism.display import choose
    from porism.errors import ConfigError
    from porism.failures import tag

    table = found.tables.get("disagreement")
    if not isinstance(table, Disagreement):
        raise ConfigError(f"--tag: there is nothing to tag: {found.left_out['disagreement']}")
    return await tag(
        table.cases,
        {p.id: p for p in found.material.problems},
        model,
        folder / "failures",
        sampling=ModelTable(model=model).sampling,
        base_url=base_url,
        limit=limit,
        watch=choose(),
    )


def _counted(found: Analyses, tags: Tags) -> dict[str, object]:
    """Kinds of failure by which method likes the candidate and which does not."""
    from porism.analysis import Disagreement

    table = found.tables["disagreement"]
    assert isinstance(table, Disagreement)
    pairs = dict.fromkeys((c.liked_by, c.not_by) for c in table.cases)
    by_pair = [
        {
            "liked_by": a,
            "not_by": b,
            "kinds": dict(tags.counts([c for c in table.cases if (c.liked_by, c.not_by) == (a, b)])),
        }
        for a, b in pairs
    ]
    return {
        "asked": tags.asked,
        "unreadable": tags.unreadable,
        "missing": tags.missing,
        "pairs": by_pair,
    }


def _show(found: Analyses, folder: Path, files: int, tags: Tags | None) -> None:
    from porism.analyze import TITLES
    from porism.progress import printable

    for name, table in found.tables.items():
        typer.echo(TITLES[name])
        for line in table.sentences():
            typer.echo(f"  {printable(line, 500)}")
    if tags is not None:
        typer.echo(f"How wrong candidates fail, in the words of {printable(tags.model, 80)}")
        counted = _counted(found, tags)
        assert isinstance(counted["pairs"], list)
        for pair in counted["pairs"]:
            kinds = ", ".join(f"{kind} {number}" for kind, number in pair["kinds"].items()) or "none tagged"
            typer.echo(
                f"  liked by {printable(pair['liked_by'], 40)}, not by {printable(pair['not_by'], 40)}: {kinds}"
            )
        typer.echo(f"  {tags.asked} asked, {tags.unreadable} answers not in the form, {tags.missing} missing")
    for view in found.material.views:
        if view.starved:
            name = printable(view.name, 40)
            typer.echo(f"left out: {view.starved} pools of {name}, in which its allocation gave some up")
    for name, why in found.left_out.items():
        typer.echo(f"left out: {name}: {why}")
    typer.echo(f"{files} files in {folder}")


__all__ = ["EXAMPLE", "analyze"]
