"""porism verify: decide answers against known ones, of a file or of a run, and list what a person should look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from porism.cli.options import AllowCode, Json

if TYPE_CHECKING:
    from porism.audit import Again, Checked
    from porism.cases import Case
    from porism.opinions import Opinions
    from porism.verify.pool import Verifier

EXAMPLE = (
    "Examples: porism verify cases.jsonl --json   |   porism verify --run runs/necklaces-1f2e3d4c5b6a --audit   |   "
    "porism verify --run RUN --verify-model vllm/gpt-oss-20b --base-url http://localhost:8000"
)


def verify(
    cases: Annotated[
        Path | None,
        typer.Argument(
            help="JSONL rows: id, gold, response (or answer), answer_type?, question?, expected?, kind?"
        ),
    ] = None,
    run: Annotated[Path | None, typer.Option("--run", help="A run folder, instead of a file.")] = None,
    audit: Annotated[
        bool, typer.Option("--audit", help="List the run's undecided and suspicious rows for a person.")
    ] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="Find and decide every answer of the run anew, and store the verdicts."),
    ] = False,
    as_json: Json = False,
    verify_model: Annotated[
        str | None,
        typer.Option("--verify-model", help="Ask this model about doubted rows; it changes no verdict."),
    ] = None,
    base_url: Annotated[
        list[str] | None,
        typer.Option(
            help="Where --verify-model is served, with or without /v1; given again: several servers share the work."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; by default one for each CPU.")
    ] = None,
    limit: Annotated[float, typer.Option("--limit", min=0.01, help="CPU seconds an item may take.")] = 1.0,
    allow_code: AllowCode = False,
) -> None:
    """Compare answers with their golds: the rows of a file, or all that a run folder holds.

    Verdicts are correct, wrong, no_answer and undecided (and missing, in a run). With `expected` in the rows of a file
    (true: the same answer) a table by kind counts the verdicts that are right, and the exit code is 1 when one says
    the opposite.
    """
    import asyncio

    from porism.cli import verdicts
    from porism.errors import ConfigError
    from porism.verify.pool import Verifier

    if (cases is None) == (run is None):
        raise ConfigError("give either a file of cases, or --run and a run folder: porism verify --run RUN")
    if run is None and (audit or again):
        raise ConfigError(
            f"{'--audit' if audit else '--again'} looks at a run folder: give it with --run RUN"
        )
    if audit and again:
        raise ConfigError("--audit and --again exclude each other: decide anew first, then list")
    if base_url and verify_model is None:
        raise ConfigError("--base-url says where --verify-model is served: name the model as well")
    verifier = Verifier(workers=workers, limit=limit, allow_code=allow_code)
    if cases is not None:
        rows, checked = asyncio.run(_cases(cases, verifier))
        opinions = _ask(checked, verify_model, cases.with_suffix(".opinions"), base_url)
        contradicted = verdicts.show_cases(rows, checked, opinions, as_json=as_json)
    else:
        assert run is not None
        changes, checked = asyncio.run(_run(run, verifier, again=again))
        opinions = _ask(checked, verify_model, run / "opinions", base_url)
        verdicts.show_run(run, checked, opinions, changes, audit=audit, as_json=as_json)
        contradicted = False
    if code := (opinions.generated.exit_code if opinions else 0) or int(contradicted):
        raise typer.Exit(code)


async def _cases(path: Path, verifier: Verifier) -> tuple[list[Case], list[Checked]]:
    from porism.cases import check_cases, doubts, read_cases

    rows = read_cases(path)
    for doubt in doubts(path, rows):
        typer.echo(f"porism: {doubt}", err=True)
    async with verifier:
        return rows, await check_cases(rows, verifier)


async def _run(path: Path, verifier: Verifier, *, again: bool) -> tuple[Again | None, list[Checked]]:
    from porism import audit
    from porism.store import Store

    audit.is_run(path)
    with Store(path, write=again) as store:
        async with verifier:
            changes = await audit.again(store, verifier) if again else None
            return changes, await audit.audit(store, verifier)


def _ask(
    checked: list[Checked], model: str | None, folder: Path, base_url: list[str] | None
) -> Opinions | None:
    if model is None:
        return None
    import asyncio

    from porism.display import choose
    from porism.opinions import second_opinions

    watch = choose()
    try:
        return asyncio.run(second_opinions(checked, model, folder, base_url=base_url, watch=watch))
    finally:
        watch.finished()


__all__ = ["EXAMPLE", "verify"]
