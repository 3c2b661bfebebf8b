"""What every Method must hold, as one class: subclass MethodConformance and make yours.

    class TestMine(MethodConformance):
        def make(self):
            return MyMethod(...)

The problem is asked of an oracle here: verdicts fixed by the identity of the work, as a store would hold them.
`text` is what its models write, for methods that read marks; `silent` methods ask nothing at all.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from itertools import groupby

import pytest

from porism.methods.controls import EXEMPLARS, Exemplar, donors
from porism.methods.genrm import FORMS, Form, GenRM
from porism.methods.judge import SCALES, Judge, Scale
from porism.methods.make import METHODS
from porism.methods.pairwise import Pairwise
from porism.methods.reward import Reward
from porism.methods.trivial import Length, Random
from porism.methods.utility import Utility
from porism.methods.vote import Vote
from porism.types import (
    Ask,
    Candidate,
    Compare,
    Completion,
    Generate,
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
    candidates=tuple(
        Candidate(
            id=i,
            text=f"Method {i}. It goes on. The answer is \\boxed{{{answer}}}.",
            source="LEAKED-SOURCE",
            correct=i == "a",
            kind="right" if i == "a" else "wrong-but-helpful",
            metadata={"note": "LEAKED-NOTE"},
        )
        for i, answer in zip("abc", ("7", "7.0", "9"), strict=True)
    ),
    neighbors=tuple(Neighbor(id=f"n{i}", question=f"And {i}?", answer=str(i)) for i in range(3)),
)


OTHERS = donors([replace(PROBLEM, id="elsewhere", group="far", question="What else?")])
LAST_LINES = (
    *("Score: 3", "Score: 7", "Verdict: accept", "Verdict: reject", "Better: A", "Better: B", "Better: tie"),
    *(r"\boxed{4, 1}", r"\boxed{2, 2}", "Correct: yes", "Correct: no", "Score: 11", "no mark", "0.25"),
)


def answer(method: Method, ask: Ask, lines: tuple[str, ...] = LAST_LINES) -> Observation:
    """A result fixed by the work's identity: of every seven one never came and one is undecided.

    The texts end in one of `lines`, so that every method reads a mark in some and none in others.
    """
    digest = blake2b(f"{ask.work.id} {ask.gold}".encode()).digest()
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
    verdict = Verdict(kind, "oracle") if ask.gold else None
    if isinstance(ask.work, Compare):
        return method.read(ask, Result(None, ask.work.answer, verdict))
    if kind == "missing":
        return method.read(ask, Result(None, None, Verdict("missing", "gave up")))
    text = f"{digest.hex()}\n{lines[digest[1] % len(lines)]}"
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
    silent = False

    def make(self) -> Method:
        raise NotImplementedError

    def test_plan_ends_and_asks_nothing_twice(self) -> None:
        asks, _ = run(self.make())
        assert bool(asks) != self.silent
        cells = [(a.cell, a.work.rollout) for a in asks]
        assert len(set(cells)) == len(cells)
        works = [(a.cell.candidate, a.work.id, a.gold) for a in asks]
        assert len(set(works)) == len(works)

    def test_what_no_method_may_know_is_in_no_prompt(self) -> None:
        for ask in run(self.make())[0]:
            if isinstance(ask.work, Generate):
                text = "".join(message.content for message in ask.work.prompt.messages)
                assert "LEAKED" not in text
                assert "wrong-but-helpful" not in text
        blind = replace(
            PROBLEM,
            candidates=tuple(
                replace(c, source=None, correct=None, kind=None, metadata=None) for c in PROBLEM.candidates
            ),
        )
        assert run(self.make(), blind) == run(self.make())

    def test_cells_name_what_they_are_for(self) -> None:
        method = self.make()
        for ask in run(method)[0]:
            assert ask.cell.problem == PROBLEM.id
            assert ask.cell.method == method.name
            assert ask.cell.candidate in {None, *"abc"}
            assert ask.cell.against in {None, *"abc"} - {ask.cell.candidate or ""}
            assert ask.cell.neighbor in {None, "n0", "n1", "n2"}
            if isinstance(ask.work, Generate):
                assert ask.cell.solver == ask.work.prompt.model
            else:
                assert ask.gold is not None

    def test_rounds_go_up_and_hold_every_candidate_as_one_block(self) -> None:
        """Only a round that hangs on what was seen may leave candidates out: the ones it has nothing to ask for."""
        method = self.make()
        asks, _ = run(method)
        numbers = [a.cell.round for a in asks]
        assert numbers == sorted(numbers)
        given = {a.cell.round for a in method.plan(PROBLEM, [])}
        for number, group in groupby(asks, key=lambda a: a.cell.round):
            order = [a.cell.candidate for a in group]
            blocks = [candidate for candidate, _ in groupby(order) if candidate is not None]
            assert len(blocks) == len(set(blocks))
            assert number not in given or sorted(blocks) == ["a", "b", "c"]

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


@pytest.mark.parametrize("exemplar", EXEMPLARS)
class TestControls(MethodConformance):
    @pytest.fixture(autouse=True)
    def _chosen(self, exemplar: Exemplar) -> None:
        self.exemplar = exemplar

    def make(self) -> Method:
        return Utility(
            solvers=("m",),
            sampling=Sampling(max_tokens=100),
            exemplar=self.exemplar,
            others=OTHERS,
            name=f"utility-{self.exemplar}",
        )


@pytest.mark.parametrize("scale", SCALES)
class TestJudge(MethodConformance):
    @pytest.fixture(autouse=True)
    def _chosen(self, scale: Scale) -> None:
        self.scale = scale

    def make(self) -> Method:
        return Judge(judges=("j", "k"), sampling=Sampling(max_tokens=100), scale=self.scale, calls=5)


@pytest.mark.parametrize("form", FORMS)
class TestGenRM(MethodConformance):
    @pytest.fixture(autouse=True)
    def _chosen(self, form: Form) -> None:
        self.form = form

    def make(self) -> Method:
        return GenRM(judges=("g",), sampling=Sampling(max_tokens=100), form=self.form)


class TestPairwise(MethodConformance):
    def make(self) -> Method:
        return Pairwise(judges=("j", "k"), sampling=Sampling(max_tokens=100), calls=3)


class TestTournament(MethodConformance):
    def make(self) -> Method:
        return Pairwise(judges=("j",), sampling=Sampling(max_tokens=100), opponents=1)


class TestReward(MethodConformance):
    def make(self) -> Method:
        return Reward(model="r")


class TestVote(MethodConformance):
    def make(self) -> Method:
        return Vote()


class TestVoteOfSolvers(MethodConformance):
    def make(self) -> Method:
        return Vote(pool=False, solvers=("m", "k"), sampling=Sampling(max_tokens=100), samples=6)


class TestLength(MethodConformance):
    silent = True

    def make(self) -> Method:
        return Length()


class TestRandom(MethodConformance):
    silent = True

    def make(self) -> Method:
        return Random()


def test_every_named_method_is_held_to_this() -> None:
    held: list[MethodConformance] = [
        *(TestUtility(), TestPairwise(), TestReward(), TestVote(), TestLength(), TestRandom())
    ]
    assert {*(type(one.make()) for one in held), Judge, GenRM} == set(METHODS.values())
