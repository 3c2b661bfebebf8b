"""`porism analyze`: a run folder to tables, pictures and a list to read. Costs no token.

The analyses are pure (porism.analysis); here the folder is read, the solver's own attempts are checked against the
known answers, and what comes out is written. A run of `rank` is analysed as far as it goes: it has one method, and
mostly no labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from porism.analysis import pictures
from porism.analysis.agreement import Disagreement, Sensitivity, disagreement, sensitivity
from porism.analysis.gap import Gap, gap
from porism.analysis.levels import AboveMean, Histogram, above_mean, histogram
from porism.analysis.material import Material, label_of, view
from porism.analysis.stability import Frontier, Stability, frontier, stability
from porism.engine import replay
from porism.errors import ConfigError, StoreError
from porism.methods.utility import Utility
from porism.store import Store
from porism.types import Gold, Method, Observation, Problem
from porism.verify import VERSION

if TYPE_CHECKING:
    from porism.failures import Tags
    from porism.verify.pool import Verifier

Table = Gap | AboveMean | Histogram | Stability | Frontier | Disagreement | Sensitivity

TITLES = {
    "gap": "Right minus wrong, in standard deviations, by how well the solver does the question itself",
    "above_mean": "Chance to score above the mean of the pool",
    "histogram": "Scores",
    "stability": "Fewer rollouts against all of them",
    "frontier": "Quality against cost",
    "disagreement": "Candidates that one method likes (above its pool's mean) and the other does not",
    "sensitivity": "How alike two methods order pools",
}
PICTURES: dict[str, Callable[[Any], str]] = {
    "gap": pictures.gap_picture,
    "above_mean": pictures.above_picture,
    "histogram": pictures.histogram_picture,
    "stability": pictures.stability_picture,
    "frontier": pictures.frontier_picture,
    "disagreement": pictures.disagreement_picture,
    "sensitivity": pictures.sensitivity_picture,
}


class Analyses(Struct, frozen=True, kw_only=True):
    """All analyses of a run by name, and for those that it cannot carry the reason why (`left_out`)."""

    run: str
    material: Material
    tables: dict[str, Table]
    left_out: dict[str, str]

    def picture(self, name: str) -> str:
        """One analysis as SVG text, fit to stand in a page."""
        return PICTURES[name](self.tables[name])


async def analyze(path: Path, *, allow_code: bool = False) -> Analyses:
    """Every analysis that the run folder can carry. Costs no token; needs no model.

    Raises ConfigError where the run cannot be read, or its answers were checked by another version of the verifier.
    """
    found = await material(path, allow_code=allow_code)
    made: dict[str, Table] = {
        "gap": gap(found),
        "above_mean": above_mean(found),
        "histogram": histogram(found),
        "stability": stability(found),
        "frontier": frontier(found),
        "disagreement": disagreement(found),
        "sensitivity": sensitivity(found),
    }
    left_out = {name: why for name, table in made.items() if (why := _empty(table, found)) is not None}
    return Analyses(
        run=str(path),
        material=found,
        tables={name: table for name, table in made.items() if name not in left_out},
        left_out=left_out,
    )


async def material(path: Path, *, allow_code: bool = False) -> Material:
    """What analyses read, from a run folder of `rank` or of `run`. Errors as in `analyze`."""
    from porism.bench.build import kind
    from porism.bench.cost import cost
    from porism.bench.evaluate import scores
    from porism.prepare import refuse_code
    from porism.stored import is_benchmark, stored_benchmark, stored_methods
    from porism.verify.pool import Verifier

    with Store(path, write=False) as store:
        store.check_version(VERSION)
        problems, methods = stored_methods(store)
        refuse_code(problems, allow_code=allow_code)
        kinds, human = {m.name: m.name for m in methods}, "right"
        if is_benchmark(store.read_json("run.json")):
            config = stored_benchmark(store)[0]
            kinds = {m.name: kind(m.name, config.methods[m.name]) for m in methods}
            human = config.human
        async with Verifier(allow_code=allow_code) as checker:
            seen = await replay(store, checker, problems, methods)
            solved = {
                p.id: await _solved(p, methods, seen, checker) for p in problems if p.answer is not None
            }
        own = [
            replace(p, candidates=tuple(c for c in p.candidates if c.derived_from is None)) for p in problems
        ]
        tokens = {m.name: cost(m, problems, seen, store)[1] for m in methods}
    return Material(
        problems=tuple(own),
        views=tuple(
            view(
                m,
                kinds[m.name],
                own,
                scores(problems, m, seen),
                seen,
                tokens[m.name].prompt + tokens[m.name].completion,
            )
            for m in methods
        ),
        solved=solved,
        human=human == "right",
    )


async def _solved(
    problem: Problem,
    methods: Sequence[Method],
    seen: dict[tuple[str, str], list[Observation]],
    checker: Verifier,
) -> tuple[int, int]:
    """How many of the solvers' own attempts at the question are right, of how many that are decided.

    Methods that share a solver share its attempts; they count once.
    """
    attempts = {
        (o.cell.solver, o.rollout, o.text_key): o.answer
        for m in methods
        if isinstance(m, Utility)
        for o in m.attempts(problem, seen.get((problem.id, m.name), []))
    }
    right = decided = 0
    for answer in attempts.values():
        verdict = None if answer is None else await checker.verify(answer, Gold(problem.answer or ""))
        right += verdict is not None and verdict.kind == "correct"
        decided += verdict is None or verdict.kind in ("correct", "wrong")
    return right, decided


def _empty(table: Table, found: Material) -> str | None:
    """Why an analysis says nothing of this run; None where it does."""
    labels = {label_of(c) for p in found.problems for c in p.candidates}
    both = any(len(set(found.sides(p).values())) == 2 for p in found.problems)
    unlabelled = "no problem has both right and wrong candidates"
    match table:
        case Gap() if not table.points:
            if not both:
                return unlabelled
            return (
                "no attempt of a solver at a question could be checked: it needs target_samples of utility, and the "
                "key `answer` of the problems"
            )
        case AboveMean() if not table.rows:
            return "no candidate has a label" if labels <= {None} else "no labelled candidate has a score"
        case Histogram() if not table.bins:
            return "no candidate has a score"
        case Stability() if not table.rows:
            return "no method has two rollouts of a candidate"
        case Frontier() if not table.points:
            return "no labelled candidate has a score" if both else unlabelled
        case Disagreement() if not table.splits:
            return "it needs utility, and a method that reads candidates (judge, pairwise, genrm, reward)"
        case Sensitivity() if not table.pairs:
            return "there is only one method"
    return None


def write(analyses: Analyses, folder: Path, tags: Tags | None = None) -> list[Path]:
    """Tables as CSV, all of it as analysis.json, pictures as SVG, and disagreement.jsonl to read; the files written.

    Raises ConfigError for a folder that holds something else, StoreError where it cannot be written.
    """
    marker = folder / "analysis.json"
    if folder.is_dir() and not marker.exists() and any(f.name != "failures" for f in folder.iterdir()):
        raise ConfigError(f"{folder} holds other files; name another folder with -o")
    files: dict[str, bytes] = {}
    for name, table in analyses.tables.items():
        files[f"{name}.svg"] = analyses.picture(name).encode()
        for part in table.__struct_fields__:
            rows = getattr(table, part)
            if isinstance(rows, tuple) and rows:
                files[f"{name}-{part}.csv"] = _csv(rows)
    if isinstance(found := analyses.tables.get("disagreement"), Disagreement):
        files["disagreement.jsonl"] = _cases(analyses, found, tags)
    files[marker.name] = msgspec.json.format(msgspec.json.encode(document(analyses)), indent=2) + b"\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            temporary = folder / f".{name}.tmp"
            temporary.write_bytes(content)
            temporary.replace(folder / name)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {error.strerror or error}") from error
    return [folder / name for name in files]


def document(analyses: Analyses) -> dict[str, Any]:
    """The JSON contract: run, analyses by name, and what was left out and why."""
    return {
        "run": analyses.run,
        "analyses": {name: msgspec.to_builtins(table) for name, table in analyses.tables.items()},
        "left_out": analyses.left_out,
    }


def _csv(rows: Sequence[Struct]) -> bytes:
    """One line a row; an interval takes two columns, NAME_low and NAME_high."""
    import csv
    import io

    buffer = io.StringIO()
    out = csv.writer(buffer, lineterminator="\n")
    fields = rows[0].__struct_fields__
    spans = {f for f in fields if f.endswith("ci95")}
    out.writerow([name for f in fields for name in ([f"{f}_low", f"{f}_high"] if f in spans else [f])])
    for row in rows:
        values: list[object] = []
        for f in fields:
            value = getattr(row, f)
            values += (value or ("", "")) if f in spans else [value]
        out.writerow(values)
    return buffer.getvalue().encode(errors="replace")


def _cases(analyses: Analyses, found: Disagreement, tags: Tags | None) -> bytes:
    """A line a case, with the question and the whole text, and what a model said of it."""
    problems = {p.id: p for p in analyses.material.problems}
    lines = []
    for case in found.cases:
        p = problems[case.problem]
        row = msgspec.to_builtins(case)
        if tags is not None:
            row["failures"] = tags.found.get((case.problem, case.candidate))
            row["failures_by"] = tags.model
        row["question"] = p.question
        row["text"] = next(c.text for c in p.candidates if c.id == case.candidate)
        lines.append(msgspec.json.encode(row) + b"\n")
    return b"".join(lines)


__all__ = ["TITLES", "Analyses", "analyze", "document", "material", "write"]
