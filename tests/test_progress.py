"""The displays, on a real pseudo-terminal and on a pipe."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from statistics import median

import pytest
from rich.console import ConsoleDimensions
from rich.live import Live

from porism.display import choose
from porism.live import RichWatch
from porism.methods.ranking import rank
from porism.methods.utility import Utility
from porism.progress import Line, PlainWatch, SilentWatch, duration, printable
from porism.types import Candidate, Cell, Neighbor, Observation, Problem, Sampling, Usage, Verdict

RUN = """
import json, sys, time
from porism.display import choose
from porism.progress import Line
from porism.types import Usage

calls, pause, rows = json.loads(sys.argv[1])
watch = choose()
watch.note("before \\x1b[2Jthe start")
watch.started(120 + calls, 120)
name = "attempt {} \\x1b]0;owned\\x07 and on and on for ever"
rates = (0.0, 0.5, 1.0, None, 0.25)
watch.lines = [Line(i + 1, name.format(i), 0.9 - 0.05 * i, 0.1, 1.0, rates) for i in range(rows)]
watch.problem = "necklaces"
for call in range(calls):
    time.sleep(pause)
    if call == 2:
        watch.waiting("rate limited by the server \\x1b[31m", time.time() + 12.5)
    if call == calls // 2:
        watch.waiting(None, None)
    watch.landed(1, Usage(prompt=300, completion=150, requests=1))
watch.note("a warning")
watch.finished()
watch.finished()
print(json.dumps({"watch": type(watch).__name__}), flush=True)
"""


def environment(**changes: str) -> dict[str, str]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in ("CI", "NO_COLOR", "TERM", "FORCE_COLOR", "COLUMNS", "LINES")
    }
    return kept | {"TERM": "xterm-256color", "PYTHONUTF8": "1"} | changes


def on_terminal(
    columns: int, lines: int, calls: int, pause: float, rows: int, **env: str
) -> tuple[bytes, dict[str, object]]:
    """What a run writes to a terminal of that size, and what it says on stdout, which is a pipe."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, json.dumps([calls, pause, rows])],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment(**env),
    )
    os.close(theirs)
    written = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            block = os.read(ours, 65536)
        except OSError:  # how Linux says that the other side is closed
            break
        if not block:
            break
        written += block
    os.close(ours)
    assert process.stdout is not None
    data = process.stdout.read()
    process.stdout.close()
    assert process.wait(timeout=30) == 0
    return written, json.loads(data)


class Screen:
    """Enough of a terminal to read what stands on it. What the display has no need of is a fault."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.lines: list[str] = [""]
        self.row = self.column = 0
        self.cursor = True
        self.colored = False

    def feed(self, text: str) -> None:
        for escape, character in re.findall(r"(\x1b\[[0-?]*[ -/]*[@-~])|([\s\S])", text):
            if escape:
                self._escape(escape)
            elif character == "\r":
                self.column = 0
            elif character == "\n":
                self.row += 1
                self.lines += [""] * (self.row + 1 - len(self.lines))
            else:
                assert character.isprintable(), repr(character)
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
                self.column += 1
                assert self.column <= self.columns, self.lines[self.row]

    def _escape(self, escape: str) -> None:
        if escape.endswith("m"):
            self.colored = self.colored or bool(re.search(r"\b3[1-7]\b|38;", escape))
        elif escape == "\x1b[2K":
            self.lines[self.row] = ""
        elif up := re.fullmatch(r"\x1b\[(\d+)A", escape):
            self.row -= int(up.group(1))
            assert self.row >= 0
        else:
            assert escape in ("\x1b[?25l", "\x1b[?25h"), repr(escape)
            self.cursor = escape.endswith("h")

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines).strip("\n")


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (200, 50), (48, 10)])
def test_live_display(columns: int, lines: int) -> None:
    written, said = on_terminal(columns, lines, calls=20, pause=0.1, rows=12)
    assert said["watch"] == "RichWatch"
    screen, pictures = Screen(columns), []
    for part in re.split(r"(?=\r\x1b\[2K)", written.decode()):
        screen.feed(part)
        pictures.append(screen.text)
    # what is left: the notes and one line
    first, second, *last = screen.text.splitlines()
    assert (first, second) == ("before the start", "a warning")
    assert re.fullmatch(r"140/140 rollouts, 3,000 tokens, [\d,]+ tokens/s, 0:0\d in all", " ".join(last))
    assert screen.cursor
    assert screen.colored
    # what stood there while it ran
    biggest = max(pictures, key=lambda picture: len(picture.splitlines()))
    assert len(biggest.splitlines()) <= lines + 1
    assert "owned" not in biggest
    assert re.search(r"\d+/140 rollouts", biggest)
    assert any("waiting, next try in 0:12: rate limited by" in picture for picture in pictures)
    if lines >= 24:
        assert "attempt 9" in biggest
        assert "and 2 more" in biggest
        assert "●" in biggest
        assert " ▁▅█?▃ " in biggest
        assert "0.10 .. 1.00" in biggest
        assert any("tokens/s   elapsed 0:0" in picture and "left" in picture for picture in pictures)


def test_no_color() -> None:
    written, _ = on_terminal(80, 24, calls=5, pause=0.1, rows=3, NO_COLOR="1")
    screen = Screen(80)
    screen.feed(written.decode())
    assert not screen.colored


@pytest.mark.parametrize("env", [{"CI": "true"}, {"TERM": "dumb"}])
def test_plain_on_a_terminal_that_cannot(env: dict[str, str]) -> None:
    written, said = on_terminal(80, 24, calls=3, pause=0.01, rows=3, **env)
    assert said["watch"] == "PlainWatch"
    assert b"\x1b" not in written


def test_plain_on_a_pipe() -> None:
    command = [sys.executable, "-c", RUN, json.dumps([200, 0.01, 3])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(), timeout=60)
    assert json.loads(done.stdout)["watch"] == "PlainWatch"
    lines = done.stderr.splitlines()
    assert lines[0] == "before the start"
    assert lines[1] == "320 rollouts, 120 of them stored already"
    assert lines[-2] == "a warning"
    assert re.fullmatch(r"320/320 rollouts, 30,000 tokens, [\d,]+ tokens/s, 0:0\d in all", lines[-1])
    assert len(lines) <= 8, "two seconds are no reason for many lines"
    assert done.stderr.isprintable() or set(re.findall(r"[^\w\s]", done.stderr)).isdisjoint("\x1b\x07")


def test_a_reader_that_leaves_does_not_end_the_run() -> None:
    command = [sys.executable, "-c", RUN, json.dumps([5, 0.01, 3])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert process.stderr is not None
    process.stderr.close()
    data, _ = process.communicate(timeout=60)
    assert json.loads(data)["watch"] == "PlainWatch"


def test_a_terminal_that_stands_still_does_not_stop_the_run() -> None:
    """The terminal is halted once the display is up, as by Ctrl-S: the run goes on to its end all the same."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-c", RUN, json.dumps([20, 0.1, 10])]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment()
    )
    try:
        written = b""
        while b"tokens/s" not in written:
            written += os.read(ours, 65536)
        termios.tcflow(theirs, termios.TCOOFF)
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 60)[0]
        assert json.loads(process.stdout.readline())["watch"] == "RichWatch"
        termios.tcflow(theirs, termios.TCOON)
    finally:
        process.kill()
        process.communicate(timeout=30)
        os.close(theirs)
        os.close(ours)


@pytest.mark.slow
@pytest.mark.ci
def test_the_live_display_costs_at_most_one_percent_of_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four drawings a second of 2.5 ms. Drawn in one go: some kernels charge a thread that wakes a whole tick."""
    begun = time.monotonic()
    written, _ = on_terminal(80, 24, calls=800, pause=0.01, rows=10)
    drawings = len(re.findall(rb"\d+/920 rollouts", written))
    notes_start_and_end = 6
    assert 4 <= drawings <= 4 * (time.monotonic() - begun) + notes_start_and_end

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    watch = RichWatch(screen := Terminal())
    watch._console.size = ConsoleDimensions(80, 24)
    watch.lines = [Line(i + 1, f"attempt {i}", 0.9 - 0.05 * i, 0.1, 1.0) for i in range(10)]
    blocks = []
    with Live(console=watch._console, get_renderable=watch._picture, auto_refresh=False) as live:
        for _ in range(7):
            cpu = time.process_time()
            for _ in range(100):
                watch.landed(1, Usage(prompt=300, completion=150, requests=1))
                live.refresh()
            blocks.append((time.process_time() - cpu) / 100)
    assert len(re.findall(r"\d+/\d+ rollouts", screen.getvalue())) >= 700
    assert median(blocks) <= 0.0025


def test_choose() -> None:
    stream = io.StringIO()
    assert isinstance(choose(stream), PlainWatch)
    assert isinstance(choose(stream, "none"), SilentWatch)
    assert type(choose(stream, "rich")).__name__ == "RichWatch"


def test_status() -> None:
    watch = SilentWatch()
    watch.started(100, 40)
    watch.begun -= 120
    watch.landed(20, Usage(completion=3000, requests=1))
    assert watch.status() == "elapsed 2:00\n60/100 rollouts, 3,000 tokens, 100 tokens/s, about 4:00 left\n"
    watch.waiting("rate limited", time.time() + 61)
    assert watch.status().splitlines()[2] == "waiting, next try in 1:01: rate limited"
    watch.waiting(None, None)
    watch.landed(50, Usage(completion=10))
    assert "110/110 rollouts" in watch.status()
    assert "left" not in watch.status()


def test_a_ranking_is_shown_with_its_no_example_line() -> None:
    neighbors = (Neighbor(id="n", question="1 + 1?", answer="2"),)
    candidates = tuple(Candidate(id=name, text=name) for name in ("bad", "good\x1b[2J", "unseen"))
    problem = Problem(id="sum", question="1 + 2?", candidates=candidates, neighbors=neighbors)
    method = Utility(solvers=("fake",), sampling=Sampling(max_tokens=9), rollouts=4, target_samples=0)
    seen = [
        Observation(
            cell=Cell("sum", candidate, "n", method.name, "fake", 1),
            rollout=rollout,
            verdict=Verdict("correct" if rollout < right else "wrong", "test"),
        )
        for candidate, right in ((None, 0), ("bad", 1), ("good\x1b[2J", 4))
        for rollout in range(4)
    ]
    watch = SilentWatch()
    watch.ranked("sum", rank(problem, method, seen))
    title, first, second, third, base = watch.status().splitlines()[2:]
    assert title == "ranking of sum, each with its solve rates by neighbor:"
    assert first.startswith("  1 █ good 1.00 (0.")
    assert second.startswith("  2 ▃ bad 0.25 (0.0")
    assert third == "  - ? unseen ?"
    assert base.startswith("  - ▁ (no example) 0.00 (0.00 .. ")
    assert watch.lines[1].strip("0123456789") == "2"


def test_rate_forgets_what_is_old() -> None:
    watch = SilentWatch()
    assert watch.rate() is None
    watch.started(10, 0)
    watch.landed(1, Usage(completion=300))
    assert watch.rate() == pytest.approx(300)
    watch._window = ((watch._window[0][0] - 31, 300),)
    assert watch.rate() == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain $x^2$ é 中", "plain $x^2$ é 中"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07name", "name"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("\x9b2Jgone", "gone"),
        ("a\nb\r\tc\x00\x08d", "a b c d"),
        ("abc\u202edef\u200b", "abc def"),
        ("\x1b", ""),
        ("\ud800x", "x"),
        ("x" * 300, "x" * 199 + "…"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3600, "1:00:00"), (90061, "1 d 1:01:01")],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text
