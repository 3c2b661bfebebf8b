"""The engine with fake models: rounds, resume, budgets, faults, and ends of every kind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from porism.budget import Budget
from porism.engine import Engine, Outcome, replay
from porism.errors import BudgetReached, CircuitOpen, Interrupted, ModelError, StoreError
from porism.lane import RetryPolicy
from porism.methods.utility import Utility, rounds
from porism.models.fake import FakeModel
from porism.store import Store
from porism.types import Call, Method, Problem, Reply, Sampling, Usage
from porism.verify.pool import Verifier
from samples import problem

QUICK = RetryPolicy(first_wait=0.001, longest_wait=0.01)


class Watcher:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.size = (0, 0)
        self.rollouts = 0
        self.reasons: list[str | None] = []

    def started(self, total: int, stored: int) -> None:
        self.size = (total, stored)

    def landed(self, rollouts: int, usage: Usage) -> None:
        self.rollouts += rollouts

    def waiting(self, reason: str | None, until: float | None) -> None:
        self.reasons.append(reason)

    def note(self, text: str) -> None: ...

    def finished(self) -> None: ...


class Counting(FakeModel):
    """A fake that remembers what it was asked, in order."""

    calls: list[Call]

    async def generate(self, call: Call) -> Reply:
        self.calls = [*getattr(self, "calls", []), call]
        return await super().generate(call)


def utility(model: FakeModel, rollouts: int = 4, samples: int = 2) -> Utility:
    return Utility(
        solvers=(model.identity,),
        sampling=Sampling(max_tokens=100),
        rollouts=rollouts,
        target_samples=samples,
    )


def go(
    path: Path,
    model: FakeModel,
    *,
    problems: Sequence[Problem] = (problem(),),
    rollouts: int = 4,
    budget: Budget | None = None,
    policy: RetryPolicy = QUICK,
    watcher: Watcher | None = None,
) -> Outcome:
    async def work() -> Outcome:
        with Store(path) as store:
            async with model, Verifier(workers=1) as checker:
                engine = Engine(
                    {model.identity: model},
                    store,
                    checker,
                    watcher or Watcher(),
                    budget=budget,
                    policy=policy,
                )
                return await engine.run(problems, [utility(model, rollouts)])

    return asyncio.run(work())


def counts(outcome: Outcome, model: FakeModel, rollouts: int = 4) -> dict[str, object]:
    method: Method = utility(model, rollouts)
    return {
        id: {c: (s.value, s.cells) for c, s in method.score(problem(id), seen).items()}
        for (id, _), seen in outcome.seen.items()
    }


def test_a_run_asks_all_and_ranks(tmp_path: Path) -> None:
    model, watcher = FakeModel("fake/rate_right=0.9,rate_wrong=0.1"), Watcher()
    outcome = go(tmp_path / "run", model, rollouts=8, watcher=watcher)
    assert outcome.stopped is None
    assert not outcome.missing
    scores = utility(model, 8).score(problem(), outcome.seen["p", "utility"])
    values = {id: score.value for id, score in scores.items()}
    assert values["a"] is not None
    assert values["a"] > 0.5 > max(values["b"] or 0, values["c"] or 0)
    # 3 candidates and the row without, 2 neighbors, 8 rollouts; 2 attempts at the question.
    assert watcher.size == (4 * 2 * 8 + 2, 0)
    assert watcher.rollouts == 66


def test_the_same_command_asks_nothing_again(tmp_path: Path) -> None:
    first = go(tmp_path / "run", FakeModel("fake/"))
    model = Counting("fake/")
    again = go(tmp_path / "run", model)
    assert not hasattr(model, "calls")
    assert again.seen == first.seen


def test_more_rollouts_ask_for_the_difference(tmp_path: Path) -> None:
    go(tmp_path / "run", FakeModel("fake/"), rollouts=8)
    model, watcher = Counting("fake/"), Watcher()
    more = go(tmp_path / "run", model, rollouts=16, watcher=watcher)
    assert watcher.size == (4 * 2 * 16 + 2, 66)
    assert watcher.rollouts == 64
    assert all(call.first >= 8 for call in model.calls)
    assert more.seen == go(tmp_path / "other", FakeModel("fake/"), rollouts=16).seen


def test_equal_work_is_asked_once(tmp_path: Path) -> None:
    twin = problem("q")
    model, watcher = Counting("fake/"), Watcher()
    # The same problem under two ids: other cells, the same prompts.
    import dataclasses

    copy = dataclasses.replace(twin, id="copy")
    outcome = go(tmp_path / "run", model, problems=[twin, copy], watcher=watcher)
    assert watcher.rollouts == 4 * 2 * 4 + 2
    one, two = outcome.seen["q", "utility"], outcome.seen["copy", "utility"]
    assert [o.answer for o in one] == [o.answer for o in two]


def test_rollouts_of_a_prompt_share_a_call(tmp_path: Path) -> None:
    model = Counting("fake/max_n=16")
    go(tmp_path / "run", model, rollouts=8)
    assert {(call.first, call.n) for call in model.calls} == {(0, 2), (2, 2), (4, 4)}
    single = Counting("fake/max_n=1")
    assert go(tmp_path / "other", single, rollouts=8).seen == go(tmp_path / "run", model, rollouts=8).seen


def test_work_is_candidate_major_inside_a_round(tmp_path: Path) -> None:
    model = Counting("fake/concurrency=1,max_n=1")
    go(tmp_path / "run", model, rollouts=4)
    order = [
        (call.first >= 2, call.prompt.messages[0].content.partition("Method ")[2][:1]) for call in model.calls
    ]
    assert order == sorted(order, key=lambda o: (o[0], o[1] or "z"))


def test_calls_of_a_prefix_go_one_after_another_where_wanted(tmp_path: Path) -> None:
    class Chained(FakeModel):
        chain = True
        running: set[str]
        most = 0

        async def generate(self, call: Call) -> Reply:
            text = call.prompt.messages[0].content
            prefix = text.partition("Method ")[2][:1] or text
            assert prefix not in self.running
            self.running.add(prefix)
            self.most = max(self.most, len(self.running))
            reply = await super().generate(call)
            self.running.remove(prefix)
            return reply

    model = Chained("fake/delay=0.005,max_n=1,concurrency=4")
    model.chain, model.running = True, set()
    outcome = go(tmp_path / "run", model)
    assert outcome.stopped is None
    assert model.most == 4


@pytest.mark.parametrize("fault", ["fail=0.3", "busy=0.3", "fail=0.2,busy=0.2"])
def test_faults_change_nothing(tmp_path: Path, fault: str) -> None:
    calm = go(tmp_path / "calm", FakeModel("fake/"))
    rough = go(tmp_path / "rough", FakeModel(f"fake/{fault}"))
    assert rough.stopped is None
    assert rough.seen == calm.seen


def test_a_server_that_is_down_opens_the_circuit(tmp_path: Path) -> None:
    outcome = go(tmp_path / "run", FakeModel("fake/fail=1"))
    assert isinstance(outcome.stopped, CircuitOpen)
    assert outcome.stopped.exit_code == 1
    assert not outcome.seen.get(("p", "utility"))


class Refusing(FakeModel):
    """Refuses what holds a word, with the error it was given."""

    word = "Method 1"
    error = ModelError("does not fit: 9000 tokens in 4096", kind="context")

    async def generate(self, call: Call) -> Reply:
        if self.word in call.prompt.messages[0].content:
            raise self.error
        return await super().generate(call)


def test_what_does_not_fit_is_missing_and_not_asked_again(tmp_path: Path) -> None:
    model = Refusing("fake/")
    outcome = go(tmp_path / "run", model)
    assert outcome.stopped is None
    assert dict(outcome.missing) == {("p/b", "does not fit: 9000 tokens in 4096"): 8}
    scores = utility(model).score(problem(), outcome.seen["p", "utility"])
    assert scores["b"].value is None
    assert (scores["b"].low, scores["b"].high) == (0, 1)
    assert scores["a"].value is not None
    counting = Counting("fake/")
    again = go(tmp_path / "run", counting)
    assert not hasattr(counting, "calls")
    assert again.seen == outcome.seen


def test_used_up_retries_are_missing_and_owed_by_the_next_session(tmp_path: Path) -> None:
    class Flaky(Refusing):
        error = ModelError("cut", retry="transient")

    outcome = go(tmp_path / "run", Flaky("fake/"))
    assert outcome.stopped is None
    assert sum(outcome.missing.values()) == 8
    healed = go(tmp_path / "run", FakeModel("fake/"))
    assert healed.seen == go(tmp_path / "calm", FakeModel("fake/")).seen


def test_a_setting_the_server_refuses_opens_the_circuit(tmp_path: Path) -> None:
    class Strict(Refusing):
        word = ""
        error = ModelError("temperature is not supported", kind="refused")

    outcome = go(tmp_path / "run", Strict("fake/max_n=1"))
    assert isinstance(outcome.stopped, CircuitOpen)
    assert "temperature" in str(outcome.stopped)
    healed = go(tmp_path / "run", FakeModel("fake/"))
    assert healed.seen == go(tmp_path / "calm", FakeModel("fake/")).seen


def test_a_refused_key_stops_at_once(tmp_path: Path) -> None:
    class Locked(Refusing):
        word = ""
        error = ModelError("the key is refused", fatal=True, kind="key")

    outcome = go(tmp_path / "run", Locked("fake/"))
    assert isinstance(outcome.stopped, ModelError)
    assert "key" in str(outcome.stopped)


@pytest.mark.parametrize("limit", [1, 7, 20, 33])
def test_a_request_budget_is_exact_and_rounds_stay_whole(tmp_path: Path, limit: int) -> None:
    model = Counting("fake/max_n=1,fail=0.2")
    outcome = go(tmp_path / "run", model, budget=Budget(requests=limit))
    assert isinstance(outcome.stopped, BudgetReached)
    assert len(model.calls) == limit
    seen = outcome.seen["p", "utility"]
    whole = 3 * 2 * 2 + 2 * 2 + 2  # the first round
    assert len(seen) in (0, whole)
    per_candidate = {c: sum(o.cell.candidate == c for o in seen) for c in "abc"}
    assert len(set(per_candidate.values())) == 1
    more = go(tmp_path / "run", FakeModel("fake/max_n=1"))
    assert more.seen == go(tmp_path / "calm", FakeModel("fake/")).seen


def test_a_token_budget_stops(tmp_path: Path) -> None:
    model = FakeModel("fake/max_n=1,concurrency=2")
    outcome = go(tmp_path / "run", model, budget=Budget(tokens=1000))
    assert isinstance(outcome.stopped, BudgetReached)
    spent = Store(tmp_path / "run", write=False).usage
    assert 500 < spent.prompt + spent.completion < 1300


def test_a_cost_budget_stops(tmp_path: Path) -> None:
    outcome = go(tmp_path / "run", FakeModel("fake/"), budget=Budget(cost=0.001, price=(1.0, 2.0)))
    assert isinstance(outcome.stopped, BudgetReached)
    assert outcome.stopped.exit_code == 3


def test_an_interrupt_lets_calls_land(tmp_path: Path) -> None:
    async def work() -> Outcome:
        model = FakeModel("fake/delay=0.02,concurrency=3,max_n=1")
        with Store(tmp_path / "run") as store:
            async with model, Verifier(workers=1) as checker:
                engine = Engine({model.identity: model}, store, checker, Watcher())
                asyncio.get_running_loop().call_later(0.1, engine.stop, Interrupted("enough"))
                return await engine.run([problem()], [utility(model)])

    outcome = asyncio.run(work())
    assert isinstance(outcome.stopped, Interrupted)
    landed = len(Store(tmp_path / "run", write=False).rows)
    assert 0 < landed < 34
    model, watcher = Counting("fake/max_n=1"), Watcher()
    resumed = go(tmp_path / "run", model, watcher=watcher)
    assert len(model.calls) == 34 - landed
    assert resumed.seen == go(tmp_path / "calm", FakeModel("fake/")).seen


def test_replay_is_the_run(tmp_path: Path) -> None:
    model = FakeModel("fake/truncate=0.2,blank=0.2")
    outcome = go(tmp_path / "run", model)

    async def work() -> object:
        with Store(tmp_path / "run", write=False) as store:
            async with Verifier(workers=1) as checker:
                return await replay(store, checker, [problem()], [utility(model)])

    assert asyncio.run(work()) == outcome.seen


def test_a_full_disk_ends_the_run_with_one_message(tmp_path: Path) -> None:
    import resource

    # A limit on file sizes fails writes just as a full disk does, part of a line written and all.
    model = FakeModel("fake/")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, hard))
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            raise go(tmp_path / "run", model).stopped or AssertionError("it ended well")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, old)
    assert go(tmp_path / "run", model).seen == go(tmp_path / "calm", model).seen


def test_the_rate_limit_pauses_and_says_so(tmp_path: Path) -> None:
    watcher = Watcher()
    go(tmp_path / "run", FakeModel("fake/busy=0.3,max_n=1"), watcher=watcher)
    said = [reason for reason in watcher.reasons if reason]
    assert said
    assert watcher.reasons[-1] is None


def test_rounds_of_long_runs_are_prefixes_of_longer_ones() -> None:
    assert rounds(8) == rounds(16)[: len(rounds(8))]
