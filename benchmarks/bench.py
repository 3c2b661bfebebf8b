"""Every ratio that porism is held to, measured here and now: `make bench`, or

    python benchmarks/bench.py                  all parts, half an hour, printed and written to benchmarks/results.md
    python benchmarks/bench.py harness score    some of them, printed only

Each part is a script beside this one and can be run alone. Needs 5 GB of disk and the embedded model; the first time it
installs inspect-ai and lm-eval into the cache folder. The exit status is 1 where a bound is broken or a part fails.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from harness import RIVALS
from measure import FIGURES, Figure

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.md"
PARTS = {  # what is run; {folder} is one that is deleted afterwards
    "startup": ("startup.py",),
    "harness": ("harness.py",),
    "embedded": ("embedded.py",),
    "store": ("large_store.py", "{folder}", "1000000", "open", "status"),
    "verifier": ("verifier.py", "speed"),
    "score": ("score.py",),
}
COLUMNS = ("measured", "value", "runs", "bound", "holds")


def run(part: str) -> list[Figure]:
    """The figures of a part, while what it prints is shown. Raises CalledProcessError where it fails."""
    script, *words = PARTS[part]
    with tempfile.TemporaryDirectory() as temporary:
        figures = Path(temporary) / "figures.jsonl"
        figures.touch()
        words = [word.format(folder=Path(temporary) / "run") for word in words]
        subprocess.run(
            [sys.executable, "-u", HERE / script, *words],
            env={**os.environ, FIGURES: str(figures)},
            check=True,
        )
        return [Figure(**json.loads(line)) for line in figures.read_text("utf-8").splitlines()]


def table(figures: list[Figure]) -> str:
    """Figures as a Markdown table."""
    rows = [COLUMNS, ("---",) * len(COLUMNS), *(figure.cells() for figure in figures)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def machine() -> str:
    """What the figures were measured on and with."""
    ours = ", ".join(f"{name} {version(name)}" for name in ("porism", "aiohttp", "msgspec", "math-verify"))
    theirs = ", ".join(requirement for wanted in RIVALS.values() for requirement in wanted)
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {processor()}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, {ours}; beside them {theirs}."
    )


def processor() -> str:
    """The model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine()
    )


def main() -> None:
    """Run the parts; print the table, and write it where all of them ran."""
    chosen = sys.argv[1:] or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        sys.exit(f"no part {', '.join(sorted(unknown))}: they are {', '.join(PARTS)}")
    figures: list[Figure] = []
    loads: list[str] = []
    failed: list[str] = []
    for part in chosen:
        loads.append(f"{part} {os.getloadavg()[0]:.1f}")
        print(f"\n# {part}", flush=True)
        try:
            figures += run(part)
        except subprocess.CalledProcessError as error:
            failed.append(f"{part} (exit status {error.returncode})")
    text = f"{table(figures)}\n{machine()} Load average when a part began: {', '.join(loads)}.\n"
    if failed:
        text += f"\n**Failed**: {', '.join(failed)}.\n"
    print(f"\n{text}")
    if chosen == list(PARTS):
        RESULTS.write_text(f"# Measured by `make bench`\n\n{text}", "utf-8")
    sys.exit(bool(failed) or any(figure.holds is False for figure in figures))


if __name__ == "__main__":
    main()
