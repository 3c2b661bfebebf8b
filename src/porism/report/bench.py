"""The Bench part of the report: methods by metrics, comparisons, controls, the paper's numbers beside, and pictures."""

from __future__ import annotations

from typing import Any

from porism.analyze import TITLES, Analyses
from porism.bench.run import Benchmark
from porism.metrics import Estimate
from porism.reference import SOURCE, Published, published

MOST = 10_000_000  # characters of a picture, which nothing cuts
SHOWN = ("acc@1", "recall@R", "auc", "mean_win", "human_win")


def bench_context(bench: Benchmark, analyses: Analyses | None) -> dict[str, Any]:
    """The values of the Bench part, by the names its template uses."""
    from porism.report.template import markup
    from porism.report.text import clean

    methods = bench.evaluated.methods
    some = next(iter(methods.values())).metrics if methods else {}
    metrics = [name for name in SHOWN if any(_has(m.metrics.get(name)) for m in methods.values())]
    more = [
        name
        for name in some
        if name not in SHOWN and any(_has(m.metrics.get(name)) for m in methods.values())
    ]
    return {
        "bench": bench,
        "methods": methods,
        "metrics": metrics,
        "more": more,
        "some": some,
        "kinds": list(dict.fromkeys(kind for m in methods.values() for kind in m.by_kind)),
        "controls": bench.evaluated.controls,
        "primary": bench.evaluated.primary,
        "paired": bench.evaluated.paired,
        "source": SOURCE,
        "beside": {name: _beside(name, {m.kind for m in methods.values()}) for name in (*metrics, *more)},
        "pictures": [
            (TITLES[name], table.sentences(), markup(clean(analyses.picture(name), MOST)))
            for name, table in analyses.tables.items()
        ]
        if analyses
        else [],
        "left_out": [(TITLES[name], why) for name, why in analyses.left_out.items()] if analyses else [],
        "paper": [(row, _published(row)) for row in published("ranking") if row.metric in some],
    }


def _has(found: Estimate | None) -> bool:
    return found is not None and found.value is not None


def _beside(metric: str, kinds: set[str]) -> list[tuple[str, int, float, float]]:
    """What the paper has for this metric and kinds of method: (kind, number of models, lowest, highest share)."""
    found: dict[str, list[float]] = {}
    for row in published("ranking"):
        if row.metric == metric and row.method in kinds and row.unit == "percent" and row.value is not None:
            found.setdefault(row.method, []).append(row.value / 100)
    return [(kind, len(values), min(values), max(values)) for kind, values in found.items()]


def _published(row: Published) -> str:
    """The number as a share where it is one, so that it stands beside ours."""
    scale = 100 if row.unit == "percent" else 1
    if row.value is not None:
        return f"{row.value / scale:.3f}"
    return f"{(row.low or 0) / scale:.3f}–{(row.high or 0) / scale:.3f}"


__all__ = ["bench_context"]
