"""Who is asked how often in the next round. Arrays of many pools at once; a run is the case of one pool.

A block is one rollout on every cell (solver, neighbor) of a candidate: candidates differ in how many blocks they get,
never in which neighbors they meet. Decisions rest on exact counts of completed rounds and on a seeded generator.
Where a posterior guides, a candidate's solve rates lean on the rates of all candidates on the same neighbor, worth
PRIOR rollouts. That enters no estimate and no claim.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from porism.methods.allocate.bounds import Floats, confident, kl
from porism.methods.allocate.settings import Allocation

Ints = NDArray[np.int64]

PRIOR = 2.0
FIRST = 4  # blocks of every candidate before any choice
GROWTH = 0.25  # a round is at least this share of all before it: few rounds, each of them large
DRAWS = 64
PATIENCE = 1.0  # nats between a rate and its KL bound, for lucb


class Pools(NamedTuple):
    """Counts of shape (pools, candidates, cells): solved, open (undecided or missing) and all rollouts."""

    solved: Ints
    open: Ints
    rollouts: Ints

    @property
    def depth(self) -> Ints:
        """Blocks of every candidate, of shape (pools, candidates)."""
        return np.asarray(self.rollouts.max(axis=2))

    @property
    def utility(self) -> Floats:
        """The mean solve rate over cells with a decided rollout; -1 where there is none."""
        decided = self.rollouts - self.open
        rates = np.where(decided > 0, self.solved / np.maximum(decided, 1), 0.0)
        cells = (decided > 0).sum(axis=2)
        return np.asarray(np.where(cells > 0, rates.sum(axis=2) / np.maximum(cells, 1), -1.0))


def next_round(allocation: Allocation, pools: Pools, budget: int, rng: np.random.Generator) -> Ints:
    """Blocks of every candidate in the next round, of shape (pools, candidates); all zeros when `budget` is spent.

    budget: blocks of all candidates of a pool together.
    """
    number, candidates, cells = pools.solved.shape
    spent = pools.depth.sum(axis=1)
    least = -(-allocation.batch // cells)
    if not spent.any():
        each = max(1, min(max(FIRST, -(-least // candidates)), budget // candidates))
        if allocation.policy == "halving":
            each = stages(candidates, budget)[0]
        return np.full((number, candidates), each, dtype=np.int64)
    if allocation.policy == "halving":
        return _halving(pools, budget, rng)
    size = np.maximum(least, np.ceil(GROWTH * spent).astype(np.int64))
    size = np.minimum(size, np.maximum(budget - spent, 0))
    if allocation.policy == "uniform" or candidates < 3:
        return _deal(_leveling(pools.depth, size), size, rng)
    if allocation.goal == "ranking":
        return _deal(_doubtful(pools), size, rng)
    shares = _toptwo(allocation, pools, rng) if allocation.policy == "toptwo" else _lucb(allocation, pools)
    return _deal(shares, size, rng)


def stages(candidates: int, budget: int) -> list[int]:
    """How deep survivors are after each stage of sequential halving (Karnin, Koren and Somekh 2013).

    Equal numbers of blocks a stage; half of the candidates drop out after each, until two are left.
    """
    sizes = [candidates]
    while sizes[-1] > 2:
        sizes.append(-(-sizes[-1] // 2))
    depths, depth, left = list[int](), 0, budget
    for place, size in enumerate(sizes):
        blocks = max(left // (len(sizes) - place) // size, int(place == 0))
        depth, left = depth + blocks, left - blocks * size
        depths.append(depth)
    return depths


def posterior(pools: Pools) -> tuple[Floats, Floats]:
    """Mean and standard deviation of every utility, leaning on the other candidates cell by cell."""
    decided = (pools.rollouts - pools.open).astype(np.float64)
    common = (pools.solved.sum(axis=1, keepdims=True) + 0.5) / (decided.sum(axis=1, keepdims=True) + 1)
    worth = decided + PRIOR
    rate = (pools.solved + PRIOR * common) / worth
    variance = rate * (1 - rate) / (worth + 1)
    return rate.mean(axis=2), np.sqrt(variance.sum(axis=2)) / pools.solved.shape[2]


def _halving(pools: Pools, budget: int, rng: np.random.Generator) -> Ints:
    depth = pools.depth
    deepest, utility = depth.max(axis=1, keepdims=True), pools.utility
    added, size = np.zeros_like(depth), depth.shape[1]
    depths = stages(size, budget)
    for now, then in pairwise(depths):
        size = -(-size // 2)
        survives = _places(np.where(depth == deepest, utility, -2.0), rng) < size
        added = np.where((deepest == now) & survives, then - now, added)
    return added


def _toptwo(allocation: Allocation, pools: Pools, rng: np.random.Generator) -> Floats:
    """Shares of the next round under top-two Thompson sampling (Russo 2016), in expectation over its coin flips.

    Half goes to leaders, as often as each is the best of a draw from the posterior; half to challengers, the sooner the
    less evidence speaks against their being more than epsilon above that leader (Jourdan, Degenne and Kaufmann 2023),
    so that nobody is forgotten. A draw in which all are within epsilon of each other has no leader: its share evens
    out the depths, for the claim that these neighbors cannot decide. For the `top` best ones all of those lead.
    """
    mean, spread = posterior(pools)
    number, candidates = mean.shape
    draws = rng.standard_normal((number, DRAWS, candidates), dtype=np.float32)
    draws = mean[:, None].astype(np.float32) + spread[:, None].astype(np.float32) * draws
    even = np.mean(draws.max(axis=2) - draws.min(axis=2) <= allocation.epsilon, axis=1)[:, None]
    line = _line(allocation, candidates)
    first = draws.argmax(axis=2) if line == 1 else np.argpartition(-draws, line - 1, axis=2)[:, :, :line]
    flat = first.reshape(number, -1) + candidates * np.arange(number)[:, None]
    leaders = (
        np.bincount(flat.ravel(), minlength=number * candidates).reshape(number, candidates) / flat.shape[1]
    )
    # The square root flattens: a round is too large to go to the one nearest challenger alone.
    weights = np.exp(-_cost(pools, allocation.epsilon) / 2)
    weights[:, np.arange(candidates), np.arange(candidates)] = 0.0
    weights /= np.maximum(weights.sum(axis=2, keepdims=True), 1e-300)
    challengers = (leaders[:, :, None] * weights).sum(axis=1)
    level = _normal(1.0 / np.maximum(pools.depth, 1) ** 2)
    return np.asarray((1 - even) * (leaders + challengers) / 2 + even * level)


def _cost(pools: Pools, gap: float) -> Floats:
    """The evidence, in nats, against candidate j being `gap` above candidate i, of shape (pools, i, j).

    The transportation cost of two Bernoulli laws, with the point between them taken from their pooled counts.
    """
    n = (pools.rollouts - pools.open).sum(axis=2).astype(np.float64)
    s = pools.solved.sum(axis=2)
    rate = s / np.maximum(n, 1)
    i, j = (slice(None), slice(None), None), (slice(None), None, slice(None))
    x = np.clip((s[i] + s[j] - n[j] * gap) / np.maximum(n[i] + n[j], 1), 0, 1 - gap)
    cost = n[i] * kl(rate[i], x) + n[j] * kl(rate[j], x + gap)
    return np.asarray(np.where(rate[j] >= rate[i] + gap, 0.0, cost))


def _lucb(allocation: Allocation, pools: Pools) -> Floats:
    """Shares of the next round by KL bounds (Kaufmann and Kalyanakrishnan 2013), for all undecided at once.

    Half goes to candidates above the line, as far as the highest upper bound below it passes their lower bounds; half
    to candidates below it, as far as their upper bounds pass the lowest lower bound above it.
    """
    mean, _ = posterior(pools)
    low, high = confident(mean, pools.rollouts.sum(axis=2), PATIENCE)
    place = np.argsort(np.argsort(-mean, axis=1, kind="stable"), axis=1, kind="stable")
    inside = place < _line(allocation, mean.shape[1])
    weakest = np.where(inside, low, 2.0).min(axis=1, keepdims=True)
    strongest = np.where(inside, -1.0, high).max(axis=1, keepdims=True)
    above = np.where(inside, np.maximum(strongest - low, 0) + 1e-6 * (low == weakest), 0.0)
    below = np.where(inside, 0.0, np.maximum(high - weakest, 0) ** 2 + 1e-6 * (high == strongest))
    return (_normal(above) + _normal(below)) / 2


def _doubtful(pools: Pools) -> Floats:
    """Shares for a whole order: the more, the less a candidate is told apart from its neighbors in the order."""
    mean, spread = posterior(pools)
    order = np.argsort(-mean, axis=1, kind="stable")
    m, s = np.take_along_axis(mean, order, 1), np.take_along_axis(spread, order, 1)
    doubt = np.exp(-((m[:, :-1] - m[:, 1:]) ** 2) / (2 * (s[:, :-1] ** 2 + s[:, 1:] ** 2))) + 1e-6
    each = np.zeros_like(mean)
    each[:, :-1] += doubt
    each[:, 1:] += doubt
    shares = np.zeros_like(mean)
    np.put_along_axis(shares, order, each * s, 1)
    return shares


def _line(allocation: Allocation, candidates: int) -> int:
    """How many candidates stand above the line that the goal asks about."""
    return min(allocation.top, candidates - 1) if allocation.goal == "top-k" else 1


def _leveling(depth: Ints, size: Ints) -> Floats:
    """Shares that bring all candidates to the same depth, as far as `size` blocks allow."""
    level = (depth.sum(axis=1) + size)[:, None] / depth.shape[1]
    return np.asarray(np.maximum(level - depth, 0.0))


def _normal(shares: Floats) -> Floats:
    return np.asarray(shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300))


def _deal(shares: Floats, size: Ints, rng: np.random.Generator) -> Ints:
    """Whole blocks in proportion to shares, `size` in all: floors first, the rest by largest remainder."""
    exact = _normal(shares) * size[:, None]
    whole = np.floor(exact + 1e-9).astype(np.int64)
    return np.asarray(whole + (_places(exact - whole, rng) < (size - whole.sum(axis=1))[:, None]))


def _places(values: Floats, rng: np.random.Generator) -> Ints:
    """0 for the largest value in its row, 1 for the next; equal values in a random order."""
    order = np.lexsort((rng.random(values.shape), -values), axis=1)
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(values.shape[1])[None, :], 1)
    return places.astype(np.int64)


__all__ = ["Ints", "Pools", "next_round", "posterior", "stages"]
