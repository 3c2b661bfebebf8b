"""Starting is cheap: budgets in seconds, and the libraries that a bare import must not bring.

On a slow machine the budget is that of the smallest program with the same command line library, and three quarters.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

HEAVY = [
    "pydantic",
    "numpy",
    "scipy",
    "sympy",
    "aiohttp",
    "jinja2",
    "polars",
    "rich",
    "typer",
    "asyncio",
    "math_verify",
]
# Bytecode has to be kept between starts, as it is for any installed program.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
PORISM = Path(sys.executable).with_name("porism")
SMALLEST = """
import typer
app = typer.Typer()
app.command("a")(lambda: None)
app.command("b")(lambda: None)
app(["--help"])
"""


def best_time(command: list[str], budget: float) -> float:
    """The fastest of 5 starts, or of up to 15 while the budget is not met.

    Where others keep every core busy, time on the clock says nothing: then it is the processor time of the start.
    """
    best = float("inf")
    for attempt in range(15):
        if attempt >= 5 and best <= budget:
            break
        begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT, timeout=60)
        wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        busy = os.getloadavg()[0] > (os.cpu_count() or 1)
        best = min(best, cpu if busy else wall)
    return best


def test_import_within_budget() -> None:
    assert best_time([sys.executable, "-c", "import porism"], 0.1) <= 0.1


@pytest.mark.parametrize("words", [["--help"], ["rank", "--help"]], ids=" ".join)
def test_help_within_budget(words: list[str]) -> None:
    found = best_time([str(PORISM), *words], 0.25)
    assert found <= 0.25 or found <= 1.75 * best_time([sys.executable, "-c", SMALLEST], 0)


def test_import_brings_nothing_heavy() -> None:
    code = f"import sys, porism; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=ENVIRONMENT
    )
    assert done.stdout.split() == []
