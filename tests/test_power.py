"""`porism power`: its chances follow the test that a ranking uses, and its advice follows its chances."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from porism.data import write_problems
from porism.methods.ranking import rank
from porism.methods.utility import Utility
from porism.power import _apart, guess, pilot, power
from porism.types import Cell, Counts, Observation, Sampling, Verdict
from samples import problem


def porism(*args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "porism", *map(str, args)],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_told_apart_as_a_ranking_tells_apart() -> None:
    """The scaled thresholds agree with the ranking itself on nearly every candidate of nearly every pool."""
    p, rollouts = problem(candidates=4, neighbors=2), 16
    utility = Utility(solvers=("m",), sampling=Sampling(max_tokens=9), rollouts=rollouts)
    rng = np.random.default_rng(2)
    solved = rng.binomial(rollouts, np.array([0.6, 0.45, 0.3, 0.3])[None, :, None], (40, 4, 2))
    solved = np.take_along_axis(solved, np.argsort(-solved.sum(axis=2), axis=1)[:, :, None], 1)
    ours = _apart(solved, rollouts, 5)
    agree = []
    for pool, told in zip(solved, ours, strict=True):
        seen = [
            Observation(
                cell=Cell("p", c.id, n.id, "utility", "m", 0),
                rollout=i,
                verdict=Verdict("correct" if i < pool[row, column] else "wrong", "x"),
            )
            for row, c in enumerate(p.candidates)
            for column, n in enumerate(p.neighbors)
            for i in range(rollouts)
        ]
        leaders = rank(p, utility, seen).leaders
        agree += [bool(told[row - 1]) == (p.candidates[row].id not in leaders) for row in range(1, 4)]
    assert 0.1 < ours.mean() < 0.9
    assert np.mean(agree) > 0.95


def test_more_of_everything_tells_more() -> None:
    found = power([guess(0.6, 0.2, 5)], target=0.8, neighbors=[1, 4], rollouts=[4, 32], runs=150)
    chance = {(d.neighbors, d.rollouts): d.alone for d in found.designs}
    assert chance[1, 4] < 0.2 < 0.9 < chance[4, 32]
    assert chance[1, 4] <= chance[1, 32] <= chance[4, 32]
    for d in found.designs:
        assert d.alone <= d.something
        assert d.alone <= d.best_first
        assert d.total == 5 * d.neighbors * d.rollouts
    assert found.cheapest is not None
    assert found.cheapest.alone >= 0.8
    assert str(found.cheapest.rollouts) in found.message
    assert found == power([guess(0.6, 0.2, 5)], target=0.8, neighbors=[1, 4], rollouts=[4, 32], runs=150)


def test_equals_and_hopeless_ones_are_hardly_ever_told_apart() -> None:
    for rate in (0.3, 0.0):
        found = power([guess(rate, rate, 4)], target=0.8, neighbors=[2], rollouts=[16], runs=200)
        assert found.designs[0].alone < 0.05
        assert found.cheapest is None
        assert "too small" in found.message


def test_a_pilot_is_drawn_in_by_what_chance_explains() -> None:
    rng = np.random.default_rng(0)

    def spread(rates: list[float], n: int) -> float:
        counts = [
            [Counts(correct=int(x), wrong=n - int(x)) for x in rng.binomial(n, rate, 4)] for rate in rates
        ]
        drawn = pilot(counts)(np.random.default_rng(1), 50)
        assert drawn.shape == (len(rates), 50)
        assert ((drawn >= 0) & (drawn <= 1)).all()
        return float(np.ptp(drawn.mean(axis=1)))

    assert spread([0.3] * 8, 8) < 0.12
    assert spread([0.9, 0.1], 64) == pytest.approx(0.8, abs=0.1)


def test_the_command(tmp_path: Path) -> None:
    designs = ("--neighbors", "2,4", "-n", "8,32", "--runs", 60)
    guessed = porism("power", "--best", 0.7, "--others", 0.1, "--candidates", 4, *designs, cwd=tmp_path)
    assert guessed.returncode == 0, guessed.stderr
    assert "n = 32" in guessed.stdout
    assert "neighbors with" in guessed.stdout
    write_problems([problem(candidates=4, neighbors=3)], tmp_path / "p.yaml")
    ran = porism("rank", "p.yaml", "-m", "fake/rate_right=0.8,rate_wrong=0.1", "-o", "run", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    piloted = porism("power", "--run", "run", *designs, "--json", cwd=tmp_path)
    assert piloted.returncode == 0, piloted.stderr
    document = json.loads(piloted.stdout)
    assert {(d["neighbors"], d["rollouts"]) for d in document["designs"]} == {
        (2, 8),
        (2, 32),
        (4, 8),
        (4, 32),
    }
    assert document["designs"][-1]["alone"] > 0.9


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ("--best", 0.5),
        ("--best", 0.2, "--others", 0.5),
        ("--best", 0.5, "--others", 0.2, "--run", "x"),
        ("--best", 0.5, "--others", 0.2, "-n", "8,x"),
        ("--best", 0.5, "--others", 0.2, "--target", 1),
    ],
)
def test_what_cannot_be_simulated_is_said(tmp_path: Path, wrong: tuple[object, ...]) -> None:
    done = porism("power", *wrong, cwd=tmp_path)
    assert done.returncode == 2
    assert "porism:" in done.stderr
    assert "Traceback" not in done.stderr
