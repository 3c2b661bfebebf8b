"""Each analysis as one picture; the figures in it are those of its table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from porism.analysis.agreement import Disagreement, Sensitivity
from porism.analysis.gap import Gap
from porism.analysis.levels import AboveMean, Histogram
from porism.analysis.material import LABELS, Span
from porism.analysis.stability import Frontier, Stability
from porism.analysis.svg import WIDTH, Mark, Panel, Series, cut, picture

if TYPE_CHECKING:
    from porism.calibrate.model import Assessment

SHARE = (0.0, 1.0)


def gap_picture(found: Gap) -> str:
    """Right minus wrong against hardness: a point a problem, and the mean of each band."""
    methods = _names(p.method for p in found.points)
    middle = {"never solved": 1.0, "solved up to half the time": 0.75, "solved more often": 0.25}
    panels = [
        Panel(
            title=cut(m, 40),
            x="1 - solve rate of the solver",
            y="right minus wrong, in SD",
            x_range=SHARE,
            y_range=_around([p.gap_sd for p in found.points]),
            reference=((0.0, 0.0), (1.0, 0.0)),
            series=(
                Series(
                    name="a problem",
                    marks=tuple(
                        Mark(p.hardness, p.gap_sd, title=p.problem) for p in found.points if p.method == m
                    ),
                ),
                Series(
                    name="mean of a band, 95 % interval",
                    marks=tuple(
                        _mark(middle[b.band], b.gap_sd, b.ci95, f"{b.band}: {b.groups} groups")
                        for b in found.bands
                        if b.method == m
                    ),
                ),
            ),
        )
        for m in methods
    ]
    return picture("Right minus wrong against the hardness of the question", panels)


def above_picture(found: AboveMean) -> str:
    """Pr[score above the pool's mean], a column a method."""
    methods = _names(r.method for r in found.rows)
    step = 0.2
    series = tuple(
        Series(
            name=label,
            marks=tuple(
                _mark(methods.index(r.method) + (i - 1) * step, r.chance, r.ci95, f"{r.n} candidates")
                for r in found.rows
                if r.label == label
            ),
        )
        for i, label in enumerate(LABELS)
        if any(r.label == label for r in found.rows)
    )
    panels = [
        Panel(
            title="Pr[score above the pool's mean]",
            x="",
            y="chance",
            series=series,
            ticks=tuple(methods),
            y_range=SHARE,
            reference=((-0.5, 0.5), (len(methods) - 0.5, 0.5)),
        )
    ]
    title = "Chance to score above the mean of the pool, by label"
    return picture(title, panels, width=max(WIDTH, 100 * len(methods)))


def histogram_picture(found: Histogram) -> str:
    """The share of each label's candidates by score, a panel a method."""
    labels = (*LABELS, "unlabelled")
    panels = []
    for m in found.unscored:
        bins = [b for b in found.bins if b.method == m]
        totals = {label: sum(getattr(b, label) for b in bins) for label in labels}
        shown = [label for label in labels if totals[label]]
        series = []
        for i, label in enumerate(shown):
            marks = []
            for b in bins:
                width = (b.high - b.low) / (len(shown) + 0.5)
                x = (b.low + b.high) / 2 + (i - (len(shown) - 1) / 2) * width
                count = getattr(b, label)
                share = count / totals[label]
                marks.append(Mark(x, share, width=width, title=f"{count} from {b.low:.3g} to {b.high:.3g}"))
            series.append(Series(name=label, kind="bars", marks=tuple(marks)))
        if bins:
            highest = max((m.y for s in series for m in s.marks), default=1.0)
            panels.append(
                Panel(
                    title=cut(m, 40),
                    x="score",
                    y="share of the label",
                    series=tuple(series),
                    x_range=(bins[0].low, bins[-1].high),
                    y_range=(0.0, highest),
                )
            )
    return picture("Histograms of scores, by label", panels)


def stability_picture(found: Stability) -> str:
    """Error, first place and ranking against the number of rollouts."""
    methods = list(found.untied)
    most = max((r.n for r in found.rows), default=1)

    def lines(value: str) -> tuple[Series, ...]:
        return tuple(
            Series(
                name=m,
                kind="line",
                marks=tuple(
                    _mark(r.n, y, getattr(r, f"{value}_ci95"))
                    for r in found.rows
                    if r.method == m and (y := getattr(r, value)) is not None
                ),
            )
            for m in methods
        )

    span = (1.0, float(most))
    x = "rollouts"
    relative = tuple(
        Series(name=s.name, kind="line", marks=tuple(Mark(p.x, p.y / (s.marks[0].y or 1)) for p in s.marks))
        for s in lines("error")
        if s.marks
    )
    panels = [
        Panel(
            title="Error of scores (1 rollout: 1)",
            x=x,
            y="error",
            series=relative,
            x_range=span,
            y_range=SHARE,
        ),
        Panel(
            title="Same first candidate", x=x, y="chance", series=lines("top1"), x_range=span, y_range=SHARE
        ),
        Panel(
            title="Same ranking",
            x=x,
            y="Kendall's tau",
            series=lines("tau"),
            x_range=span,
            y_range=(-0.2, 1.0),
        ),
    ]
    return picture("Fewer rollouts against the full pool", panels)


def frontier_picture(found: Frontier) -> str:
    """Acc@1 and AUC against tokens."""
    methods = _names(p.method for p in found.points)
    paid = [p for p in found.points if p.tokens > 0]
    least = min((p.tokens for p in paid), default=1.0)
    most = max((p.tokens for p in paid), default=10.0)
    panels = [
        Panel(
            title=title,
            x="tokens a problem (free methods at the left edge)",
            y=title,
            log=True,
            x_range=(least / 1.5, most * 1.5),
            y_range=SHARE,
            reference=((least / 1.5, 0.5), (most * 1.5, 0.5)),
            series=tuple(
                Series(
                    name=m,
                    kind="line",
                    marks=tuple(
                        _mark(
                            max(p.tokens, least / 1.5),
                            getattr(p, value),
                            getattr(p, f"{value}_ci95"),
                            f"{p.tokens:,.0f} tokens",
                        )
                        for p in found.points
                        if p.method == m
                    ),
                )
                for m in methods
            ),
        )
        for title, value in (("AUC", "auc"), ("Acc@1", "acc1"))
    ]
    return picture("Quality against cost", panels)


def disagreement_picture(found: Disagreement) -> str:
    """Who likes what: counts by label, a panel a pair of methods."""
    parts = ("both", "reader_only", "utility_only", "neither")
    panels = []
    for reader in _names(s.reader for s in found.splits):
        own = [
            s
            for label in (*LABELS, "unlabelled")
            for s in found.splits
            if (s.reader, s.label) == (reader, label)
        ]
        names = ("both", cut(own[0].reader, 12), cut(own[0].utility, 12), "none")
        width = 0.8 / len(own)
        series = tuple(
            Series(
                name=s.label,
                kind="bars",
                marks=tuple(
                    Mark(
                        k + (i - (len(own) - 1) / 2) * width,
                        getattr(s, part) / max(1, sum(getattr(s, other) for other in parts)),
                        width=width * 0.9,
                        title=f"{getattr(s, part)} {s.label} candidates",
                    )
                    for k, part in enumerate(parts)
                ),
            )
            for i, s in enumerate(own)
        )
        panels.append(
            Panel(
                title=cut(f"{reader} and {own[0].utility}", 40),
                x="above the pool's mean under",
                y="share of the label",
                series=series,
                ticks=names,
                y_range=SHARE,
            )
        )
    return picture("Candidates that one method likes and the other does not", panels)


def sensitivity_picture(found: Sensitivity) -> str:
    """Spearman's correlations of all pairs, those that differ in the prompt first."""
    pairs = [x for x in sorted(found.pairs, key=lambda x: not x.prompts) if x.spearman is not None]
    series = tuple(
        Series(
            name=name,
            marks=tuple(
                _mark(float(i), x.spearman or 0.0, x.ci95, f"{x.a} and {x.b}: {x.problems} pools")
                for i, x in enumerate(pairs)
                if x.prompts is prompts
            ),
        )
        for name, prompts in (("two methods that read candidates", True), ("others", False))
        if any(x.prompts is prompts for x in pairs)
    )
    panel = Panel(
        title="How alike two methods order pools",
        x="pair (its names: point at it)",
        y="Spearman",
        series=series,
        x_range=(-0.5, len(pairs) - 0.5),
        y_range=(-1.0, 1.0),
        ticks=tuple(str(i + 1) for i in range(len(pairs))),
        reference=((-0.5, 0.0), (len(pairs) - 0.5, 0.0)),
    )
    return picture(
        "Spearman's correlation of two methods' scores", [panel], width=max(WIDTH, 26 * len(pairs))
    )


def reliability_picture(found: Sequence[tuple[str, Assessment]]) -> str:
    """Predicted probability against the share that was right, a panel a set of features."""
    panels = [
        Panel(
            title=cut(name, 40),
            x="predicted P(right)",
            y="share right",
            x_range=SHARE,
            y_range=SHARE,
            reference=((0.0, 0.0), (1.0, 1.0)),
            series=(
                Series(
                    name="a bin, limits as if candidates were independent",
                    marks=tuple(
                        _mark(b.predicted, b.right, b.ci95, f"{b.n} candidates") for b in a.reliability
                    ),
                ),
            ),
        )
        for name, a in found
    ]
    return picture("Reliability of P(right) on unseen groups", panels)


def _mark(x: float, y: float, span: Span | None, title: str = "") -> Mark:
    low, high = span or (None, None)
    return Mark(x, y, low, high, title=title)


def _names(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))


def _around(values: Sequence[float]) -> tuple[float, float]:
    return min([*values, -1.0]), max([*values, 1.0])


__all__ = [
    "above_picture",
    "disagreement_picture",
    "frontier_picture",
    "gap_picture",
    "histogram_picture",
    "reliability_picture",
    "sensitivity_picture",
    "stability_picture",
]
