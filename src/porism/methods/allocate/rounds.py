"""Adaptive allocation of one problem: from counts of completed rounds to the next round, the claim and the figures.

Cells are Counts by candidate id, in the same order of (solver, neighbor) for each. Candidates are taken in the order
of their ids and ties are broken by a generator seeded with the problem and all counts, so a resumed run decides as an
undisturbed one does, and the order of a file decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import blake2b

import numpy as np

from porism.methods.allocate.bounds import above, sequence
from porism.methods.allocate.claims import claim
from porism.methods.allocate.policies import Pools, next_round
from porism.methods.allocate.settings import Allocation, Claim
from porism.stats import LEVEL, Interval
from porism.types import Counts

Cells = Mapping[str, Sequence[Counts]]


def blocks(allocation: Allocation, cells: Cells, rollouts: int, *, seed: str) -> dict[str, int]:
    """Rollouts on every cell in the next round, by candidate; empty when there is a claim or nothing is left.

    rollouts: of every cell, were they shared out evenly; no more than that is spent on all candidates together.
    """
    ids, pools = _pools(cells)
    if not ids or claim(allocation, ids, pools).kind != "none":
        return {}
    key = repr((seed, ids, pools.solved.tolist(), pools.rollouts.tolist()))
    rng = np.random.default_rng(int.from_bytes(blake2b(key.encode(), digest_size=16).digest(), "big"))
    found = next_round(allocation, pools, rollouts * len(ids), rng)[0]
    return {i: int(added) for i, added in zip(ids, found, strict=True) if added}


def claim_of(allocation: Allocation, cells: Cells) -> Claim:
    """What can be claimed from these counts."""
    ids, pools = _pools(cells)
    return claim(allocation, ids, pools)


def starved(cells: Cells) -> frozenset[str]:
    """Candidates with less than half of an equal share of all rollouts: given up, and known all the less."""
    depth = {i: max((c.total for c in row), default=0) for i, row in cells.items()}
    return frozenset(i for i, own in depth.items() if 2 * own * len(depth) < sum(depth.values()))


def anytime(row: Sequence[Counts], level: float = LEVEL) -> Interval:
    """The mean solve rate with limits that hold whenever a run stops, and for whatever reason (a confidence sequence).

    All that is open widens them, as if it were wrong in low and right in high.
    """
    least, total = sum(c.correct for c in row), sum(c.total for c in row)
    most = total - sum(c.decided - c.correct for c in row)
    rates = [Fraction(c.correct, c.decided) for c in row if c.decided]
    value = sum(rates, Fraction()) / len(rates) if rates else None
    if not total:
        return Interval(value, 0.0, 1.0, 0.0, 1.0)
    low, high = (float(limit) for limit in sequence(least, most, total, level))
    if value is not None:
        low, high = min(low, float(value)), max(high, float(value))
    return Interval(value, low, high, least / total, most / total)


def anytime_lift(row: Sequence[Counts], base: Sequence[Counts]) -> Interval:
    """The difference of two mean rates with limits that hold whenever a run stops."""
    a, b = anytime(row, LEVEL / 2), anytime(base, LEVEL / 2)
    value = None if a.value is None or b.value is None else a.value - b.value
    return Interval(value, a.low - b.high, a.high - b.low, a.worst - b.best, a.best - b.worst)


def helps(row: Sequence[Counts], base: Sequence[Counts], *, among: int) -> bool:
    """Whether the best of `among` candidates is above the row without example, at any time."""
    (s, _, n), (_, z, m) = (
        (sum(c.correct for c in r), sum(c.total - c.decided + c.correct for c in r), sum(c.total for c in r))
        for r in (row, base)
    )
    return bool(above((s, n), (z, m), 0.0, LEVEL / among))


def _pools(cells: Cells) -> tuple[list[str], Pools]:
    ids = sorted(cells)
    counts = np.array(
        [[(c.correct, c.total - c.decided, c.total) for c in cells[i]] for i in ids], dtype=np.int64
    )
    return ids, Pools(*(counts[None, :, :, part] for part in range(3)))


__all__ = ["anytime", "anytime_lift", "blocks", "claim_of", "helps", "starved"]
