"""Majority vote: a candidate is as good as the number of voters whose final answer is its own.

Voters are the candidates themselves, or attempts of a solver at the question, or both. Which answers are the same is
for the verifier to say, not for their spelling: each comparison is an Ask, decided in its processes and stored like
any other verdict. Vote needs a final answer, so it says nothing of a proof; and in a pool that was balanced by hand
the candidates' own votes only give back how it was made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from porism.errors import ConfigError
from porism.methods.calls import own
from porism.methods.controls import own_answer
from porism.methods.prompt import SOLVE_FIELDS, check_template, load_template, render
from porism.methods.utility import observed, rounds
from porism.types import (
    Ask,
    Candidate,
    Cell,
    Compare,
    Counts,
    Generate,
    Gold,
    Message,
    Observation,
    Problem,
    Prompt,
    Result,
    Sampling,
    Score,
    VerdictKind,
)

VERIFIER = "verifier"  # stands for a model where answers are only compared


@dataclass(frozen=True, kw_only=True)
class Vote:
    """The method. pool: whether the candidates vote (copies derived from another one do not).

    solvers, sampling, samples: attempts of each solver at the question, each with a vote; solve_template is the text
    of the jinja2 template (question) they are asked with. Raises ConfigError for settings that cannot be used.
    """

    pool: bool = True
    solvers: tuple[str, ...] = ()
    sampling: Sampling | None = None
    samples: int = 0
    solve_template: str = field(default_factory=lambda: load_template(None, "solve"))
    name: str = "vote"

    def __post_init__(self) -> None:
        if self.samples < 0 or (self.samples and not (self.solvers and self.sampling)):
            raise ConfigError(f"{self.name}: samples need a solver and its sampling.")
        if not self.pool and not self.samples:
            raise ConfigError(f"{self.name}: nobody votes: let the candidates vote (pool), or draw samples.")
        if len(set(self.solvers)) < len(self.solvers):
            raise ConfigError(f"{self.name}: name each solver only once.")
        check_template(self.solve_template, SOLVE_FIELDS)

    def plan(self, problem: Problem, seen: list[Observation]) -> list[Ask]:
        """Comparisons of the candidates' answers, then attempts in rounds that end at 2, 4, 8, ...

        An attempt is one rollout, however many candidates' answers it is compared with.
        """
        have = {
            (o.cell.candidate, o.cell.against, o.cell.solver, o.rollout) for o in self._own(problem, seen)
        }
        answers = {c.id: a for c in problem.candidates if (a := own_answer(c)) is not None}
        batches = [self._comparisons(problem, answers)]
        batches += [
            self._attempts(problem, answers, number + 1, range(first, end))
            for number, (first, end) in enumerate(rounds(self.samples) if self.samples else ())
        ]
        return [
            ask
            for batch in batches
            if any(
                (a.cell.candidate, a.cell.against, a.cell.solver, a.work.rollout) not in have for a in batch
            )
            for ask in batch
        ]

    def read(self, ask: Ask, result: Result) -> Observation:
        """`correct` where the two answers are the same."""
        return observed(ask, result)

    def score(self, problem: Problem, seen: list[Observation]) -> dict[str, Score]:
        """The share of votes for each candidate's answer; None for a candidate without one.

        A voter without an answer, or whose answer was not found to be the same, counts in the whole; an attempt that
        never came does not. The interval is that of a rate (stats.mean_rate), as if the voters were drawn at random,
        with both what stayed undecided and what never came held open.
        """
        from porism.stats import mean_rate

        mine = self._own(problem, seen)
        classes = self.classes(problem, seen)
        voters = [c for c in problem.candidates if self.pool and c.derived_from is None]
        compared: dict[frozenset[str | None], set[VerdictKind]] = {}
        attempted: dict[str | None, list[VerdictKind]] = {}
        for o in mine:
            kind = o.verdict.kind if o.verdict else "undecided"
            if o.cell.against is None:
                attempted.setdefault(o.cell.candidate, []).append(kind)
            else:
                compared.setdefault(frozenset((o.cell.candidate, o.cell.against)), set()).add(kind)
        scores = {}
        for candidate in problem.candidates:
            if candidate.id not in classes:
                scores[candidate.id] = Score(value=None, low=0.0, high=1.0, flags=("no final answer",))
                continue
            votes = [_vote(candidate, voter, classes, compared) for voter in voters]
            votes += attempted.get(candidate.id, [])
            total = Counts(
                correct=votes.count("correct"),
                wrong=votes.count("wrong"),
                no_answer=votes.count("no_answer"),
                undecided=votes.count("undecided"),
                missing=votes.count("missing"),
            )
            asked = total.total - total.missing
            value = total.correct / asked if asked else None
            found = mean_rate([total])
            flags = [
                f"{label} {number} of {total.total}"
                for label, number in (
                    ("no answer", total.no_answer),
                    ("undecided", total.undecided),
                    ("missing", total.missing),
                )
                if number
            ]
            scores[candidate.id] = Score(
                value=value,
                low=found.low if value is None else min(found.low, value),
                high=found.high if value is None else max(found.high, value),
                flags=tuple(flags or (() if total.total else ("nothing seen",))),
            )
        return scores

    def classes(self, problem: Problem, seen: list[Observation]) -> dict[str, frozenset[str]]:
        """For each candidate with a final answer, those whose answer is the same, itself among them.

        Two are the same where the verifier says so in either direction (a known `x = 5` accepts 5), and what is the
        same as a third is the same as each other.
        """
        groups = {c.id: {c.id} for c in problem.candidates if own_answer(c) is not None}
        for o in self._own(problem, seen):
            one, other = o.cell.candidate, o.cell.against
            if one in groups and other in groups and o.verdict and o.verdict.kind == "correct":
                joined = groups[one] | groups[other]
                for member in joined:
                    groups[member] = joined
        return {id: frozenset(group) for id, group in groups.items()}

    def _own(self, problem: Problem, seen: list[Observation]) -> list[Observation]:
        return [
            o
            for o in own(self.name, problem, seen)
            if (o.cell.against is not None and self.pool)
            or (o.cell.against is None and o.cell.solver in self.solvers and o.rollout < self.samples)
        ]

    def _comparisons(self, problem: Problem, answers: dict[str, str]) -> list[Ask]:
        if not self.pool:
            return []
        return [
            Ask(
                Cell(problem.id, one, None, self.name, VERIFIER, 0, other),
                Compare(answers[one]),
                Gold(answers[other]),
            )
            for one in answers
            for other in answers
            if one != other
        ]

    def _attempts(
        self, problem: Problem, answers: dict[str, str], number: int, rollouts: Iterable[int]
    ) -> list[Ask]:
        if self.sampling is None:
            return []
        text = render(self.solve_template, question=problem.question)
        prompts = [Prompt(solver, (Message("user", text),), self.sampling) for solver in self.solvers]
        works = [Generate(prompt, rollout) for prompt in prompts for rollout in rollouts]
        return [
            Ask(
                Cell(problem.id, one, None, self.name, work.prompt.model, number),
                work,
                Gold(answer),
                prefix=f"{work.prompt.model}/{problem.id}",
            )
            for one, answer in answers.items()
            for work in works
        ]


def _vote(
    candidate: Candidate,
    voter: Candidate,
    classes: dict[str, frozenset[str]],
    compared: dict[frozenset[str | None], set[VerdictKind]],
) -> VerdictKind:
    """Whether the voter's answer is the candidate's: wrong only where the verifier says so and nothing contradicts."""
    if voter.id not in classes:
        return "no_answer"
    if voter.id in classes[candidate.id]:
        return "correct"
    return "wrong" if compared.get(frozenset((candidate.id, voter.id))) == {"wrong"} else "undecided"


__all__ = ["VERIFIER", "Vote"]
