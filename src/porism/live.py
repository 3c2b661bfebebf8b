"""The live display of a terminal: progress, pace, what it waits for, and the ranking so far.

It is drawn by one thread, the only one that writes: notes are handed to it. So a terminal that stands still never
stops a run, and a run that lands a thousand rollouts a second is drawn a few times a second all the same.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segments
from rich.table import Table
from rich.text import Text

from porism.progress import BARS, SHOWN, Line, Tally, duration, printable, rate_text
from porism.types import Usage

if TYPE_CHECKING:
    from porism.methods.ranking import Ranking

PAUSE = 0.25  # seconds between two drawings, at least
CLOCK = 1.0  # and at most
DIGITS = "0123456789"  # in place of bars, where a terminal knows ASCII alone


class RichWatch(Tally):
    """Draws on a terminal from `started` until `finished`, then leaves one line in place of the display."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=False)
        self._ascii = self._console.options.ascii_only
        self._notes: deque[str] = deque()
        self._changed, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._draw, name="porism-display", daemon=True)
        self._table: tuple[object, RenderableType] | None = None

    def started(self, total: int, stored: int) -> None:
        super().started(total, stored)
        if not self._thread.is_alive() and not self._stop.is_set():
            self._thread.start()

    def landed(self, rollouts: int, usage: Usage) -> None:
        super().landed(rollouts, usage)
        self._changed.set()

    def waiting(self, reason: str | None, until: float | None) -> None:
        super().waiting(reason, until)
        self._changed.set()

    def ranked(self, problem_id: str, ranking: Ranking) -> None:
        super().ranked(problem_id, ranking)
        self._changed.set()

    def note(self, text: str) -> None:
        self._notes.append(printable(text, 1000))
        self._changed.set()
        if not self._thread.is_alive():
            self._say_notes()

    def finished(self) -> None:
        if self._stop.is_set():
            return
        self._stop.set()
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2.0)  # longer means a terminal that stands still

    def _draw(self) -> None:
        """The thread: draws when something changed, and once a second for the clock."""
        try:
            with Live(
                console=self._console,
                get_renderable=self._picture,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
            ) as live:
                self._console.show_cursor(True)  # a run that is killed leaves the terminal as it was
                while not self._stop.is_set():
                    self._changed.clear()
                    self._say_notes()
                    live.refresh()
                    self._stop.wait(PAUSE)
                    self._changed.wait(CLOCK - PAUSE)
                self._say_notes()
            self._console.print(Text(self.last_text()))
        except (OSError, ValueError):
            return  # the terminal is gone; the run goes on

    def _say_notes(self) -> None:
        while self._notes:
            self._console.print(Text(self._notes.popleft()))

    def _picture(self) -> RenderableType:
        width, height = self._console.size
        parts: list[RenderableType] = [self._bar(width), self._pace()]
        if self.reason is not None:
            parts.append(Text(" " + self.wait_text(), style="yellow", overflow="ellipsis", no_wrap=True))
        rows = min(SHOWN, height - 8)
        if self.lines and rows > 0:
            key = (self.lines, width, rows)
            if self._table is None or self._table[0] != key:  # laying the table out is what costs
                lines = self._console.render_lines(self._ranking(width, rows), pad=False, new_lines=True)
                self._table = (key, Segments(segment for line in lines for segment in line))
            parts += ["", self._table[1]]
        return Group(*parts)

    def _bar(self, width: int) -> RenderableType:
        total = max(self.total, self.done, 1)
        count = f" {self.done:,}/{total:,} rollouts "
        bar = Table.grid()
        bar.add_row(
            Text(count), ProgressBar(total=total, completed=self.done, width=max(10, width - len(count) - 2))
        )
        return bar

    def _pace(self) -> Text:
        left = self.left()
        parts = [
            f"{self.usage.completion:,} tokens",
            f"{rate_text(self.rate())} tokens/s",
            f"elapsed {duration(self.elapsed)}",
            f"about {duration(left)} left" if left else "",
            f"{self.stored:,} stored before" if self.stored else "",
        ]
        return Text(" " + "   ".join(part for part in parts if part), overflow="ellipsis", no_wrap=True)

    def _ranking(self, width: int, rows: int) -> RenderableType:
        """The last ranking as a table."""
        table = Table(
            box=None,
            title=Text(f" {self.problem}, so far", style="bold"),
            title_justify="left",
            padding=(0, 1),
        )
        table.add_column("#", justify="right")
        strips = [line.strip(DIGITS if self._ascii else BARS) for line in self.lines[:rows]]
        taken = max(max(map(len, strips), default=0), len("rates")) + 2 if any(strips) else 0
        room = width - max(0, taken - 8)
        table.add_column("candidate", overflow="ellipsis", no_wrap=True, max_width=max(12, room - 58))
        if taken:
            table.add_column("rates", no_wrap=True)
        table.add_column("utility", justify="right")
        table.add_column("95 %", no_wrap=True)
        scale = min(40, max(16, width - 56 - taken))
        table.add_column(f"0{'1':>{scale - 1}}", no_wrap=True, width=scale)
        for line, strip in zip(self.lines, strips, strict=False):
            value = "?" if line.value is None else f"{line.value:.2f}"
            rank = "" if line.rank is None else str(line.rank)
            interval = f"{line.low:.2f} .. {line.high:.2f}"
            cells = [Text(strip, style="cyan")] if taken else []
            drawn = self._interval(line, scale)
            table.add_row(rank, Text(printable(line.name)), *cells, value, interval, drawn)
        hidden = len(self.lines) - rows
        return Group(table, Text(f"   and {hidden} more")) if hidden > 0 else table

    def _interval(self, line: Line, width: int) -> Text:
        """The interval as a line on a scale from 0 to 1, with the value marked on it."""
        stroke, mark = ("-", "o") if self._ascii else ("─", "●")
        left, right = (round(x * (width - 1)) for x in (line.low, line.high))
        text = Text(" " * left + stroke * (right - left + 1), style="cyan")
        if line.value is not None:
            at = round(line.value * (width - 1))
            plain = text.plain.ljust(at + 1)
            text = Text(plain[:at] + mark + plain[at + 1 :], style="cyan")
        return text
