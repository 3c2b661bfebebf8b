"""Calibration: known probabilities are found again, unseen groups stay unseen, and what does not fit is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from porism.calibrate import (
    Calibration,
    Conditions,
    Example,
    apply,
    assess,
    features,
    fit,
    load,
    mismatches,
    out_of_fold,
    save,
)
from porism.calibrate.learn import BINS, FOLDS, _accuracy, _by_group, _ece, _folds, _reliability
from porism.errors import ConfigError, InputError
from porism.types import Counts, Score

MADE = Conditions(solver="s", prompt="f00d", rollouts=(8, 8), neighbors=(3, 5), pool_size=(8, 10))
BLOCKED = "import sys\nfor name in {names}: sys.modules[name] = None\n"


def simulated(
    groups: int, each: int = 10, *, slope: float = 4.0, at: float = 0.5, seed: int = 0
) -> list[Example]:
    """log odds = slope * (utility - at); `noise` tells nothing; groups differ in how useful all theirs are."""
    rng = np.random.default_rng(seed)
    found = []
    for g in range(groups):
        shift = rng.normal(0, 0.1)
        for i in range(each):
            utility = float(np.clip(rng.random() + shift, 0, 1))
            right = bool(rng.random() < 1 / (1 + exp(-slope * (utility - at))))
            row = {"utility": utility, "noise": float(rng.normal())}
            found.append(
                Example(problem=f"p{g}", candidate=str(i), group=f"g{g}", features=row, correct=right)
            )
    return found


@pytest.fixture(scope="module")
def made() -> Calibration:
    return fit(simulated(150, 30), ["utility", "noise"], MADE)


def test_features_by_hand() -> None:
    def score(*solved: int) -> Score:
        cells = {f"m/{i}": Counts(correct=x, wrong=8 - x) for i, x in enumerate(solved)}
        return Score(value=sum(solved) / 8 / len(solved), low=0, high=1, cells=cells)

    nothing = Score(value=None, low=0, high=1)
    found = features(
        {"a": score(8, 4), "b": score(4, 0), "c": score(0, 0), "d": nothing},
        no_example=0.125,
        judge={"a": 7.5, "c": 2.0},
    )
    # Utilities 3/4, 1/4, 0. Rates of a: 1 and 1/2, which lie 1/4 from their mean.
    assert found == {
        "a": {"utility": 0.75, "lift": 0.625, "margin": 0.5, "spread": 0.25, "judge": 7.5},
        "b": {"utility": 0.25, "lift": 0.125, "margin": -0.5, "spread": 0.25},
        "c": {"utility": 0.0, "lift": -0.125, "margin": -0.75, "spread": 0.0, "judge": 2.0},
    }
    assert features({"a": score(8)}) == {"a": {"utility": 1.0}}


def test_known_probabilities_are_found_again(made: Calibration) -> None:
    rows = {str(u): {"utility": u, "noise": 0.0} for u in (0.1, 0.3, 0.5, 0.7, 0.9)}
    found = apply(made, rows, MADE, prior=made.base_rate)
    for name, probability in found.items():
        assert probability.value == pytest.approx(1 / (1 + exp(-4 * (float(name) - 0.5))), abs=0.05)
    assert (made.n, made.groups, made.conditions) == (4_500, 150, MADE)
    assert abs(made.coefficients[1]) < 0.15 < made.coefficients[0]


def test_applying_is_scikit_learns_prediction(made: Calibration) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    examples = simulated(150, 30)
    x = np.array([[e.features["utility"], e.features["noise"]] for e in examples])
    scaler = StandardScaler().fit(x)
    model = LogisticRegression(C=made.strength, max_iter=1_000)
    model.fit(scaler.transform(x), [e.correct for e in examples])
    expected = model.predict_proba(scaler.transform(x[:50]))[:, 1]
    found = apply(made, {str(i): e.features for i, e in enumerate(examples[:50])}, MADE, prior=made.base_rate)
    assert [p.value for p in found.values()] == pytest.approx(list(expected))


def test_a_signal_is_measured_and_noise_is_not() -> None:
    examples = simulated(40, slope=6)
    signal, noise = assess(examples, ["utility"]), assess(examples, ["noise"])
    p = [1 / (1 + exp(-6 * (e.features["utility"] - 0.5))) for e in examples]
    best = float(np.mean([-log(q if e.correct else 1 - q) for q, e in zip(p, examples, strict=True)]))
    assert signal.log_loss.value == pytest.approx(best, abs=0.03)
    assert signal.log_loss.ci95 is not None
    assert signal.log_loss.ci95[0] < signal.log_loss.value < signal.log_loss.ci95[1] < signal.base_log_loss
    assert noise.log_loss.value == pytest.approx(noise.base_log_loss, abs=0.02)
    assert noise.accuracy.value == pytest.approx(0.5, abs=0.1)
    assert signal.accuracy.value > 0.7
    assert signal.brier.value < noise.brier.value == pytest.approx(0.25, abs=0.01)
    # Well calibrated by construction: the ECE is what chance alone shows.
    assert signal.ece.value < 2 * signal.ece_chance
    assert sum(row.n for row in signal.reliability) == signal.n == 400
    assert (signal.groups, signal.folds) == (40, FOLDS)


def test_a_group_is_never_on_both_sides() -> None:
    examples = simulated(13, 7)
    y = np.array([e.correct for e in examples], dtype=np.int64)
    groups = np.array([int(e.group[1:]) for e in examples], dtype=np.int64)
    tested: list[int] = []
    for train, test in _folds(y, groups, FOLDS, 3):
        assert not set(groups[train]) & set(groups[test])
        tested += list(test)
    assert sorted(tested) == list(range(len(examples)))


def test_predictions_come_from_models_that_did_not_see_the_group() -> None:
    # A group's utility is moved far away and its labels stay: only predictions of other groups may change shape.
    examples = simulated(20)
    p, base = out_of_fold(examples, ["utility"])
    assert len(set(np.round(base, 12))) <= FOLDS
    assert ((p > 0) & (p < 1)).all()
    assert (p == out_of_fold(examples, ["utility"])[0]).all()
    changed = [
        replace(e, features={**e.features, "utility": 5.0}) if e.group == "g0" else e for e in examples
    ]
    moved, _ = out_of_fold(changed, ["utility"])
    same_fold = base == base[0]
    others_of_fold = same_fold & np.array([e.group != "g0" for e in examples])
    assert others_of_fold.any()
    assert moved[others_of_fold] == pytest.approx(p[others_of_fold])  # their model never saw g0 either
    assert (np.abs(moved - p)[~same_fold] > 1e-6).any()


def test_measures_by_hand() -> None:
    p, y = np.array([0.25, 0.25, 0.75, 0.75]), np.array([0, 1, 1, 1])
    groups = np.array([0, 0, 1, 1])
    # Bin .2-.3: mean .25, right 1/2; bin .7-.8: mean .75, right 1: both off by 1/4.
    assert _ece(p, y, groups, 0).value == 0.25
    rows = _reliability(p, y)
    assert [(r.low, r.n, r.predicted, r.right) for r in rows] == [(0.2, 2, 0.25, 0.5), (0.7, 2, 0.75, 1.0)]
    assert [r.high for r in rows] == [0.3, 0.8]
    assert BINS == 10
    # Groups of 1 and 3 with sums 1 and 0: mean 1/4; linearised 1/4 + (1 - 1/4) / 2 and 1/4 + (0 - 3/4) / 2.
    spread = _by_group(np.array([1.0, 0, 0, 0]), np.array([0, 1, 1, 1]))
    assert list(spread) == [0.625, -0.125]
    found = _accuracy(np.array([True, True, False, True]), groups)
    assert (found.value, found.ci95) == (0.75, (0.0, 1.0))


def test_a_prior_moves_the_log_odds(made: Calibration) -> None:
    rows = {"a": {"utility": 0.6, "noise": 0.0}, "no score": {"noise": 0.0}}
    at_base = apply(made, rows, MADE, prior=made.base_rate)["a"].value or 0
    odds = at_base / (1 - at_base) / (made.base_rate / (1 - made.base_rate))
    (found,) = apply(made, rows, MADE, prior=0.2).values()
    assert found.value == pytest.approx(odds * 0.25 / (1 + odds * 0.25))
    assert found.low == found.high == found.value
    span = apply(made, rows, MADE)["a"]
    assert (span.value, span.priors) == (None, (0.1, 0.9))
    assert span.low == apply(made, rows, MADE, prior=0.1)["a"].value
    assert span.high == apply(made, rows, MADE, prior=0.9)["a"].value
    assert span.low < found.low < span.high
    narrow = apply(made, rows, MADE, priors=(0.4, 0.6))["a"]
    assert span.low < narrow.low < narrow.high < span.high
    for wrong in (0.0, 1.0, 1.5):
        with pytest.raises(InputError, match="must lie between 0 and 1"):
            apply(made, rows, MADE, prior=wrong)


def test_what_training_never_saw_is_said(made: Calibration) -> None:
    rows = {"in": {"utility": 0.5, "noise": 0.0}, "out": {"utility": 0.5, "noise": 60.0}}
    found = apply(made, rows, MADE)
    assert (found["in"].outside, found["out"].outside) == ((), ("noise",))
    far = apply(
        made, {"a": {"utility": 1e6, "noise": 0.0}, "b": {"utility": -1e6, "noise": 0.0}}, MADE, prior=0.5
    )
    assert (far["a"].value, far["b"].value) == (1, 0)


def test_a_mismatch_is_refused_and_both_are_named(made: Calibration) -> None:
    inside = replace(MADE, neighbors=(4, 4), pool_size=(9, 9))
    assert apply(made, {}, inside) == {}
    other = replace(MADE, solver="t", rollouts=(4, 4), pool_size=(9, 12), allocation="adaptive")
    with pytest.raises(ConfigError) as error:
        apply(made, {}, other)
    for part in (
        "solver 's' there, 't' here",
        "rollouts 8 there, 4 here",
        "pool size 8 to 10 there, 9 to 12 here",
    ):
        assert part in str(error.value)
    assert "allocation 'uniform' there, 'adaptive' here" in str(error.value)
    judged = replace(MADE, others={"judge": "m beef"})
    assert mismatches(judged, MADE) == ["scores of judge 'm beef' there, None here"]
    assert mismatches(MADE, judged) == []  # a judge that the calibration does not use


def test_what_cannot_be_fitted_is_refused() -> None:
    examples = simulated(12)
    with pytest.raises(ConfigError, match="'adaptive'"):
        fit(examples, ["utility"], replace(MADE, allocation="adaptive"))
    with pytest.raises(InputError, match="9 groups of problems, 9 with a right and 9 with a wrong"):
        fit(simulated(9), ["utility"], MADE)
    with pytest.raises(InputError, match="problem 'p0', candidate '0': no feature 'judge'"):
        fit(examples, ["utility", "judge"], MADE)
    with pytest.raises(InputError, match="no features"):
        fit(examples, [], MADE)
    flat = [replace(e, features={"utility": 1.0}) for e in examples]
    with pytest.raises(InputError, match="'utility' is the same for all"):
        fit(flat, ["utility"], MADE)
    lonely = [replace(e, correct=e.group in ("g0", "g1", "g2", "g3", "g4")) for e in examples]
    fit(lonely, ["utility"], MADE)
    lonelier = [replace(e, correct=e.group == "g0") for e in examples]
    with pytest.raises(InputError, match="1 with a right"):
        fit(lonelier, ["utility"], MADE)


def test_the_file(made: Calibration, tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    save(made, file)
    assert load(file) == made
    held = json.loads(file.read_text())
    assert held["conditions"]["solver"] == "s"
    assert held["conditions"]["allocation"] == "uniform"
    assert held["base_rate"] == made.base_rate
    with pytest.raises(InputError, match="exists already"):
        save(made, file)
    save(made, file, force=True)
    changes: list[tuple[str, Any, str]] = [
        ("base_rate", 1.0, "base rate between 0 and 1"),
        ("scales", [0.0, 1.0], "scales must be above 0"),
        ("means", [1.0], "differ in length"),
        ("schema", 2, "is no calibration"),
        ("intercept", "x", "is no calibration"),
    ]
    for key, value, message in changes:
        file.write_text(json.dumps({**held, key: value}))
        with pytest.raises(InputError, match=message):
            load(file)
    file.write_bytes(b"\x80\x04pickle")
    with pytest.raises(InputError, match="is no calibration"):
        load(file)
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "none.json")


def run(code: str) -> str:
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_applying_needs_no_library(made: Calibration, tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    save(made, file)
    code = BLOCKED.format(names=("sklearn", "numpy", "scipy")) + (
        "from pathlib import Path\n"
        "from porism.calibrate import apply, load\n"
        f"c = load(Path({str(file)!r}))\n"
        "print(apply(c, {'a': {'utility': 0.6, 'noise': 0.0}}, c.conditions, prior=0.5)['a'].value)\n"
    )
    expected = apply(made, {"a": {"utility": 0.6, "noise": 0.0}}, MADE, prior=0.5)["a"].value
    assert float(run(code)) == expected


def test_without_the_extra_fitting_says_what_to_install() -> None:
    code = BLOCKED.format(names=("sklearn",)) + (
        "from porism.calibrate import Example, assess\n"
        "from porism.errors import MissingExtra\n"
        "rows = [Example(problem=str(g), candidate=str(i), group=str(g), features={'utility': g / 9 + i}, "
        "correct=i == 1) for g in range(10) for i in range(2)]\n"
        "try: assess(rows, ['utility'])\n"
        "except MissingExtra as error: print(error)\n"
    )
    assert "pip install 'porism[learn]'" in run(code)
