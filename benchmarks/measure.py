"""What a command takes, with all the processes it starts; and figures beside their bounds, for benchmarks/bench.py."""

from __future__ import annotations

import json
import operator
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple

FIGURES = "PORISM_BENCH_FIGURES"  # names the file that figures are appended to
# Bytecode has to be kept between starts, as it is for any installed program.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
_HOLDS = {"at most": operator.le, "at least": operator.ge, "under": operator.lt}


class Measured(NamedTuple):
    """Seconds on the clock, seconds of processor time, the most megabytes one process held, and what it printed."""

    seconds: float
    cpu: float
    megabytes: float
    output: str


# The wrapper adopts what a command leaves behind, so that the time of killed and orphaned processes counts as well.
# It and the command end with whoever measures.
_WRAPPER = """
import ctypes, json, os, resource, signal, subprocess, sys, time
def on_linux(option, value):
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)
PDEATHSIG, CHILD_SUBREAPER = 1, 36
on_linux(PDEATHSIG, signal.SIGKILL)
on_linux(CHILD_SUBREAPER, 1)
begun = time.monotonic()
done = subprocess.run(
    sys.argv[2:],
    stdin=subprocess.DEVNULL,
    stdout=subprocess.PIPE,
    preexec_fn=lambda: on_linux(PDEATHSIG, signal.SIGKILL),
)
seconds = time.monotonic() - begun
signal.alarm(20)
try:
    while True:
        os.waitpid(-1, 0)
except ChildProcessError:
    pass
used = resource.getrusage(resource.RUSAGE_CHILDREN)
megabytes = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
with open(int(sys.argv[1]), "w") as told:
    json.dump([seconds, used.ru_utime + used.ru_stime, megabytes], told)
sys.stdout.buffer.write(done.stdout)
sys.exit(done.returncode)
"""


def measured(*command: str | Path, env: Mapping[str, str] = ENVIRONMENT, cwd: Path | None = None) -> Measured:
    """What a command takes until all its processes have ended; none of them sees a terminal.

    Raises CalledProcessError where it fails, once what it said has been printed.
    """
    reader, writer = os.pipe()
    with open(reader) as told:  # noqa: PTH123  (a descriptor)
        try:
            done = subprocess.run(
                [sys.executable, "-c", _WRAPPER, str(writer), *command],
                capture_output=True,
                text=True,
                check=False,
                pass_fds=[writer],
                env=env,
                cwd=cwd,
            )
        finally:
            os.close(writer)
        if done.returncode:
            print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
            done.check_returncode()
        seconds, cpu, megabytes = json.load(told)
    return Measured(seconds, cpu, megabytes, done.stdout)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A measured value beside what is asked of it. No bound: for information.

    spread: the least and the most of the runs that `value` is the median of.
    """

    what: str
    value: float
    unit: str = ""
    rule: Literal["at most", "at least", "under"] | None = None
    bound: float = 0.0
    spread: tuple[float, float] | None = None

    @classmethod
    def over(cls, what: str, values: Sequence[float], unit: str = "", **bound: Any) -> Figure:
        """The median of several runs, with their spread."""
        return cls(what=what, value=median(values), unit=unit, spread=(min(values), max(values)), **bound)

    @property
    def holds(self) -> bool | None:
        """Whether the bound is kept; None where there is none."""
        return None if self.rule is None else bool(_HOLDS[self.rule](self.value, self.bound))

    def cells(self) -> tuple[str, str, str, str, str]:
        """The row of a table: what, value, runs, bound, whether it holds."""
        runs = "" if self.spread is None else f"{self.spread[0]:.4g} to {self.spread[1]:.4g}"
        bound = "" if self.rule is None else f"{self.rule} {self.bound:,g} {self.unit}".strip()
        verdict = {None: "", True: "yes", False: "**no**"}[self.holds]
        return self.what, f"{self.value:,.4g} {self.unit}".strip(), runs, bound, verdict


def report(*figures: Figure) -> None:
    """Print figures, and hand them to benchmarks/bench.py where it asks for them."""
    for figure in figures:
        what, value, runs, bound, verdict = figure.cells()
        notes = [f"({bound}: {verdict})"] * bool(bound) + [f"runs: {runs}"] * bool(runs)
        print(f"{what}: {value}", *notes, flush=True)
    if file := os.environ.get(FIGURES):
        with Path(file).open("a") as lines:
            lines.writelines(json.dumps(asdict(figure)) + "\n" for figure in figures)


__all__ = ["FIGURES", "Figure", "Measured", "measured", "report"]
