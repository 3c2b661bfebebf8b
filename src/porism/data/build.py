"""From labelled problems to a benchmark set: balanced pools, filters, and a count of all that was left out.

Candidates and variants are drawn by a hash of the seed and the ids, never by their place in a file: a new problem or
candidate disturbs no other pool. Of a repeated question the first counts. Filters go one after another, each counted.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from porism.errors import ConfigError, DataError
from porism.types import Candidate, Problem

Rates = Mapping[str, tuple[int, int]]  # problem id -> own attempts that solved it, own attempts decided


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a set is made of. ConfigError for numbers that no set can have.

    right, wrong: candidates of each kind in every pool. human: one human solution beside them. solve_rate: bounds of
    the solver's own solve rate, ends included. variants: most problems of one group.
    """

    right: int = 4
    wrong: int = 5
    human: bool = False
    solve_rate: tuple[float, float] | None = None
    variants: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.right < 1 or self.wrong < 1:
            raise ConfigError("a pool needs at least one right and one wrong candidate")
        if self.variants is not None and self.variants < 1:
            raise ConfigError(f"{self.variants} variants per group: at least one")
        if self.solve_rate is not None and not 0 <= self.solve_rate[0] <= self.solve_rate[1] <= 1:
            low, high = self.solve_rate
            raise ConfigError(
                f"a solve rate of {low:g} to {high:g}: two numbers from 0 to 1, the lower first"
            )


@dataclass(frozen=True, slots=True)
class Step:
    """One filter: its name, and how many problems and candidates it took out; below zero where it added some."""

    what: str
    problems: int
    candidates: int


@dataclass(slots=True)
class Built:
    """The set, and every filter in order. read: problems and candidates before the first."""

    problems: list[Problem]
    read: tuple[int, int]
    steps: list[Step] = field(default_factory=list)

    def take(self, what: str, problems: list[Problem]) -> None:
        """Go on with these problems, and count what is gone."""
        before, after = size(self.problems), size(problems)
        self.steps.append(Step(what, before[0] - after[0], before[1] - after[1]))
        self.problems = problems


def size(problems: Sequence[Problem]) -> tuple[int, int]:
    """The numbers of problems and of candidates."""
    return len(problems), sum(len(problem.candidates) for problem in problems)


def build(
    files: Iterable[tuple[str, Sequence[Problem]]], recipe: Recipe, rates: Rates | None = None
) -> Built:
    """The set made of files (name, problems), the filters and what each took out.

    rates: the solver's own, by problem id; needed for a recipe with a solve rate. DataError where one id names two
    different questions. A set may be left without any problem.
    """
    everything = [(name, problem) for name, problems in files for problem in problems]
    built = Built([problem for _, problem in everything], size([problem for _, problem in everything]))
    built.take("the question stands in an earlier file or problem", _different(everything))
    _candidates(built, "no label", lambda p: [c for c in p.candidates if c.correct is not None])
    _candidates(built, "the same text with a right and a wrong label", _consistent)
    _candidates(built, "the same text as another candidate of the problem", _once)
    if recipe.human:
        _candidates(built, "written by a person, beyond one solution", lambda p: _one_human(p, recipe.seed))
        built.take(
            "human solutions added from the key `solution`", [_with_solution(p) for p in built.problems]
        )
        built.take("no human solution", [p for p in built.problems if _human(p)])
    else:
        _candidates(built, "written by a person", lambda p: [c for c in p.candidates if not c.human])
    if recipe.solve_rate is not None:
        _by_rate(built, rates or {}, recipe.solve_rate)
    for kind, least in ((True, recipe.right), (False, recipe.wrong)):
        name = f"fewer than {least} {'right' if kind else 'wrong'} candidates"
        built.take(name, [p for p in built.problems if len(_model_written(p, kind)) >= least])
    if recipe.variants is not None:
        name = f"more than {recipe.variants} {'variant' if recipe.variants == 1 else 'variants'} of one group"
        built.take(name, _capped(built.problems, recipe.variants, recipe.seed))
    _candidates(built, "more than the pool takes", lambda p: _pool(p, recipe))
    return built


def _candidates(built: Built, what: str, keep: Callable[[Problem], Sequence[Candidate]]) -> None:
    built.take(what, [replace(p, candidates=tuple(keep(p))) for p in built.problems])


def _different(everything: Sequence[tuple[str, Problem]]) -> list[Problem]:
    """The first problem of every question. DataError where an id is used for two."""
    first: dict[str, tuple[str, Problem]] = {}
    questions: set[str] = set()
    kept, faults = [], []
    for name, problem in everything:
        question = _fold(problem.question)
        known = first.setdefault(problem.id, (name, problem))
        if _fold(known[1].question) != question:
            faults.append(
                f"{name}: the id {problem.id!r} is that of another question in {known[0]}: rename one"
            )
        elif question not in questions:
            kept.append(problem)
        questions.add(question)
    if faults:
        raise DataError(faults)
    return kept


def _consistent(problem: Problem) -> list[Candidate]:
    labels: dict[str, set[bool | None]] = defaultdict(set)
    for candidate in problem.candidates:
        labels[_fold(candidate.text)].add(candidate.correct)
    return [c for c in problem.candidates if len(labels[_fold(c.text)]) == 1]


def _once(problem: Problem) -> list[Candidate]:
    by_id = sorted(problem.candidates, key=lambda c: c.id, reverse=True)
    return list({_fold(c.text): c for c in by_id}.values())


def _human(problem: Problem) -> list[Candidate]:
    return [c for c in problem.candidates if c.human and c.correct]


def _model_written(problem: Problem, correct: bool) -> list[Candidate]:
    return [c for c in problem.candidates if c.correct is correct and not c.human]


def _one_human(problem: Problem, seed: int) -> list[Candidate]:
    drawn = sorted(_human(problem), key=lambda c: _rank(seed, "human", problem.id, c.id))[:1]
    return [c for c in problem.candidates if not c.human or c in drawn]


def _with_solution(problem: Problem) -> Problem:
    """The problem with its known solution as the human candidate, where it has no other."""
    if _human(problem) or not (problem.solution or "").strip():
        return problem
    taken = {c.id for c in problem.candidates}
    id = next(id for id in ("human", *(f"human-{i}" for i in range(2, len(taken) + 3))) if id not in taken)
    one = Candidate(id=id, text=problem.solution or "", answer=problem.answer, correct=True, human=True)
    return replace(problem, candidates=(*problem.candidates, one))


def _by_rate(built: Built, rates: Rates, bounds: tuple[float, float]) -> None:
    low, high = bounds
    known = [p for p in built.problems if rates.get(p.id, (0, 0))[1]]
    built.take("the solver's own solve rate is not known", known)
    inside = [p for p in known if low <= rates[p.id][0] / rates[p.id][1] <= high]
    built.take(f"the solver's own solve rate is not within {low:g} to {high:g}", inside)


def _capped(problems: Sequence[Problem], most: int, seed: int) -> list[Problem]:
    taken: Counter[str] = Counter()
    kept: set[str] = set()
    for problem in sorted(problems, key=lambda p: _rank(seed, "variant", p.id)):
        if problem.group is not None:
            taken[problem.group] += 1
        if problem.group is None or taken[problem.group] <= most:
            kept.add(problem.id)
    return [p for p in problems if p.id in kept]


def _pool(problem: Problem, recipe: Recipe) -> list[Candidate]:
    """So many right and wrong ones, and the human one; in an order that tells nothing."""

    def drawn(correct: bool, most: int) -> list[Candidate]:
        return sorted(
            _model_written(problem, correct), key=lambda c: _rank(recipe.seed, "draw", problem.id, c.id)
        )[:most]

    pool = [
        *drawn(True, recipe.right),
        *drawn(False, recipe.wrong),
        *(_human(problem) if recipe.human else []),
    ]
    return sorted(pool, key=lambda c: _rank(recipe.seed, "order", problem.id, c.id))


def _rank(*parts: object) -> bytes:
    return blake2b(json.dumps(parts).encode(), digest_size=16).digest()


def _fold(text: str) -> str:
    return " ".join(text.split())


__all__ = ["Built", "Rates", "Recipe", "Step", "build", "size"]
