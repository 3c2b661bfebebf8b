"""Consequence-based utility: what a candidate's method lets a solver do on questions with known answers.

The solver sees the question with one candidate, then a neighbor question; the candidate's utility is the
mean over neighbors of the share of rollouts that solve the neighbor. The same neighbors without any
example are one more row: without it nobody knows whether an example helped at all. A few of the solver's
own attempts at the target tell whether the target is hard for it, which is where the method speaks.

Rounds end at rollouts 2, 4, 8, 16, ...: the boundaries never move, so asking for more rollouts later
extends a run and changes nothing that was asked. With an allocation, each round depends on those before it
(methods/allocate), and some candidates are left out of later rounds.

With another `exemplar` than the full candidate this is a control of itself (see controls.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from porism.errors import ConfigError
from porism.methods.allocate.settings import Allocation
from porism.methods.controls import EXEMPLARS, Donor, Exemplar, shown
from porism.methods.prompt import (
    QUESTION_FIELDS,
    SOLVE_FIELDS,
    UTILITY_FIELDS,
    check_template,
    load_template,
    render,
)
from porism.types import (
    Ask,
    Candidate,
    Cell,
    Counts,
    Generate,
    Gold,
    Message,
    Neighbor,
    Observation,
    Problem,
    Prompt,
    Result,
    Sampling,
    Score,
)

if TYPE_CHECKING:
    from porism.stats import Interval

Key = tuple[str, str]  # solver, neighbor id
Row = dict[Key, list[Observation]]  # what was seen of one candidate, or of no example

TRUNCATED_SHARE = 0.05  # above these shares a row is flagged
NO_ANSWER_SHARE = 0.05
IDENTICAL_SHARE = 0.2
STARVED = "starved"  # the flag of a candidate that an allocation gave up


@dataclass(frozen=True, kw_only=True)
class Utility:
    """The method. solvers: model identities; template, solve_template, question_template: texts of jinja2 templates.

    rollouts: of every solver for every candidate and neighbor. target_samples: own attempts of every
    solver at the question itself, at most `rollouts`. exemplar: what is shown for a candidate, others (see
    controls.donors): where "other-question" takes it from. allocation: how as many rollouts, or fewer, are shared
    out among candidates; None: evenly. Raises ConfigError for settings that cannot be used.
    """

    solvers: tuple[str, ...]
    sampling: Sampling
    rollouts: int = 8
    template: str = field(default_factory=lambda: load_template(None, "utility"))
    solve_template: str = field(default_factory=lambda: load_template(None, "solve"))
    question_template: str = field(default_factory=lambda: load_template(None, "utility-question"))
    no_example: bool = True
    target_samples: int = 4
    exemplar: Exemplar = "full"
    others: tuple[Donor, ...] = ()
    allocation: Allocation | None = None
    name: str = "utility"

    def __post_init__(self) -> None:
        if not self.solvers or len(set(self.solvers)) < len(self.solvers):
            raise ConfigError(f"{self.name}: name at least one solver, and each only once.")
        if self.rollouts < 1 or self.target_samples < 0:
            raise ConfigError(f"{self.name}: rollouts must be at least 1 and target samples at least 0.")
        if self.exemplar not in EXEMPLARS:
            raise ConfigError(
                f"{self.name}: exemplar {self.exemplar!r} is not known: {', '.join(EXEMPLARS)}."
            )
        if self.exemplar == "other-question" and not self.others:
            raise ConfigError(
                f"{self.name}: other-question needs candidates of other problems (others=donors(problems))."
            )
        check_template(self.solve_template, SOLVE_FIELDS)
        check_template(self.question_template, QUESTION_FIELDS)
        check_template(self.template, UTILITY_FIELDS)

    def warnings(self) -> list[str]:
        """What the user should know about the templates."""
        return check_template(self.template, UTILITY_FIELDS)

    def plan(self, problem: Problem, seen: list[Observation]) -> list[Ask]:
        """The Asks of every round that is not wholly seen; none of them waits for another's outcome.

        Round by round; inside a round candidate by candidate, and for each all solvers, neighbors and
        rollouts together. The rows without an example come last. With an allocation: the next round alone.
        """
        if self.allocation is not None and problem.candidates:
            return self._next_round(problem, seen, self.allocation)
        prompts = list(self._prompts(problem))
        have = {
            (o.cell.candidate, o.cell.neighbor, o.cell.solver, o.rollout) for o in self._own(problem, seen)
        }
        asks: list[Ask] = []
        for number, (first, end) in enumerate(rounds(self.rollouts)):
            batch: list[Ask] = []
            for cell, prompt, gold, prefix, most in prompts:
                cell = Cell(problem.id, cell.candidate, cell.neighbor, self.name, cell.solver, number)
                works = [Generate(prompt, rollout) for rollout in range(first, min(end, most))]
                batch.extend(Ask(cell, work, gold, prefix) for work in works)
            if any(
                (a.cell.candidate, a.cell.neighbor, a.cell.solver, a.work.rollout) not in have for a in batch
            ):
                asks.extend(batch)
        return asks

    def _next_round(self, problem: Problem, seen: list[Observation], allocation: Allocation) -> list[Ask]:
        """The round that follows what was seen. Rows without candidate go as deep as candidates do on average."""
        from porism.methods.allocate.rounds import blocks

        rows = self.rows(problem, seen)
        ids = [c.id for c in problem.candidates]
        depth = {row: max((len(got) for got in cells.values()), default=0) for row, cells in rows.items()}
        cells = {i: [count(got) for got in rows[i].values()] for i in ids}
        added = blocks(allocation, cells, self.rollouts, seed=problem.id)
        if not added:
            return []
        number = 1 + max((o.cell.round for o in self._own(problem, seen)), default=-1)
        mean = -(-sum(depth[i] + added.get(i, 0) for i in ids) // len(ids))
        attempts = Counter(o.cell.solver for o in self._own(problem, seen) if o.cell.neighbor is None)
        asks: list[Ask] = []
        for cell, prompt, gold, prefix, most in self._prompts(problem):
            if cell.candidate is not None:
                first = depth[cell.candidate]
                end = first + added.get(cell.candidate, 0)
            else:
                first = depth[None] if cell.neighbor is not None else attempts[cell.solver]
                end = min(most, mean)
            cell = Cell(problem.id, cell.candidate, cell.neighbor, self.name, cell.solver, number)
            asks.extend(Ask(cell, Generate(prompt, i), gold, prefix) for i in range(first, end))
        return asks

    def read(self, ask: Ask, result: Result) -> Observation:
        """What one rollout told. A completion that never came is `missing`."""
        return observed(ask, result)

    def score(self, problem: Problem, seen: list[Observation]) -> dict[str, Score]:
        """Utility of every candidate, in the problem's order, with its 95 % interval given these neighbors.

        Every (solver, neighbor) weighs the same, so with several solvers this is the mean of theirs.
        """
        rows = self.rows(problem, seen)
        given_up = self.starved(problem, rows)
        return {c.id: self._score(rows[c.id], starved=c.id in given_up) for c in problem.candidates}

    def baseline(self, problem: Problem, seen: list[Observation]) -> Score | None:
        """The same without any example; None where that was not asked."""
        return self._score(self.rows(problem, seen)[None]) if self.no_example else None

    def interval(self, cells: Sequence[Counts]) -> Interval:
        """The mean solve rate over cells and its 95 % interval; with an allocation one that holds at any stop."""
        from porism.stats import mean_rate

        if self.allocation is None:
            return mean_rate(cells)
        from porism.methods.allocate.rounds import anytime

        return anytime(cells)

    def _score(self, row: Row, *, starved: bool = False) -> Score:
        cells = {key: count(got) for key, got in row.items()}
        found = self.interval(list(cells.values()))
        return Score(
            value=None if found.value is None else float(found.value),
            low=found.low,
            high=found.high,
            cells={f"{solver}/{neighbor}": counts for (solver, neighbor), counts in cells.items()},
            flags=(*row_flags(row), *[STARVED] * starved),
        )

    def starved(self, problem: Problem, rows: dict[str | None, Row]) -> frozenset[str]:
        """Candidates that an allocation gave up, by id: their scores do not compare with the others'."""
        if self.allocation is None:
            return frozenset()
        from porism.methods.allocate.rounds import starved

        return starved({c.id: [count(got) for got in rows[c.id].values()] for c in problem.candidates})

    def rows(self, problem: Problem, seen: list[Observation]) -> dict[str | None, Row]:
        """What was seen, by candidate id (None: no example) and then by (solver, neighbor id).

        Every planned cell is there, if only empty, sorted so that the file's order changes no figure.
        Observations of other methods, problems, solvers or neighbors, and rollouts beyond those that may be
        planned, are left out.
        """
        ids: list[str | None] = [c.id for c in problem.candidates]
        keys = sorted((solver, n.id) for solver in self.solvers for n in problem.neighbors)
        found: dict[str | None, dict[Key, dict[int, Observation]]] = {
            row: {key: {} for key in keys} for row in [*ids, None]
        }
        for o in self._own(problem, seen):
            if o.cell.neighbor is not None and o.cell.candidate in found:
                cell = found[o.cell.candidate].get((o.cell.solver, o.cell.neighbor))
                if cell is not None:
                    cell[o.rollout] = o
        return {
            row: {key: [got[i] for i in sorted(got)] for key, got in cells.items()}
            for row, cells in found.items()
        }

    def attempts(self, problem: Problem, seen: list[Observation]) -> list[Observation]:
        """The solvers' own attempts at the target that came back."""
        return [
            o
            for o in self._own(problem, seen)
            if o.cell.candidate is None
            and o.cell.neighbor is None
            and o.cell.solver in self.solvers
            and not (o.verdict and o.verdict.kind == "missing")
        ]

    def _own(self, problem: Problem, seen: list[Observation]) -> Iterator[Observation]:
        most = self.rollouts * (len(problem.candidates) if self.allocation else 1)
        for o in seen:
            if o.cell.method == self.name and o.cell.problem == problem.id and o.rollout < most:
                yield o

    def _prompts(self, problem: Problem) -> Iterator[tuple[Cell, Prompt, Gold | None, str, int]]:
        """Every cell with its one prompt, what to check against, its prefix and its number of rollouts."""
        golds = {n.id: Gold(n.answer, n.answer_type) for n in problem.neighbors}
        candidates: list[Candidate | None] = [*problem.candidates]
        for candidate in candidates + [None] * self.no_example:
            for solver in self.solvers:
                row = candidate.id if candidate else None
                for neighbor in problem.neighbors:
                    # Without an example, only rollouts of one prompt have anything in common.
                    shared = f"candidate {row}" if candidate else f"neighbor {neighbor.id}"
                    if candidate and self.exemplar != "full":
                        shared = f"{self.exemplar} for {shared}"
                    prefix = f"{solver}/{problem.id}/{shared}"
                    prompt = self._prompt(solver, self._text(problem, candidate, neighbor))
                    cell = Cell(problem.id, row, neighbor.id, self.name, solver, 0)
                    yield cell, prompt, golds[neighbor.id], prefix, self.rollouts
        for solver in self.solvers if self.target_samples else ():
            prompt = self._prompt(solver, render(self.solve_template, question=problem.question))
            cell = Cell(problem.id, None, None, self.name, solver, 0)
            yield cell, prompt, None, f"{solver}/{problem.id}", self.target_samples

    def _text(self, problem: Problem, candidate: Candidate | None, neighbor: Neighbor) -> str:
        question, text = shown(self.exemplar, problem, candidate, self.others) if candidate else (None, None)
        if question is None:
            return render(self.solve_template, question=neighbor.question)
        if text is None:
            return render(self.question_template, question=question, neighbor=neighbor.question)
        return render(self.template, question=question, candidate=text, neighbor=neighbor.question)

    def _prompt(self, solver: str, text: str) -> Prompt:
        return Prompt(solver, (Message("user", text),), self.sampling)


def observed(ask: Ask, result: Result) -> Observation:
    """What one answer told: its verdict, and what of its text the counts need."""
    return Observation(
        cell=ask.cell,
        rollout=ask.work.rollout,
        verdict=result.verdict,
        answer=result.answer,
        truncated=result.completion is not None and result.completion.truncated,
        text_key=result.text_key,
    )


def rounds(rollouts: int) -> list[tuple[int, int]]:
    """Rounds as (first, end) rollouts: 0-2, 2-4, 4-8, 8-16, ..., the last one cut at `rollouts`."""
    bounds = [0]
    while bounds[-1] < rollouts:
        bounds.append(min(rollouts, max(2, 2 * bounds[-1])))
    return list(pairwise(bounds))


def count(observations: list[Observation]) -> Counts:
    """Exact counts of verdicts. A rollout without any verdict is undecided."""
    kinds = [o.verdict.kind if o.verdict else "undecided" for o in observations]
    return Counts(
        correct=kinds.count("correct"),
        wrong=kinds.count("wrong"),
        no_answer=kinds.count("no_answer"),
        undecided=kinds.count("undecided"),
        missing=kinds.count("missing"),
        truncated=sum(o.truncated for o in observations),
    )


def identical_share(observations: list[Observation]) -> float:
    """The share of one cell's completions that repeat an earlier one word for word."""
    keys = [o.text_key for o in observations if o.text_key]
    return 1 - len(set(keys)) / len(keys) if keys else 0.0


def row_flags(row: Row) -> tuple[str, ...]:
    """What a reader must know before trusting a row: shares out of the ordinary, and no variation at all."""
    return tuple(_flags(row, {key: count(got) for key, got in row.items()}))


def _flags(row: Row, cells: dict[Key, Counts]) -> Iterator[str]:
    seen = [c for c in cells.values() if c.total]
    total = sum(c.total for c in seen)
    if not total:
        yield "nothing seen"
        return
    empty = [neighbor for (_, neighbor), c in cells.items() if not c.decided]
    if empty:
        yield f"nothing decided on {', '.join(dict.fromkeys(empty))}"
    for label, most, number in (
        ("truncated", TRUNCATED_SHARE, sum(c.truncated for c in seen)),
        ("no answer", NO_ANSWER_SHARE, sum(c.no_answer for c in seen)),
        ("undecided", 0.0, sum(c.undecided for c in seen)),
        ("missing", 0.0, sum(c.missing for c in seen)),
    ):
        if number / total > most:
            yield f"{label} {number / total:.0%}"
    identical = max(identical_share(got) for got in row.values())
    if identical > IDENTICAL_SHARE:
        yield f"identical completions {identical:.0%}"
    solved, decided = sum(c.correct for c in seen), sum(c.decided for c in seen)
    if decided and solved in (0, decided):
        yield "always solved" if solved else "never solved"


__all__ = ["STARVED", "Key", "Row", "Utility", "count", "identical_share", "observed", "rounds", "row_flags"]
