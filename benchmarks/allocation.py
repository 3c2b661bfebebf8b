"""What adaptive allocation gains, and how often its claims are false, on simulated pools with known utilities.

    python benchmarks/allocation.py accuracy [POOLS [.20 | .33]]
    python benchmarks/allocation.py claims [RUNS [POLICY ...]]

Pools are fitted by search so that a validator with 64 rollouts shows Acc@1, Recall@5, AUC, MeanWin and the share of
wrong candidates above their pool's mean as published (four solvers of arXiv 2602.06291). That does not fix the level
of solve rates, so there are two shapes. Every method meets the same pools, and decides by the code that porism runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from porism.methods.allocate.claims import KINDS, find
from porism.methods.allocate.policies import Pools, next_round
from porism.methods.allocate.settings import Allocation, Policy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CANDIDATES, RIGHT = 10, 5  # one of the right ones stands for the human solution
NEIGHBORS = (1, 2, 3, 4, 5)
EPSILON = 0.05
AT_ONCE = 1_000  # pools: more of them only take more memory
POLICIES: tuple[Policy, ...] = ("halving", "toptwo", "lucb")
PUBLISHED = (
    "published: Acc@1 .73-.76, Recall@5 .74-.83, AUC .71-.80, MeanWin .76-.90, wrong above mean .08-.14"
)


class Shape(NamedTuple):
    """How pools are drawn, on the scale of log odds.

    base: without help; pool, neighbor, interaction, candidate: standard deviations. right, wrong: how often a
    candidate helps; help, form: mean and gamma shape of the help. flat: the share of pools that nothing helps.
    """

    base: float
    pool: float
    neighbor: float
    right: float
    wrong: float
    help: float
    form: float
    candidate: float
    interaction: float
    flat: float

    def draw(self, rng: np.random.Generator, pools: int, neighbors: int) -> Floats:
        """True solve rates of shape (pools, candidates, neighbors); the first RIGHT candidates are right."""
        base = self.base + self.pool * rng.standard_normal((pools, 1, 1))
        base = base + self.neighbor * rng.standard_normal((pools, 1, neighbors))
        chance = np.where(np.arange(CANDIDATES) < RIGHT, self.right, self.wrong)
        helps = (rng.random((pools, CANDIDATES)) < chance) & (rng.random((pools, 1)) >= self.flat)
        effect = helps * rng.gamma(self.form, self.help / self.form, (pools, CANDIDATES))
        effect += self.candidate * rng.standard_normal((pools, CANDIDATES))
        noise = self.interaction * rng.standard_normal((pools, CANDIDATES, neighbors))
        return np.asarray(expit(base + effect[:, :, None] + noise))


SHAPES = {
    "paper, rates about .20": Shape(-3.0, 0.6, 0.5, 0.92, 0.235, 2.1, 0.9, 0.05, 0.12, 0.0),
    "paper, rates about .33": Shape(-1.5, 0.5, 0.35, 0.75, 0.15, 1.95, 1.15, 0.05, 0.1, 0.05),
}


def published_metrics(rng: np.random.Generator, rates: Floats) -> Floats:
    """Acc@1, Recall@5, AUC, MeanWin, share of wrong ones above the mean, mean utility: 9 candidates, 64 rollouts."""
    scores = rng.binomial(64, rates).mean(axis=2)[:, 1:] / 64
    right, wrong = scores[:, : RIGHT - 1], scores[:, RIGHT - 1 :]
    top = scores == scores.max(axis=1, keepdims=True)
    five = (-scores - 1e-9 * rng.random(scores.shape)).argsort(axis=1)[:, :5] < RIGHT - 1
    return np.array(
        [
            (top[:, : RIGHT - 1].sum(axis=1) / top.sum(axis=1)).mean(),
            five.sum(axis=1).mean() / (RIGHT - 1),
            _half(right[:, :, None], wrong[:, None, :]),
            _half(right.mean(axis=1), wrong.mean(axis=1)),
            (wrong > scores.mean(axis=1, keepdims=True)).mean(),
            scores.mean(),
        ]
    )


def _half(a: Floats, b: Floats) -> float:
    return float((a > b).mean() + (a == b).mean() / 2)


class Run(NamedTuple):
    """What running an allocation over pools left: counts, rollouts a cell on average, and claims made on the way."""

    pools: Pools
    cost: Floats
    kind: Ints
    false: NDArray[np.bool_]
    ahead: NDArray[np.bool_]
    rounds: int


def run(rates: Floats, allocation: Allocation, rollouts: int, *, seed: int, claims: bool = False) -> Run:
    """Rounds until the budget of `rollouts` a cell is spent, or, with `claims`, a pool's claim is made.

    A pool's run counts as false if any claim at the end of any round was false, whether it stopped the run or not.
    """
    number = len(rates)
    rng = np.random.default_rng(seed)
    zero = np.zeros(rates.shape, dtype=np.int64)
    kind, false, ahead = np.zeros(number, np.int64), np.zeros(number, np.bool_), np.zeros(number, np.bool_)
    left, rounds = np.arange(number), 0
    solved, asked = zero.copy(), zero.copy()
    while left.size:
        now = Pools(solved[left], zero[left], asked[left])
        blocks = next_round(allocation, now, rollouts * CANDIDATES, rng)
        if not blocks.any():
            break
        rounds += 1
        trials = np.broadcast_to(blocks[:, :, None], now.solved.shape)
        asked[left] += trials
        solved[left] += rng.binomial(trials, rates[left])
        if claims:
            found = find(allocation, Pools(solved[left], zero[left], asked[left]))
            false[left] |= is_false(
                allocation, rates[left].mean(axis=2), found.kind, found.named, found.ahead
            )
            kind[left] = found.kind
            ahead[left] |= found.ahead.any(axis=1)
            left = left[found.kind == 0]
    total = Pools(solved, zero, asked)
    return Run(total, total.depth.mean(axis=1), kind, false, ahead, rounds)


def is_false(
    allocation: Allocation, utility: Floats, kind: Ints, named: NDArray[np.bool_], ahead: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether anything that is claimed of a pool does not hold. Goals best and top-k."""
    worst_named = np.where(named, utility, 2.0).min(axis=1)
    others = np.where(named, -1.0, utility).max(axis=1)
    named_wrong = (
        (kind > 0) & (kind < KINDS.index("cannot decide")) & (others > worst_named + allocation.epsilon)
    )
    spread = utility.max(axis=1) - utility.min(axis=1)
    equal_wrong = (kind == KINDS.index("cannot decide")) & (spread > allocation.epsilon + 1e-12)
    inside, outside = np.where(ahead, utility, 2.0).min(axis=1), np.where(ahead, -1.0, utility).max(axis=1)
    ahead_wrong = ahead.any(axis=1) & (inside <= outside + 1e-12)
    return np.asarray(named_wrong | equal_wrong | ahead_wrong)


def chosen(rng: np.random.Generator, estimates: Floats) -> Ints:
    """The candidate with the highest estimate; ties at random."""
    return np.asarray((estimates + 1e-9 * rng.random(estimates.shape)).argmax(axis=1))


Outcome = NDArray[np.float64]  # (pools, 4): within epsilon of the best, regret, right, cost


def outcome(rng: np.random.Generator, rates: Floats, estimates: Floats, cost: Floats) -> Outcome:
    """What was found in each pool."""
    utility = rates.mean(axis=2)
    best = chosen(rng, estimates)
    regret = utility.max(axis=1) - utility[np.arange(len(best)), best]
    return np.column_stack([regret <= EPSILON, regret, best < RIGHT, cost])


def methods(rates: Floats, seed: int) -> Iterator[tuple[str, Outcome]]:
    """Every method on the same pools, by name."""
    rng = np.random.default_rng([seed, 1])
    number = len(rates)
    for rollouts in (64, 32, 16, 8):
        scores = rng.binomial(rollouts, rates).mean(axis=2) / rollouts
        yield f"uniform-{rollouts}", outcome(rng, rates, scores, np.full(number, float(rollouts)))
    for rollouts in (32, 16):
        depth = rng.multinomial(rollouts * CANDIDATES, np.full(CANDIDATES, 1 / CANDIDATES), number)
        scores = rng.binomial(depth[:, :, None], rates).mean(axis=2) / np.maximum(depth, 1)
        yield f"random-{rollouts}", outcome(rng, rates, scores, depth.mean(axis=1))
    for rollouts in (32, 16):
        for policy in POLICIES:
            done = run(rates, Allocation(policy=policy), rollouts, seed=seed)
            yield f"{policy}-{rollouts}", outcome(rng, rates, done.pools.utility, done.cost)
    for rollouts in (32, 24):
        done = run(rates, Allocation(policy="toptwo"), rollouts, seed=seed, claims=True)
        yield f"toptwo-{rollouts}, stops", outcome(rng, rates, done.pools.utility, done.cost)


PAIRS = (
    *[(f"{policy}-32", other) for policy in POLICIES for other in ("uniform-64", "uniform-32", "random-32")],
    *[
        (f"{policy}-16", other)
        for policy in POLICIES
        for other in ("uniform-64", "uniform-32", "uniform-16", "random-16")
    ],
    *[(f"toptwo-{n}, stops", other) for n in (32, 24) for other in ("uniform-64", "uniform-16")],
)


def accuracy(pools: int, shapes: list[str], *, seed: int = 2026) -> None:
    """Print, for each shape, what every method finds, and paired differences with their standard errors."""
    for name in shapes:
        shape = SHAPES[name]
        found: dict[str, list[Outcome]] = {}
        figures = []
        for neighbors in NEIGHBORS:
            rng = np.random.default_rng([seed, 0, neighbors])  # methods draw from streams of their own
            rates = shape.draw(rng, pools // len(NEIGHBORS), neighbors)
            figures.append(published_metrics(rng, rates))
            for method, result in methods(rates, seed + neighbors):
                found.setdefault(method, []).append(result)
        table = {method: np.concatenate(parts) for method, parts in found.items()}
        acc, recall, auc, win, above, mean = np.mean(figures, axis=0)
        print(f"\n{name}: {pools:,} pools of {CANDIDATES}, {RIGHT} right, 1 to 5 neighbors")
        print(
            f"with 64 rollouts: Acc@1 {acc:.3f}, Recall@5 {recall:.3f}, AUC {auc:.3f}, MeanWin {win:.3f}, "
            f"wrong above mean {above:.3f}, mean utility {mean:.3f}"
        )
        print(PUBLISHED)
        print(f"{'method':18} {'cost':>5}  within .05     regret        top-1 right")
        for method, rows in table.items():
            figures_of = f"{_percent(rows[:, 0])}  {_mean(rows[:, 1])}  {_percent(rows[:, 2])}"
            print(f"{method:18} {rows[:, 3].mean():5.1f}  {figures_of}")
        for one, other in PAIRS:
            gap = table[one] - table[other]
            print(
                f"{one + ' minus ' + other:30} within {_percent(gap[:, 0])}  regret {_mean(gap[:, 1])}  "
                f"right {_percent(gap[:, 2])}"
            )


def _percent(values: NDArray[np.float64] | NDArray[np.bool_]) -> str:
    return f"{100 * values.mean():6.2f} ±{100 * values.std() / len(values) ** 0.5:.2f}"


def _mean(values: Floats) -> str:
    return f"{values.mean():8.5f} ±{values.std() / len(values) ** 0.5:.5f}"


def scenarios(rng: np.random.Generator, runs: int, neighbors: int) -> Iterator[tuple[str, Floats]]:
    """True rates by name. Two of them sit just where a claim turns false."""

    def each(*utilities: float) -> Floats:
        return np.broadcast_to(np.array(utilities)[None, :, None], (runs, CANDIDATES, neighbors)).copy()

    for name, shape in SHAPES.items():
        yield name, shape.draw(rng, runs, neighbors)
    yield "flat: all .3", each(*[0.3] * 10)
    yield "flat: all .05", each(*[0.05] * 10)
    yield "all zero", each(*[0.0] * 10)
    yield "all one", each(*[1.0] * 10)
    yield "two tied at .5, rest 0", each(0.5, 0.5, *[0.0] * 8)
    yield "one hidden best: .4, rest .3", each(0.4, *[0.3] * 9)
    yield "best .36, rest .309 (just beyond epsilon)", each(0.36, *[0.309] * 9)
    yield "one at .051, rest 0 (just beyond epsilon)", each(0.051, *[0.0] * 9)
    uneven = each(0.6, 0.549, *[0.1] * 8)
    uneven[:, 0] += np.where(np.arange(neighbors) % 2, 0.35, -0.35) if neighbors % 2 == 0 else 0.0
    yield "best .6 on uneven neighbors, next .549", uneven


def claims(runs: int, policies: tuple[Policy, ...], *, rollouts: int = 64, seed: int = 99) -> None:
    """Print the share of all runs with a false claim, and what is claimed at what cost, by scenario and policy."""
    print(
        f"\n{runs:,} runs each, 4 neighbors, at most {rollouts} rollouts a cell, 95 % confidence, epsilon {EPSILON}"
    )
    print(f"{'scenario':44} {'policy':8} false %        claimed %  of it equal  ahead %  cost")
    worst = 0.0
    for name, rates in scenarios(np.random.default_rng(seed), runs, 4):
        for policy in policies:
            allocation = Allocation(policy=policy, epsilon=EPSILON)
            parts = [
                run(rates[first : first + AT_ONCE], allocation, rollouts, seed=seed + first, claims=True)
                for first in range(0, runs, AT_ONCE)
            ]
            cost, kind, false, ahead = (np.concatenate([part[i] for part in parts]) for i in range(1, 5))
            worst = max(worst, false.mean())
            equal = kind == KINDS.index("cannot decide")
            print(
                f"{name:44} {policy:8} {_percent(false)} {100 * (kind > 0).mean():10.1f} "
                f"{100 * equal.mean():12.1f} {100 * ahead.mean():8.1f} {cost.mean():5.1f}",
                flush=True,
            )
    print(f"largest share of false claims: {worst:.4f}")


def main() -> None:
    """Print what was asked for."""
    what, *rest = sys.argv[1:] or ["accuracy"]
    if what == "accuracy":
        accuracy(
            int(rest[0]) if rest else 15_000, [name for name in SHAPES if not rest[1:] or rest[1] in name]
        )
    else:
        policies = tuple(policy for policy in ("uniform", *POLICIES) if not rest[1:] or policy in rest[1:])
        claims(int(rest[0]) if rest else 10_000, policies)


if __name__ == "__main__":
    main()
