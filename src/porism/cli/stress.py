"""`porism stress`: copies of candidates in another style, and what they did to a run's scores."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from porism.cli.options import BaseUrl, Json, MaxRequests

if TYPE_CHECKING:
    from porism.stress.shifts import Shift
    from porism.types import Problem, Usage

EXAMPLE = "Examples: porism stress problem.yaml -o stressed.yaml   |   porism stress --run runs/stressed-1f2e3d4c5b6a"
TEMPERATURE, MAX_TOKENS = 0.7, 4096


def stress(
    file: Annotated[Path | None, typer.Argument(help="A problem file or a folder problem.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where the problems with copies go.")
    ] = None,
    style: Annotated[
        list[str] | None,
        typer.Option("--style", help="padding, confident, authoritative, terse, reformatted. [all of them]"),
    ] = None,
    generator: Annotated[
        str | None,
        typer.Option("--generator", help="A model that rewrites, as provider/model-id. [fixed rules]"),
    ] = None,
    base_url: BaseUrl = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="A run over a file with copies: report what the styles did.")
    ] = None,
    max_requests: MaxRequests = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUTPUT; a copy is kept as .bak.")] = False,
    as_json: Json = False,
) -> None:
    """Copy every candidate into other styles without touching its mathematics; rank the file; see what moved.

    Copies keep their original's label and name it in `derived_from`.
    """
    from porism.errors import ConfigError
    from porism.stress.rules import STYLES

    if (file is None) == (run is None):
        raise ConfigError("give a problem file to make copies, or --run RUN to see what they did")
    if run is not None:
        _report(run, as_json=as_json)
        return
    if output is None:
        raise ConfigError("-o OUTPUT: say where the problems with copies go")
    styles = tuple(style or STYLES)
    for name in styles:
        if name not in STYLES:
            raise ConfigError(f"--style {name}: styles are {', '.join(STYLES)}")
    assert file is not None
    _make(file, output, styles, generator, base_url, max_requests, force=force)


def _make(
    file: Path,
    output: Path,
    styles: tuple[str, ...],
    generator: str | None,
    base_url: list[str] | None,
    max_requests: int | None,
    *,
    force: bool,
) -> None:
    from porism.data import read_problems, write_problems
    from porism.errors import InputError
    from porism.stress.make import by_rules

    problems = read_problems(file)
    if output.exists() and not force:
        raise InputError(
            f"{output}: exists already; give another name, or --force (the file is kept as .bak)"
        )
    if generator is None:
        made, code = [by_rules(problem, styles) for problem in problems], 0
    else:
        made, code = _by_model(problems, styles, generator, base_url, max_requests)
    if code not in (0, 1):
        raise typer.Exit(code)
    write_problems(made, output, force=force)
    copies = sum(len(m.candidates) - len(p.candidates) for m, p in zip(made, problems, strict=True))
    then = f"; next: porism rank {output}" if copies else ""
    typer.echo(f"{output}: {copies} copies in {len(styles)} styles{then}", err=True)
    raise typer.Exit(code)


def _by_model(
    problems: list[Problem],
    styles: tuple[str, ...],
    model: str,
    base_url: list[str] | None,
    max_requests: int | None,
) -> tuple[list[Problem], int]:
    import asyncio
    from collections import Counter

    from porism.budget import Budget
    from porism.data import data_hash
    from porism.display import choose
    from porism.generate import Generated, Generator, Request
    from porism.stress.make import by_model, originals, request
    from porism.types import Sampling

    keys = {
        f"{number}/{candidate.id}/{style}": (number, candidate, style)
        for number, problem in enumerate(problems)
        for candidate in originals(problem)
        for style in styles
    }
    requests = [Request(key, request(candidate, style)) for key, (_, candidate, style) in keys.items()]
    folder = Path("runs") / f"stress-{data_hash(problems)}"

    async def ask() -> Generated:
        sampling = Sampling(temperature=TEMPERATURE, max_tokens=MAX_TOKENS)
        async with Generator(
            folder,
            (model,),
            sampling=sampling,
            base_url=base_url,
            budget=Budget(requests=max_requests),
            watch=choose(),
        ) as asked:
            return await asked.ask(requests)

    got = asyncio.run(ask())
    if got.stopped is not None:
        typer.echo(f"porism: {got.stopped}; nothing is written, and the same command goes on", err=True)
        return problems, got.exit_code
    made, refused = [], Counter[str]()
    for number, problem in enumerate(problems):
        answers = {
            (candidate.id, style): got.answers[key][0]
            for key, (n, candidate, style) in keys.items()
            if n == number
        }
        copied, why = by_model(problem, answers, model)
        made.append(copied)
        refused += why
    for reason, count in refused.most_common():
        typer.echo(f"{count} copies refused: {reason}", err=True)
    _cost(got.usage, folder)
    return made, got.exit_code


def _cost(usage: Usage, folder: Path) -> None:
    typer.echo(
        f"run: {folder}   {usage.requests:,} requests, {usage.completion:,} completion tokens", err=True
    )


def _report(run: Path, *, as_json: bool) -> None:
    import asyncio

    from porism.engine import replay
    from porism.errors import InputError
    from porism.store import Store
    from porism.stored import stored_methods
    from porism.stress.shifts import shifts
    from porism.verify.pool import Verifier

    async def scored() -> dict[str, list[Shift]]:
        with Store(run, write=False) as store:
            problems, methods = stored_methods(store)
            async with Verifier() as checker:
                seen = await replay(store, checker, problems, methods)
        return {
            method.name: shifts(
                problems,
                {
                    p.id: {
                        id: s.value for id, s in method.score(p, seen.get((p.id, method.name), [])).items()
                    }
                    for p in problems
                },
            )
            for method in methods
        }

    found = {name: moved for name, moved in asyncio.run(scored()).items() if moved}
    if not found:
        raise InputError(
            f"{run}: no scored candidate here is a copy in another style; porism stress FILE makes them"
        )
    _show(found, as_json=as_json)


def _show(found: dict[str, list[Shift]], *, as_json: bool) -> None:
    if as_json:
        from porism.table import print_json

        document = {"methods": found}
        print_json(document)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from porism.progress import printable

    table = Table(box=None, pad_edge=False)
    for name in ("method", "style", "copies", "score", "rank", "rank, size", "wrong above a right one"):
        table.add_column(name, justify="left" if name in ("method", "style") else "right", no_wrap=True)
    for method, shift in ((name, shift) for name, moved in found.items() for shift in moved):
        figures = (shift.score, shift.rank, shift.rank_size, shift.lifted)
        shown = (
            "-"
            if m.value is None
            else f"{m.value:+.2f}" + (f" ({m.ci95[0]:+.2f} .. {m.ci95[1]:+.2f})" if m.ci95 else "")
            for m in figures
        )
        cells = (printable(method, 40), printable(shift.style, 40), str(shift.score.n), *shown)
        table.add_row(*map(Text, cells))
    Console(highlight=False, width=None if sys.stdout.isatty() else 140).print(table)
    typer.echo(
        "score, rank: copy minus original (a rank below 0 is a rise), means with 95 % intervals over problem groups; "
        "last: of wrong candidates not above a right one, the share whose copy is"
    )


__all__ = ["EXAMPLE", "stress"]
