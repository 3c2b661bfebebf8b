"""Time-uniform tests and intervals of solve rates: true whenever one looks, however rollouts were shared out.

A row's rollouts are Bernoulli trials, the same number on each of its cells in a round, so their mean rate is the
utility p. By concavity (Hoeffding 1956) E exp(h S) <= (1 - p + p e^h)^n for n trials of mean rate p, so for every h

    exp(h S) / (1 - p + p e^h)^n

is a test supermartingale at the ends of rounds, whatever decides who is asked next; so is every mixture over h with
weights fixed beforehand, and every product over rows. By Ville's inequality it ever reaches 1/a with probability a at
most (Robbins 1970; Howard, Ramdas, McAuliffe and Sekhon 2021; Waudby-Smith and Ramdas 2024 call it betting).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Bets of a pair: how far the odds of the upper and of the lower row are tilted, a grid over the size of the difference
# and over which of the two has more rollouts. Any weights keep the test valid; these were tuned for its power.
_SIZES = np.array([0.2, 0.35, 0.6, 1.05, 1.8, 3.2])
_SHARES = np.array([[1.0, 1.0], [0.25, 1.0], [1.0, 0.25], [0.06, 1.0], [1.0, 0.06]])
_TILTS = (_SIZES[:, None, None] * _SHARES).reshape(-1, 2)
_LOG_WEIGHTS = np.log(np.tile([0.3, 0.25, 0.15, 0.2, 0.1], len(_SIZES)) / len(_SIZES))
_HALVINGS = 18
_AT_ONCE = 2_000  # pairs: their bets fit a processor's cache


def above(upper: tuple[Any, Any], lower: tuple[Any, Any], gap: float, level: float) -> Bools:
    """Whether p_upper > p_lower - gap is established: "p_lower >= p_upper + gap" is refuted at `level`.

    upper, lower: (solved, rollouts), arrays that broadcast; solved at the least for the upper row and at the most for
    the lower one. Of a pair for which the refuted is true, at most `level` of all runs ever say True.
    """
    arrays = np.broadcast_arrays(*upper, *lower)
    s, n, z, m = (np.asarray(a, dtype=np.float64).ravel() for a in arrays)
    found = np.zeros(s.size, dtype=np.bool_)
    # No bet gains more than the likelihood ratio at any one point, so most pairs are done with here.
    bound = np.log(1 / level)
    point = np.clip((s + z - m * gap) / np.maximum(n + m, 1), 0, 1 - gap)
    ratio = n * kl(s / np.maximum(n, 1), point) + m * kl(z / np.maximum(m, 1), point + gap)
    maybe = np.flatnonzero(
        (ratio >= bound) & (n > 0) & (m > 0) & (s / np.maximum(n, 1) > z / np.maximum(m, 1) - gap)
    )
    for part in np.array_split(maybe, -(-maybe.size // _AT_ONCE) or 1):
        found[part] = _evidence(s[part], n[part], z[part], m[part], gap) >= bound
    return found.reshape(arrays[0].shape)


def _evidence(s: Floats, n: Floats, z: Floats, m: Floats, gap: float) -> Floats:
    """The log of the least mixture over all p_upper = x, p_lower = x + gap.

    Each bet is log-convex in x, so the mixture is, and the sign of its slope finds the least value.
    """
    up, down = np.expm1(_TILTS[:, 0]), -np.expm1(-_TILTS[:, 1])
    gain = s[:, None] * _TILTS[:, 0] - z[:, None] * _TILTS[:, 1] + _LOG_WEIGHTS
    n, m = n[:, None], m[:, None]
    left, right = np.zeros(s.size), np.full(s.size, 1 - gap)
    for _ in range(_HALVINGS):
        x = (left + right)[:, None] / 2
        odds, rest = 1 + x * up, 1 - (x + gap) * down
        log = gain - n * np.log(odds) - m * np.log(rest)
        weight = np.exp(log - log.max(axis=1, keepdims=True))
        slope = (weight * (m * down / rest - n * up / odds)).sum(axis=1) / weight.sum(axis=1)
        left, right = np.where(slope > 0, left, x[:, 0]), np.where(slope > 0, x[:, 0], right)
    # Nowhere between left and right is it lower than the tangent here says.
    here = log.max(axis=1) + np.log(weight.sum(axis=1))
    return np.asarray(here - np.abs(slope) * (right - left), dtype=np.float64)


def sequence(least: Any, most: Any, rollouts: Any, level: float = 0.05) -> tuple[Floats, Floats]:
    """Limits (low, high) of a mean rate that hold at all ends of rounds together with probability 1 - level.

    The bets are mixed by a Beta(1/2, 1/2) law, which has a closed form (beta-binomial mixture). least, most: solved
    if all open rollouts were wrong, or right.
    """
    return _limit(least, rollouts, level), 1 - _limit(np.subtract(rollouts, most), rollouts, level)


def _limit(solved: Any, rollouts: Any, level: float) -> Floats:
    from scipy.special import betaln

    s, n = np.broadcast_arrays(np.asarray(solved, dtype=np.float64), np.asarray(rollouts, dtype=np.float64))
    mixed = betaln(s + 0.5, n - s + 0.5) - betaln(0.5, 0.5) + np.log(level)
    low, high = np.zeros(s.shape), s / np.maximum(n, 1)
    for _ in range(40):
        p = (low + high) / 2
        out = mixed > s * np.log(np.maximum(p, 1e-300)) + (n - s) * np.log1p(-np.minimum(p, 1 - 1e-15))
        low, high = np.where(out, p, low), np.where(out, high, p)
    return low


def kl(p: Any, q: Any) -> Floats:
    """The Kullback-Leibler divergence of Bernoulli laws with rates p and q, in nats; infinite where q rules p out."""
    p, q = np.asarray(p, dtype=np.float64), np.clip(np.asarray(q, dtype=np.float64), 1e-300, 1.0)
    rest = np.maximum(1 - q, 1e-300)
    return np.asarray(
        p * np.log(np.maximum(p, 1e-300) / q) + (1 - p) * np.log(np.maximum(1 - p, 1e-300) / rest),
        dtype=np.float64,
    )


def confident(rate: Any, rollouts: Any, threshold: float) -> tuple[Floats, Floats]:
    """KL bounds (low, high) of a rate: where rollouts * kl(rate, bound) reaches `threshold`. A guide, not a claim."""
    rate, n = np.broadcast_arrays(np.asarray(rate, dtype=np.float64), np.asarray(rollouts, dtype=np.float64))
    sides = []
    for end in (0.0, 1.0):
        inner, outer = rate.copy(), np.full(rate.shape, end)
        for _ in range(16):
            middle = (inner + outer) / 2
            inside = n * kl(rate, middle) <= threshold
            inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
        sides.append(outer)
    return sides[0], sides[1]


__all__ = ["above", "confident", "kl", "sequence"]
