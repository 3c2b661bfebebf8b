"""The embedded models on the examples: what the table in docs/embedded-model.md is made from.

Runs (or resumes) `porism rank` for each model on each problem, each in a run folder of its own under --runs, then
prints the table. Takes hours on two cores; stopped, it goes on where it was. `--table` prints what is there and
asks nothing.
Every right-or-wrong figure is a mean over problems, with a 95 % t interval over problem groups.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from statistics import mean

import porism
from porism.inference import t_interval
from porism.methods.ranking import Ranking
from porism.types import Problem

HERE = Path(__file__).resolve().parents[1]
# Wording and sampling were tried out on necklaces, factorial-valuation, dual-curve and run-of-faces: not reported.
EXAMPLES = [
    "bipartite-trees",
    "semigroup-gaps",
    "cycle-colorings",
    "sl3-dimension",
    "equal-entries-determinant",
    "covering-genus",
]
MODELS = ["qwen2.5-coder-0.5b", "smollm2-135m", "qwen2.5-coder-1.5b"]


def auc(right: list[float], wrong: list[float]) -> float:
    """The share of (right, wrong) pairs in the right order, ties counting one half."""
    return mean((r > w) + (r == w) / 2 for r in right for w in wrong)


def acc_at_1(right: list[float], wrong: list[float]) -> float:
    """The chance that the first is right, over a random order of those that tie."""
    top = max(right + wrong)
    return right.count(top) / (right.count(top) + wrong.count(top))


def interval(values: list[float]) -> str:
    """Mean with its 95 % t interval; the values are one a problem group."""
    span = t_interval(values)
    if span is None:
        return f"{mean(values):.2f}" if values else "-"
    return f"{mean(values):.2f} ({max(0, span[0]):.2f} .. {min(1, span[1]):.2f})"


def line(name: str, found: list[tuple[Problem, Ranking]]) -> str:
    """One row of the table."""
    rights, wrongs, bases, aucs, accs, truncated, rollouts = [], [], [], [], [], 0, set()
    for problem, ranking in found:
        values = {place.candidate: place.utility for place in ranking.ranking}
        labels = {c.id: c.correct for c in problem.candidates}
        right = [float(v) for c, v in values.items() if labels[c] and v is not None]
        wrong = [float(v) for c, v in values.items() if not labels[c] and v is not None]
        if not right or not wrong:
            continue
        rights.append(mean(right))
        wrongs.append(mean(wrong))
        if ranking.no_example is not None and ranking.no_example.utility is not None:
            bases.append(ranking.no_example.utility)
        aucs.append(auc(right, wrong))
        accs.append(acc_at_1(right, wrong))
        counts = [place.counts for place in ranking.ranking]
        truncated += sum(c.truncated for c in counts)
        rollouts.add(sum(c.total for c in counts))
    total = sum(sum(p.counts.total for p in r.ranking) for _, r in found)
    share = f"{truncated / total:.0%}" if total else "-"
    cells = [
        name,
        str(len(aucs)),
        str(total),
        *(interval(v) for v in (bases, rights, wrongs, aucs, accs)),
        share,
    ]
    return "| " + " | ".join(cells) + " |"


async def one(problem: Problem, model: str, runs: Path, rollouts: int, table_only: bool) -> Ranking | None:
    """The ranking of one problem by one model; None where nothing is stored yet and nothing may be asked."""
    folder = runs / f"{problem.id}-{model}"
    if table_only:
        if not folder.is_dir():
            return None
        from porism.run import score

        return (await score(folder)).problems[0]
    result = await porism.arank([problem], models=(f"local/{model}",), rollouts=rollouts, output=folder)
    if result.stopped is not None:
        raise SystemExit(result.stopped)
    return result.problems[0]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=HERE / "runs" / "embedded-models")
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--problems", nargs="*", default=EXAMPLES, help="names in examples/")
    parser.add_argument("--file", type=Path, help="a problem file instead of the examples")
    parser.add_argument("--limit", type=int, default=10, help="problems of --file")
    parser.add_argument("--neighbors", type=int, help="only the first so many neighbors of each problem")
    parser.add_argument("-n", type=int, default=8, help="rollouts for every candidate and neighbor")
    parser.add_argument("--table", action="store_true", help="print what is there; ask nothing")
    given = parser.parse_args()
    if given.file:
        problems = porism.read_problems(given.file, limit=given.limit)
    else:
        problems = [porism.read_problems(HERE / "examples" / f"{name}.yaml")[0] for name in given.problems]
    if given.neighbors:
        import dataclasses

        problems = [dataclasses.replace(p, neighbors=p.neighbors[: given.neighbors]) for p in problems]
    rows = []
    for model in given.models:
        found = []
        for problem in problems:
            ranking = await one(problem, model, given.runs, given.n, given.table)
            if ranking is not None:
                found.append((problem, ranking))
                print(f"{model} {problem.id}: {ranking.message}", flush=True)
        rows.append(line(model, found))
    print("| model | problems | rollouts | no example | right | wrong | AUC | Acc@1 | truncated |")
    print("|---|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    asyncio.run(main())
