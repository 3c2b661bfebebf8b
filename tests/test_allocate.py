"""Adaptive allocation: bounds that hold at any time, rounds that can be repeated, claims that are true."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from porism.budget import Budget
from porism.config import RankConfig
from porism.data import write_problems
from porism.engine import Engine, Outcome, replay
from porism.errors import BudgetReached, ConfigError
from porism.methods.allocate.bounds import above, sequence
from porism.methods.allocate.claims import KINDS, claim, find
from porism.methods.allocate.policies import Pools, next_round, stages
from porism.methods.allocate.rounds import anytime, blocks, starved
from porism.methods.allocate.settings import Allocation, Goal, Policy
from porism.methods.ranking import rank
from porism.methods.utility import Utility
from porism.models.fake import FakeModel
from porism.progress import SilentWatch
from porism.store import Store
from porism.types import Ask, Counts, Observation, Problem, Result, Sampling, Verdict
from porism.verify.pool import Verifier
from samples import problem

POLICIES: tuple[Policy, ...] = ("uniform", "halving", "toptwo", "lucb")


def benchmark() -> Any:
    path = Path(__file__).resolve().parents[1] / "benchmarks" / "allocation.py"
    spec = importlib.util.spec_from_file_location("allocation_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


BENCHMARK = benchmark()


def method(rollouts: int = 16, allocation: Allocation | None = None, **settings: Any) -> Utility:
    return Utility(
        solvers=("m",),
        sampling=Sampling(max_tokens=100),
        rollouts=rollouts,
        allocation=allocation,
        **settings,
    )


def simulated(
    utility: Utility, p: Problem, rates: dict[str, float], *, seed: int = 1
) -> tuple[list[Observation], list[list[Ask]]]:
    """What is seen when candidates solve every neighbor at these rates, and the rounds that were asked."""
    seen: list[Observation] = []
    rounds: list[list[Ask]] = []
    while asks := utility.plan(p, seen):
        rounds.append(asks)
        for ask in asks:
            rng = np.random.default_rng([seed, *blake2b(ask.work.id.encode(), digest_size=4).digest()])
            kind: Any = "correct" if rng.random() < rates.get(ask.cell.candidate or "", 0.0) else "wrong"
            seen.append(utility.read(ask, Result(None, None, Verdict(kind, "simulated"))))
    return seen, rounds


def pools(solved: list[int], rollouts: list[int], *, cells: int = 1) -> Pools:
    s, n = (np.array(x, dtype=np.int64)[None, :, None].repeat(cells, axis=2) for x in (solved, rollouts))
    return Pools(s, np.zeros_like(s), n)


# Bounds


def test_nothing_is_above_before_it_is_seen_and_much_is_after() -> None:
    assert not above((0, 0), (0, 0), 0.0, 0.05)
    assert not above((1, 1), (0, 1), 0.0, 0.05)
    assert above((40, 50), (5, 50), 0.0, 0.01)
    assert not above((5, 50), (40, 50), 0.0, 0.01)
    assert above((0, 500), (0, 500), 0.05, 0.01)
    assert not above((0, 500), (0, 500), 0.0, 0.01)
    # Far fewer rollouts of one row must not hide what is plain.
    assert above((150, 417), (1, 36), 0.0, 0.01)
    assert above((416, 417), (20, 36), 0.0, 0.01)


def test_a_bet_is_never_worth_more_than_the_worst_case() -> None:
    """Against a fine grid of the unknown rate: what is called evidence is its least value, or less."""
    from porism.methods.allocate import bounds

    rng = np.random.default_rng(3)
    for _ in range(25):
        n, m = rng.integers(1, 300, 2)
        s, z, gap = rng.integers(0, n + 1), rng.integers(0, m + 1), float(rng.choice([0.0, 0.05, 0.2]))
        counts = [np.array([float(v)]) for v in (s, n, z, m)]
        found = bounds._evidence(counts[0], counts[1], counts[2], counts[3], gap)[0]
        x = np.linspace(0, 1 - gap, 5_001)[:, None]
        up, down = bounds._TILTS[:, 0], bounds._TILTS[:, 1]
        logs = (
            bounds._LOG_WEIGHTS
            + (s * up - n * np.log1p(x * np.expm1(up)))
            - (z * down + m * np.log1p((x + gap) * np.expm1(-down)))
        )
        least = np.logaddexp.reduce(logs, axis=1).min()
        assert found <= least + 1e-9
        assert found >= least - 0.05


@pytest.mark.parametrize("rates", [(0.3, 0.3), (0.02, 0.02), (0.0, 0.0), (0.9, 0.9)])
@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_looking_all_the_time_finds_what_is_not_there_no_more_often_than_allowed(
    rates: tuple[float, float], gap: float
) -> None:
    """The lower row is exactly `gap` higher, and the pair is tested after every block."""
    rng = np.random.default_rng(int(100 * rates[0]) + int(100 * gap))
    x = rng.binomial(2, rates[0], (600, 150)).cumsum(axis=1)
    y = rng.binomial(2, min(1.0, rates[1] + gap), (600, 150)).cumsum(axis=1)
    n = 2 * np.arange(1, 151)[None, :]
    ever = above((x, n), (y, n), gap, 0.1).any(axis=1).mean()
    assert ever <= 0.1


@pytest.mark.parametrize("rate", [0.0, 0.03, 0.4, 1.0])
def test_the_interval_holds_at_all_times_together(rate: float) -> None:
    rng = np.random.default_rng(8)
    solved = rng.binomial(3, rate, (800, 100)).cumsum(axis=1)
    low, high = sequence(solved, solved, 3 * np.arange(1, 101)[None, :], 0.1)
    assert ((low <= rate) & (rate <= high)).all(axis=1).mean() >= 0.9
    assert (low <= solved / (3 * np.arange(1, 101))).all()


def test_open_rollouts_widen_the_interval_both_ways() -> None:
    clear, doubtful = (
        anytime([Counts(correct=5, wrong=15)]),
        anytime([Counts(correct=5, wrong=11, missing=4)]),
    )
    assert doubtful.low == pytest.approx(clear.low)
    assert doubtful.high > clear.high


# Policies


def test_settings_that_cannot_be_used() -> None:
    faults: tuple[Any, ...] = (
        {"policy": "best"},
        {"goal": "x"},
        {"epsilon": 0},
        {"confidence": 1.0},
        {"top": 0},
    )
    for wrong in faults:
        with pytest.raises(ConfigError):
            Allocation(**wrong)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("goal", ["best", "top-k", "ranking"])
def test_budgets_are_spent_and_not_passed(policy: Policy, goal: Goal) -> None:
    rng = np.random.default_rng(0)
    allocation = Allocation(policy=policy, goal=goal, batch=20)
    for candidates in (1, 2, 3, 7, 10):
        for budget in (candidates, 3 * candidates + 1, 40 * candidates):
            rates = rng.random((50, candidates, 2))
            solved = asked = np.zeros((50, candidates, 2), dtype=np.int64)
            while (added := next_round(allocation, Pools(solved, 0 * solved, asked), budget, rng)).any():
                assert (added >= 0).all()
                trials = np.broadcast_to(added[:, :, None], asked.shape)
                asked, solved = asked + trials, solved + rng.binomial(trials, rates)
            spent = asked.max(axis=2).sum(axis=1)
            assert (spent <= budget).all()
            assert (asked > 0).all()
            least = budget - candidates if policy == "halving" else budget
            assert (spent >= least).all()


def test_halving_halves() -> None:
    assert stages(10, 320) == [8, 24, 50, 91]
    first = next_round(Allocation(policy="halving"), pools([0] * 10, [0] * 10), 320, np.random.default_rng(0))
    assert first.tolist() == [[8] * 10]
    solved = [0, 8, 1, 7, 2, 6, 3, 5, 4, 0]
    then = next_round(Allocation(policy="halving"), pools(solved, [8] * 10), 320, np.random.default_rng(0))
    assert then.tolist() == [[0, 16, 0, 16, 0, 16, 0, 16, 16, 0]]


@pytest.mark.parametrize("policy", ["toptwo", "lucb"])
def test_those_who_may_be_the_best_get_the_most(policy: Policy) -> None:
    state = pools([16, 15, 4, 0, 0], [20] * 5, cells=3)
    (added,) = next_round(Allocation(policy=policy), state, 1000, np.random.default_rng(0))
    assert added[:2].sum() > 0.8 * added.sum()
    state = pools([0] * 5, [12, 12, 12, 12, 4], cells=3)
    (added,) = next_round(Allocation(policy="toptwo"), state, 1000, np.random.default_rng(0))
    assert added[4] == added.max()


@pytest.mark.parametrize("policy", POLICIES)
def test_ids_and_counts_decide_and_the_order_of_the_file_does_not(policy: Policy) -> None:
    allocation = Allocation(policy=policy)
    cells = {
        c: [Counts(correct=x, wrong=5 - x)] * 2 for c, x in zip("abcdefg", (2, 2, 2, 1, 1, 0, 0), strict=True)
    }
    one = blocks(allocation, cells, 16, seed="p")
    assert one == blocks(allocation, dict(reversed(cells.items())), 16, seed="p")
    others = [blocks(allocation, cells, 16, seed=str(i)) for i in range(20)]
    if policy in ("halving", "toptwo"):
        assert any(other != one for other in others)  # ties are broken by the seed


# Rounds as a method plans them


def test_without_an_allocation_nothing_is_asked_differently() -> None:
    """The digest was taken before there were allocations."""
    utility = Utility(
        solvers=("m", "k"),
        sampling=Sampling(max_tokens=100),
        rollouts=11,
        template="{{ question }} {{ candidate }} {{ neighbor }}",
        solve_template="{{ question }}",
    )
    asks = utility.plan(problem(candidates=4, neighbors=3), [])
    lines = [f"{a.cell.candidate} {a.cell.neighbor} {a.cell.solver} {a.cell.round} {a.work.id}" for a in asks]
    digest = blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()
    assert (len(lines), digest) == (338, "b082a357f37960c73c59f2b21c7dc750")


@pytest.mark.parametrize("policy", POLICIES)
def test_rounds_are_blocks(policy: Policy) -> None:
    """In every round a candidate meets all neighbors equally often, with the rollouts that follow its last ones."""
    p = problem(candidates=6, neighbors=3)
    utility = method(24, Allocation(policy=policy, batch=30))
    rates = dict(zip("abcdef", (0.6, 0.5, 0.5, 0.2, 0.1, 0.0), strict=True))
    seen, rounds = simulated(utility, p, rates)
    assert len(rounds) > 2
    depth: Counter[str | None] = Counter()
    for number, asks in enumerate(rounds):
        assert {a.cell.round for a in asks} == {number}
        own = [a for a in asks if a.cell.neighbor is not None]
        assert len([a for a in own if a.cell.candidate]) >= 30 or number == len(rounds) - 1
        for row in {a.cell.candidate for a in own}:
            by = {
                n.id: [a.work.rollout for a in own if (a.cell.candidate, a.cell.neighbor) == (row, n.id)]
                for n in p.neighbors
            }
            (rollouts,) = {tuple(found) for found in by.values()}
            assert rollouts == tuple(range(depth[row], depth[row] + len(rollouts)))
            depth[row] += len(rollouts)
    candidates = sum(depth[c.id] for c in p.candidates)
    assert candidates <= 24 * 6
    assert depth[None] == min(24, -(-candidates // 6))  # without example: as deep as candidates on average
    attempts = sum(o.cell.neighbor is None for o in seen)
    assert attempts == 4
    assert len({(o.cell.candidate, o.cell.neighbor, o.rollout) for o in seen}) == len(seen)


def test_a_pool_without_candidates_still_has_its_row_without_example() -> None:
    asks = method(4, Allocation()).plan(problem(candidates=0), [])
    assert {a.cell.candidate for a in asks} == {None}


# Claims


def test_a_clear_best_one_is_claimed_early() -> None:
    p = problem(candidates=8, neighbors=3)
    utility = method(64, Allocation())
    seen, _ = simulated(utility, p, {"c": 0.8, "a": 0.1})
    found = rank(p, utility, seen)
    assert found.claim is not None
    assert (found.claim.kind, found.claim.candidates) == ("best", ("c",))
    assert "c is within 0.05 of the highest utility" in found.message
    assert "not a chance of being right" in found.message
    assert sum(o.cell.candidate is not None for o in seen) < 64 * 8 * 3 / 3
    assert found.chance_gap is None
    first = found.ranking[0]
    assert (first.candidate, first.flags) == ("c", ())
    assert first.lift_ci95 is not None
    assert first.lift_ci95[0] > 0


def test_neighbors_that_nobody_solves_cannot_decide_and_that_is_said_early() -> None:
    p = problem(candidates=6, neighbors=5)
    utility = method(64, Allocation())
    seen, _ = simulated(utility, p, {})
    found = rank(p, utility, seen)
    assert found.claim is not None
    assert found.claim.kind == "cannot decide"
    assert "cannot decide" in found.message
    assert len(found.leaders) == 6
    assert len(seen) < 0.75 * 64 * 7 * 5


def test_equals_are_not_told_apart() -> None:
    p = problem(candidates=5, neighbors=3)
    utility = method(16, Allocation())
    seen, _ = simulated(utility, p, dict.fromkeys("abcde", 0.4))
    found = rank(p, utility, seen)
    assert found.claim is not None
    assert (found.claim.kind, found.claim.ahead) == ("none", ())
    assert "Not certain yet" in found.message


def test_goals() -> None:
    state = pools([190, 180, 170, 20, 10], [200] * 5, cells=2)
    ids = list("abcde")
    top = claim(Allocation(goal="top-k", top=3), ids, state)
    assert (top.kind, top.candidates, top.ahead) == ("top-k", ("a", "b", "c"), ("a", "b", "c"))
    assert claim(Allocation(goal="top-k", top=2, epsilon=0.01), ids, state).kind == "none"
    order = claim(Allocation(goal="ranking", epsilon=0.2), ids, state)
    assert (order.kind, order.candidates) == ("ranking", tuple(ids))
    assert claim(Allocation(goal="ranking", epsilon=0.02), ids, state).kind == "none"
    best = claim(Allocation(goal="best", epsilon=0.02), ids, state)
    assert (best.kind, best.ahead) == ("none", ("a", "b", "c"))
    assert "a, b and c beat the rest" in best.message
    assert claim(Allocation(), ["a"], pools([3], [4])).message == "There is no other candidate."


def test_open_rollouts_are_held_against_a_claim() -> None:
    clear = pools([50, 5], [60, 60])
    assert find(Allocation(), clear).kind.tolist() == [KINDS.index("best")]
    doubtful = Pools(clear.solved, np.array([[[0], [50]]]), clear.rollouts)
    assert find(Allocation(), doubtful).kind.tolist() == [0]


def test_starved_candidates_are_marked() -> None:
    assert starved({"a": [Counts(wrong=40)], "b": [Counts(wrong=8)], "c": [Counts(wrong=12)]}) == {"b"}
    p = problem(candidates=8, neighbors=2)
    utility = method(32, Allocation(policy="halving", epsilon=0.01))
    rates = dict(zip("abcdefgh", (0.55, 0.5, 0.5, 0.45, 0.1, 0.1, 0.0, 0.0), strict=True))
    seen, _ = simulated(utility, p, rates)
    marked = {c for c, score in utility.score(p, seen).items() if "starved" in score.flags}
    assert marked
    assert marked <= set("efgh")
    assert {place.candidate for place in rank(p, utility, seen).ranking if "starved" in place.flags} == marked
    evenly = replace(utility, allocation=None)
    assert not any("starved" in score.flags for score in evenly.score(p, seen).values())
    assert rank(p, evenly, seen).claim is None


# Through the engine


def go(path: Path, *, rollouts: int = 24, requests: int | None = None, policy: Policy = "toptwo") -> Outcome:
    model = FakeModel("fake/rate_right=0.6,rate_wrong=0.35,max_n=4")
    utility = Utility(
        solvers=(model.identity,),
        sampling=Sampling(max_tokens=100),
        rollouts=rollouts,
        allocation=Allocation(policy=policy),
    )

    async def work() -> Outcome:
        with Store(path) as store:
            async with model, Verifier(workers=1) as checker:
                engine = Engine(
                    {model.identity: model}, store, checker, SilentWatch(), budget=Budget(requests=requests)
                )
                outcome = await engine.run([problem(candidates=6, neighbors=2)], [utility])
                again = await replay(store, checker, [problem(candidates=6, neighbors=2)], [utility])
                assert sorted(map(str, again["p", "utility"])) == sorted(
                    map(str, outcome.seen["p", "utility"])
                )
                return outcome

    return asyncio.run(work())


@pytest.mark.parametrize("policy", ["halving", "toptwo", "lucb"])
def test_a_resumed_run_equals_an_undisturbed_one(tmp_path: Path, policy: Policy) -> None:
    calm = go(tmp_path / "calm", policy=policy)
    assert calm.stopped is None
    stops = 0
    for requests in (7, 25, 60, 61, 90):
        stopped = go(tmp_path / "stopped", requests=requests, policy=policy)
        stops += isinstance(stopped.stopped, BudgetReached)
    assert stops >= 3
    resumed = go(tmp_path / "stopped", policy=policy)
    assert resumed.stopped is None
    assert resumed.seen == calm.seen
    with Store(tmp_path / "calm", write=False) as one, Store(tmp_path / "stopped", write=False) as two:
        assert one.rows.keys() == two.rows.keys()


def test_more_rollouts_extend_an_adaptive_run(tmp_path: Path) -> None:
    few = go(tmp_path / "run", rollouts=12)
    many = go(tmp_path / "run", rollouts=24)
    assert many.seen == go(tmp_path / "other", rollouts=24).seen
    assert len(many.seen["p", "utility"]) > len(few.seen["p", "utility"])


# The command


def porism(*args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "porism", *map(str, args)],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_command_ranks_adaptively(tmp_path: Path) -> None:
    write_problems([problem(candidates=6, neighbors=3)], tmp_path / "p.yaml")
    base = ("rank", "p.yaml", "-m", "fake/rate_right=0.8,rate_wrong=0.05", "-n", 32)
    adaptive = (*base, "--allocation", "toptwo", "--goal", "best", "--epsilon", 0.05, "--confidence", 0.95)
    most = json.loads(porism(*adaptive, "--dry-run", "--json", cwd=tmp_path).stdout)["rollouts"]
    assert most == 7 * 3 * 32 + 4
    done = porism(*adaptive, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (one,) = document["problems"]
    assert one["claim"]["kind"] == "best"
    assert one["claim"]["candidates"] == ["a"]
    assert one["message"].startswith(one["claim"]["message"])
    rollouts = sum(sum(row["counts"].values()) for row in one["ranking"])
    assert rollouts < most / 3
    scored = json.loads(porism("score", document["run"], "--json", cwd=tmp_path).stdout)
    assert scored["problems"] == document["problems"]
    assert "at most" in porism("status", document["run"], cwd=tmp_path).stdout
    refused = porism(*base, "--goal", "best", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--allocation" in refused.stderr


def test_settings_of_a_run() -> None:
    found = RankConfig(allocation="lucb", goal="top-k", top=2, epsilon=0.1).sharing
    assert found == Allocation(policy="lucb", goal="top-k", top=2, epsilon=0.1, confidence=0.95)
    assert RankConfig().sharing is None
    faults: tuple[Any, ...] = (
        {"confidence": 0.9},
        {"allocation": "greedy"},
        {"allocation": "lucb", "epsilon": 2},
    )
    for wrong in faults:
        with pytest.raises(ConfigError):
            RankConfig(**wrong)


# The study


def test_few_claims_are_false() -> None:
    """A small seed of what benchmarks/allocation.py measures with 10,000 runs a scenario."""
    seen: Counter[str] = Counter()
    policies: tuple[Policy, ...] = ("uniform", "toptwo")
    for name, rates in BENCHMARK.scenarios(np.random.default_rng(5), 60, 4):
        for policy in policies:
            done = BENCHMARK.run(rates, Allocation(policy=policy), 32, seed=5, claims=True)
            assert done.false.mean() <= 0.05, (name, policy)
            seen[policy] += int((done.kind > 0).sum())
    assert all(seen[policy] > 100 for policy in policies)


def test_few_claims_are_false_for_other_goals() -> None:
    rng = np.random.default_rng(6)
    for name, rates in BENCHMARK.scenarios(rng, 40, 4):
        top = BENCHMARK.run(rates, Allocation(goal="top-k", top=2), 32, seed=6, claims=True)
        assert top.false.mean() <= 0.05, name
        order = BENCHMARK.run(rates, Allocation(goal="ranking", epsilon=0.2), 32, seed=6, claims=True)
        assert order.false.mean() <= 0.05, name
        places = np.argsort(-order.pools.utility, axis=1)
        utility = np.take_along_axis(rates.mean(axis=2), places, 1)
        best_later = np.maximum.accumulate(utility[:, ::-1], axis=1)[:, ::-1]
        wrong = (best_later > utility + 0.2 + 1e-12).any(axis=1) & (order.kind == KINDS.index("ranking"))
        assert wrong.mean() <= 0.05, name


def test_the_study_would_see_a_false_claim() -> None:
    utility = np.array([[0.5, 0.4, 0.4]])
    first, second = np.array([[True, False, False]]), np.array([[False, True, False]])
    nobody, everybody = np.zeros((1, 3), dtype=bool), np.ones((1, 3), dtype=bool)
    best, equal = (np.array([KINDS.index(kind)]) for kind in ("best", "cannot decide"))
    false = BENCHMARK.is_false
    assert not false(Allocation(), utility, best, first, first)
    assert false(Allocation(), utility, best, second, nobody)
    assert false(Allocation(), utility, equal, everybody, nobody)
    assert false(Allocation(), utility, np.array([0]), nobody, second)
    assert not false(Allocation(epsilon=0.2), utility, equal, everybody, nobody)


def test_adaptive_is_better_at_equal_cost() -> None:
    gains = []
    for shape in BENCHMARK.SHAPES.values():
        rates = shape.draw(np.random.default_rng(11), 300, 3)
        found = dict(BENCHMARK.methods(rates, 11))
        gains.append((found["toptwo-16"] - found["uniform-16"]).mean(axis=0))
    within, regret, _, cost = np.mean(gains, axis=0)
    assert cost <= 0
    assert within > 0.01
    assert regret < 0


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_few_claims_are_false_in_many_runs(policy: Policy) -> None:
    for name, rates in BENCHMARK.scenarios(np.random.default_rng(99), 10_000, 4):
        for first in range(0, 10_000, BENCHMARK.AT_ONCE):
            part = rates[first : first + BENCHMARK.AT_ONCE]
            done = BENCHMARK.run(part, Allocation(policy=policy), 64, seed=99 + first, claims=True)
            assert done.false.mean() <= 0.05, (name, policy)
