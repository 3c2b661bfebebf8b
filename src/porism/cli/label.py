"""porism label: people judge candidates one by one, and what two or more of them agree on becomes the label."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from porism.labels import Standing
    from porism.types import Problem
    from porism.walk import Log, Terminal

EXAMPLE = (
    "Examples: porism label set.jsonl --rater ann   |   porism label set.jsonl --summary   |   "
    "porism label set.jsonl --apply labelled.jsonl"
)


def label(
    file: Annotated[Path, typer.Argument(help="A problem file of any format, or a folder problem.")],
    rater: Annotated[str | None, typer.Option(help="Who judges. [your login name]")] = None,
    disputed: Annotated[
        bool,
        typer.Option("--disputed", help="Walk over the candidates raters disagree on, with what they said."),
    ] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="Show agreement and open disagreements instead.")
    ] = False,
    apply: Annotated[
        Path | None, typer.Option(help="Write the problems to this file, with the labels agreed on, instead.")
    ] = None,
    agree: Annotated[
        int, typer.Option(min=1, help="How many must agree, at least, before a label is set.")
    ] = 2,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file of --apply; a copy is kept as .bak.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --summary: one JSON document on stdout.")
    ] = False,
) -> None:
    """Judge candidates: does the final answer match, and does the derivation hold?

    Every judgement is kept at once in FILE.labels.jsonl; the same command goes on. Who wrote a candidate is not shown.
    """
    from porism.data import load
    from porism.errors import ConfigError
    from porism.labels import Judgement, items, standings
    from porism.walk import Log, Terminal, beside

    if sum((disputed, summary, apply is not None)) > 1:
        raise ConfigError("--disputed, --summary and --apply are different jobs: give one of them")
    problems = load(file).problems
    log = Log(beside(file, "labels"), Judgement)
    terminal = Terminal(sys.stdin, sys.stderr)
    found = items(problems)
    standing, stale, gone = standings(found, log.rows)
    _doubts(terminal, log, stale, gone)
    if summary:
        from porism.cli.label_summary import show

        show(file, log.path, standing, raters=agree, stale=stale, gone=gone, as_json=as_json)
    elif apply is not None:
        _apply(terminal, file, apply, problems, standing, agree, force)
    else:
        from porism.cli.label_walk import LabelWalk

        name = _rater(rater)
        chosen = [s.item for s in standing if s.disputed] if disputed else found
        LabelWalk(terminal, file, log, name, chosen, shown=standing if disputed else ()).run()


def _rater(name: str | None) -> str:
    """The rater's name as given, or the login."""
    from getpass import getuser

    from porism.errors import ConfigError

    if name is None:
        try:
            name = getuser()
        except (OSError, KeyError, ImportError):
            raise ConfigError("your login name is not known: say who you are with --rater NAME") from None
    if not name.strip():
        raise ConfigError("--rater is empty: say who you are with --rater NAME")
    return name.strip()


def _doubts(terminal: Terminal, log: Log[Any], stale: int, gone: int) -> None:
    if log.unreadable:
        terminal.say(
            f"warning: {log.path}: {_many(log.unreadable, 'line')} cannot be read and will be passed over"
        )
    if stale:
        terminal.say(
            f"no longer counting: {_many(stale, 'judgement')}, as the question, the known answer or the candidate has "
            "changed since"
        )
    if gone:
        terminal.say(f"of candidates that this file does not hold: {_many(gone, 'judgement')}")


def _apply(
    terminal: Terminal,
    file: Path,
    target: Path,
    problems: Sequence[Problem],
    standing: Sequence[Standing],
    raters: int,
    force: bool,
) -> None:
    from porism.data import write_problems
    from porism.labels import labelled

    result, counts, overturned = labelled(problems, standing, raters)
    write_problems(result, target, force=force)
    for line in overturned:
        terminal.say(f"label changed: {line}")
    for s in standing:
        if s.disputed:
            terminal.say(f"left open: {s.item.problem.id}/{s.item.candidate.id}: raters disagree")
    terminal.say(
        f"{target}: labels set: {counts['set']}, changed: {counts['changed']}, left open by disagreement: "
        f"{counts['unset']}, judged by too few or unsure: {counts['open']}; the rest is as in {file}"
    )


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
