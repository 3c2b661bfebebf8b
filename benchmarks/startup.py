"""How long porism takes to start: python benchmarks/startup.py prints the median of 15 starts."""

from __future__ import annotations

import sys
from pathlib import Path

from measure import Figure, measured, report

STARTS = 15
PORISM = Path(sys.executable).with_name("porism")


def main() -> None:
    """Time a bare import and the help."""
    for what, bound, command in (
        ("import porism", 0.1, [sys.executable, "-c", "import porism"]),
        ("porism --help", 0.25, [PORISM, "--help"]),
    ):
        measured(*command)
        times = [measured(*command).seconds for _ in range(STARTS)]
        report(Figure.over(what, times, "s", rule="under", bound=bound))


if __name__ == "__main__":
    main()
