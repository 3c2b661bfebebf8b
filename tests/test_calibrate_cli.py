"""`porism calibrate`, and P(right) in a ranking: from a labelled run to probabilities, and what is refused."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from math import exp, log
from pathlib import Path
from random import Random

import pytest

import porism as library
from porism.data import write_problems
from porism.errors import ConfigError
from porism.table import plain_text
from porism.types import Candidate, Neighbor, Problem

SOLVER = "fake/rate_right=0.8,rate_wrong=0.2"
CONFIG = f"""
data = "set.jsonl"
[models.solver]
model = "{SOLVER}"
max_tokens = 500
[models.judge]
model = "fake/rate_right=0.6,rate_wrong=0.4"
[methods.utility]
model = "solver"
rollouts = 4
[methods.judge]
model = "judge"
calls = 2
[methods.length]
"""
FLAGS = ("-m", SOLVER, "-n", "4", "--max-tokens", "500")


def pools(count: int, *, seed: int = 0, labelled: bool = True, candidates: int = 4) -> list[Problem]:
    """Two right and two wrong candidates each; right ones mostly help."""
    rng = Random(seed)
    return [
        Problem(
            id=f"p{seed}-{i}",
            group=f"g{seed}-{i // 2}",
            question=f"How many of {seed}, {i}?",
            candidates=tuple(
                Candidate(
                    id="abcdef"[j],
                    text=f"Method {j}: {'[[helps]]' if rng.random() < (0.9 if j < 2 else 0.2) else 'no'}.",
                    correct=j < 2 if labelled else None,
                )
                for j in range(candidates)
            ),
            neighbors=tuple(
                Neighbor(id=f"n{k}", question=f"And {k} of {i}? [[answer: {100 + k}]]", answer=str(100 + k))
                for k in range(2)
            ),
        )
        for i in range(count)
    ]


def porism(*args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "porism", *map(str, args)],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A labelled run, and a calibration of its utility."""
    folder = tmp_path_factory.mktemp("calibrate")
    write_problems(pools(24), folder / "set.jsonl")
    (folder / "bench.toml").write_text(CONFIG)
    done = porism("run", folder / "bench.toml", "-o", folder / "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    made = porism(
        "calibrate", folder / "run", "--with", "judge", "-o", folder / "cal.json", "--json", cwd=folder
    )
    assert made.returncode == 0, made.stderr
    (folder / "cal.out").write_text(made.stdout)
    write_problems(pools(1, seed=1, labelled=False), folder / "new.jsonl")
    return folder


def test_every_set_of_features_is_measured_on_the_same_candidates(folder: Path) -> None:
    found = json.loads((folder / "cal.out").read_text())
    assert found["sets"].keys() == {"utility alone", "judge alone", "together"}
    assert {a["n"] for a in found["sets"].values()} == {24 * 4}
    assert found["left_out"] == 0
    utility, judge = found["sets"]["utility alone"], found["sets"]["judge alone"]
    assert utility["log_loss"]["ci95"][1] < utility["base_log_loss"] == pytest.approx(log(2), abs=0.02)
    assert utility["log_loss"]["value"] < judge["log_loss"]["value"]
    saved = json.loads((folder / "cal.json").read_text())
    assert saved == found["calibration"]
    assert saved["features"] == ["utility"]
    assert saved["conditions"] == {
        "solver": SOLVER + ",tokens=40,truncate=0,blank=0,seed=0",
        "prompt": saved["conditions"]["prompt"],
        "sampling": "temperature 1.0, max_tokens 500",
        "rollouts": [4, 4],
        "neighbors": [2, 2],
        "pool_size": [4, 4],
        "allocation": "uniform",
        "others": {},
    }
    ET.parse(folder / "cal.svg")


def test_the_table_says_it_without_calling_utility_a_chance(folder: Path, tmp_path: Path) -> None:
    done = porism("calibrate", folder / "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("log loss", "Brier", "ECE", "utility alone", "share right", "candidates are right"):
        assert words in done.stdout
    assert "judge" not in done.stdout
    assert not list(tmp_path.iterdir())


def test_a_ranking_shows_p_right_for_the_prior_and_else_a_range(folder: Path, tmp_path: Path) -> None:
    flags = (folder / "new.jsonl", *FLAGS, "-o", tmp_path / "r", "--calibration", folder / "cal.json")
    known = porism("rank", *flags, "--prior", "0.2", "--json", cwd=tmp_path)
    assert known.returncode == 0, known.stderr
    made = json.loads((folder / "cal.json").read_text())
    places = json.loads(known.stdout)["problems"][0]["ranking"]
    for place in places:
        scaled = (place["utility"] - made["means"][0]) / made["scales"][0]
        odds = made["intercept"] + made["coefficients"][0] * scaled
        odds += log(0.2 / 0.8) - log(made["base_rate"] / (1 - made["base_rate"]))
        assert place["p_right"]["value"] == pytest.approx(1 / (1 + exp(-odds)))
    ranged = porism("rank", *flags, cwd=tmp_path)
    assert "P(right)" in ranged.stdout
    assert "10% to 90%" in ranged.stdout
    assert "--prior" in ranged.stdout
    lines = [line for line in ranged.stdout.splitlines() if re.match(r"\d+ ", line)]
    assert len(lines) == 4
    assert all(re.search(r" 0\.\d\d-[01]\.\d\d +\d", line) for line in lines)
    plain = porism("rank", folder / "new.jsonl", *FLAGS, "-o", tmp_path / "r", "--json", cwd=tmp_path)
    assert all(p["p_right"] is None for p in json.loads(plain.stdout)["problems"][0]["ranking"])


def test_score_and_report_know_what_the_run_was_made_with(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "r"
    flags = (folder / "new.jsonl", *FLAGS, "-o", run, "--calibration", folder / "cal.json", "--prior", "0.2")
    places = json.loads(porism("rank", *flags, "--json", cwd=tmp_path).stdout)["problems"][0]["ranking"]
    scored = porism("score", run, "--json", cwd=tmp_path)
    assert json.loads(scored.stdout)["problems"][0]["ranking"] == places
    rows = list(csv.DictReader(porism("report", run, "--format", "csv", cwd=tmp_path).stdout.splitlines()))
    assert [float(row["p_right"]) for row in rows[:-1]] == [p["p_right"]["value"] for p in places]
    assert rows[-1]["p_right"] == ""  # without an example
    shown = f"{places[0]['p_right']['value']:.2f}"
    text = porism("report", run, "--format", "md", cwd=tmp_path).stdout
    assert "| P(highest) | P(right) |" in text
    assert "20% of the candidates" in text
    assert porism("report", run, cwd=tmp_path).returncode == 0
    html = (run / "report.html").read_text(encoding="utf-8")
    assert ">P(right)</th>" in html
    assert "by the calibration, where 20% of the candidates" in html
    assert f">{shown}</td>" in html
    settings = json.loads((run / "run.json").read_text())
    settings["right"]["calibration"]["features"] = 7
    (run / "run.json").write_text(json.dumps(settings))
    assert "is not whole" in porism("score", run, cwd=tmp_path).stderr
    assert "There is no P(right)" in porism("report", run, "--format", "md", cwd=tmp_path).stdout
    again = porism("rank", folder / "new.jsonl", *FLAGS, "-o", run, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "P(right)" not in porism("report", run, "--format", "md", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("-n", "2"), "rollouts 4 there, 2 here"),
        (("-m", "fake/rate=0.3"), "solver 'fake/rate_right=0.8"),
        (("--allocation", "toptwo"), "allocation 'uniform' there, 'toptwo' here"),
        (("--max-tokens", "600"), "max_tokens 500' there, 'temperature 1.0, max_tokens 600' here"),
    ],
)
def test_a_mismatch_names_both_sides_before_anything_is_asked(
    folder: Path, tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    flags = dict(zip(FLAGS[::2], FLAGS[1::2], strict=True)) | {change[0]: change[1]}
    words = [word for pair in flags.items() for word in pair]
    refused = porism(
        "rank",
        folder / "new.jsonl",
        *words,
        "-o",
        tmp_path / "r",
        "--calibration",
        folder / "cal.json",
        cwd=tmp_path,
    )
    assert refused.returncode == 2
    assert told in refused.stderr
    assert not (tmp_path / "r" / "index.jsonl").exists()


def test_another_pool_size_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="pool size 4 there, 5 here"):
        library.rank(
            pools(1, candidates=5),
            model=SOLVER,
            rollouts=4,
            max_tokens=500,
            output=tmp_path / "r",
            calibration=folder / "cal.json",
        )


def test_a_run_that_stopped_early_has_no_p_right_and_says_so(folder: Path, tmp_path: Path) -> None:
    settings = {"model": SOLVER, "rollouts": 4, "max_tokens": 500, "output": tmp_path / "r"}
    settings |= {"calibration": folder / "cal.json", "concurrency": 1}
    stopped = library.rank(pools(1, seed=2), max_requests=14, **settings)
    assert stopped.stopped
    (ranking,) = stopped.problems
    assert all(place.p_right is None for place in ranking.ranking)
    assert any("no P(right) yet" in w and "4 there" in w for w in ranking.warnings)
    assert "P(right)" not in plain_text(stopped).replace("no P(right) yet", "")
    whole = library.rank(pools(1, seed=2), prior=0.5, **settings)
    assert all(place.p_right is not None for place in whole.problems[0].ranking)


def test_what_cannot_be_is_refused(folder: Path, tmp_path: Path) -> None:
    run = folder / "run"
    both = tmp_path / "both.json"
    made = porism(
        "calibrate", run, "--with", "judge", "--features", "utility,judge", "-o", both, cwd=tmp_path
    )
    assert made.returncode == 0, made.stderr
    assert json.loads(both.read_text())["conditions"]["others"].keys() == {"judge"}
    cases = {
        ("rank", folder / "new.jsonl", *FLAGS, "--calibration", both): "needs scores of judge",
        ("rank", folder / "new.jsonl", *FLAGS, "--prior", "0.5"): "give --calibration",
        ("rank", folder / "new.jsonl", "--calibration", both, "--prior", "1"): "between 0 and 1",
        ("calibrate", run, "--with", "jugde"): "no method 'jugde'",
        ("calibrate", run, "--features", "judge"): "unknown feature 'judge'",
        ("calibrate", run, "--method", "length"): "starts from a utility method",
        ("calibrate", run, "-o", both): "exists",
    }
    for command, told in cases.items():
        refused = porism(*command, cwd=tmp_path)
        assert refused.returncode == 2, command
        assert told in refused.stderr, (command, refused.stderr)


def test_labels_are_needed(tmp_path: Path) -> None:
    bare = [replace(p, candidates=tuple(replace(c, correct=None) for c in p.candidates)) for p in pools(2)]
    write_problems(bare, tmp_path / "p.jsonl")
    assert porism("rank", tmp_path / "p.jsonl", *FLAGS, "-o", tmp_path / "r", cwd=tmp_path).returncode == 0
    refused = porism("calibrate", tmp_path / "r", cwd=tmp_path)
    assert refused.returncode == 2
    assert "0 with a right" in refused.stderr


def test_without_scikit_learn_the_extra_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "sklearn").mkdir()
    (tmp_path / "sklearn" / "__init__.py").write_text("raise ImportError('not installed')\n")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "porism", "calibrate", str(folder / "run")],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert "pip install 'porism[learn]'" in done.stderr
