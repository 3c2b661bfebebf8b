"""Fitting a calibration on labelled candidates, and measuring it on groups it has not seen.

A logistic regression with an L2 penalty (scikit-learn, extra `learn`): few labels are at hand, and a
coefficient can be read. Groups never stand on both sides of a split, in the outer folds that measure nor in the
inner ones that choose the penalty. Proper scores (log loss, Brier) come first: accuracy ignores how sure a
probability is, and the ECE is never zero on few candidates. Intervals are by group.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from porism.calibrate.model import EVEN, Assessment, Bin, Calibration, Conditions, Measured
from porism.errors import ConfigError, InputError, MissingExtra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

FOLDS = 5
INNER_FOLDS = 3
LEAST_GROUPS = 10
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
BINS = 10
DRAWS = 2_000
EDGE = 1e-6  # no probability is nearer to 0 or 1: one surprise may not be infinite


class Example(Struct, frozen=True, kw_only=True):
    """A labelled candidate with its features (calibrate.features); group is what stays together."""

    problem: str
    candidate: str
    group: str
    features: dict[str, float]
    correct: bool


def fit(
    examples: Sequence[Example], features: Sequence[str], conditions: Conditions, *, seed: int = 0
) -> Calibration:
    """The calibration from all examples, with its assessment by nested cross-validation.

    ConfigError where rollouts were not shared out evenly: starved candidates have scores of another kind.
    InputError for fewer than 10 groups, or fewer than 5 with a right or with a wrong candidate, for a missing feature
    or one that never varies. MissingExtra without scikit-learn.
    """
    import numpy as np

    if conditions.allocation != EVEN:
        raise ConfigError(
            f"allocation {conditions.allocation!r}: a calibration needs scores from {EVEN!r} rollouts"
        )
    x, y, groups = _arrays(examples, features)
    assessment = assess(examples, features, seed=seed)
    search = _search(x, y, groups, seed)
    scaler, model = (step for _, step in search.best_estimator_.steps)
    return Calibration(
        features=tuple(features),
        means=tuple(map(float, scaler.mean_)),
        scales=tuple(map(float, scaler.scale_)),
        least=tuple(map(float, x.min(axis=0))),
        most=tuple(map(float, x.max(axis=0))),
        coefficients=tuple(map(float, model.coef_[0])),
        intercept=float(model.intercept_[0]),
        strength=search.best_params_["logisticregression__C"],
        base_rate=float(y.mean()),
        n=len(y),
        groups=len(np.unique(groups)),
        conditions=conditions,
        assessment=assessment,
    )


def assess(examples: Sequence[Example], features: Sequence[str], *, seed: int = 0) -> Assessment:
    """How good the probabilities from these features are on unseen groups. Errors as in `fit`."""
    import numpy as np

    _, y, groups = _arrays(examples, features)
    p, base = out_of_fold(examples, features, seed=seed)
    return Assessment(
        features=tuple(features),
        n=len(y),
        groups=len(np.unique(groups)),
        folds=FOLDS,
        log_loss=_measured(_log_loss(p, y), groups, seed),
        brier=_measured((p - y) ** 2, groups, seed),
        accuracy=_accuracy((p > 0.5) == (y == 1), groups),
        ece=_ece(p, y, groups, seed),
        base_log_loss=float(_log_loss(base, y).mean()),
        ece_chance=_ece_chance(p, seed),
        reliability=_reliability(p, y),
    )


def out_of_fold(
    examples: Sequence[Example], features: Sequence[str], *, seed: int = 0
) -> tuple[Floats, Floats]:
    """For each example P(right) from a model that never saw its group, and the base rate that model saw.

    The folds depend on groups, labels and seed alone, so feature sets compare on the same folds.
    """
    import numpy as np

    x, y, groups = _arrays(examples, features)
    p, base = np.zeros(len(y)), np.zeros(len(y))
    for train, test in _folds(y, groups, FOLDS, seed):
        model = _search(x[train], y[train], groups[train], seed)
        p[test] = model.predict_proba(x[test])[:, 1]
        base[test] = y[train].mean()
    return np.clip(p, EDGE, 1 - EDGE), np.clip(base, EDGE, 1 - EDGE)


def _arrays(examples: Sequence[Example], features: Sequence[str]) -> tuple[Floats, Ints, Ints]:
    """Features (n, k), labels and group numbers (n,), checked."""
    import numpy as np

    if not features:
        raise InputError("no features: name at least one, such as utility")
    for e in examples:
        for name in features:
            if not isfinite(e.features.get(name, float("nan"))):
                raise InputError(f"problem {e.problem!r}, candidate {e.candidate!r}: no feature {name!r}")
    sides = {label: len({e.group for e in examples if e.correct is label}) for label in (True, False)}
    names = sorted({e.group for e in examples})
    if len(names) < LEAST_GROUPS or min(sides.values()) < FOLDS:
        raise InputError(
            f"{len(names)} groups of problems, {sides[True]} with a right and {sides[False]} with a wrong candidate: "
            f"a calibration needs {LEAST_GROUPS} and {FOLDS} of each"
        )
    x = np.array([[e.features[name] for name in features] for e in examples], dtype=np.float64)
    for name, spread in zip(features, np.ptp(x, axis=0), strict=True):
        if not spread:
            raise InputError(f"feature {name!r} is the same for all candidates")
    number = {name: i for i, name in enumerate(names)}
    y = np.array([e.correct for e in examples], dtype=np.int64)
    return x, y, np.array([number[e.group] for e in examples], dtype=np.int64)


def _folds(y: Ints, groups: Ints, folds: int, seed: int) -> list[tuple[Ints, Ints]]:
    """(train, test) rows of each fold; a group is in one test part. InputError where a label is in too few groups."""
    import numpy as np

    try:
        from sklearn.model_selection import StratifiedGroupKFold
    except ImportError:
        raise MissingExtra("fitting a calibration", "learn") from None
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    enough = min(len(np.unique(groups[y == label])) for label in (0, 1)) >= folds
    found = list(splitter.split(y, y, groups)) if enough else []
    if not found or any(len(np.unique(y[train])) < 2 for train, _ in found):
        raise InputError(
            "too few groups have right, or wrong, candidates to leave some out: label more problems"
        )
    return found


def _search(x: Floats, y: Ints, groups: Ints, seed: int) -> Any:
    """Standardised logistic regression with the C of least log loss over inner folds (the least where equal)."""
    folds = _folds(y, groups, INNER_FOLDS, seed)
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss, make_scorer
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scorer = make_scorer(log_loss, greater_is_better=False, response_method="predict_proba", labels=[0, 1])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    grid = {"logisticregression__C": list(STRENGTHS)}
    return GridSearchCV(model, grid, scoring=scorer, cv=folds, error_score="raise").fit(x, y)


def _log_loss(p: Floats, y: Ints) -> Floats:
    import numpy as np

    return np.asarray(-np.log(np.where(y == 1, p, 1 - p)), dtype=np.float64)


def _by_group(rows: Any, groups: Ints) -> Floats:
    """One number a group whose mean is the mean over rows and whose spread gives its error (linearised ratio)."""
    import numpy as np

    size = np.bincount(groups)
    total = np.bincount(groups, rows)
    mean = total.sum() / size.sum()
    return np.asarray(mean + (total - mean * size) * len(size) / size.sum(), dtype=np.float64)


def _measured(rows: Floats, groups: Ints, seed: int) -> Measured:
    from porism.inference import bootstrap_t

    span = bootstrap_t(list(_by_group(rows, groups)), draws=DRAWS, seed=seed)
    return Measured(float(rows.mean()), None if span is None else (max(0.0, span[0]), span[1]))


def _accuracy(rows: Any, groups: Ints) -> Measured:
    from porism.inference import t_interval

    span = t_interval(list(_by_group(rows, groups)))
    return Measured(float(rows.mean()), None if span is None else (max(0.0, span[0]), min(1.0, span[1])))


def _ece(p: Floats, y: Ints, groups: Ints, seed: int) -> Measured:
    """The mean distance between probability and share right over bins, with a percentile interval.

    Resampling adds noise of its own to the ECE, so the interval leans upwards: a wide margin, not a narrow one.
    """
    import numpy as np

    from porism.inference import resample

    gaps = np.zeros((int(groups.max()) + 1, BINS))
    np.add.at(gaps, (groups, _bin(p)), p - y)
    counts = resample(len(gaps), draws=DRAWS, seed=seed)
    drawn = np.abs(counts @ gaps).sum(axis=1) / (counts @ np.bincount(groups))
    low, high = np.quantile(drawn, [0.025, 0.975])
    value = float(np.abs(gaps.sum(axis=0)).sum() / len(y))
    return Measured(value, (min(float(low), value), max(float(high), value)))


def _ece_chance(p: Floats, seed: int) -> float:
    """The mean ECE if every candidate were right with exactly its probability."""
    import numpy as np

    rng = np.random.default_rng([seed, len(p)])
    member = np.eye(BINS)[_bin(p)]
    drawn = rng.random((DRAWS // 4, len(p))) < p
    return float(np.abs((p - drawn) @ member).sum(axis=1).mean() / len(p))


def _reliability(p: Floats, y: Ints) -> tuple[Bin, ...]:
    from porism.stats import limits

    bins = []
    for i in range(BINS):
        own = _bin(p) == i
        if n := int(own.sum()):
            low, high = limits(int(y[own].sum()), n)
            bins.append(
                Bin(
                    low=i / BINS,
                    high=(i + 1) / BINS,
                    n=n,
                    predicted=float(p[own].mean()),
                    right=float(y[own].mean()),
                    ci95=(float(low), float(high)),
                )
            )
    return tuple(bins)


def _bin(p: Floats) -> Ints:
    import numpy as np

    return np.minimum((p * BINS).astype(np.int64), BINS - 1)


__all__ = ["Example", "assess", "fit", "out_of_fold"]
