"""Where methods part: candidates that one likes and the other does not, and how alike two orders are.

The first is for reading. What a judge likes and utility does not, among wrong candidates, is what judges cannot see;
the reverse is what utility cannot see. The second says how much of a method is its prompt: two judges that differ
in the prompt alone should order a pool alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import sqrt
from statistics import fmean
from typing import Literal

from msgspec import Struct

from porism.analysis.levels import above
from porism.analysis.material import READERS, Label, Material, Span, View, label_of
from porism.metrics import Value

Sides = Literal["right", "wrong", "unlabelled"]


class Split(Struct, frozen=True, kw_only=True):
    """How many candidates of a label stand above the mean of their pool under both methods, one, or none.

    A score equal to the mean is neither above nor below, and counted in `even`.
    """

    reader: str
    utility: str
    label: Label | Literal["unlabelled"]
    both: int
    reader_only: int
    utility_only: int
    neither: int
    even: int


class Case(Struct, frozen=True, kw_only=True):
    """A candidate above the pool's mean under `liked_by` and below it under `not_by`.

    Standings are shares of the other candidates of the pool that are below it, ties half; the widest gaps come first.
    """

    problem: str
    group: str
    candidate: str
    label: Label | Literal["unlabelled"]
    kind: str | None
    liked_by: str
    not_by: str
    score_liked: float
    score_not: float
    standing_liked: float
    standing_not: float


class Disagreement(Struct, frozen=True, kw_only=True):
    """The analysis: every method that reads candidates, beside the first utility with the whole candidate."""

    splits: tuple[Split, ...]
    cases: tuple[Case, ...]

    def sentences(self) -> list[str]:
        """A line a pair of methods and label."""
        return [
            f"{s.label} candidates: {s.reader_only} liked by {s.reader} and not by {s.utility}, {s.utility_only} the "
            f"other way round, {s.both} by both, {s.neither} by none"
            + (f", {s.even} on a mean" if s.even else "")
            for s in self.splits
        ]


class Likeness(Struct, frozen=True, kw_only=True):
    """Spearman's correlation of two methods' scores inside a pool: the mean over groups with a 95 % interval.

    dropped: problems where one of the two gives all candidates the same score. prompts: both read candidates, so that
    what parts them is the prompt, the scale or the model.
    """

    a: str
    b: str
    prompts: bool
    spearman: float | None
    ci95: Span | None
    problems: int
    groups: int
    dropped: int


class Sensitivity(Struct, frozen=True, kw_only=True):
    """The analysis: a row a pair of methods."""

    pairs: tuple[Likeness, ...]

    def sentences(self) -> list[str]:
        """A line a pair of methods that read candidates, and of those with the first method; the table has them all."""
        shown = [x for x in self.pairs if x.prompts or x.a == self.pairs[0].a]
        return [
            f"{x.a} and {x.b}: "
            + (
                "no pool tells"
                if x.spearman is None
                else f"Spearman {x.spearman:.2f}"
                + (f" [{x.ci95[0]:.2f}, {x.ci95[1]:.2f}]" if x.ci95 else "")
                + f" over {x.problems} pools"
            )
            for x in sorted(shown, key=lambda x: not x.prompts)
        ]


def disagreement(material: Material) -> Disagreement:
    """Candidates that methods which read them and utility see differently, counted and listed."""
    utility = next((v for v in material.views if v.kind == "utility" and not v.control), None)
    readers = [v for v in material.views if v.kind in READERS]
    if utility is None:
        return Disagreement(splits=(), cases=())
    cases = [case for reader in readers for case in _cases(material, reader, utility)]
    return Disagreement(
        splits=tuple(split for reader in readers for split in _splits(material, reader, utility)),
        cases=tuple(sorted(cases, key=lambda c: (c.standing_not - c.standing_liked, c.problem, c.candidate))),
    )


def sensitivity(material: Material) -> Sensitivity:
    """How alike each two methods order pools."""
    return Sensitivity(pairs=tuple(_likeness(material, a, b) for a, b in combinations(material.views, 2)))


def standings(values: Mapping[str, Value]) -> dict[str, float]:
    """For each candidate the share of the others below it, ties half; 1/2 for one alone."""
    return {
        i: (sum(v < x for v in values.values()) + (sum(v == x for v in values.values()) - 1) / 2)
        / (len(values) - 1)
        if len(values) > 1
        else 0.5
        for i, x in values.items()
    }


def _common(material: Material, a: View, b: View) -> Iterator[tuple[str, dict[str, Value], dict[str, Value]]]:
    """For each problem the scores of the candidates that both scored."""
    for p in material.problems:
        of_a, of_b = a.values.get(p.id, {}), b.values.get(p.id, {})
        ids = [i for i in of_a if i in of_b]
        yield p.id, {i: of_a[i] for i in ids}, {i: of_b[i] for i in ids}


def _splits(material: Material, reader: View, utility: View) -> list[Split]:
    counts: dict[Label | Literal["unlabelled"], dict[str, int]] = {}
    by_id = {p.id: p for p in material.problems}
    for problem, of_reader, of_utility in _common(material, reader, utility):
        by_reader, by_utility = above(of_reader), above(of_utility)
        for c in by_id[problem].candidates:
            if c.id not in by_reader:
                continue
            own = counts.setdefault(
                label_of(c) or "unlabelled",
                dict.fromkeys(("both", "reader_only", "utility_only", "neither", "even"), 0),
            )
            match by_reader[c.id], by_utility[c.id]:
                case 1.0, 1.0:
                    own["both"] += 1
                case 1.0, 0.0:
                    own["reader_only"] += 1
                case 0.0, 1.0:
                    own["utility_only"] += 1
                case 0.0, 0.0:
                    own["neither"] += 1
                case _:
                    own["even"] += 1
    return [
        Split(reader=reader.name, utility=utility.name, label=label, **counts[label])
        for label in ("wrong", "right", "human", "unlabelled")
        if label in counts
    ]


def _cases(material: Material, reader: View, utility: View) -> Iterator[Case]:
    by_id = {p.id: p for p in material.problems}
    for problem, of_reader, of_utility in _common(material, reader, utility):
        p = by_id[problem]
        known = {c.id: c for c in p.candidates}
        views = ((reader.name, of_reader), (utility.name, of_utility))
        for (liked_by, liking), (not_by, other) in (views, views[::-1]):
            likes, dislikes = above(liking), above(other)
            high, low = standings(liking), standings(other)
            for id, c in known.items():
                if likes.get(id) == 1.0 and dislikes.get(id) == 0.0:
                    yield Case(
                        problem=p.id,
                        group=p.group or p.id,
                        candidate=id,
                        label=label_of(c) or "unlabelled",
                        kind=c.kind,
                        liked_by=liked_by,
                        not_by=not_by,
                        score_liked=float(liking[id]),
                        score_not=float(other[id]),
                        standing_liked=high[id],
                        standing_not=low[id],
                    )


def _likeness(material: Material, a: View, b: View) -> Likeness:
    from porism.inference import mean_interval

    found: dict[str, float] = {}
    dropped = 0
    for problem, of_a, of_b in _common(material, a, b):
        value = spearman(of_a, of_b)
        if value is None:
            dropped += 1
        else:
            found[problem] = value
    means = material.groups(found)
    return Likeness(
        a=a.name,
        b=b.name,
        prompts=a.kind in READERS and b.kind in READERS,
        spearman=fmean(means) if means else None,
        ci95=mean_interval(means, low=-1.0),
        problems=len(found),
        groups=len(means),
        dropped=dropped,
    )


def spearman(a: Mapping[str, Value], b: Mapping[str, Value]) -> float | None:
    """Spearman's rank correlation with ties at their mean rank; None where one side is all one tie."""
    x, y = standings(a), standings(b)
    mx, my = fmean(x.values()) if x else 0.0, fmean(y.values()) if y else 0.0
    sx, sy = sum((v - mx) ** 2 for v in x.values()), sum((v - my) ** 2 for v in y.values())
    if sx < 1e-12 or sy < 1e-12:
        return None
    product = sum((x[i] - mx) * (y[i] - my) for i in x)
    return max(-1.0, min(1.0, product / sqrt(sx * sy)))


__all__ = [
    "Case",
    "Disagreement",
    "Likeness",
    "Sensitivity",
    "Split",
    "disagreement",
    "sensitivity",
    "spearman",
    "standings",
]
