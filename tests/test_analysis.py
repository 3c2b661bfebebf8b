"""Analyses of labelled runs: figures worked by hand, planted effects, and what the command writes."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from threading import Thread

import numpy as np
import pytest
from aiohttp import web
from scipy import stats

from porism.analysis import (
    Material,
    View,
    above_mean,
    disagreement,
    frontier,
    gap,
    histogram,
    sensitivity,
    stability,
)
from porism.analysis.agreement import spearman
from porism.analysis.material import Cells, rollouts
from porism.analysis.material import view as view_of
from porism.analysis.subsample import accuracy, auc, drawn, sizes, tau
from porism.analysis.svg import COLORS, Mark, Panel, Series, picture
from porism.analyze import analyze
from porism.data import write_problems
from porism.failures import read
from porism.methods.allocate.settings import Allocation
from porism.methods.utility import STARVED, Utility
from porism.types import Candidate, Cell, Completion, Observation, Problem, Sampling, Score, Verdict
from samples import problem as sample

LETTERS = "abcdefghij"


def labelled(id: str, row: str, *, group: str | None = None) -> Problem:
    """A problem whose candidates a, b, ... are right (R), wrong (W), human (H) or unlabelled (?)."""
    label = {"R": True, "W": False, "H": True, "?": None}
    return Problem(
        id=id,
        group=group,
        question=f"How many of {id}?",
        neighbors=(),
        candidates=tuple(
            Candidate(id=LETTERS[i], text=f"Method {i}.", correct=label[mark], human=mark == "H")
            for i, mark in enumerate(row)
        ),
    )


def view(name: str, kind: str, values: Mapping[str, tuple[float, ...]], **more: object) -> View:
    scores = {p: dict(zip(LETTERS, row, strict=False)) for p, row in values.items()}
    return View(name=name, kind=kind, values=scores, **more)  # type: ignore[arg-type]


# The gap between solver and evaluator


def test_the_gap_is_that_worked_by_hand() -> None:
    problems = tuple(labelled(f"p{i}", "RW") for i in range(4))
    # Around their pool's mean all scores are 0.3, 0.3, 0.1 and 0.1 away: the SD is sqrt(0.05).
    scores = {"p0": (0.8, 0.2), "p1": (0.8, 0.2), "p2": (0.6, 0.4), "p3": (0.4, 0.6)}
    material = Material(
        problems=problems,
        views=(view("judge", "judge", scores),),
        solved={"p0": (4, 4), "p1": (2, 4), "p2": (0, 4)},  # of p3 nothing is known
    )
    found = gap(material)
    sd = 0.05**0.5
    assert [(p.problem, p.hardness) for p in found.points] == [("p0", 0.0), ("p1", 0.5), ("p2", 1.0)]
    assert [p.gap for p in found.points] == pytest.approx([0.6, 0.6, 0.2])
    assert [p.gap_sd for p in found.points] == pytest.approx([0.6 / sd, 0.6 / sd, 0.2 / sd])
    assert {b.band: b.gap_sd for b in found.bands} == {
        "never solved": pytest.approx(0.2 / sd),
        "solved up to half the time": pytest.approx(0.6 / sd),
        "solved more often": pytest.approx(0.6 / sd),
    }
    # Least squares through (0, 0.6), (1/2, 0.6), (1, 0.2): slope -0.4.
    assert found.slopes[0].slope == pytest.approx(-0.4 / sd)
    assert (found.unknown, found.one_sided) == (1, 0)


def test_a_planted_collapse_is_found_and_only_where_it_is() -> None:
    rng = Random(0)
    problems = tuple(labelled(f"p{i}", "RRRWWW") for i in range(40))
    judge, utility, solved = {}, {}, {}
    for i, p in enumerate(problems):
        hardness = i % 5 / 4
        solved[p.id] = (4 - i % 5, 4)
        judge[p.id] = tuple(3 * (1 - hardness) * (j < 3) + rng.gauss(0, 1) for j in range(6))
        utility[p.id] = tuple(0.3 * (j < 3) + rng.gauss(0, 0.1) for j in range(6))
    material = Material(
        problems=problems,
        views=(view("utility", "utility", utility), view("judge", "judge", judge)),
        solved=solved,
    )
    slopes = {s.method: s for s in gap(material).slopes}
    judged, kept = slopes["judge"].ci95, slopes["utility"].ci95
    assert judged is not None
    assert kept is not None
    assert judged[1] < 0
    assert kept[0] < 0 < kept[1]


def test_one_sided_pools_and_flat_methods_have_no_gap() -> None:
    problems = (labelled("p0", "RR"), labelled("p1", "RW"))
    material = Material(
        problems=problems,
        views=(view("flat", "judge", {"p0": (1, 1), "p1": (1, 1)}),),
        solved={"p0": (1, 2), "p1": (1, 2)},
    )
    found = gap(material)
    assert found.one_sided == 1
    assert [p.gap_sd for p in found.points] == [0.0]
    assert found.slopes[0].slope is None


# Levels


def test_above_the_mean_counts_ties_half_and_humans_apart() -> None:
    problems = (labelled("p0", "HRWW"), labelled("p1", "RWR?"))
    third = Fraction(1, 3)
    scores: dict[str, dict[str, Fraction | int]] = {
        "p0": {"a": 1, "b": third, "c": 0, "d": 0},  # the mean is 1/3: exactly b
        "p1": {"a": 3, "b": 2, "c": 0, "d": 3},  # the mean is 2: exactly b
    }
    material = Material(problems=problems, views=(View(name="u", kind="utility", values=scores),))  # type: ignore[arg-type]
    rows = {r.label: r for r in above_mean(material).rows}
    assert rows["human"].chance == 1
    assert rows["right"].chance == pytest.approx((1 / 2 + (1 + 0) / 2) / 2)
    assert rows["wrong"].chance == pytest.approx((0 + 1 / 2) / 2)
    assert (rows["right"].n, rows["right"].groups) == (3, 2)


def test_every_score_is_in_one_bin() -> None:
    problems = (labelled("p0", "RWWH"), labelled("p1", "R?"))
    material = Material(problems=problems, views=(view("j", "judge", {"p0": (10, 0, 1, 9.99), "p1": (5,)}),))
    found = histogram(material)
    assert [b.low for b in found.bins] == pytest.approx(range(10))
    assert [(b.right, b.wrong, b.human) for b in found.bins] == [
        (0, 1, 0),
        (0, 1, 0),
        *[(0, 0, 0)] * 3,
        (1, 0, 0),
        *[(0, 0, 0)] * 3,
        (1, 0, 1),
    ]
    assert found.unscored == {"j": 1}


# Fewer rollouts


def cells(*outcomes: str) -> Cells:
    """Cells as strings: 1 and 0 are outcomes, - told nothing."""
    return tuple(tuple(None if mark == "-" else float(mark) for mark in own) for own in outcomes)


def test_draws_follow_the_hypergeometric_law_and_end_at_the_whole() -> None:
    found = drawn([cells("11100000"), cells("1111", "0000")], [2, 8], "seed", draws=20_000)
    solved = found[0, :, 0] * 2
    for k in (0, 1, 2):
        assert np.mean(solved == k) == pytest.approx(stats.hypergeom(8, 3, 2).pmf(k), abs=0.015)
    assert set(found[1, :, 0]) == {3 / 8}
    assert set(found[1, :, 1]) == {1 / 2}
    again = drawn([cells("11100000"), cells("1111", "0000")], [2, 8], "seed", draws=20_000)
    assert np.array_equal(found, again, equal_nan=True)


def test_what_told_nothing_is_drawn_and_left_out() -> None:
    found = drawn([cells("1-", "00")], [1, 2], "s", draws=4_000)
    # One rollout: half of the time the first cell is known (1), and the mean over cells is 1/2; else only 0 is.
    assert set(found[0, :, 0]) == {0.0, 0.5}
    assert found[0, :, 0].mean() == pytest.approx(0.25, abs=0.02)
    assert set(found[1, :, 0]) == {0.5}
    assert np.isnan(drawn([cells("--")], [1], "s", draws=3)).all()


def test_metrics_of_draws_are_those_of_the_library() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (50, 7)).astype(float)
    whole = rng.integers(0, 4, 7).astype(float)
    right = [True, True, False, True, False, False, False]
    expected = [stats.kendalltau(row, whole).statistic for row in scores]
    assert tau(scores, whole) == pytest.approx(np.nan_to_num(expected))
    u = [stats.mannwhitneyu(row[right], row[np.logical_not(right)]).statistic / 12 for row in scores]
    assert auc(scores, right) == pytest.approx(u)
    assert accuracy(np.array([[2.0, 2.0, np.nan], [1.0, 2.0, 0.0]]), [True, False, True]) == pytest.approx(
        [0.5, 0]
    )


def test_two_candidates_with_two_rollouts_worked_by_hand() -> None:
    """Candidate a solves 1 of 2, b none: with one rollout a is ahead half of the time and level else."""
    p = labelled("p", "RW")
    u = View(
        name="u",
        kind="utility",
        values={"p": {"a": Fraction(1, 2), "b": 0}},
        rollouts={"p": {"a": cells("10"), "b": cells("00")}},
        tokens=1000,
    )
    material = Material(problems=(p,), views=(u,))
    one, whole = stability(material, draws=20_000).rows
    assert one.error == pytest.approx((1 / 2 + 0) / 2)
    assert one.top1 == pytest.approx(3 / 4, abs=0.02)
    assert one.tau == pytest.approx(1 / 2, abs=0.02)
    assert (whole.n, whole.error, whole.top1, whole.tau) == (2, 0, 1, 1)
    first, last = frontier(material, draws=20_000).points
    assert (first.n, first.tokens, last.n, last.tokens) == (1, 500, 2, 1000)
    assert first.auc == pytest.approx(3 / 4, abs=0.02)
    assert (last.auc, last.acc1) == (1, 1)


def test_a_method_without_rollouts_is_one_point_of_the_frontier() -> None:
    material = Material(
        problems=(labelled("p0", "RW"), labelled("p1", "RWW")),
        views=(view("length", "length", {"p0": (3, 3), "p1": (1, 2, 0)}),),
    )
    (point,) = frontier(material).points
    assert (point.n, point.tokens) == (None, 0)
    assert point.auc == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert point.acc1 == pytest.approx((1 / 2 + 0) / 2)
    assert stability(material).rows == ()


def test_sizes_end_at_the_whole() -> None:
    assert sizes(1) == [1]
    assert sizes(6) == [1, 2, 3, 4, 5, 6]
    assert sizes(64)[:9] == [1, 2, 3, 4, 5, 6, 7, 8, 10]
    assert sizes(64)[-1] == 64


def test_rollouts_come_from_observations() -> None:
    def seen(candidate: str | None, neighbor: str | None, n: int, **what: object) -> Observation:
        return Observation(cell=Cell("p", candidate, neighbor, "m", "s", 0), rollout=n, **what)  # type: ignore[arg-type]

    p = labelled("p", "RW")
    observations = [
        seen("a", "n0", 0, verdict=Verdict("correct", "")),
        seen("a", "n0", 2, verdict=Verdict("undecided", "")),
        seen("a", "n1", 1, verdict=Verdict("no_answer", "")),
        seen(None, "n0", 0, verdict=Verdict("correct", "")),
    ]
    assert rollouts(p, observations) == {"a": ((1.0, None, None), (None, 0.0, None))}
    marks = [
        seen("b", None, 0, verdict=Verdict("no_answer", "cut off")),
        seen("b", None, 0, score=7.0),  # asked once more
        seen("b", None, 1, verdict=Verdict("no_answer", "cut off")),
    ]
    assert rollouts(p, marks) == {"b": ((7.0, None),)}
    compared = [Observation(cell=Cell("p", "a", None, "m", "s", 0, "b"), rollout=0, score=1.0)]
    assert rollouts(p, compared) == {}


def test_pools_that_an_allocation_starved_are_in_no_analysis() -> None:
    sampling = Sampling(max_tokens=10)
    adaptive = Utility(solvers=("s",), sampling=sampling, allocation=Allocation())
    problems = [labelled("p0", "RW"), labelled("p1", "RW")]
    given_up = Score(value=0.1, low=0.0, high=1.0, flags=(STARVED,))
    fine = Score(value=0.5, low=0.0, high=1.0)
    scores = {"p0": {"a": fine, "b": given_up}, "p1": {"a": fine, "b": fine}}
    found = view_of(adaptive, "utility", problems, scores, {})
    assert found.starved == 1
    assert found.values == {"p1": {"a": 0.5, "b": 0.5}}
    assert found.rollouts == {}


# Agreement


def test_disagreement_is_counted_and_sorted() -> None:
    p = labelled("p", "RWWW?")
    judge, utility = (1.0, 9.0, 8.0, 2.0, 9.0), (0.9, 0.1, 0.8, 0.0, 0.2)
    material = Material(
        problems=(p,),
        views=(
            view("utility", "utility", {"p": utility}),
            view("answer-only", "utility", {"p": (0, 1, 0, 1, 0)}, control=True),
            view("judge", "judge", {"p": judge}),
        ),
    )
    found = disagreement(material)
    wrong = next(s for s in found.splits if s.label == "wrong")
    assert (wrong.both, wrong.reader_only, wrong.utility_only, wrong.neither) == (1, 1, 0, 1)
    assert [(c.candidate, c.liked_by, c.not_by) for c in found.cases] == [
        ("a", "utility", "judge"),  # 4/4 against 0/4
        ("b", "judge", "utility"),  # 3.5/4 against 1/4
        ("e", "judge", "utility"),  # 3.5/4 against 2/4
    ]
    assert (found.cases[1].standing_liked, found.cases[1].standing_not) == (3.5 / 4, 1 / 4)


def test_spearman_is_that_of_the_library() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, y = rng.integers(0, 5, (2, 8))
        a, b = (dict(zip(LETTERS, map(float, row), strict=False)) for row in (x, y))
        if len(set(x)) > 1 and len(set(y)) > 1:
            assert spearman(a, b) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert spearman({"a": 1, "b": 1}, {"a": 1, "b": 2}) is None


def test_planted_prompt_sensitivity_is_found() -> None:
    rng = Random(3)
    problems = tuple(labelled(f"p{i}", "RRRWWW") for i in range(30))
    base = {p.id: [rng.gauss(0, 1) for _ in range(6)] for p in problems}
    same = {p: tuple(x * 2 + 1 for x in row) for p, row in base.items()}
    other = {p: tuple(rng.gauss(0, 1) for _ in row) for p, row in base.items()}
    material = Material(
        problems=problems,
        views=(
            view("judge", "judge", {p: tuple(row) for p, row in base.items()}),
            view("judge-0-7", "judge", same),
            view("genrm", "genrm", other),
        ),
    )
    pairs = {(x.a, x.b): x for x in sensitivity(material).pairs}
    assert pairs["judge", "judge-0-7"].spearman == pytest.approx(1)
    strange = pairs["judge", "genrm"]
    assert strange.ci95 is not None
    assert strange.ci95[0] < 0 < strange.ci95[1]
    assert all(x.prompts for x in pairs.values())


# Pictures


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colors_show_on_white_and_on_black() -> None:
    for color in COLORS:
        assert 1.05 / (luminance(color) + 0.05) >= 3
        assert (luminance(color) + 0.05) / (luminance("#111111") + 0.05) >= 3


def test_a_picture_is_whole_and_quotes_what_files_say() -> None:
    hostile = '<script>alert("x")</script> & \x00\x1b[31m'
    panel = Panel(
        title=hostile,
        x=hostile,
        y="y",
        series=(
            Series(name=hostile, kind="line", marks=(Mark(1, 1, 0.5, 1.5, title=hostile), Mark(2, 3))),
            Series(name="one value", marks=(Mark(1, 1),)),
        ),
    )
    text = picture(hostile, [panel, replace_ticks(panel), Panel(title="empty", x="", y="", series=())])
    root = ET.fromstring(text)
    assert root.tag.endswith("svg")
    assert "<script" not in text
    assert "\x1b" not in text
    assert not re.search(r"nan|inf|#000|#fff|\bblack\b|\bwhite\b|https?://(?!www\.w3\.org/2000/svg)", text)


def replace_ticks(panel: Panel) -> Panel:
    return Panel(title="bars", x="", y="", ticks=("a", "b"), log=False, series=(
        Series(name="bars", kind="bars", marks=(Mark(0, 0.5, width=0.4), Mark(1, 0.0, width=0.4))),
    ))  # fmt: skip


# The command


CONFIG = """
data = "set.jsonl"
[models.solver]
model = "fake/rate_right=0.8,rate_wrong=0.2"
[models.judge]
model = "fake/rate_right=0.6,rate_wrong=0.5,seed=5"
[methods.utility]
model = "solver"
rollouts = 4
target_samples = 3
[methods.judge]
model = "judge"
calls = 4
[methods.length]
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    problems = []
    for i in range(6):
        one = sample(f"p{i}", candidates=6, helpful=3)
        problems.append(replace(one, answer=str(i), question=f"How many? [[answer: {i}]]"))
    write_problems(problems, folder / "set.jsonl")
    (folder / "bench.toml").write_text(CONFIG)
    done = porism("run", folder / "bench.toml", "-o", folder / "run", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "run"


def porism(*args: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "porism", *map(str, args)],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_analyze_writes_tables_and_pictures_that_agree_with_score(bench: Path, tmp_path: Path) -> None:
    done = porism("analyze", bench, "-o", tmp_path / "out", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["left_out"] == {}
    scored = json.loads(porism("score", bench, "--json", cwd=tmp_path).stdout)["methods"]
    full = {p["method"]: p for p in document["analyses"]["frontier"]["points"]}
    for method, point in full.items():
        assert point["auc"] == pytest.approx(scored[method]["auc"]["value"])
        assert point["acc1"] == pytest.approx(scored[method]["acc@1"]["value"])
        tokens = scored[method]["prompt_tokens"] + scored[method]["completion_tokens"]
        assert point["tokens"] == pytest.approx(tokens / 6)
    attempts = {p["problem"]: p["attempts"] for p in document["analyses"]["gap"]["points"]}
    assert attempts == {f"p{i}": 3 for i in range(6)}
    names = {Path(f).name for f in document["files"]}
    assert names == {f.name for f in (tmp_path / "out").iterdir()}
    for svg in (tmp_path / "out").glob("*.svg"):
        ET.parse(svg)
    with (tmp_path / "out" / "stability-rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {"method", "n", "error", "error_ci95_low", "top1", "tau"} <= rows[0].keys()
    cases = [json.loads(line) for line in (tmp_path / "out" / "disagreement.jsonl").read_text().splitlines()]
    assert len(cases) == len(document["analyses"]["disagreement"]["cases"]) > 0
    assert all(case["text"].startswith("Method") for case in cases)


def test_analyze_says_it_in_words_and_never_writes_over_other_files(bench: Path, tmp_path: Path) -> None:
    done = porism("analyze", bench, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("Fewer rollouts", "liked by judge and not by utility", "tokens a problem", "never solved"):
        assert words in done.stdout
    assert porism("analyze", bench, cwd=tmp_path).returncode == 0  # its own files it makes anew
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "gap.svg").write_text("mine")
    refused = porism("analyze", bench, "-o", tmp_path / "mine", cwd=tmp_path)
    assert refused.returncode == 2
    assert (tmp_path / "mine" / "gap.svg").read_text() == "mine"


def test_what_is_asked_once_more_is_counted_in_the_cost(tmp_path: Path) -> None:
    write_problems([sample()], tmp_path / "set.jsonl")
    (tmp_path / "b.toml").write_text(
        'data = "set.jsonl"\n[models.j]\nmodel = "fake/blank=0.5"\n[methods.judge]\nmodel = "j"\ncalls = 4\n'
    )
    done = porism("run", tmp_path / "b.toml", "-o", tmp_path / "run", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "run" / "index.jsonl").read_text().splitlines()
    assert json.loads(done.stdout)["methods"]["judge"]["rollouts"] == len(rows) > 3 * 4


def test_a_ranking_is_analysed_as_far_as_it_goes(tmp_path: Path) -> None:
    one = sample()
    bare = replace(one, candidates=tuple(replace(c, correct=None) for c in one.candidates))
    write_problems([bare], tmp_path / "p.yaml")
    done = porism("rank", tmp_path / "p.yaml", "-m", "fake/rate=0.5", "-o", tmp_path / "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = asyncio.run(analyze(tmp_path / "run"))
    assert found.tables.keys() == {"histogram", "stability"}
    assert found.left_out["gap"] == "no problem has both right and wrong candidates"
    assert found.left_out["above_mean"] == "no candidate has a label"
    assert found.left_out["sensitivity"] == "there is only one method"


# Tags


def test_tags_are_read_strictly() -> None:
    def tags(text: str, finish: str = "stop") -> tuple[str, ...] | None:
        return read(Completion(0, text, finish))

    assert tags("It fails.\nFailures: reference, compression") == ("compression", "reference")
    assert tags("**Failures:** none") == ()
    assert tags("Failures: Reasoning") == ("reasoning",)
    for text in (
        "Failures: none, reasoning",
        "Failures: reasoning, reasoning",
        "Failures: vague",
        "Failures:",
        "none",
    ):
        assert tags(text) is None
    assert tags("Failures: reasoning", "length") is None
    assert read(None) is None


@contextmanager
def tagger(reply: str) -> Iterator[str]:
    """A chat completions server that answers always the same."""
    started: list[str] = []

    async def chat(_: web.Request) -> web.Response:
        message = {"role": "assistant", "content": reply}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 5, "completion_tokens": 5}
        return web.json_response({"choices": [choice], "usage": usage})

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "tagger"}]})

    async def serve() -> None:
        app = web.Application()
        app.add_routes([web.post("/v1/chat/completions", chat), web.get("/v1/models", models)])
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        started.append(f"http://{host}:{port}")
        ready.set()
        await over.wait()
        await runner.cleanup()

    loop = asyncio.new_event_loop()
    over = asyncio.Event()
    from threading import Event

    ready = Event()
    thread = Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait(20)
    try:
        yield started[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


def test_a_model_tags_wrong_candidates_and_is_not_asked_twice(bench: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    flags = ["-o", out, "--tag", "openai/tagger", "--tag-limit", "2", "--json"]
    with tagger("A step is missing.\nFailures: compression, reasoning") as url:
        done = porism("analyze", bench, *flags, "--base-url", url, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        again = porism("analyze", bench, *flags, "--base-url", url, cwd=tmp_path)
    failures = json.loads(done.stdout)["failures"]
    assert failures == json.loads(again.stdout)["failures"]
    assert failures["asked"] == 2
    assert failures["unreadable"] == failures["missing"] == 0
    kinds = [pair["kinds"] for pair in failures["pairs"]]
    assert sum(k.get("unjustified compression", 0) for k in kinds) == 2
    rows = [json.loads(line) for line in (out / "disagreement.jsonl").read_text().splitlines()]
    tagged = [row for row in rows if row["failures"]]
    assert len(tagged) == 2
    assert all(row["label"] == "wrong" for row in tagged)
    index = (out / "failures" / "index.jsonl").read_text().splitlines()
    assert len(index) == 2
