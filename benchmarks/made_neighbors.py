"""Neighbors that a small model makes, against the data's own: the figures in docs/neighborhoods.md.

    python benchmarks/made_neighbors.py make FOLDER       ten targets, their neighbors hidden; resumes
    python benchmarks/made_neighbors.py compare FOLDER    rollouts on one made and one own neighbor of each; resumes
    python benchmarks/made_neighbors.py table FOLDER      what the docs say; asks nothing

The generator, the solver of the consensus and the solver of the rollouts are the embedded 1.5b. The targets are the
first ten of gsm8k_rgym, whose own neighbors are drawn from templates. Whether an answer that was kept is right is for a
person to read: FOLDER/read.json holds {"neighbor id": true or false} by target id.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

from porism.data import read_problems, write_problems
from porism.inference import t_interval

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "gsm8k_rgym.jsonl"
MODEL = "local/qwen2.5-coder-1.5b"
TARGETS = 10


def porism(*args: object) -> str:
    """The stdout of a porism command. A budget stop or a fault ends this script."""
    command = [sys.executable, "-m", "porism", *map(str, args)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def make(folder: Path) -> None:
    """Ten targets without neighbors, then neighbors for them."""
    hidden = folder / "hidden.jsonl"
    if not hidden.exists():
        own = read_problems(DATA)[:TARGETS]
        write_problems([dataclasses.replace(p, neighbors=()) for p in own], hidden)
    made = porism(
        "neighbors", "make", hidden, "-g", MODEL, "--strategy", "perturb", "-n", 3, "--max-tokens", 512,
        "-o", folder / "made.jsonl", "--force", "--json",
    )  # fmt: skip
    (folder / "made.json").write_text(made, encoding="utf-8")


def compare(folder: Path) -> None:
    """`porism neighbors check` on the first made and the first own neighbor of each target that has a made one."""
    own = {p.id: p for p in read_problems(DATA)[:TARGETS]}
    both = [
        dataclasses.replace(
            p, neighbors=(p.neighbors[0], dataclasses.replace(own[p.id].neighbors[0], id="own"))
        )
        for p in read_problems(folder / "made.jsonl")
        if p.neighbors
    ]
    write_problems(both, folder / "both.jsonl", force=True)
    checked = porism(
        "neighbors", "check", folder / "both.jsonl", "-m", MODEL, "-n", 8, "-o", folder / "run", "--json"
    )
    (folder / "checked.json").write_text(checked, encoding="utf-8")


def interval(values: list[float]) -> str:
    """Mean with its 95 % t interval over targets."""
    span = t_interval(values)
    if span is None:
        return f"{mean(values):.2f}" if values else "-"
    return f"{mean(values):.2f} ({span[0]:.2f} .. {span[1]:.2f})"


def table(folder: Path) -> None:
    """Prints what survived, what of it is right, and how made and own neighbors compare."""
    made = json.loads((folder / "made.json").read_text(encoding="utf-8"))
    read: dict[str, dict[str, bool]] = json.loads((folder / "read.json").read_text(encoding="utf-8"))
    print(json.dumps({key: value for key, value in made.items() if not isinstance(value, list)}, indent=1))
    judged = [right for each in read.values() for right in each.values()]
    print(f"kept {len(judged)}, right by reading {sum(judged)}")
    problems = json.loads((folder / "checked.json").read_text(encoding="utf-8"))["problems"]
    for name in ("no_example", "shown", "discrimination", "gap"):
        rows: dict[str, list[float]] = {"made": [], "own": []}
        apart: list[float] = []
        for p in problems:
            first, second = ((n["rates"] or {}).get(name) for n in p["neighbors"])
            for kind, value in (("made", first), ("own", second)):
                if value is not None:
                    rows[kind].append(value)
            if first is not None and second is not None:
                apart.append(first - second)
        print(
            f"{name}: made {interval(rows['made'])}, own {interval(rows['own'])}, difference {interval(apart)}"
        )


STAGES: dict[str, Any] = {"make": make, "compare": compare, "table": table}

if __name__ == "__main__":
    stage, where = sys.argv[1:]
    Path(where).mkdir(parents=True, exist_ok=True)
    STAGES[stage](Path(where))
