"""One scale from comparisons of pairs: the Bradley-Terry model, fitted by choix.

Each item has a strength; the log odds of i against j are the difference of theirs (Bradley and Terry 1952). choix finds
the maximum of the likelihood (iterative Luce spectral ranking; Maystre and Grossglauser 2015). Half a win and half a
loss, spread over all others, are added to each item's record, so that one that never lost has a finite strength.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

PRIOR = 0.5  # wins, and as many losses, that each item is given
LEVEL_Z = 1.959963984540054  # the normal distribution's 97.5 % point
ITERATIONS = 10_000


class Strength(NamedTuple):
    """The chance to win against another item of the pool drawn at random, and its 95 % interval.

    value is None for an item without a comparison.
    """

    value: float | None
    low: float
    high: float


def strengths(wins: Sequence[Sequence[float]]) -> list[Strength]:
    """The strength of each item; wins[i][j] is how often i won against j, half for a tie.

    Intervals by the delta method from the Fisher information, on the scale of log odds. Equal records give equal
    values: they are rounded to nine digits. Raises RuntimeError where the fit does not converge.
    """
    import choix
    import numpy as np

    n = len(wins)
    compared = [any(wins[i][j] or wins[j][i] for j in range(n)) for i in range(n)]
    if n < 2 or not any(compared):
        return [Strength(None, 0.0, 1.0)] * n
    table = np.asarray(wins, dtype=np.float64) + PRIOR / (n - 1)
    np.fill_diagonal(table, 0.0)
    theta = choix.ilsr_pairwise_dense(table, max_iter=ITERATIONS, tol=1e-10)
    chance = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
    slope = chance * (1 - chance)
    np.fill_diagonal(slope, 0.0)
    np.fill_diagonal(chance, 0.0)
    value = chance.sum(axis=1) / (n - 1)
    information = -(table + table.T) * slope
    np.fill_diagonal(information, -information.sum(axis=1))
    covariance = np.linalg.pinv(information, hermitian=True)
    gradient = -slope / (n - 1)
    np.fill_diagonal(gradient, slope.sum(axis=1) / (n - 1))
    error = np.sqrt(np.einsum("ij,jk,ik->i", gradient, covariance, gradient).clip(min=0))
    width = LEVEL_Z * error / (value * (1 - value))
    odds = np.log(value / (1 - value))
    low, high = (1 / (1 + np.exp(-(odds + side * width))) for side in (-1, 1))
    return [
        Strength(round(float(v), 9), min(float(a), round(float(v), 9)), max(float(b), round(float(v), 9)))
        if known
        else Strength(None, 0.0, 1.0)
        for v, a, b, known in zip(value, low, high, compared, strict=True)
    ]


__all__ = ["Strength", "strengths"]
