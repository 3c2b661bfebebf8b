"""Analyses of a labelled run beyond its metrics: each a pure function from Material to a record, and a picture of it.

What each one says, and what it cannot, is in docs/analyses.md.
"""

from porism.analysis.agreement import Disagreement, Sensitivity, disagreement, sensitivity
from porism.analysis.gap import Gap, gap
from porism.analysis.levels import AboveMean, Histogram, above_mean, histogram
from porism.analysis.material import Material, View, view
from porism.analysis.stability import Frontier, Stability, frontier, stability

__all__ = [
    "AboveMean",
    "Disagreement",
    "Frontier",
    "Gap",
    "Histogram",
    "Material",
    "Sensitivity",
    "Stability",
    "View",
    "above_mean",
    "disagreement",
    "frontier",
    "gap",
    "histogram",
    "sensitivity",
    "stability",
    "view",
]
