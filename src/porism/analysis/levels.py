"""Where scores lie: the chance to stand above the pool's mean, by label, and the histogram of all scores.

A method whose right candidates are rarely above the mean of their pool is of little use to a reader, whatever its AUC;
the human solution is looked at apart, because it may be written in another way than all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean

from msgspec import Struct

from porism.analysis.material import LABELS, Label, Material, Span, View, label_of
from porism.metrics import Value

BINS = 10


class Above(Struct, frozen=True, kw_only=True):
    """The chance that a candidate of this label scores above the mean of its pool; a score equal to it counts half.

    The mean over groups with a 95 % interval (inference.mean_limits). n: candidates.
    """

    method: str
    label: Label
    chance: float
    ci95: Span | None
    n: int
    groups: int


class AboveMean(Struct, frozen=True, kw_only=True):
    """The analysis: a row a method and label."""

    rows: tuple[Above, ...]

    def sentences(self) -> list[str]:
        """A line a method."""
        lines = []
        for method in dict.fromkeys(r.method for r in self.rows):
            shares = ", ".join(
                f"{r.label} {r.chance:.2f}" + (f" [{r.ci95[0]:.2f}, {r.ci95[1]:.2f}]" if r.ci95 else "")
                for r in self.rows
                if r.method == method
            )
            lines.append(f"{method}: {shares}")
        return lines


class Bin(Struct, frozen=True, kw_only=True):
    """Candidates with a score from `low` to below `high` (the last bin holds its upper end), by label."""

    method: str
    low: float
    high: float
    right: int
    human: int
    wrong: int
    unlabelled: int


class Histogram(Struct, frozen=True, kw_only=True):
    """The analysis: ten bins of equal width a method, over the scores that there are. unscored: by method."""

    bins: tuple[Bin, ...]
    unscored: dict[str, int]

    def sentences(self) -> list[str]:
        """A line a method: its range, and the share of candidates in the fullest bin."""
        lines = []
        for method, unscored in self.unscored.items():
            own = [b for b in self.bins if b.method == method]
            if own:
                sizes = [b.right + b.human + b.wrong + b.unlabelled for b in own]
                fullest = own[sizes.index(max(sizes))]
                left = f"; {unscored} without a score" if unscored else ""
                lines.append(
                    f"{method}: {sum(sizes)} scores from {own[0].low:.3g} to {own[-1].high:.3g}, "
                    f"{max(sizes) / sum(sizes):.0%} of them between {fullest.low:.3g} and {fullest.high:.3g}{left}"
                )
        return lines


def above_mean(material: Material) -> AboveMean:
    """Pr[score above the pool's mean] for right, human and wrong candidates, for every method."""
    return AboveMean(rows=tuple(row for view in material.views for row in _above(material, view)))


def above(values: dict[str, Value]) -> dict[str, float]:
    """1 for each candidate above the mean of these scores, 0 below, 1/2 for one that is equal to it."""
    if not values:
        return {}
    exact = {id: Fraction(v) for id, v in values.items()}
    mean = sum(exact.values(), Fraction()) / len(exact)
    return {id: 1.0 if v > mean else 0.5 if v == mean else 0.0 for id, v in exact.items()}


def histogram(material: Material) -> Histogram:
    """Scores by label in ten bins, for every method."""
    bins: list[Bin] = []
    unscored = {}
    for view in material.views:
        own = [
            (float(values[c.id]), label_of(c) or "unlabelled")
            for p in material.problems
            for values in (view.values.get(p.id, {}),)
            for c in p.candidates
            if c.id in values
        ]
        unscored[view.name] = sum(len(p.candidates) for p in material.problems) - len(own)
        bins += _bins(view.name, own)
    return Histogram(bins=tuple(bins), unscored=unscored)


def _above(material: Material, view: View) -> list[Above]:
    from porism.inference import mean_interval

    found: dict[Label, dict[str, list[float]]] = {label: {} for label in LABELS}
    for p in material.problems:
        standing = above(view.values.get(p.id, {}))
        for c in p.candidates:
            label = label_of(c)
            if label is not None and c.id in standing:
                found[label].setdefault(p.id, []).append(standing[c.id])
    rows = []
    for label, by_problem in found.items():
        means = material.groups({p: fmean(own) for p, own in by_problem.items()})
        if means:
            rows.append(
                Above(
                    method=view.name,
                    label=label,
                    chance=fmean(means),
                    ci95=mean_interval(means),
                    n=sum(map(len, by_problem.values())),
                    groups=len(means),
                )
            )
    return rows


def _bins(method: str, scores: Sequence[tuple[float, str]]) -> list[Bin]:
    if not scores:
        return []
    least, most = min(scores)[0], max(scores)[0]
    width = (most - least) / BINS or 1.0
    counts: list[dict[str, int]] = [dict.fromkeys((*LABELS, "unlabelled"), 0) for _ in range(BINS)]
    for score, label in scores:
        counts[min(int((score - least) / width + 1e-9), BINS - 1)][label] += 1
    return [
        Bin(method=method, low=least + i * width, high=least + (i + 1) * width, **own)
        for i, own in enumerate(counts)
    ]


__all__ = ["BINS", "Above", "AboveMean", "Bin", "Histogram", "above", "above_mean", "histogram"]
