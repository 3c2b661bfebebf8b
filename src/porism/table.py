"""The result as a person reads it: one table a problem, one sentence, what to be careful about, what it cost.

The same table serves `rank`, `score` and str(result). Names come from files and answers from models, so every text
passes `printable` first. On a pipe the table is plain and wide; on a terminal it takes the terminal's width.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, TextIO

from porism.methods.ranking import NoExample, Place, Ranking
from porism.progress import printable

if TYPE_CHECKING:
    from rich.console import Console

    from porism.prepare import Plan
    from porism.run import Ranked

PIPE_WIDTH = 120
MOST_COLUMNS = 8  # neighbors with a column of their own


def show(result: Ranked, *, as_json: bool) -> None:
    """Print a result on stdout, as one JSON document or as tables."""
    if as_json:
        _print_json(result)
    else:
        _tables(result, _console(sys.stdout))


def show_plan(plan: Plan, *, as_json: bool) -> None:
    """Print what a run would ask."""
    if as_json:
        _print_json(plan)
        return
    sys.stdout.write(
        f"run                {plan.run}\n"
        f"rollouts           {plan.rollouts:,} ({plan.stored:,} of them stored)\n"
        f"requests           {plan.requests:,} at most (fewer where the server gives several answers a request)\n"
        f"prompt tokens      about {plan.prompt_tokens:,} (some {plan.shared_tokens:,} shared with another request)\n"
        f"completion tokens  {plan.completion_tokens:,} at most\n"
    )


def plain_text(result: Ranked) -> str:
    """The tables as text, for print() and notebooks."""
    buffer = io.StringIO()
    _tables(result, _console(buffer))
    return buffer.getvalue().rstrip()


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(file=stream, highlight=False, width=None if stream.isatty() else PIPE_WIDTH)


def _print_json(value: object) -> None:
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def _tables(result: Ranked, console: Console) -> None:
    for ranking in result.problems:
        _table(ranking, console)
    for reason, count in list(result.missing.items())[:10]:
        console.print(f"missing: {count} rollouts of {printable(reason, 400)}", markup=False)
    usage = result.usage
    cached = (
        f", {usage.cached / usage.prompt:.0%} of them from cache" if usage.cached and usage.prompt else ""
    )
    console.print(
        f"run: {result.run}   {usage.requests:,} requests, {usage.prompt:,} prompt tokens{cached}, "
        f"{usage.completion:,} completion tokens",
        markup=False,
        soft_wrap=True,
    )


def _table(ranking: Ranking, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    # Other columns take some 58 characters; neighbors share what is left of the line.
    room = max(1, (console.width - 58) // 8)
    shown = [report.id for report in ranking.neighbors[: min(room, MOST_COLUMNS)]]
    table = Table(
        box=None, pad_edge=False, title=Text(printable(ranking.id, 70), style="bold"), title_justify="left"
    )
    for name in ("rank", "candidate"):
        table.add_column(name, no_wrap=True)
    for name in ("utility", "95 %", "lift", "P(highest)", *shown):
        table.add_column(Text(printable(name, 10)), justify="right", no_wrap=True)
    for place in ranking.ranking:
        table.add_row(*map(Text, _place(place, shown)), style="bold" if place.rank == 1 else "")
    if ranking.no_example is not None:
        table.add_row(*map(Text, _no_example(ranking.no_example, shown)), style="dim")
    console.print(table)
    if len(ranking.neighbors) > len(shown):
        console.print(
            f"({len(ranking.neighbors) - len(shown)} more neighbors: --json shows all)", markup=False
        )
    console.print()
    console.print(printable(ranking.message, 1000), markup=False, style="bold")
    for name, flags in _remarks(ranking):
        console.print(f"{printable(name, 60)}: {printable('; '.join(flags), 300)}", markup=False)
    for warning in ranking.warnings:
        console.print(f"warning: {printable(warning, 400)}", markup=False)
    console.print()


def _remarks(ranking: Ranking) -> list[tuple[str, list[str]]]:
    """What is to be said of single candidates, the no-example row and neighbors."""
    found = []
    for place in ranking.ranking:
        tied = [f"tied with {', '.join(place.tied)}"] if place.tied else []
        found.append((place.candidate, [*tied, *place.flags]))
    if ranking.no_example is not None:
        found.append(("(no example)", list(ranking.no_example.flags)))
    found += [(f"neighbor {report.id}", list(report.flags)) for report in ranking.neighbors]
    return [(name, flags) for name, flags in found if flags]


def _place(place: Place, neighbors: list[str]) -> list[str]:
    return [
        "" if place.rank is None else f"{place.rank}",
        printable(place.candidate, 16),
        _share(place.utility),
        f"{_share(place.ci95[0])}-{_share(place.ci95[1])}",
        "" if place.lift is None else f"{place.lift:+.2f}",
        f"{place.p_highest:.2f}",
        *(_solved(place, neighbor) for neighbor in neighbors),
    ]


def _no_example(row: NoExample, neighbors: list[str]) -> list[str]:
    interval = f"{_share(row.ci95[0])}-{_share(row.ci95[1])}"
    counts = [_solved(row, neighbor) for neighbor in neighbors]
    return ["", "(no example)", _share(row.utility), interval, "", "", *counts]


def _solved(row: Place | NoExample, neighbor: str) -> str:
    counts = row.by_neighbor[neighbor].counts
    return f"{counts.correct}/{counts.decided}"


def _share(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"
