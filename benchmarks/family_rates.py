"""How often a small model answers questions of the gallery's families alone: the table in docs/method-set.md.

    python benchmarks/family_rates.py FOLDER            two questions of every family, 2 rollouts each; resumes
    python benchmarks/family_rates.py FOLDER --table    what is there, as a table; asks nothing
    python benchmarks/family_rates.py FOLDER --model local/qwen2.5-coder-1.5b

Questions are drawn as the method set draws its neighbors, with the small numbers its sources ask for. The rows are
those that `porism rank` asks without an example, with its settings: a rate is where a neighbor of the set starts.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from porism.cli.draw import family_mapping
from porism.frames import frame
from porism.neighbors.definition import read_family
from porism.neighbors.measure import check_problems
from porism.types import Problem

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
QUESTIONS = 2
ROLLOUTS = 2


def sources() -> dict[str, dict[str, Any]]:
    """The sources of the method set by family."""
    found = (yaml.safe_load(path.read_text("utf-8")) for path in (EXAMPLES / "method-set").glob("*.yaml"))
    return {source["family"]: source for source in found}


def problems() -> list[Problem]:
    """For each family a problem without candidates: its neighbors are what is asked."""
    used = sources()
    found = []
    for path in sorted((EXAMPLES / "families").glob("*.yaml")):
        mapping = family_mapping(path)
        near = used.get(path.stem, {}).get("constraints", [])
        family = read_family(mapping | {"constraints": [*mapping.get("constraints", []), *near]})
        first, *rest = family.draw(QUESTIONS + 1, 0)
        found.append(Problem(id=path.stem, question=first.question, candidates=(), neighbors=tuple(rest)))
    return found


def table(folder: Path) -> None:
    """A row a family: whether the set has it, its rate, and the share cut off."""
    halves = {family: source["half"] for family, source in sources().items()}
    seen = frame(folder).group_by("problem").agg(
        solved=(pl.col("verdict") == "correct").sum(), asked=pl.len(), cut=pl.col("truncated").mean()
    )  # fmt: skip
    print("| family | in the set | solved alone | cut off |\n|---|---|---|---|")
    for family, solved, asked, cut in seen.sort("solved", "problem", descending=[True, False]).iter_rows():
        print(f"| {family} | {halves.get(family, 'no')} | {solved}/{asked} | {cut:.0%} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="local/qwen2.5-coder-0.5b")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if not given.table:
        settings = {"rollouts": ROLLOUTS, "target_samples": 0, "output": given.folder}
        asyncio.run(check_problems(problems(), models=(given.model,), **settings))
    table(given.folder)


if __name__ == "__main__":
    main()
