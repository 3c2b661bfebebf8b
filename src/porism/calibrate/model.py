"""A calibration: from a candidate's scores to the probability that it is right.

It is a logistic model in a JSON file, with everything that its numbers depend on: a utility of 0.6 from another
solver, prompt, number of rollouts or size of pool means something else, so a calibration refuses a run it was
not made for. The base rate is part of that: how many candidates are right differs between pools and cannot be
read off scores, so it is given as a prior, or a range is shown. Applying needs neither numpy nor scikit-learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, isfinite, log
from pathlib import Path
from statistics import fmean, pstdev
from typing import Literal

import msgspec
from msgspec import Struct

from porism.errors import ConfigError, InputError
from porism.types import Score

Span = tuple[float, float]
Range = tuple[int, int]  # least and most

FEATURES = ("utility", "lift", "judge", "margin", "spread")
PRIORS: Span = (0.1, 0.9)
EVEN = "uniform"  # the only allocation that gives every candidate the same rollouts


class Conditions(Struct, frozen=True, kw_only=True):
    """What scores depend on. A Range holds the least and the most over the problems.

    prompt: hash of the solver's prompt template. sampling: how answers are drawn. allocation: how rollouts were shared
    out. others: for every other method among the features what made its scores, {method: models and settings}.
    """

    solver: str
    prompt: str
    rollouts: Range
    neighbors: Range
    pool_size: Range
    sampling: str = ""
    allocation: str = EVEN
    others: dict[str, str] = {}


class Measured(Struct, frozen=True):
    """A number and its 95 % interval, by group; None where too few groups tell."""

    value: float
    ci95: Span | None


class Bin(Struct, frozen=True, kw_only=True):
    """A row of the reliability table: candidates with a predicted probability in low .. high.

    predicted: their mean probability. right: the share that is right, with limits as if candidates were independent.
    """

    low: float
    high: float
    n: int
    predicted: float
    right: float
    ci95: Span


class Assessment(Struct, frozen=True, kw_only=True):
    """How good the probabilities are on groups that the model has not seen (nested cross-validation).

    base_log_loss: the log loss of always giving the base rate of the training folds. ece_chance: the ECE that
    perfectly calibrated probabilities would show with so many candidates; only an ECE well above it is one.
    """

    features: tuple[str, ...]
    n: int
    groups: int
    folds: int
    log_loss: Measured
    brier: Measured
    accuracy: Measured
    ece: Measured
    base_log_loss: float
    ece_chance: float
    reliability: tuple[Bin, ...]


class Calibration(Struct, frozen=True, kw_only=True):
    """log odds = intercept + sum of coefficient * (feature - mean) / scale, at the training base rate.

    least, most: the range of each feature in training. strength: the C of the L2 penalty, chosen by
    cross-validation.
    """

    schema: Literal[1] = 1
    features: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    least: tuple[float, ...]
    most: tuple[float, ...]
    coefficients: tuple[float, ...]
    intercept: float
    strength: float
    base_rate: float
    n: int
    groups: int
    conditions: Conditions
    assessment: Assessment


class Probability(Struct, frozen=True, kw_only=True):
    """P(right) of a candidate: a value where the prior is known, else only the range over the priors.

    outside: features beyond what the calibration has seen, where it extrapolates.
    """

    value: float | None
    low: float
    high: float
    priors: Span
    outside: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.low:.2f}-{self.high:.2f}" if self.value is None else f"{self.value:.2f}"

    @property
    def supposed(self) -> str:
        """What it takes for the share of right candidates, in words."""
        low, high = self.priors
        if self.value is not None:
            return f"where {low:.0%} of the candidates of such a pool are right"
        return f"where {low:.0%} to {high:.0%} of the candidates of such a pool are right (say how many: --prior)"


def apply(
    calibration: Calibration,
    rows: Mapping[str, Mapping[str, float]],
    conditions: Conditions,
    *,
    prior: float | None = None,
    priors: Span = PRIORS,
) -> dict[str, Probability]:
    """P(right) of each candidate in `rows` (candidate -> feature -> value) that has all features.

    prior: the share of right candidates in the new pool. The log odds move by logit(prior) - logit(base rate),
    which is Bayes' rule if right candidates score as right ones did in training, and wrong ones likewise.
    Without it every probability is the range over `priors`. ConfigError where the run is not what the
    calibration was made for; InputError for a prior that is none.
    """
    if found := mismatches(calibration.conditions, conditions):
        raise ConfigError("this calibration is for other scores: " + "; ".join(found))
    span = (prior, prior) if prior is not None else priors
    if not 0 < span[0] <= span[1] < 1:
        raise InputError(f"prior {prior if prior is not None else span}: must lie between 0 and 1")
    given: dict[str, Probability] = {}
    for candidate, row in rows.items():
        if any(name not in row for name in calibration.features):
            continue
        odds = _log_odds(calibration, row) - _logit(calibration.base_rate)
        low, high = (_share(odds + _logit(p)) for p in span)
        ranges = zip(calibration.features, calibration.least, calibration.most, strict=True)
        given[candidate] = Probability(
            value=low if prior is not None else None,
            low=low,
            high=high,
            priors=span,
            outside=tuple(name for name, least, most in ranges if not least <= row[name] <= most),
        )
    return given


def mismatches(made: Conditions, new: Conditions) -> list[str]:
    """What differs between the conditions of a calibration and those of a run, both named; empty if it fits."""
    pairs = [
        (name, getattr(made, name), getattr(new, name))
        for name in ("solver", "prompt", "sampling", "allocation")
    ]
    pairs += [(f"scores of {m}", made.others.get(m), new.others.get(m)) for m in sorted({*made.others})]
    found = [f"{name} {a!r} there, {b!r} here" for name, a, b in pairs if a != b]
    for name in ("rollouts", "neighbors", "pool_size"):
        (least, most), (low, high) = getattr(made, name), getattr(new, name)
        if not least <= low <= high <= most:
            found.append(f"{name.replace('_', ' ')} {_shown(least, most)} there, {_shown(low, high)} here")
    return found


def features(
    scores: Mapping[str, Score], *, no_example: float | None = None, judge: Mapping[str, float] | None = None
) -> dict[str, dict[str, float]]:
    """The features of each candidate of one problem that has a utility: candidate -> name -> value.

    utility   mean solve rate                       lift     utility minus the no-example row's
    margin    utility minus the best other one's    spread   standard deviation of the rates over cells
    judge     another method's score, as it is
    """
    known = {i: s.value for i, s in scores.items() if s.value is not None}
    found: dict[str, dict[str, float]] = {}
    for i, value in known.items():
        rates = [c.correct / c.decided for c in scores[i].cells.values() if c.decided]
        row = {"utility": value}
        if no_example is not None:
            row["lift"] = value - no_example
        if len(known) > 1:
            row["margin"] = value - max(v for j, v in known.items() if j != i)
        if len(rates) > 1:
            row["spread"] = pstdev(rates, fmean(rates))
        if judge is not None and i in judge:
            row["judge"] = judge[i]
        found[i] = row
    return found


def save(calibration: Calibration, path: Path, *, force: bool = False) -> None:
    """Write the calibration as JSON, whole or not at all; with `force` an older file is kept as FILE.bak."""
    from porism.data.write import save as put

    put(path, msgspec.json.format(msgspec.json.encode(calibration), indent=2) + b"\n", force=force)


def load(path: Path) -> Calibration:
    """Read a calibration. InputError where the file is not one, or holds numbers that cannot be used."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Calibration)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is no calibration: {error}") from None
    columns = (found.means, found.scales, found.least, found.most, found.coefficients)
    numbers = [*(x for column in columns for x in column), found.intercept]
    if any(len(column) != len(found.features) for column in columns):
        raise InputError(f"{path}: features, means, scales, least, most and coefficients differ in length")
    if not all(map(isfinite, numbers)) or min(found.scales, default=1) <= 0 or not 0 < found.base_rate < 1:
        raise InputError(f"{path}: scales must be above 0 and the base rate between 0 and 1")
    return found


def _log_odds(calibration: Calibration, row: Mapping[str, float]) -> float:
    c = calibration
    parts = zip(c.features, c.coefficients, c.means, c.scales, strict=True)
    return c.intercept + sum(weight * (row[name] - mean) / scale for name, weight, mean, scale in parts)


def _logit(p: float) -> float:
    return log(p / (1 - p))


def _share(log_odds: float) -> float:
    """The probability, without overflow at either end."""
    return 1 / (1 + exp(-log_odds)) if log_odds >= 0 else exp(log_odds) / (1 + exp(log_odds))


def _shown(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


__all__ = [
    "EVEN",
    "FEATURES",
    "PRIORS",
    "Assessment",
    "Bin",
    "Calibration",
    "Conditions",
    "Measured",
    "Probability",
    "apply",
    "features",
    "load",
    "mismatches",
    "save",
]
