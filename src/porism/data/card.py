"""The card of a benchmark set: what is in it, where that comes from, under which licenses, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from porism.data.build import Built, Rates, Recipe
from porism.types import Candidate, Neighbor, Problem

UNSTATED = "not stated"


def card(
    built: Built, recipe: Recipe, inputs: Sequence[Path], written: Sequence[str], rates: Rates | None
) -> str:
    """The text of the card, in Markdown. inputs: the files read; written: names of the files that hold the set."""
    parts = [
        f"# {Path(written[0]).stem}",
        "A benchmark set made by `porism data build`: questions with labelled candidate solutions and neighbors.",
        "## What is in it",
        _table(("", "count"), _counts(built.problems)),
        *(
            ["Candidates by kind:", _table(("kind", "candidates"), kinds)]
            if (kinds := _kinds(built.problems))
            else []
        ),
        "## How it was made",
        _table(("input", "sha256 of the file"), [(path.name, _sha256(path)) for path in inputs]),
        _recipe(recipe, built.problems, rates),
        "Filters, in the order applied, and what each took out or added (with a problem go its candidates):",
        _table(
            ("filter", "problems", "candidates"),
            [
                ("read", *built.read),
                *((s.what, f"{-s.problems:+}", f"{-s.candidates:+}") for s in built.steps),
            ],
        ),
        "## Sources and licenses",
        "As the files state them, in `source` and in the metadata keys `source` and `license`.",
        _table(("what", "source", "license", "count"), _sources(built.problems)),
        "## Reading it",
        _reading(written),
    ]
    return "\n\n".join(parts) + "\n"


def _counts(problems: Sequence[Problem]) -> list[tuple[str, object]]:
    candidates = [c for p in problems for c in p.candidates]
    groups = {p.group or f"\0{p.id}" for p in problems}
    return [
        ("problems", len(problems)),
        ("groups (variants of one original together)", len(groups)),
        ("candidates", len(candidates)),
        (
            "of them right, not written by a person",
            sum(c.correct is True and not c.human for c in candidates),
        ),
        ("of them wrong", sum(c.correct is False for c in candidates)),
        ("of them human solutions", sum(c.human for c in candidates)),
        ("neighbors", sum(len(p.neighbors) for p in problems)),
        ("problems without neighbors, which cannot be ranked yet", sum(not p.neighbors for p in problems)),
    ]


def _kinds(problems: Sequence[Problem]) -> list[tuple[str, int]]:
    kinds = Counter(c.kind or UNSTATED for p in problems for c in p.candidates)
    return sorted(kinds.items()) if set(kinds) - {UNSTATED} else []


def _recipe(recipe: Recipe, problems: Sequence[Problem], rates: Rates | None) -> str:
    lines = [
        f"- every pool: {recipe.right} right and {recipe.wrong} wrong candidates"
        + (", and one human solution" if recipe.human else ""),
        f"- drawn with seed {recipe.seed}, by a hash of the ids",
    ]
    if recipe.variants is not None:
        lines.append(f"- at most {recipe.variants} of one group")
    if recipe.solve_rate is not None and rates is not None:
        attempts = [rates[p.id][1] for p in problems]
        many = f", from {min(attempts)} to {max(attempts)} attempts a problem" if attempts else ""
        low, high = recipe.solve_rate
        lines.append(f"- the solver's own solve rate within {low:g} to {high:g}{many}")
    return "\n".join(lines)


def _sources(problems: Sequence[Problem]) -> list[tuple[str, str, str, int]]:
    found: Counter[tuple[str, str, str]] = Counter()
    for what, record in _records(problems):
        metadata = record.metadata or {}
        given = None if isinstance(record, Problem) else record.source
        source = given or metadata.get("source")
        license = metadata.get("license", metadata.get("licence"))
        found[what, str(source or UNSTATED), str(license or UNSTATED)] += 1
    return [
        (*key, count)
        for key, count in sorted(found.items(), key=lambda item: (item[0][0], -item[1], item[0]))
    ]


def _records(problems: Sequence[Problem]) -> Iterator[tuple[str, Problem | Candidate | Neighbor]]:
    for problem in problems:
        yield "problem", problem
        yield from (("candidate", candidate) for candidate in problem.candidates)
        yield from (("neighbor", neighbor) for neighbor in problem.neighbors)


def _reading(written: Sequence[str]) -> str:
    reader = "parquet" if written[-1].endswith(".parquet") else "json"
    return (
        "One row a problem; `candidates` and `neighbors` are lists of structs, `metadata` and `provenance` are JSON "
        "text.\n\n"
        "```python\n"
        "from datasets import load_dataset\n\n"
        f'problems = load_dataset("{reader}", data_files="{written[-1]}", split="train")\n'
        "```\n\n"
        f"`porism rank {written[0]}` reads it as it is."
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(value) for value in row)} |" for row in lines)


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")[:200]


def _sha256(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else "a folder"


__all__ = ["card"]
