"""What analyses read: the problems with their labels, and each method's scores and single rollouts. Plain data.

Copies of candidates in another style (`derived_from`) stand outside. A candidate is `right`, `wrong` or `human` (the
human solution, unless its label says wrong), or has no label. Values are exact where they come from counts, so that
ties are ties.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Literal

from msgspec import Struct

from porism.methods.utility import STARVED, Utility
from porism.metrics import Value, exact
from porism.types import Candidate, Method, Observation, Problem, Score

Label = Literal["right", "human", "wrong"]
LABELS: tuple[Label, ...] = ("right", "wrong", "human")
Span = tuple[float, float]
Cells = tuple[tuple[float | None, ...], ...]  # by (solver, neighbor), then by rollout; None: it told nothing

READERS = ("judge", "genrm", "pairwise", "reward")  # kinds of methods that read a candidate and mark it


class View(Struct, frozen=True, kw_only=True):
    """One method. values: problem -> candidate -> score, where there is one.

    rollouts: problem -> candidate -> single outcomes, whose mean over rollouts and then cells is the score; empty for
    methods that are no such mean, or whose rollouts were shared out by what came before. tokens: of prompts and answers
    over the whole set, as if the method had run alone. control: it is a control of utility, which sees less than the
    candidate. starved: pools that are in none of this, because an allocation gave up some of their candidates, whose
    scores are too rough for any of it.
    """

    name: str
    kind: str
    values: dict[str, dict[str, Value]]
    rollouts: dict[str, dict[str, Cells]] = {}
    tokens: int = 0
    control: bool = False
    starved: int = 0


class Material(Struct, frozen=True, kw_only=True):
    """Problems, methods, and how the solver fared on the questions themselves.

    solved: problem -> (right, decided) of its own attempts, where the known answer could check them. human: whether the
    human solution counts among the right ones.
    """

    problems: tuple[Problem, ...]
    views: tuple[View, ...]
    solved: dict[str, tuple[int, int]] = {}
    human: bool = True

    def groups(self, by_problem: Mapping[str, float]) -> list[float]:
        """The mean over the problems of each group, for those that have a value."""
        found: dict[str, list[float]] = {}
        for p in self.problems:
            if p.id in by_problem:
                found.setdefault(p.group or p.id, []).append(by_problem[p.id])
        return [fmean(own) for own in found.values()]

    def sides(self, problem: Problem) -> dict[str, bool]:
        """Whether each labelled candidate is right; the human solution is in it where it counts."""
        found = {}
        for c in problem.candidates:
            label = label_of(c)
            if label is not None and (self.human or label != "human"):
                found[c.id] = label != "wrong"
        return found


def label_of(candidate: Candidate) -> Label | None:
    """The label of a candidate; None where nobody knows."""
    if candidate.human and candidate.correct is not False:
        return "human"
    return None if candidate.correct is None else "right" if candidate.correct else "wrong"


def view(
    method: Method,
    kind: str,
    problems: Sequence[Problem],
    scores: Mapping[str, Mapping[str, Score]],
    seen: Mapping[tuple[str, str], Sequence[Observation]],
    tokens: int = 0,
) -> View:
    """A method as analyses see it. scores: by problem id and candidate id; seen: by problem id and method name."""
    adaptive = isinstance(method, Utility) and method.allocation is not None
    starved = {p.id for p in problems if any(STARVED in score.flags for score in scores[p.id].values())}
    problems = [p for p in problems if p.id not in starved]
    return View(
        name=method.name,
        kind=kind,
        starved=len(starved),
        values={
            p.id: {
                c.id: value
                for c in p.candidates
                if (score := scores[p.id].get(c.id)) is not None and (value := exact(score)) is not None
            }
            for p in problems
        },
        rollouts={
            p.id: found
            for p in problems
            if not adaptive and (found := rollouts(p, seen.get((p.id, method.name), ())))
        },
        tokens=tokens,
        control=isinstance(method, Utility) and method.exemplar != "full",
    )


def rollouts(problem: Problem, seen: Iterable[Observation]) -> dict[str, Cells]:
    """The outcomes of each candidate's rollouts: 1 or 0 for a verdict on a neighbor, else the mark.

    What told nothing (undecided, missing, an unreadable mark) is None, and of two readings of one call the one with a
    mark stands. Comparisons with another candidate are no outcome of one candidate, and left out.
    """
    found: dict[str, dict[tuple[str, str], dict[int, float | None]]] = {}
    ids = {c.id for c in problem.candidates}
    for o in seen:
        cell = o.cell
        if cell.candidate not in ids or cell.against is not None:
            continue
        own = found.setdefault(cell.candidate, {}).setdefault((cell.solver, cell.neighbor or ""), {})
        value = o.score if cell.neighbor is None else _outcome(o)
        if value is not None or o.rollout not in own:
            own[o.rollout] = value
    if not any(
        value is not None for cells in found.values() for own in cells.values() for value in own.values()
    ):
        return {}
    longest = 1 + max(n for cells in found.values() for own in cells.values() for n in own)
    return {
        id: tuple(tuple(cells[key].get(n) for n in range(longest)) for key in sorted(cells))
        for id, cells in found.items()
    }


def _outcome(o: Observation) -> float | None:
    kind = o.verdict.kind if o.verdict else "undecided"
    return 1.0 if kind == "correct" else 0.0 if kind in ("wrong", "no_answer") else None


__all__ = ["LABELS", "READERS", "Cells", "Label", "Material", "Span", "View", "label_of", "rollouts", "view"]
