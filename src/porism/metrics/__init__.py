"""Metrics of scores against labels: what the ranking of labelled candidates is worth, method against method.

Pure, and independent of runs: from Pools (scores and labels of one problem's candidates) to an Evaluation (each
metric with its interval and what was left out) or Comparisons. Every rank metric is the expectation over a
random order within ties. The definitions are in docs/metrics.md.
"""

from porism.metrics.compare import Comparison, compare, shared
from porism.metrics.evaluate import Estimand, Estimate, Evaluation, evaluate, prepared, values
from porism.metrics.formulas import METRICS, Sides, chance, measure
from porism.metrics.pools import Human, Pool, Scored, Value, averaged, by_neighbor, exact, pool

__all__ = [
    "METRICS",
    "Comparison",
    "Estimand",
    "Estimate",
    "Evaluation",
    "Human",
    "Pool",
    "Scored",
    "Sides",
    "Value",
    "averaged",
    "by_neighbor",
    "chance",
    "compare",
    "evaluate",
    "exact",
    "measure",
    "pool",
    "prepared",
    "shared",
    "values",
]
