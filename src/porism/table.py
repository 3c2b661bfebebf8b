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
RIGHT = "P(right)"
RIGHT_LEGEND = "P(right): the chance of being right, by the calibration"
NAME_WIDTH = 16  # of a candidate's name, at least, before neighbors get columns; more where there is room
LEGEND = (
    "utility: mean share of rollouts that solve a neighbor, and its 95 % interval given these neighbors; "
    "lift: utility minus (no example); P(highest): the chance of the highest solve rate in this pool, not of being "
    "right; last columns: solved/decided rollouts, by neighbor"
)


def show(result: Ranked, *, as_json: bool) -> None:
    """Print a result on stdout, as one JSON document or as tables."""
    if as_json:
        print_json(result)
    else:
        _tables(result, _console(sys.stdout))


def show_plan(plan: Plan, *, as_json: bool, price: tuple[float, float] | None = None) -> None:
    """Print what a run would ask, and what it costs at most at a price (dollars per million tokens in and out)."""
    if as_json:
        print_json(plan)
        return
    sys.stdout.write(
        f"run                {plan.run}\n"
        f"rollouts           {plan.rollouts:,} ({plan.stored:,} of them stored)\n"
        f"requests           {plan.requests:,} at most (fewer where the server gives several answers a request)\n"
        f"prompt tokens      about {plan.prompt_tokens:,} (some {plan.shared_tokens:,} shared with another request)\n"
        f"completion tokens  {plan.completion_tokens:,} at most\n"
    )
    if plan.executor != "local":
        sys.stdout.write(f"asked by           {plan.executor}\n")
    if price is not None:
        cost = (plan.prompt_tokens * price[0] + plan.completion_tokens * price[1]) / 1e6
        sys.stdout.write(f"cost               about ${cost:,.2f} at most\n")


def plain_text(result: Ranked) -> str:
    """The tables as text, for print() and notebooks."""
    buffer = io.StringIO()
    _tables(result, _console(buffer))
    return buffer.getvalue().rstrip()


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(file=stream, highlight=False, width=None if stream.isatty() else PIPE_WIDTH)


def print_json(value: object) -> None:
    """Print one JSON document on stdout, indented for people."""
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def _tables(result: Ranked, console: Console) -> None:
    for ranking in result.problems:
        _table(ranking, console)
    if result.problems:
        console.print(LEGEND, markup=False, style="dim")
    if (prior := _prior(result)) is not None:
        console.print(f"{RIGHT_LEGEND}, {prior}", markup=False, style="dim")
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
    if all(place.counts.total == 0 for place in ranking.ranking):
        console.print(f"{printable(ranking.id, 70)}: no round is complete yet", markup=False)
        return
    from rich.table import Table
    from rich.text import Text

    right = any(place.p_right is not None for place in ranking.ranking)
    shown, name_width = _columns(ranking, console.width - (len("0.00-1.00  ") if right else 0))
    console.print(Text(printable(ranking.id, 70), style="bold"))
    table = Table(box=None, pad_edge=False)
    table.add_column("rank", no_wrap=True)
    table.add_column("candidate", no_wrap=True, overflow="ellipsis", max_width=name_width)
    for name in ("utility", "95 %", "lift", "P(highest)", *([RIGHT] if right else []), *shown):
        table.add_column(Text(printable(name, 10)), justify="right", no_wrap=True)
    for place in ranking.ranking:
        table.add_row(*map(Text, _place(place, shown, right)), style="bold" if place.rank == 1 else "")
    if ranking.no_example is not None:
        table.add_row(*map(Text, _no_example(ranking.no_example, shown, right)), style="dim")
    console.print(table)
    if len(ranking.neighbors) > len(shown):
        console.print(
            f"({len(ranking.neighbors) - len(shown)} more neighbors: --json shows all)", markup=False
        )
    console.print()
    console.print(printable(ranking.message, 1000), markup=False, style="bold")
    for line in _remarks(ranking):
        console.print(line, markup=False)
    for warning in ranking.warnings:
        console.print(f"warning: {printable(warning, 400)}", markup=False)
    console.print()


def _columns(ranking: Ranking, width: int) -> tuple[list[str], int]:
    """Which neighbors get a column, and the width left for the names of candidates."""
    from rich.cells import cell_len

    left = width - len("rank  utility  0.00-1.00  +0.00  P(highest)  ")
    names = max(map(cell_len, ("(no example)", *(printable(place.candidate) for place in ranking.ranking))))
    room, shown = left - min(names, NAME_WIDTH), list[str]()
    for report in ranking.neighbors[:MOST_COLUMNS]:
        counts = (_solved(place, report.id) for place in ranking.ranking)
        room -= 2 + max(map(cell_len, (printable(report.id, 10), *counts)))
        if room < 0:
            break
        shown.append(report.id)
        left = room + min(names, NAME_WIDTH)
    return shown, max(left, NAME_WIDTH)


def _remarks(ranking: Ranking) -> list[str]:
    """What is to be said of candidates, the no-example row and neighbors; one line for all it is said of."""
    found: dict[str, list[str]] = {}
    for place in ranking.ranking:
        found.setdefault("; ".join(place.flags), []).append(place.candidate)
    if ranking.no_example is not None:
        found.setdefault("; ".join(ranking.no_example.flags), []).append("(no example)")
    lines = [(names, flags) for flags, names in found.items() if flags]
    found = {}
    for report in ranking.neighbors:
        found.setdefault("; ".join(report.flags), []).append(report.id)
    for flags, names in found.items():
        if flags:
            lines.append(([f"neighbor{'s' if len(names) > 1 else ''} {names[0]}", *names[1:]], flags))
    return [f"{printable(', '.join(names), 300)}: {printable(flags, 300)}" for names, flags in lines]


def _place(place: Place, neighbors: list[str], right: bool) -> list[str]:
    return [
        "" if place.rank is None else f"{place.rank}",
        printable(place.candidate),
        _share(place.utility),
        f"{_share(place.ci95[0])}-{_share(place.ci95[1])}",
        "" if place.lift is None else f"{place.lift:+.2f}",
        f"{place.p_highest:.2f}",
        *([str(place.p_right or "")] if right else []),
        *(_solved(place, neighbor) for neighbor in neighbors),
    ]


def _no_example(row: NoExample, neighbors: list[str], right: bool) -> list[str]:
    interval = f"{_share(row.ci95[0])}-{_share(row.ci95[1])}"
    counts = [_solved(row, neighbor) for neighbor in neighbors]
    return ["", "(no example)", _share(row.utility), interval, "", "", *([""] if right else []), *counts]


def _prior(result: Ranked) -> str | None:
    """What P(right) takes for the share of right candidates; None where there is none."""
    given = (place.p_right for ranking in result.problems for place in ranking.ranking)
    return next((p.supposed for p in given if p is not None), None)


def _solved(row: Place | NoExample, neighbor: str) -> str:
    counts = row.by_neighbor[neighbor].counts
    return f"{counts.correct}/{counts.decided}"


def _share(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"
