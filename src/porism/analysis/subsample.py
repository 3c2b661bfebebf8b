"""Fewer rollouts than there are, drawn again and again without replacement: what a smaller run would have said.

A draw gives every cell of every candidate n of its rollouts; the same draw is extended for the next n, so lines are
smooth. Rollouts that told nothing are drawn like the others and then left out, as in a real run. At n = N a draw is the
whole pool: its error is zero by construction, so only n well below N says how much more rollouts would change.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from porism.analysis.material import Cells

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DRAWS = 200
DIGITS = 9  # scores that differ by less are ties: means of the same counts, added up in another order


def sizes(most: int) -> list[int]:
    """The n to look at: all up to 8, then by steps that grow by a quarter, and the whole."""
    found = list(range(1, min(most, 8) + 1))
    while found[-1] < most:
        found.append(min(most, found[-1] + max(1, found[-1] // 4)))
    return found


def drawn(candidates: Sequence[Cells], ns: Sequence[int], seed: str, draws: int = DRAWS) -> Floats:
    """Scores of shape (len(ns), draws, candidates) from n rollouts a cell; nan where those told nothing."""
    import numpy as np

    longest = max(len(cell) for cells in candidates for cell in cells)
    most = max(map(len, candidates))
    outcomes = np.full((len(candidates), most, longest), np.nan)
    for i, cells in enumerate(candidates):
        for j, cell in enumerate(cells):
            outcomes[i, j, : len(cell)] = [np.nan if x is None else x for x in cell]
    digest = blake2b(seed.encode(errors="replace"), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "big"))
    mixed = rng.permuted(np.broadcast_to(outcomes, (draws, *outcomes.shape)), axis=-1)
    known = ~np.isnan(mixed)
    at = [n - 1 for n in ns]
    sums = np.where(known, mixed, 0.0).cumsum(axis=-1)[..., at]
    counts = known.cumsum(axis=-1)[..., at]
    rates = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    told = counts > 0
    cells_told = told.sum(axis=2)
    scores = np.divide(
        rates.sum(axis=2), cells_told, out=np.full(cells_told.shape, np.nan), where=cells_told > 0
    )
    return np.asarray(np.round(np.moveaxis(scores, -1, 0), DIGITS), dtype=np.float64)


def auc(scores: Floats, right: Sequence[bool]) -> Floats:
    """The AUC of each draw, of shape (..., candidates) -> (...): pairs with the right one above, ties half."""
    import numpy as np

    side = np.asarray(right)
    gaps = scores[..., side][..., :, None] - scores[..., ~side][..., None, :]
    wins = np.where(np.isnan(gaps), np.nan, (np.sign(gaps) + 1) / 2)
    return _mean(wins.reshape(*wins.shape[:-2], -1))


def accuracy(scores: Floats, right: Sequence[bool]) -> Floats:
    """Acc@1 of each draw: the share of right ones among those that tie for the first place."""
    import numpy as np

    best = np.where(np.isnan(scores), -np.inf, scores).max(axis=-1, keepdims=True)
    first = scores == best
    return _mean(np.where(first, np.asarray(right, dtype=np.float64), np.nan))


def kept_first(scores: Floats, whole: Floats) -> Floats:
    """The chance that a draw's first candidate is a first one of the whole pool, ties at random."""
    return accuracy(scores, list(whole == whole.max()))


def tau(scores: Floats, whole: Floats) -> Floats:
    """Kendall's tau-b of each draw's ranking with the whole pool's; 0 for a draw that orders nobody."""
    import numpy as np

    i, j = np.triu_indices(len(whole), 1)
    a, b = np.sign(scores[..., i] - scores[..., j]), np.sign(whole[i] - whole[j])
    a = np.where(np.isnan(a), 0.0, a)
    norm = np.sqrt((a != 0).sum(axis=-1) * (b != 0).sum())
    return np.asarray(np.divide((a * b).sum(axis=-1), norm, out=np.zeros(norm.shape), where=norm > 0))


def _mean(values: Floats) -> Floats:
    """The mean over the last axis of what is no nan; nan where all is."""
    import numpy as np

    known = ~np.isnan(values)
    counts = known.sum(axis=-1)
    sums = np.where(known, values, 0.0).sum(axis=-1)
    return np.asarray(np.divide(sums, counts, out=np.full(counts.shape, np.nan), where=counts > 0))


__all__ = ["DRAWS", "accuracy", "auc", "drawn", "kept_first", "sizes", "tau"]
