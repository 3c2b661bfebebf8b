"""What a person sees while a run goes on: a live display on a terminal, plain lines elsewhere, or nothing.

A display is fed by events and counts them; the engine knows nothing of terminals. All talk goes to stderr, so that
stdout holds data alone. The live display is drawn by a thread of its own: a terminal that stands still (Ctrl-S, a
copy mode) must not stop the run. It draws when something changed and once a second for the clock.

Names and texts come from files and models: every control character is taken out before it can reach a terminal.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from porism.types import Usage

if TYPE_CHECKING:
    from porism.methods.ranking import NoExample, Place, Ranking

WINDOW = 30.0  # seconds that the token rate looks back
PLAIN_EVERY = 5.0  # seconds between plain lines, at least
SHOWN = 10  # candidates of a ranking on display
STRIP = 12  # neighbors in a strip of solve rates, at most
BARS = "▁▂▃▄▅▆▇█"

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -~])|\x9b[0-?]*[ -/]*[@-~]"
)


def printable(text: str, limit: int = 200) -> str:
    """The text on one line, safe for a terminal: no escapes, control or direction marks, at most `limit` long."""
    text = _ESCAPE.sub("", text[: 4 * limit])
    text = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in text)
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printable_text(text: str) -> str:
    """The whole text with its line breaks and indents, safe for a terminal: no escapes, control or direction marks."""
    text = _ESCAPE.sub("", text.expandtabs(4))
    return "".join(c if c == "\n" or unicodedata.category(c)[0] != "C" else " " for c in text)


def duration(seconds: float) -> str:
    """m:ss, h:mm:ss from an hour on, and days in front from a day on."""
    minutes, second = divmod(round(max(0.0, seconds)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if not hours:
        return f"{minute}:{second:02}"
    return f"{f'{days} d ' if days else ''}{hour}:{minute:02}:{second:02}"


def rate_text(value: float | None) -> str:
    """A rate with sensible digits: 4.2, 41, 12,300; a question mark where nothing is known."""
    if value is None:
        return "?"
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a ranking on display. A value of None: nothing decided yet. rates: solve rates by neighbor."""

    rank: int | None
    name: str
    value: float | None
    low: float
    high: float
    rates: tuple[float | None, ...] = ()

    def strip(self, shades: str = BARS) -> str:
        """A character a neighbor, of `shades` from none solved to all; "?" where nothing is decided."""
        top = len(shades) - 1
        signs = ["?" if rate is None else shades[round(rate * top)] for rate in self.rates[:STRIP]]
        return "".join(signs)

    def text(self) -> str:
        name = printable(self.name, 40)
        return (
            f"{name} ?"
            if self.value is None
            else f"{name} {self.value:.2f} ({self.low:.2f} .. {self.high:.2f})"
        )


def lines_of(ranking: Ranking) -> list[Line]:
    """The lines of a ranking, best first, the no-example row last."""

    def line(rank: int | None, name: str, row: Place | NoExample) -> Line:
        rates = tuple(row.by_neighbor[n.id].rate for n in ranking.neighbors)
        return Line(rank, name, row.utility, *row.ci95, rates)

    lines = [line(place.rank, place.candidate, place) for place in ranking.ranking]
    if (base := ranking.no_example) is not None:
        lines.append(line(None, "(no example)", base))
    return lines


class Tally:
    """What every display counts. Times are seconds of the monotonic clock, `until` is wall clock time."""

    def __init__(self) -> None:
        self.total = self.stored = self.landed_now = 0
        self.usage = Usage()
        self.reason: str | None = None
        self.until: float | None = None
        self.problem = ""
        self.lines: Sequence[Line] = ()
        self.begun = time.monotonic()
        # (second, tokens), replaced whole: the thread of a display may be reading it
        self._window: tuple[tuple[int, int], ...] = ()

    # The events of a run

    def started(self, total: int, stored: int) -> None:
        """total: rollouts of the whole plan; stored: how many of them the run folder holds already.

        Called once for each stage of a job.
        """
        self.total, self.stored, self.landed_now = total, stored, 0
        self.begun = time.monotonic()

    def landed(self, rollouts: int, usage: Usage) -> None:
        """A call came back with so many rollouts."""
        now = time.monotonic()
        self.landed_now += rollouts
        self.usage += usage
        second, tokens = int(now), usage.completion
        kept = tuple(entry for entry in self._window if second - WINDOW < entry[0])
        if kept and kept[-1][0] == second:
            kept, tokens = kept[:-1], tokens + kept[-1][1]
        self._window = (*kept, (second, tokens))

    def waiting(self, reason: str | None, until: float | None) -> None:
        """Why nothing is asked just now, and until when; None: it goes on."""
        self.reason = None if reason is None else printable(reason)
        self.until = until

    def ranked(self, problem_id: str, ranking: Ranking) -> None:
        """A round of a problem is complete, and this is its ranking now."""
        self.problem, self.lines = printable(problem_id, 60), lines_of(ranking)

    def note(self, text: str) -> None:
        """A line for the user, a warning or a fact."""

    def finished(self) -> None:
        """The run ended, however it ended. A second call does nothing."""

    # What follows from them

    @property
    def done(self) -> int:
        return self.stored + self.landed_now

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.begun

    def rate(self) -> float | None:
        """Completion tokens a second over the last half minute; None before the first call came back."""
        if not self._window:
            return None
        now = time.monotonic()
        recent = sum(tokens for second, tokens in self._window if second > now - WINDOW)
        return recent / min(WINDOW, max(1.0, now - self.begun))

    def left(self) -> float | None:
        """Seconds to go at the pace of this session; None while there is no pace yet."""
        owed = self.total - self.done
        if owed <= 0:
            return 0.0
        return self.elapsed / self.landed_now * owed if self.landed_now else None

    def wait_text(self) -> str:
        """Why it waits and for how long, or nothing."""
        if self.reason is None:
            return ""
        seconds = 0.0 if self.until is None else self.until - time.time()
        return "waiting" + (f", next try in {duration(seconds)}" if seconds >= 1 else "") + f": {self.reason}"

    def progress_text(self) -> str:
        """Rollouts, tokens, pace and what is left, on one line."""
        left = self.left()
        return self._counts() + (f", about {duration(left)} left" if left else "")

    def last_text(self) -> str:
        """The line that stays when the run has ended."""
        return f"{self._counts()}, {duration(self.elapsed)} in all"

    def _counts(self) -> str:
        parts = [
            f"{self.done:,}/{max(self.total, self.done):,} rollouts",
            f"{self.usage.completion:,} tokens",
        ]
        if (rate := self.rate()) is not None:
            parts.append(f"{rate_text(rate)} tokens/s")
        return ", ".join(parts)

    def status(self) -> str:
        """The state of the run as a small text for a file, one fact a line."""
        lines = [f"elapsed {duration(self.elapsed)}", self.progress_text()]
        if self.reason is not None:
            lines.append(self.wait_text())
        if self.lines:
            lines += [f"ranking of {self.problem}, each with its solve rates by neighbor:"]
            lines += [f"  {line.rank or '-'} {line.strip()} {line.text()}" for line in self.lines]
        return "\n".join(lines) + "\n"


class SilentWatch(Tally):
    """Counts, and shows nothing."""


class PlainWatch(Tally):
    """Plain lines: one every few seconds, more seldom as a run grows long, sooner when the state changes."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._said = float("-inf")
        self._ended = False

    def started(self, total: int, stored: int) -> None:
        super().started(total, stored)
        self._line(f"{total:,} rollouts" + (f", {stored:,} of them stored already" if stored else ""))
        self._said = time.monotonic()

    def landed(self, rollouts: int, usage: Usage) -> None:
        super().landed(rollouts, usage)
        self._progress(max(PLAIN_EVERY, min(60.0, self.elapsed / 20)))

    def waiting(self, reason: str | None, until: float | None) -> None:
        changed = (reason is None) != (self.reason is None)
        super().waiting(reason, until)
        if changed:
            self._progress(PLAIN_EVERY / 2)

    def ranked(self, problem_id: str, ranking: Ranking) -> None:
        super().ranked(problem_id, ranking)
        self._progress(PLAIN_EVERY)

    def note(self, text: str) -> None:
        self._line(printable(text, 1000))

    def finished(self) -> None:
        if not self._ended:
            self._ended = True
            if self.total:
                self._line(self.last_text())

    def _progress(self, pause: float) -> None:
        now = time.monotonic()
        if now - self._said < pause:
            return
        self._said = now
        wait = self.wait_text()
        self._line(f"[{duration(self.elapsed)}] {self.progress_text()}" + (f"; {wait}" if wait else ""))
        if self.lines:
            best = ", ".join(line.text() for line in self.lines[:3])
            self._line(f"  {self.problem}: {best}")

    def _line(self, text: str) -> None:
        try:
            self._stream.write(text + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            return  # a closed pipe on the display's side must not end the run
