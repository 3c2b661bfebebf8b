"""Pairwise comparison: a model reads two candidates and says which is the better one, or that neither is.

Every pair is shown in both orders, because a judge that likes what stands first would otherwise decide the ranking;
how often the order changes the answer is part of the result. All pairs, or for large pools a tournament in which
each candidate meets a few others. A Bradley-Terry model makes one scale of it: see scale.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from msgspec import Struct

from porism.errors import ConfigError
from porism.methods.calls import Calls, Question, own, read
from porism.methods.judge import check_models
from porism.methods.marks import word
from porism.methods.means import left_out
from porism.methods.prompt import PAIR_FIELDS, check_template, load_template, render
from porism.types import Ask, Cell, Message, Observation, Problem, Prompt, Result, Sampling, Score

_DECISIONS = {"a": 1.0, "b": 0.0, "tie": 0.5}
UNSTABLE = 0.25  # above this share of pairs whose winner goes with the order, a candidate is flagged


class Orders(Struct, frozen=True):
    """Pairs shown in both orders by what both answers have in common; a pair counts once for each judge and call.

    same: the same candidate won both times, or neither did. changed: one order has a winner and the other a tie.
    reversed: whoever stood first won both times, or lost both times. first_won: how often the first one shown won,
    of all answers that name a winner.
    """

    same: int
    changed: int
    reversed: int
    first_won: float | None

    @property
    def agreement(self) -> float | None:
        """The share of pairs that the order does not change."""
        total = self.same + self.changed + self.reversed
        return self.same / total if total else None


@dataclass(frozen=True, kw_only=True)
class Pairwise:
    """The method. judges: model identities, all in one Bradley-Terry model.

    calls: answers of every judge to every pair in each order. opponents: a tournament, in which every candidate
    meets at least so many others; 0 means all pairs. seed: who meets whom there. again_tokens and template
    (question, first, second) as for a judge. Raises ConfigError for settings that cannot be used.
    """

    judges: tuple[str, ...]
    sampling: Sampling
    calls: int = 1
    opponents: int = 0
    seed: int = 0
    again_tokens: int = 0
    template: str = ""
    name: str = "pairwise"

    def __post_init__(self) -> None:
        check_models(self.name, self.judges)
        if self.opponents < 0:
            raise ConfigError(f"{self.name}: opponents must be at least 1, or 0 for all pairs.")
        if not self.template:
            object.__setattr__(self, "template", load_template(None, "pairwise"))
        check_template(self.template, PAIR_FIELDS)
        _ = self._calls

    def plan(self, problem: Problem, seen: list[Observation]) -> list[Ask]:
        """Every pair in both orders, all pairs that show a candidate first together; then once more what was unread."""
        return self._calls.plan(list(self._questions(problem)), own(self.name, problem, seen))

    def read(self, ask: Ask, result: Result) -> Observation:
        """1 where the cell's candidate, shown first, is the better one, 0 where the other is, 1/2 for a tie."""
        return read(ask, result, lambda text: word(text, "better", _DECISIONS))

    def score(self, problem: Problem, seen: list[Observation]) -> dict[str, Score]:
        """The chance that a candidate wins against another one of this pool, by a Bradley-Terry model of all answers.

        A tie is half a win for both. None without a readable answer about the candidate. The interval holds for
        these judges, this pool, and answers that are independent, which repeated calls are only in part.
        """
        from porism.methods.scale import strengths

        ids = sorted(c.id for c in problem.candidates)
        readings = self._readings(problem, seen)
        wins = {(o.cell.candidate, o.cell.against): 0.0 for o in readings}
        for o in readings:
            if o.score is not None:
                wins[o.cell.candidate, o.cell.against] += o.score
                turned = o.cell.against, o.cell.candidate
                wins[turned] = wins.get(turned, 0.0) + 1 - o.score
        found = strengths([[wins.get((i, j), 0.0) for j in ids] for i in ids])
        scores = {}
        for candidate in problem.candidates:
            mine = [o for o in readings if candidate.id in (o.cell.candidate, o.cell.against)]
            strength = found[ids.index(candidate.id)]
            flags = left_out(mine, self._calls, self.sampling)
            orders = _orders(mine)
            if orders.agreement is not None and 1 - orders.agreement > UNSTABLE:
                flags = (*flags, f"the order changes {1 - orders.agreement:.0%} of its comparisons")
            scores[candidate.id] = Score(
                value=strength.value, low=strength.low, high=strength.high, flags=flags
            )
        return scores

    def orders(self, problem: Problem, seen: list[Observation]) -> Orders:
        """How far the answers depend on which candidate was shown first."""
        return _orders(self._readings(problem, seen))

    def pairs(self, problem: Problem) -> set[frozenset[str]]:
        """Who meets whom. In a tournament the candidates stand in a ring in the order of a seeded hash, and each meets
        the next ones in both directions: the whole pool hangs together, and a new candidate moves few of the others.
        """
        ids = [c.id for c in problem.candidates]
        ring = sorted(ids, key=lambda i: (blake2b(f"{self.seed}\0{problem.id}\0{i}".encode()).digest(), i))
        reach = (self.opponents + 1) // 2 or len(ids)
        return {
            frozenset((ring[k], ring[(k + step) % len(ring)]))
            for k in range(len(ring))
            for step in range(1, min(reach, len(ring) - 1) + 1)
        }

    def _questions(self, problem: Problem) -> Iterator[Question]:
        pairs = self.pairs(problem)
        for first in problem.candidates:
            for second in problem.candidates:
                if first.id == second.id or frozenset((first.id, second.id)) not in pairs:
                    continue
                text = render(self.template, question=problem.question, first=first.text, second=second.text)
                for judge in self.judges:
                    prompt = Prompt(judge, (Message("user", text),), self.sampling)
                    cell = Cell(problem.id, first.id, None, self.name, judge, 0, second.id)
                    yield Question(cell, prompt, f"{judge}/{problem.id}/{self.name} of {first.id}")

    def _readings(self, problem: Problem, seen: list[Observation]) -> list[Observation]:
        found = self._calls.readings(own(self.name, problem, seen))
        return [o for (_, _, judge), rows in found.items() if judge in self.judges for o in rows]

    @property
    def _calls(self) -> Calls:
        return Calls.of(self.name, self.calls, self.sampling, self.again_tokens)


def _orders(readings: list[Observation]) -> Orders:
    marks = {
        (o.cell.candidate, o.cell.against, o.cell.solver, o.rollout): o.score
        for o in readings
        if o.score is not None
    }
    same = changed = reverse = 0
    for (first, second, judge, rollout), mark in marks.items():
        other = marks.get((second, first, judge, rollout))
        if other is None or (first or "") > (second or ""):
            continue
        same += mark == 1 - other
        reverse += mark == other != 0.5
        changed += (mark == 0.5) != (other == 0.5)
    decided = [mark for mark in marks.values() if mark != 0.5]
    return Orders(same, changed, reverse, sum(decided) / len(decided) if decided else None)


__all__ = ["Orders", "Pairwise"]
