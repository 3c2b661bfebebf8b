"""From scores to the probability of being right: fitted on labelled candidates, applied to unlabelled ones.

Fitting needs the extra `learn`; applying a saved calibration needs nothing.
"""

from porism.calibrate.learn import Example, assess, fit, out_of_fold
from porism.calibrate.model import (
    FEATURES,
    PRIORS,
    Assessment,
    Bin,
    Calibration,
    Conditions,
    Measured,
    Probability,
    apply,
    features,
    load,
    mismatches,
    save,
)

__all__ = [
    "FEATURES",
    "PRIORS",
    "Assessment",
    "Bin",
    "Calibration",
    "Conditions",
    "Example",
    "Measured",
    "Probability",
    "apply",
    "assess",
    "features",
    "fit",
    "load",
    "mismatches",
    "out_of_fold",
    "save",
]
