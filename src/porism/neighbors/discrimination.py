"""How differently candidates do on a neighbor, noise taken out.

The spread between best and worst grows with the number of candidates even when all are equal. The intraclass
correlation does not: it is the share of the variance of a rollout's outcome that the choice of candidate explains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from porism.types import Counts

LEAST_PROFILE = 5  # candidates before two neighbors can be said to rank them alike
ALIKE = 0.95


class Share(NamedTuple):
    """An intraclass correlation, 0 to 1, with its 95 % limits."""

    value: float
    low: float
    high: float


def intraclass(rows: Sequence[Counts]) -> Share | None:
    """The intraclass correlation of candidates' outcomes on one neighbor; None where it is undefined.

    Undefined with fewer than two candidates, fewer than two decided rollouts, or outcomes that are all the same.
    Pearson's chi-square over candidates, divided by 1 + (n - 1) rho, is about chi-square distributed for outcomes with
    intraclass correlation rho, n rollouts each (Rao and Scott 1981); the limits invert that.
    """
    from scipy.stats import chi2

    n = np.array([row.decided for row in rows if row.decided], dtype=np.float64)
    solved = np.array([row.correct for row in rows if row.decided], dtype=np.float64)
    if len(n) < 2 or n.mean() < 2 or solved.sum() in (0, n.sum()):
        return None
    mean = solved.sum() / n.sum()
    statistic = float(((solved - n * mean) ** 2 / (n * mean * (1 - mean))).sum())
    free = len(n) - 1
    # What a rollout more of each candidate adds, for unequal n (the usual n0 of an analysis of variance).
    size = float((n.sum() - (n**2).sum() / n.sum()) / free)

    def share(quantile: float) -> float:
        return float(np.clip((statistic / quantile - 1) / (size - 1), 0.0, 1.0))

    return Share(share(free), share(chi2.ppf(0.975, free)), share(chi2.ppf(0.025, free)))


def alike(profiles: Mapping[str, Sequence[Sequence[Counts]]]) -> dict[str, list[str]]:
    """For each neighbor, the earlier ones on which the candidates' solve rates run in parallel.

    profiles: by neighbor, each candidate's counts. Needs five candidates, and rates that vary on both.
    """
    rates = {
        name: np.array([_rate(row) for row in rows])
        if all(any(c.decided for c in row) for row in rows)
        else None
        for name, rows in profiles.items()
    }
    found: dict[str, list[str]] = {}
    for name, mine in rates.items():
        found[name] = [
            other
            for other in found
            if (theirs := rates[other]) is not None
            and mine is not None
            and len(mine) >= LEAST_PROFILE
            and mine.std() > 0
            and theirs.std() > 0
            and np.corrcoef(mine, theirs)[0, 1] >= ALIKE
        ]
    return found


def _rate(row: Sequence[Counts]) -> float:
    decided = [c for c in row if c.decided]
    return sum(c.correct / c.decided for c in decided) / len(decided)


__all__ = ["Share", "alike", "intraclass"]
