"""The gap between solver and evaluator: does a method tell right from wrong where the solver cannot solve the question?

The claim behind utility is about questions nobody can check, so what counts is not a method's mean but how it falls
as questions get harder for the model. Hardness is 1 minus the share of the solver's own attempts at the question that
are right. Scores of different methods are made comparable by each method's own spread inside pools.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from msgspec import Struct

from porism.analysis.material import Material, Span, View
from porism.types import Problem

BANDS = (("never solved", 0.0), ("solved up to half the time", 0.5), ("solved more often", 1.0))
LEAST_GROUPS = 3  # a line through two points says nothing of its error


class GapPoint(Struct, frozen=True, kw_only=True):
    """One problem under one method. hardness: 1 - solve rate of `attempts`.

    gap: mean score of right candidates minus that of wrong ones; gap_sd: in standard deviations of the method's scores.
    """

    method: str
    problem: str
    group: str
    hardness: float
    attempts: int
    gap: float
    gap_sd: float


class GapBand(Struct, frozen=True, kw_only=True):
    """The mean of gap_sd over the groups of problems that the solver solves so often."""

    method: str
    band: str
    gap_sd: float
    ci95: Span | None
    problems: int
    groups: int


class GapSlope(Struct, frozen=True, kw_only=True):
    """How gap_sd changes from questions always solved to ones never solved (least squares over problems).

    ci95: jackknife over groups; None where there are too few groups, or hardness does not vary.
    """

    method: str
    slope: float | None
    ci95: Span | None
    groups: int


class Gap(Struct, frozen=True, kw_only=True):
    """The analysis. unknown: problems without a checked attempt; one_sided: without a right or a wrong candidate."""

    points: tuple[GapPoint, ...]
    bands: tuple[GapBand, ...]
    slopes: tuple[GapSlope, ...]
    unknown: int
    one_sided: int

    def sentences(self) -> list[str]:
        """What it says, a line a method, and what is left out."""
        lines = []
        for s in self.slopes:
            bands = "; ".join(
                f"{b.gap_sd:+.2f}{_span(b.ci95)} where {b.band} ({b.groups} groups)"
                for b in self.bands
                if b.method == s.method
            )
            slope = "" if s.slope is None else f"; from easy to hard {s.slope:+.2f}{_span(s.ci95)}"
            lines.append(f"{s.method}: right minus wrong {bands}{slope}")
        if self.unknown or self.one_sided:
            lines.append(
                f"left out: {self.unknown} problems without a checked attempt of the solver, {self.one_sided} without "
                "a right or a wrong candidate"
            )
        return lines


def gap(material: Material) -> Gap:
    """Right minus wrong against the hardness of the question, for every method."""
    points: list[GapPoint] = []
    known = [p for p in material.problems if material.solved.get(p.id, (0, 0))[1]]
    usable = [p for p in known if len(set(material.sides(p).values())) == 2]
    for view in material.views:
        points += _points(material, view, usable)
    return Gap(
        points=tuple(points),
        bands=tuple(b for v in material.views for b in _bands([q for q in points if q.method == v.name])),
        slopes=tuple(
            _slope(v.name, own) for v in material.views if (own := [q for q in points if q.method == v.name])
        ),
        unknown=len(material.problems) - len(known),
        one_sided=len(known) - len(usable),
    )


def spread(view: View, problems: Mapping[str, list[str]] | None = None) -> float:
    """The standard deviation of a method's scores around the mean of their pool; 0 where all are equal."""
    squares = []
    for problem, values in view.values.items():
        ids = values if problems is None else problems.get(problem, [])
        own = [float(values[i]) for i in ids if i in values]
        squares += [(x - fmean(own)) ** 2 for x in own]
    return fmean(squares) ** 0.5 if squares else 0.0


def _points(material: Material, view: View, problems: list[Problem]) -> list[GapPoint]:
    sd = spread(view, {p.id: list(material.sides(p)) for p in material.problems})
    points = []
    for p in problems:
        values = view.values.get(p.id, {})
        sides = material.sides(p)
        right, wrong = (
            [float(values[i]) for i, is_right in sides.items() if is_right is side and i in values]
            for side in (True, False)
        )
        if right and wrong:
            solved, decided = material.solved[p.id]
            found = fmean(right) - fmean(wrong)
            points.append(
                GapPoint(
                    method=view.name,
                    problem=p.id,
                    group=p.group or p.id,
                    hardness=1 - solved / decided,
                    attempts=decided,
                    gap=found,
                    gap_sd=found / sd if sd else 0.0,
                )
            )
    return points


def _bands(points: list[GapPoint]) -> list[GapBand]:
    from porism.inference import t_interval

    bands = []
    below = -1.0
    for name, most in BANDS:
        own = [q for q in points if below < 1 - q.hardness <= most + 1e-9]
        below = most + 1e-9
        means = _means(own)
        if means:
            bands.append(
                GapBand(
                    method=own[0].method,
                    band=name,
                    gap_sd=fmean(means),
                    ci95=t_interval(means),
                    problems=len(own),
                    groups=len(means),
                )
            )
    return bands


def _means(points: list[GapPoint]) -> list[float]:
    found: dict[str, list[float]] = {}
    for q in points:
        found.setdefault(q.group, []).append(q.gap_sd)
    return [fmean(own) for own in found.values()]


def _slope(method: str, points: list[GapPoint]) -> GapSlope:
    from porism.inference import t_interval

    groups = list(dict.fromkeys(q.group for q in points))
    whole = _fit(points)
    ci95 = None
    if whole is not None and len(groups) >= LEAST_GROUPS:
        without = [_fit([q for q in points if q.group != g]) for g in groups]
        n = len(groups)
        pseudo = [n * whole - (n - 1) * w for w in without if w is not None]
        ci95 = t_interval(pseudo) if len(pseudo) == n else None
    return GapSlope(method=method, slope=whole, ci95=ci95, groups=len(groups))


def _fit(points: list[GapPoint]) -> float | None:
    if not points:
        return None
    x, y = fmean(q.hardness for q in points), fmean(q.gap_sd for q in points)
    square = sum((q.hardness - x) ** 2 for q in points)
    if square < 1e-12:
        return None
    return sum((q.hardness - x) * (q.gap_sd - y) for q in points) / square


def _span(span: Span | None) -> str:
    return f" [{span[0]:+.2f}, {span[1]:+.2f}]" if span else ""


__all__ = ["BANDS", "Gap", "GapBand", "GapPoint", "GapSlope", "gap", "spread"]
