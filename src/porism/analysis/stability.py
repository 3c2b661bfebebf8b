"""How many rollouts are enough, and what quality costs: both from smaller runs drawn out of the stored one.

Stability: the error of scores against the full pool, and what a user really looks at, who is first and the order.
Frontier: Acc@1 and AUC against tokens, for every method at every size. Scores are averaged over neighbors before
ranking, whatever the benchmark's own estimand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from porism.analysis.material import Material, Span, View
from porism.analysis.subsample import DRAWS, accuracy, auc, drawn, kept_first, sizes, tau

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from porism.types import Problem

    Floats = NDArray[np.float64]

ENOUGH = 0.9  # the first n at which this much of the top is kept is said in words


class Stable(Struct, frozen=True, kw_only=True):
    """n of the stored rollouts against all of them: means over groups with 95 % intervals.

    error: mean distance of a candidate's score from its full one. top1: the chance that who is first is so in the
    full pool too. tau: Kendall's tau-b with the full ranking, None where no full pool orders anybody.
    """

    method: str
    n: int
    error: float
    error_ci95: Span | None
    top1: float
    top1_ci95: Span | None
    tau: float | None
    tau_ci95: Span | None
    problems: int
    groups: int


class Stability(Struct, frozen=True, kw_only=True):
    """The analysis: a row a method and n. untied: problems whose full pool orders somebody, by method."""

    rows: tuple[Stable, ...]
    untied: dict[str, int]
    draws: int

    def sentences(self) -> list[str]:
        """A line a method: half of the rollouts against all, and how many keep the first place."""
        lines = []
        for method in self.untied:
            own = [r for r in self.rows if r.method == method]
            half = next(r for r in own if 2 * r.n >= own[-1].n)
            enough = next((r.n for r in own[:-1] if r.top1 >= ENOUGH), None)
            order = "" if half.tau is None else f", tau {half.tau:.2f}"
            kept = (
                f"only all of them keep it {ENOUGH:.0%}"
                if enough is None
                else f"{enough} keep it {ENOUGH:.0%}"
            )
            lines.append(
                f"{method}: {half.n} of {own[-1].n} rollouts give scores {half.error:.3g} off on average and the same "
                f"first candidate {half.top1:.0%} of the time{order}; {kept} of the time"
            )
        return lines


class Point(Struct, frozen=True, kw_only=True):
    """A method at n rollouts (None: it has no rollouts to draw from): tokens a problem, Acc@1 and AUC."""

    method: str
    n: int | None
    tokens: float
    acc1: float
    acc1_ci95: Span | None
    auc: float
    auc_ci95: Span | None
    problems: int
    groups: int


class Frontier(Struct, frozen=True, kw_only=True):
    """The analysis: a row a method and size; rollouts of a method are taken for equally long."""

    points: tuple[Point, ...]
    draws: int

    def sentences(self) -> list[str]:
        """A line a method at its full size, and the methods that no other beats at their price."""
        full = {p.method: p for p in self.points}
        lines = [
            f"{p.method}: AUC {p.auc:.2f}, Acc@1 {p.acc1:.2f} at {p.tokens:,.0f} tokens a problem"
            for p in full.values()
        ]
        best = [
            p.method
            for p in full.values()
            if not any(q.auc > p.auc and q.tokens <= p.tokens for q in full.values())
        ]
        if len(full) > 1:
            lines.append(f"not beaten in AUC at their price: {', '.join(best)}")
        return lines


def stability(material: Material, *, draws: int = DRAWS) -> Stability:
    """Scores, first place and ranking from n = 1 .. N rollouts against all N, for methods with two or more."""
    rows: list[Stable] = []
    untied = {}
    for view in material.views:
        ns, pools = _pools(material, view, draws)
        if len(ns) > 1:
            rows += [_stable(material, view.name, (n, ns[-1]), k, pools) for k, n in enumerate(ns)]
            untied[view.name] = sum(float(full.min()) < float(full.max()) for full, _ in pools.values())
    return Stability(rows=tuple(rows), untied=untied, draws=draws)


def frontier(material: Material, *, draws: int = DRAWS) -> Frontier:
    """Acc@1 and AUC against tokens, of each method and of its smaller runs."""
    import numpy as np

    points: list[Point] = []
    for view in material.views:
        ns, pools = _pools(material, view, draws)
        usable = {p.id: p for p in material.problems if len(set(material.sides(p).values())) == 2}
        if not ns:
            found = {i: _whole(view, p) for i, p in usable.items() if view.values.get(i)}
            points += _point(material, view, None, {i: (s[None], ids) for i, (s, ids) in found.items()})
        for k, n in enumerate(ns):
            some = {
                i: (np.asarray(pools[i][1][k]), list(view.rollouts[i]))
                for i in usable
                if i in pools
            }  # fmt: skip
            points += _point(material, view, (n, ns[-1]), some)
    return Frontier(points=tuple(points), draws=draws)


Pools = dict[
    str, "tuple[Floats, Floats]"
]  # problem -> full scores (candidates), drawn ones (sizes, draws, candidates)


def _pools(material: Material, view: View, draws: int) -> tuple[list[int], Pools]:
    """The sizes to look at, and each problem's scores at them. Problems with one candidate order nobody."""
    problems = [p for p in material.problems if len(view.rollouts.get(p.id, {})) > 1]
    if not problems:
        return [], {}
    most = max(len(cell) for p in problems for cells in view.rollouts[p.id].values() for cell in cells)
    ns = sizes(most)
    found = {}
    for p in problems:
        cells = list(view.rollouts[p.id].values())
        own = max(len(cell) for one in cells for cell in one)
        scores = drawn(cells, [min(n, own) for n in ns], f"{view.name}\0{p.id}", draws)
        found[p.id] = scores[-1, 0], scores
    return ns, found


def _stable(material: Material, method: str, size: tuple[int, int], k: int, pools: Pools) -> Stable:
    import numpy as np

    from porism.inference import t_interval

    def error(full: Floats, scores: Floats) -> float | None:
        known = ~np.isnan(scores) & ~np.isnan(full)
        return float(np.abs(scores - full)[known].mean()) if known.any() else None

    def first(full: Floats, scores: Floats) -> float | None:
        told = ~np.isnan(full)
        return float(np.nanmean(kept_first(scores[:, told], full[told]))) if told.any() else None

    def order(full: Floats, scores: Floats) -> float | None:
        told = ~np.isnan(full)
        if not told.any() or full[told].min() == full[told].max():
            return None
        return float(tau(scores[:, told], full[told]).mean())

    def means(of: Callable[[Floats, Floats], float | None]) -> list[float]:
        values = {i: of(full, scores[k]) for i, (full, scores) in pools.items()}
        return material.groups({i: v for i, v in values.items() if v is not None})

    errors, tops, orders = means(error), means(first), means(order)
    part = size[0] < size[1]  # of the whole nothing is uncertain: it is compared with itself
    return Stable(
        method=method,
        n=size[0],
        error=float(np.mean(errors)),
        error_ci95=t_interval(errors) if part else None,
        top1=float(np.mean(tops)),
        top1_ci95=_limited(tops, 0.0) if part else None,
        tau=float(np.mean(orders)) if orders else None,
        tau_ci95=_limited(orders, -1.0) if part else None,
        problems=len(pools),
        groups=len(errors),
    )


def _point(
    material: Material, view: View, size: tuple[int, int] | None, pools: dict[str, tuple[Floats, list[str]]]
) -> list[Point]:
    import numpy as np

    values: dict[str, dict[str, float]] = {"acc": {}, "auc": {}}
    for p in material.problems:
        if p.id not in pools:
            continue
        scores, ids = pools[p.id]
        sides = material.sides(p)
        kept = [i for i, id in enumerate(ids) if id in sides]
        right = [sides[ids[i]] for i in kept]
        if len(set(right)) < 2:
            continue
        for name, measure in (("acc", accuracy), ("auc", auc)):
            found = measure(scores[:, kept], right)
            if not np.isnan(found).all():
                values[name][p.id] = float(np.nanmean(found))
    accs, aucs = material.groups(values["acc"]), material.groups(values["auc"])
    if not aucs:
        return []
    share = size[0] / size[1] if size else 1.0
    return [
        Point(
            method=view.name,
            n=size[0] if size else None,
            tokens=view.tokens * share / len(material.problems),
            acc1=float(np.mean(accs)),
            acc1_ci95=_limited(accs, 0.0),
            auc=float(np.mean(aucs)),
            auc_ci95=_limited(aucs, 0.0),
            problems=len(values["auc"]),
            groups=len(aucs),
        )
    ]


def _whole(view: View, problem: Problem) -> tuple[Floats, list[str]]:
    import numpy as np

    values = view.values[problem.id]
    return np.array([float(v) for v in values.values()]), list(values)


def _limited(values: list[float], low: float) -> Span | None:
    from porism.inference import mean_interval

    return mean_interval(values, low=low)


__all__ = ["Frontier", "Point", "Stability", "Stable", "frontier", "stability"]
