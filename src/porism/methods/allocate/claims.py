"""What may be said for sure about a pool, at any time: claims that end a run, and one that only informs.

All claims are made of statements about pairs, "a is above b - gap" with gap 0 or epsilon, tested by `bounds.above`. One
of a few fixed statements has to be false before a claim is, and they share the error 1 - confidence:

- "These neighbors cannot decide": that the worst is above the best - epsilon. This one alone may spend EQUAL of it.
- a within epsilon of the best: that a is above the best - epsilon; one statement for each a that is not.
- a set beats the rest: in the true order, ties broken anyhow, some member of the rest stands right before a member of
  the set, or the two at the set's edge tie; at most two statements for each step of that order.

So 3 (K - 1) statements cover the goal `best`, and one for each of the K (K - 1) pairs covers any goal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, get_args

import numpy as np

from porism.methods.allocate.bounds import Bools, above
from porism.methods.allocate.policies import Ints, Pools
from porism.methods.allocate.settings import Allocation, Claim, Kind
from porism.methods.message import names

KINDS: tuple[Kind, ...] = get_args(Kind)
EQUAL = 0.25


class Claims(NamedTuple):
    """For each pool: the kind of claim (index into KINDS), whom it names, and the smallest set that beats the rest.

    named, ahead: (pools, candidates). ahead is empty where no proper subset is known to beat all others.
    """

    kind: Ints
    named: Bools
    ahead: Bools


def statements(allocation: Allocation, candidates: int) -> int:
    """How many statements about pairs share what EQUAL leaves of the error."""
    every = max(1, candidates * (candidates - 1))
    return min(every, 3 * (candidates - 1)) if allocation.goal == "best" and candidates > 1 else every


def find(allocation: Allocation, pools: Pools) -> Claims:
    """What can be claimed of every pool now."""
    number, size, _ = pools.solved.shape
    error = 1 - allocation.confidence
    places = _Places(pools, (1 - EQUAL) * error / statements(allocation, size))
    ends = _Places(pools, EQUAL * error)
    seen = (pools.rollouts.sum(axis=2) > 0).all(axis=1) & (size > 1)
    kind = np.zeros(number, dtype=np.int64)
    named, ahead = np.zeros((2, number, size), dtype=np.bool_)
    line = min(allocation.top, size) if allocation.goal == "top-k" else 1
    found = places.above(seen, (0, line), (line, size), allocation.epsilon)
    if allocation.goal == "ranking":
        for place in range(1, size - 1):
            found = places.above(found, (place, place + 1), (place + 1, size), allocation.epsilon)
        line = size
    kind[found] = KINDS.index(allocation.goal)
    named[found, :line] = True
    # That the last place is above the first one less epsilon is the hardest part: mostly it ends here.
    equal = ends.above(seen, (size - 1, size), (0, 1), allocation.epsilon)
    equal = ends.above(equal, (0, size), (0, size), allocation.epsilon)
    kind[equal] = KINDS.index("cannot decide")
    named[equal] = True
    looking = seen
    for edge in range(1, size):
        split = places.above(looking, (edge - 1, edge), (edge, edge + 1), 0.0)
        split = places.above(split, (0, edge), (edge, size), 0.0)
        ahead[split, :edge] = True
        looking = looking & ~split
    return Claims(kind, places.restored(named), places.restored(ahead))


class _Places:
    """Candidates of every pool in the order of their solve rates, and what is known of places in it."""

    def __init__(self, pools: Pools, level: float) -> None:
        rollouts, least = pools.rollouts.sum(axis=2), pools.solved.sum(axis=2)
        most = least + pools.open.sum(axis=2)
        self._order = np.argsort(-(least + most) / np.maximum(2 * rollouts, 1), axis=1, kind="stable")
        self._least, self._most, self._rollouts = (
            np.take_along_axis(a, self._order, 1) for a in (least, most, rollouts)
        )
        self._level = level

    def above(self, pools: Bools, first: tuple[int, int], then: tuple[int, int], gap: float) -> Bools:
        """Of the `pools`, those where every place first[0] .. first[1] - 1 is above all of `then` minus gap."""
        at = np.flatnonzero(pools)
        i, j = (grid.ravel() for grid in np.meshgrid(np.arange(*first), np.arange(*then), indexing="ij"))
        i, j = i[i != j], j[i != j]
        known = above(
            (self._least[at[:, None], i], self._rollouts[at[:, None], i]),
            (self._most[at[:, None], j], self._rollouts[at[:, None], j]),
            gap,
            self._level,
        )
        found = np.zeros_like(pools)
        found[at] = known.all(axis=1)
        return found

    def restored(self, values: Bools) -> Bools:
        """Values by place as values by candidate."""
        found = np.zeros_like(values)
        np.put_along_axis(found, self._order, values, 1)
        return found


def claim(allocation: Allocation, ids: Sequence[str], pools: Pools) -> Claim:
    """The claim about one pool, the first of `pools`, whose candidates are `ids`."""
    found = find(allocation, pools)
    kind = KINDS[int(found.kind[0])]
    rates = pools.utility[0]
    order = sorted(range(len(ids)), key=lambda i: (-rates[i], ids[i]))
    named, ahead = (tuple(ids[i] for i in order if mask[0, i]) for mask in (found.named, found.ahead))
    return Claim(
        kind=kind,
        candidates=named,
        ahead=ahead,
        epsilon=allocation.epsilon,
        confidence=allocation.confidence,
        message=_message(allocation, kind, named, ahead, len(ids)),
    )


def _message(
    allocation: Allocation, kind: Kind, named: Sequence[str], ahead: Sequence[str], size: int
) -> str:
    sure = f"with {allocation.confidence:.0%} confidence, given these neighbors"
    within = f"within {allocation.epsilon:g}"
    beats = f"{names(ahead)} {'beats' if len(ahead) == 1 else 'beat'} the rest"
    if size == 1:
        return "There is no other candidate."
    if kind == "cannot decide":
        text = (
            f"These neighbors cannot decide: all candidates are {within} of each other in utility ({sure})."
        )
    elif kind == "best":
        text = f"{named[0]} is {within} of the highest utility ({sure})."
    elif kind == "top-k":
        text = f"{names(named)} are the top {len(named)}, up to {allocation.epsilon:g} in utility ({sure})."
    elif kind == "ranking":
        text = f"The order is right but for candidates {within} of each other in utility ({sure})."
    elif ahead:
        return f"{beats} ({sure}); more is not certain yet."
    else:
        asked = {
            "best": f"who is {within} of the highest utility",
            "top-k": f"who the top {allocation.top} are",
            "ranking": "what the order is",
        }
        return f"Not certain yet {asked[allocation.goal]}: more rollouts would help."
    return f"{text[:-1]}; {beats}." if ahead and kind != "cannot decide" else text


__all__ = ["KINDS", "Claims", "claim", "find", "statements"]
