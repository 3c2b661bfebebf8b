"""Several methods at once over one store: shared work, a second asking, stops and resumption."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from porism.budget import Budget
from porism.engine import Engine, Outcome, replay
from porism.errors import BudgetReached
from porism.lane import RetryPolicy
from porism.methods.controls import EXEMPLARS, donors, shown
from porism.methods.genrm import FORMS, GenRM
from porism.methods.judge import SCALES, Judge
from porism.methods.pairwise import Pairwise
from porism.methods.trivial import Length, Random
from porism.methods.utility import Utility
from porism.methods.vote import Vote
from porism.models.fake import FakeModel, draw
from porism.models.openai import OpenAIModel
from porism.progress import SilentWatch
from porism.store import Store
from porism.types import Call, Method, Model, Problem, Prompt, Reply, Sampling, Score
from porism.verify.pool import Verifier
from samples import problem
from server import misbehaving

PROBLEMS = [problem("p"), problem("q", candidates=4)]
SAMPLING = Sampling(max_tokens=100)
QUICK = RetryPolicy(first_wait=0.001, longest_wait=0.01)


class Solver(FakeModel):
    """Answers questions as the fake does."""

    def __init__(self, spec: str = "fake/rate_right=0.9") -> None:
        super().__init__(spec)
        self.calls: list[Call] = []

    async def generate(self, call: Call) -> Reply:
        self.calls.append(call)
        return await super().generate(call)


class Grader(Solver):
    """Grades what it is shown by the mark of a helpful candidate; its first look at a prompt often says nothing."""

    def __init__(self) -> None:
        super().__init__("fake/seed=5")
        self._answer = self._write

    def _write(self, prompt: Prompt, rollout: int) -> str:
        text = prompt.messages[0].content
        if prompt.sampling.max_tokens == SAMPLING.max_tokens and draw(prompt.key, rollout).random() < 0.3:
            return "I have to think about it."
        if "Better:" in text:
            first, _, second = text.partition("Attempt B:")
            good = ["[[helps]]" in part for part in (first, second)]
            return f"Better: {'tie' if good[0] == good[1] else 'A' if good[0] else 'B'}"
        return f"Let me see.\nScore: {9 if '[[helps]]' in text else 3}"


def methods(solver: Model, grader: Model) -> list[Method]:
    return [
        Utility(solvers=(solver.identity,), sampling=SAMPLING, rollouts=4, target_samples=4),
        Judge(judges=(grader.identity,), sampling=SAMPLING, calls=4),
        Vote(solvers=(solver.identity,), sampling=SAMPLING, samples=4),
        Pairwise(judges=(grader.identity,), sampling=SAMPLING),
        Length(),
        Random(),
    ]


def go(
    path: Path,
    models: Sequence[Model],
    chosen: Sequence[Method],
    *,
    problems: Sequence[Problem] = PROBLEMS,
    budget: Budget | None = None,
) -> tuple[Outcome, int]:
    """The outcome, and how many rollouts the store holds. What a replay sees is checked to be the same."""

    async def work() -> tuple[Outcome, int]:
        with Store(path) as store:
            async with Verifier(workers=1) as checker:
                lanes = {m.identity: m for m in models}
                engine = Engine(lanes, store, checker, SilentWatch(), budget=budget, policy=QUICK)
                outcome = await engine.run(problems, chosen)
                assert await replay(store, checker, problems, chosen) == outcome.seen
                return outcome, len(store.rows)

    return asyncio.run(work())


def scores(
    outcome: Outcome, chosen: Sequence[Method], problems: Sequence[Problem] = PROBLEMS
) -> dict[tuple[str, str], dict[str, Score]]:
    return {
        (p.id, m.name): m.score(p, outcome.seen.get((p.id, m.name), [])) for p in problems for m in chosen
    }


def test_methods_share_one_run(tmp_path: Path) -> None:
    solver, grader = Solver(), Grader()
    chosen = methods(solver, grader)
    outcome, stored = go(tmp_path / "run", [solver, grader], chosen)
    assert outcome.stopped is None
    found = scores(outcome, chosen)
    for p in PROBLEMS:
        for name in ("utility", "judge", "pairwise"):
            values = {id: s.value or 0 for id, s in found[p.id, name].items()}
            assert max(values, key=lambda i: values[i]) == "a"
        assert found[p.id, "judge"]["a"].value == 9
        assert found[p.id, "judge"]["b"].value == 3
    # The solver's own attempts at the question serve the utility's check of the target and the vote alike.
    asked = sum(solver.answered.values())
    assert asked == sum((len(p.candidates) + 1) * 2 * 4 + 4 for p in PROBLEMS)
    assert max(solver.answered.values()) == max(grader.answered.values()) == 1
    assert stored == asked + sum(grader.answered.values())
    again = {call.prompt.sampling.max_tokens for call in grader.calls}
    assert again == {100, 200}  # some were asked once more
    assert not any("unparsed" in flag for s in found["p", "judge"].values() for flag in s.flags)


def test_the_same_run_again_asks_nothing(tmp_path: Path) -> None:
    first = Solver(), Grader()
    chosen = methods(*first)
    before, _ = go(tmp_path / "run", first, chosen)
    second = Solver(), Grader()
    after, _ = go(tmp_path / "run", second, chosen)
    assert not second[0].calls
    assert not second[1].calls
    assert after.seen == before.seen


@pytest.mark.parametrize("requests", [1, 20, 60])
def test_a_stopped_run_goes_on_to_the_same_end(tmp_path: Path, requests: int) -> None:
    undisturbed = Solver(), Grader()
    chosen = methods(*undisturbed)
    whole, stored = go(tmp_path / "whole", undisturbed, chosen)
    first = Solver(), Grader()
    part, _ = go(tmp_path / "run", first, chosen, budget=Budget(requests=requests))
    assert isinstance(part.stopped, BudgetReached)
    second = Solver(), Grader()
    rest, stored_again = go(tmp_path / "run", second, chosen)
    assert rest.stopped is None
    assert stored_again == stored
    assert scores(rest, chosen) == scores(whole, chosen)
    for model, other in zip(first, second, strict=True):
        assert not (model.answered.keys() & other.answered.keys())


def test_a_method_may_be_added_to_a_run(tmp_path: Path) -> None:
    models = Solver(), Grader()
    utility, *others = methods(*models)
    go(tmp_path / "run", models, [utility])
    asked = sum(models[0].answered.values())
    outcome, _ = go(tmp_path / "run", models, [utility, *others])
    assert sum(models[0].answered.values()) == asked  # the vote's attempts were there already
    assert set(outcome.seen) == {(p.id, m.name) for p in PROBLEMS for m in (utility, *others)}


def test_all_controls_in_one_run_cost_what_differs(tmp_path: Path) -> None:
    solver = Solver()
    chosen = [
        Utility(
            solvers=(solver.identity,),
            sampling=SAMPLING,
            rollouts=4,
            target_samples=0,
            exemplar=exemplar,
            others=donors(PROBLEMS),
            name=f"utility-{exemplar}",
        )
        for exemplar in EXEMPLARS
    ]
    outcome, stored = go(tmp_path / "run", [solver], chosen)
    cells = sum(len(p.neighbors) for p in PROBLEMS)
    each = sum(len(p.candidates) * len(p.neighbors) for p in PROBLEMS)
    # Three kinds show something of each candidate; the question alone, and nothing at all, are one row a problem.
    # Another question's candidate may stand in for several.
    strangers = sum(
        len({shown("other-question", p, c, donors(PROBLEMS)) for c in p.candidates}) * len(p.neighbors)
        for p in PROBLEMS
    )
    assert stored == 4 * (3 * each + strangers + 2 * cells)
    found = scores(outcome, chosen)
    for p in PROBLEMS:
        baseline = chosen[0].baseline(p, outcome.seen[p.id, "utility-full"])
        assert baseline is not None
        assert {s.value for s in found[p.id, "utility-none"].values()} == {baseline.value}
        assert len({s.value for s in found[p.id, "utility-question-only"].values()}) == 1


def test_fake_models_can_judge(tmp_path: Path) -> None:
    """Every method that reads marks, from the built-in prompts to a ranking that has the helpful candidate first."""
    model = FakeModel("fake/rate_right=0.9,rate_wrong=0.1")
    j, s = (model.identity,), SAMPLING
    chosen: list[Method] = [
        *(Judge(judges=j, sampling=s, scale=scale, name=f"judge-{scale}") for scale in SCALES),
        *(GenRM(judges=j, sampling=s, form=form, name=f"genrm-{form}") for form in FORMS),
        Pairwise(judges=j, sampling=s, calls=8),
    ]
    outcome, _ = go(tmp_path / "run", [model], chosen)
    for score in scores(outcome, chosen).values():
        values = {id: one.value or 0.0 for id, one in score.items()}
        assert max(values, key=lambda i: values[i]) == "a"
        assert sorted(values.values())[-2] < values["a"]
        assert not any("unparsed" in flag for one in score.values() for flag in one.flags)


def test_over_a_real_connection(tmp_path: Path) -> None:
    """Roles that only a reward model's template knows, larger limits and several methods, over HTTP."""

    async def work() -> list[dict[str, object]]:
        async with (
            misbehaving(limited=0.1, cut=0.05, says="I would rather not say.") as server,
            OpenAIModel("test-model", name="generic/test-model", base_url=server.url) as model,
            Verifier(workers=1) as checker,
        ):
            chosen: list[Method] = [
                Utility(solvers=(model.identity,), sampling=SAMPLING, rollouts=2, target_samples=0),
                Judge(judges=(model.identity,), sampling=SAMPLING, calls=2, again_tokens=150),
                GenRM(judges=(model.identity,), sampling=SAMPLING, calls=2, again_tokens=150),
            ]
            with Store(tmp_path / "run") as store:
                outcome = await Engine(
                    {model.identity: model}, store, checker, SilentWatch(), policy=QUICK
                ).run([problem()], chosen)
            assert outcome.stopped is None
            # This server never writes a mark: all is asked twice, nothing is a score, and it is said.
            for method in chosen[1:]:
                for score in method.score(problem(), outcome.seen["p", method.name]).values():
                    assert score.value is None
                    assert score.flags == ("unparsed 2 of 2 (asked twice, with 100 and 150 tokens)",)
            return server.stats.bodies

    bodies = asyncio.run(work())
    roles = [[m["role"] for m in body["messages"]] for body in bodies]  # type: ignore[attr-defined]
    assert ["user", "response_1", "response_2"] in roles
    assert {body["max_tokens"] for body in bodies} == {100, 150}
