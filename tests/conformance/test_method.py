"""What every Method must hold, as one class: subclass MethodConformance and make yours.

    class TestMine(MethodConformance):
        def make(self):
            return MyMethod(...)

The problem is asked of an oracle here: verdicts fixed by the identity of the work, as a store would hold them.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from itertools import groupby

from porism.methods.utility import Utility
from porism.types import (
    Ask,
    Candidate,
    Completion,
    Method,
    Neighbor,
    Observation,
    Problem,
    Result,
    Sampling,
    Verdict,
    VerdictKind,
)

PROBLEM = Problem(
    id="p",
    question="How many?",
    candidates=tuple(Candidate(id=i, text=f"Method {i}.") for i in "abc"),
    neighbors=tuple(Neighbor(id=f"n{i}", question=f"And {i}?", answer=str(i)) for i in range(3)),
)


def answer(method: Method, ask: Ask) -> Observation:
    """A result fixed by the work's identity; of every eight one never came, one is undecided."""
    digest = blake2b(ask.work.id.encode()).digest()
    kinds: tuple[VerdictKind, ...] = (
        "missing",
        "undecided",
        "no_answer",
        "wrong",
        "wrong",
        "wrong",
        "correct",
    )
    kind = kinds[digest[0] % 7]
    if kind == "missing":
        return method.read(ask, Result(None, None, Verdict("missing", "gave up")))
    text = digest.hex()
    verdict = Verdict(kind, "oracle") if ask.gold else None
    return method.read(ask, Result(Completion(ask.work.rollout, text), text[:2], verdict, text))


def run(method: Method, problem: Problem = PROBLEM) -> tuple[list[Ask], list[Observation]]:
    """Plan until there is nothing left, as the engine does."""
    asks: list[Ask] = []
    seen: list[Observation] = []
    for _ in range(100):
        batch = method.plan(problem, seen)
        if not batch:
            return asks, seen
        asks += batch
        seen += [answer(method, ask) for ask in batch]
    raise AssertionError("plan never ends")


class MethodConformance:
    def make(self) -> Method:
        raise NotImplementedError

    def test_plan_ends_and_asks_nothing_twice(self) -> None:
        asks, _ = run(self.make())
        assert asks
        cells = [(a.cell, a.work.rollout) for a in asks]
        assert len(set(cells)) == len(cells)
        assert len({a.work.id for a in asks}) == len(asks)

    def test_cells_name_what_they_are_for(self) -> None:
        method = self.make()
        for ask in run(method)[0]:
            assert ask.cell.problem == PROBLEM.id
            assert ask.cell.method == method.name
            assert ask.cell.candidate in {None, *"abc"}
            assert ask.cell.neighbor in {None, "n0", "n1", "n2"}
            assert ask.cell.solver == ask.work.prompt.model

    def test_rounds_go_up_and_hold_every_candidate_as_one_block(self) -> None:
        asks, _ = run(self.make())
        numbers = [a.cell.round for a in asks]
        assert numbers == sorted(numbers)
        for _, group in groupby(asks, key=lambda a: a.cell.round):
            order = [a.cell.candidate for a in group]
            blocks = [candidate for candidate, _ in groupby(order) if candidate is not None]
            assert sorted(blocks) == ["a", "b", "c"]

    def test_plan_and_score_are_pure(self) -> None:
        method = self.make()
        _, seen = run(method)
        kept = list(seen)
        assert [a.work.id for a in method.plan(PROBLEM, [])] == [
            a.work.id for a in self.make().plan(PROBLEM, [])
        ]
        assert method.score(PROBLEM, seen) == self.make().score(PROBLEM, seen)
        assert seen == kept

    def test_what_was_seen_is_told_back(self) -> None:
        method = self.make()
        for ask in method.plan(PROBLEM, []):
            observation = answer(method, ask)
            assert observation.cell == ask.cell
            assert observation.rollout == ask.work.rollout

    def test_every_candidate_has_a_score_inside_its_interval(self) -> None:
        method = self.make()
        _, seen = run(method)
        for part in ([], seen[:1], seen[: len(seen) // 2], seen):
            scores = method.score(PROBLEM, part)
            assert list(scores) == ["a", "b", "c"]
            for score in scores.values():
                assert score.value is None or score.low <= score.value <= score.high

    def test_order_of_what_was_seen_and_of_the_file_is_nothing(self) -> None:
        method = self.make()
        _, seen = run(method)
        scores = method.score(PROBLEM, seen)
        assert method.score(PROBLEM, seen[::-1]) == scores
        turned = replace(
            PROBLEM,
            candidates=PROBLEM.candidates[::-1],
            neighbors=(PROBLEM.neighbors[2], *PROBLEM.neighbors[:2]),
        )
        assert method.score(turned, seen) == scores

    def test_what_belongs_to_others_is_left_alone(self) -> None:
        method = self.make()
        _, seen = run(method)
        other = replace(PROBLEM, id="other")
        foreign = [answer(method, ask) for ask in method.plan(other, [])]
        assert method.score(PROBLEM, seen + foreign) == method.score(PROBLEM, seen)


class TestUtility(MethodConformance):
    def make(self) -> Method:
        return Utility(solvers=("m",), sampling=Sampling(max_tokens=100))


class TestUtilityOfTwoSolvers(MethodConformance):
    def make(self) -> Method:
        return Utility(solvers=("m", "k"), sampling=Sampling(max_tokens=100), rollouts=5, no_example=False)
