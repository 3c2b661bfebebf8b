"""`porism run`: a benchmark from its TOML file to metrics, with figures worked by hand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from porism.bench.build import build, cost
from porism.bench.config import BenchConfig, read_config
from porism.data import write_problems
from porism.errors import ConfigError
from porism.methods.utility import Utility
from porism.types import Candidate, Neighbor, Problem
from server import serving

# Each problem is a row of candidates: R or W for its label, then + where it helps the solver and - where it does not.
# With a solver that is always right after a helpful candidate and never otherwise, utilities are exactly 1 and 0.
#                          acc@1  auc                recall@R           of that pool, worked by hand
POOLS = {
    "p0": "R+ R+ W- W-",  # 1     1                  1
    "p1": "R+ R- W- W-",  # 1     (2 + 2 * 1/2) / 4 = 3/4       first of two right; the second among three equals: 1/3
    "p2": "R- R- W- W-",  # 1/2   1/2                1/2
    "p3": "R- W+ W-",  #    0     (0 + 1/2) / 2 = 1/4           0
    "p4": "R+ W+ W-",  #    1/2   (1/2 + 1) / 2 = 3/4           1/2
    "p5": "W+ W-",  #       one-sided: left out
}
ACC = (1 + 1 + 1 / 2 + 0 + 1 / 2) / 5
AUC = (1 + 3 / 4 + 1 / 2 + 1 / 4 + 3 / 4) / 5
RECALL = (1 + (1 + 1 / 3) / 2 + 1 / 2 + 0 + 1 / 2) / 5
KINDS = {"W+": "wrong-but-helpful", "W-": "method-error"}


def pool(id: str, row: str, *, group: str | None = None) -> Problem:
    return Problem(
        id=id,
        group=group,
        question=f"How many of {id}?",
        metadata={"split": "report" if id != "p4" else "tune"},
        candidates=tuple(
            Candidate(
                id="abcdef"[i],
                text=f"Method {i} of {id}{'!' * i}: {'[[helps]]' if mark[1] == '+' else ''} \\boxed{{{i}}}",
                correct=mark[0] == "R",
                kind=KINDS.get(mark),  # type: ignore[arg-type]
                source="SECRET-SOURCE",
            )
            for i, mark in enumerate(row.split())
        ),
        neighbors=tuple(
            Neighbor(id=f"n{j}", question=f"And {j} of {id}? [[answer: {100 + j}]]", answer=str(100 + j))
            for j in (0, 1)
        ),
    )


CONFIG = """
data = "set.jsonl"
primary.metric = "auc"
primary.methods = ["utility", "random"]

[models.solver]
model = "fake/rate_right=1,rate_wrong=0"
max_tokens = 100

[methods.utility]
model = "solver"
rollouts = 2
target_samples = 1

[methods.answer-only]
method = "utility"
exemplar = "answer-only"
model = "solver"
rollouts = 2

[methods.vote]
[methods.length]
[methods.random]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_problems([pool(id, row) for id, row in POOLS.items()], tmp_path / "set.jsonl")
    path = tmp_path / "bench.toml"
    path.write_text(CONFIG)
    return path


def run(*args: object, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "porism", *map(str, args)],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", **(env or {})},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_metrics_are_those_worked_by_hand(file: Path, tmp_path: Path) -> None:
    done = run("run", file, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    utility = document["methods"]["utility"]
    assert utility["acc@1"]["value"] == pytest.approx(ACC)
    assert utility["auc"]["value"] == pytest.approx(AUC)
    assert utility["recall@R"]["value"] == pytest.approx(RECALL)
    assert utility["auc"]["n"] == 5
    assert utility["auc"]["dropped"] == 1
    low, high = utility["auc"]["ci95"]
    assert low < AUC < high
    # Against method errors alone a wrong candidate never helps; against the helpful ones a right one can only tie.
    assert utility["by_kind"]["method-error"]["value"] == pytest.approx((1 + 3 / 4 + 1 / 2 + 1 / 2 + 1) / 5)
    assert utility["by_kind"]["wrong-but-helpful"]["value"] == pytest.approx((0 + 1 / 2) / 2)
    # The answer alone never helps, so every pool is one tie.
    assert document["methods"]["answer-only"]["auc"]["value"] == pytest.approx(1 / 2)
    assert document["controls"]["answer-only"]["left"] == 0
    assert document["methods"]["vote"]["notes"] == ["pool balanced by design: not comparable"]
    first, *others = document["paired"]
    assert first["primary"]
    assert (first["a"], first["b"], first["metric"]) == ("utility", "random", "auc")
    assert {c["b"] for c in others} == {"answer-only", "length", "random"}
    assert ("random", "auc") not in {(c["b"], c["metric"]) for c in others}  # it has had its own 5 %
    assert len(others) == 5
    assert all(c["verdict"] == "not distinguishable" for c in others)


def test_the_table_says_what_the_figures_mean(file: Path, tmp_path: Path) -> None:
    done = run("run", file, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in (
        "(chance)",
        "primary comparison",
        "not distinguishable",
        "1 problems without",
        "AUC against",
    ):
        assert words in done.stdout
    assert "SECRET-SOURCE" not in "".join(p.read_text() for p in (tmp_path / "runs").rglob("text/*.jsonl"))


def test_score_gives_the_same_and_status_counts(file: Path, tmp_path: Path) -> None:
    first = json.loads(run("run", file, "--json", cwd=tmp_path).stdout)
    again = run("score", first["run"], "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["methods"] == first["methods"]
    assert json.loads(again.stdout)["paired"] == first["paired"]
    status = run("status", first["run"], cwd=tmp_path)
    assert "0 of them still to be asked" in status.stdout
    assert "rollouts" in (tmp_path / first["run"] / "status.txt").read_text(encoding="utf-8")


def test_more_rollouts_extend_a_run_and_a_dry_run_knows_it(file: Path, tmp_path: Path) -> None:
    run("run", file, cwd=tmp_path)
    dry = run("run", file, "--set", "methods.utility.rollouts=4", "--dry-run", "--json", cwd=tmp_path)
    plan = json.loads(dry.stdout)["methods"]
    assert plan["utility"]["rollouts"] > plan["utility"]["stored"] > 0
    assert plan["answer-only"]["rollouts"] == plan["answer-only"]["stored"]
    more = run("run", file, "--set", "methods.utility.rollouts=4", "--json", cwd=tmp_path)
    assert more.returncode == 0, more.stderr
    document = json.loads(more.stdout)
    assert document["methods"]["utility"]["rollouts"] == plan["utility"]["rollouts"]
    assert document["methods"]["utility"]["auc"]["value"] == pytest.approx(AUC)


def test_other_settings_are_refused_unless_accepted(file: Path, tmp_path: Path) -> None:
    run("run", file, cwd=tmp_path)
    refused = run("run", file, "--set", "models.solver.max_tokens=50", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--accept-changes" in refused.stderr
    assert (
        run("run", file, "--set", "models.solver.max_tokens=50", "--accept-changes", cwd=tmp_path).returncode
        == 0
    )


def test_a_primary_comparison_named_too_late_is_said(file: Path, tmp_path: Path) -> None:
    run("run", file, cwd=tmp_path)
    late = run("run", file, "--set", "primary.metric=acc@1", cwd=tmp_path)
    assert "was changed after answers came in" in late.stderr


def test_a_problem_without_neighbors_is_no_problem_for_utility(file: Path, tmp_path: Path) -> None:
    bare = Problem(id="bare", question="q", candidates=pool("p0", POOLS["p0"]).candidates, neighbors=())
    write_problems([bare], tmp_path / "set.jsonl", force=True)
    done = run("run", file, cwd=tmp_path)
    assert done.returncode == 2
    assert "methods.utility needs some" in done.stderr


def test_fewer_neighbors_ask_for_less(file: Path, tmp_path: Path) -> None:
    plans = [
        json.loads(run("run", file, "--set", f"neighbors={n}", "--dry-run", "--json", cwd=tmp_path).stdout)
        for n in (1, 2)
    ]
    one, two = (plan["methods"]["answer-only"]["rollouts"] for plan in plans)
    assert one < two


def test_pools_that_an_allocation_starved_are_in_no_metric_of_the_whole_order(
    file: Path, tmp_path: Path
) -> None:
    flags = ["--set", "methods.utility.rollouts=32", "--set", 'methods.utility.allocation={policy="toptwo"}']
    done = run("run", file, *flags, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    utility = json.loads(done.stdout)["methods"]["utility"]
    assert utility["auc"]["uneven"] > 0
    assert utility["acc@1"]["n"] == 5
    bad = run("run", file, "--set", 'methods.utility.allocation={policy="greedy"}', cwd=tmp_path)
    assert bad.returncode == 2
    assert "greedy" in bad.stderr


def test_where_takes_a_part_of_the_set(file: Path, tmp_path: Path) -> None:
    done = run("run", file, "--set", "where.split=report", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["problems"] == 5
    none = run("run", file, "--set", "where.split=nowhere", cwd=tmp_path)
    assert none.returncode == 2
    assert "none of the 6" in none.stderr


def test_a_budget_stops_with_3_and_the_rest_is_asked_later(file: Path, tmp_path: Path) -> None:
    with serving() as url:
        flags = ["--set", "models.solver.model=openai/test-model", "--set", f"models.solver.base_url={url}"]
        flags += ["--set", "models.solver.concurrency=2"]
        stopped = run("run", file, *flags, "--set", "budget.requests=10", cwd=tmp_path)
        assert stopped.returncode == 3, stopped.stderr
        assert "to go on" in stopped.stderr
        whole = run("run", file, *flags, "--json", cwd=tmp_path)
        assert whole.returncode == 0, whole.stderr


def test_killed_and_resumed_gives_the_same(file: Path, tmp_path: Path) -> None:
    undisturbed = json.loads(run("run", file, "--json", "-o", "calm", cwd=tmp_path).stdout)
    slow = ["--set", "models.solver.model=fake/rate_right=1,rate_wrong=0,delay=0.05", "-o", "killed"]
    process = subprocess.Popen(
        [sys.executable, "-m", "porism", "run", str(file), *slow],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    index = tmp_path / "killed" / "index.jsonl"
    for _ in range(300):
        time.sleep(0.05)
        if index.exists() and index.read_text().count("\n") > 20:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    resumed = run("run", file, "--json", *slow, cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    for name, method in json.loads(resumed.stdout)["methods"].items():
        assert method["auc"] == undisturbed["methods"][name]["auc"]
    ids = [json.loads(line)["id"] for line in index.read_text().splitlines()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("modls.solver.model=x", "did you mean 'models'"),
        ("methods.utility.rolouts=3", "did you mean 'rollouts'"),
        ("methods.judge.calls=3", "[models.NAME]"),
        ("methods.utility.model=solvr", "there is no [models.solvr]"),
        ("methods.length.model=solver", "asks no model"),
        ("methods.jugde.calls=3", "did you mean 'judge'"),
        ("primary.methods=['utility', 'judge']", "there is no [methods.judge]"),
        ("primary.metric=acc", "unknown metric"),
        ("metrics=['aucc']", "unknown metric"),
        ("equal_cost.like=judge", "there is no [methods.judge]"),
        ("data=missing.jsonl", "missing.jsonl"),
        ("models.solver.temperature=-1", "models.solver.temperature"),
        ("models.solver.temperature=inf", "finite"),
        ("models.again={model='fake/rate_right=1,rate_wrong=0', base_url='http://x'}", "opened once"),
        ("models.solver.reward=score", "writes no text"),
        ("methods.reward.model=solver", 'says reward = "pooling"'),
        ("methods.utility.rollouts=nan", "rollouts is nan: it must be a whole number"),
        ("methods.utility.rollouts=1000000000", "at most 100,000"),
        ("methods.utility.rollouts=2.5", "rollouts is 2.5: it must be a whole number"),
        ("methods.utility.rollouts=true", "rollouts is True: it must be a whole number"),
        ("methods.random.seed='x'", "seed is 'x': it must be a whole number"),
        ("methods.utility.solvers=['x']", "solvers is no key"),
        ("primary.methods=['utility', 'utility']", "not compared with itself"),
        ("metrics=['recall@x']", "unknown metric"),
        ("budget.cost=3", "price"),
        ("data=[]", "data: is empty"),
        ("methods.utility.template=nowhere.j2", "nowhere.j2"),
        ("nonsense", "write key=value"),
    ],
)
def test_a_bad_configuration_ends_before_the_first_request(
    file: Path, tmp_path: Path, change: str, told: str
) -> None:
    done = run("run", file, "--set", change, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_an_unlabelled_set_has_no_metrics_but_scores(tmp_path: Path, file: Path) -> None:
    bare = [
        Problem(
            id="u",
            question="q",
            candidates=(Candidate(id="a", text="[[helps]]"), Candidate(id="b", text="b")),
            neighbors=pool("u", "R+").neighbors,
        )
    ]
    write_problems(bare, tmp_path / "set.jsonl", force=True)
    refused = run("run", file, cwd=tmp_path)
    assert refused.returncode == 2
    assert "metrics = []" in refused.stderr
    done = run("run", file, "--set", "metrics=[]", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["paired"] == []


def test_neighbors_of_a_family_are_drawn_as_for_rank(tmp_path: Path, file: Path) -> None:
    family = {
        "name": "sums",
        "question": "What is <n> + 1? [[answer: <value>]]",
        "parameters": {"n": {"type": "integer", "range": [200, 300]}},
        "derived": {"value": "n + 1"},
        "answer": "n + 1",
        "neighbors": 3,
    }
    drawn = replace(pool("p0", POOLS["p0"]), neighbors=(), family=family)
    write_problems([drawn], tmp_path / "set.jsonl", force=True)
    done = run("run", file, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["methods"]["utility"]["right"]["value"] == 1
    assert document["methods"]["utility"]["rollouts"] == 3 * 5 * 2 + 1  # and the attempt at the target
    again = run("score", document["run"], "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["methods"] == document["methods"]


def test_code_of_an_answer_type_runs_only_when_allowed(tmp_path: Path, file: Path) -> None:
    (tmp_path / "mine.py").write_text("def same(answer, gold):\n    return answer == gold\n")
    whole = pool("p0", POOLS["p0"])
    coded = replace(
        whole, neighbors=tuple(replace(n, answer_type="python:mine:same") for n in whole.neighbors)
    )
    write_problems([coded], tmp_path / "set.jsonl", force=True)
    refused = run("run", file, cwd=tmp_path)
    assert refused.returncode == 2
    assert "--allow-code" in refused.stderr
    done = run("run", file, "--json", "--allow-code", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["methods"]["utility"]["right"]["value"] == 1
    assert run("score", document["run"], cwd=tmp_path).returncode == 2
    again = run("score", document["run"], "--json", "--allow-code", cwd=tmp_path)
    assert json.loads(again.stdout)["methods"] == document["methods"]


def test_toml_that_cannot_be_read_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("limit = 1\ndata = = 2\n")
    done = run("run", "bad.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "line 2" in done.stderr


def test_a_reward_model_is_a_method_like_the_others(file: Path, tmp_path: Path) -> None:
    with serving() as url:
        change = f"models.rm={{model='vllm/test-model', base_url='{url}', reward='classify'}}"
        flags = ["--set", change, "--set", "methods.reward.model=rm"]
        done = run("run", file, *flags, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    # The server's reward is high for what helps, and of two such the shorter one's: the first wins but in p3.
    assert document["methods"]["reward"]["acc@1"]["value"] == pytest.approx(4 / 5)
    again = run("score", document["run"], "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["methods"] == document["methods"]


# Equal cost


def equal(file: Path, unit: str) -> list[tuple[str, int]]:
    changes = [
        f"equal_cost.unit={unit}",
        "equal_cost.like=utility",
        "methods.judge.model=solver",
        "methods.utility.rollouts=5",
    ]
    config = read_config(file, changes)
    problems = [pool(id, row) for id, row in POOLS.items()]
    methods = build(config, problems, lambda table: table.model, file.parent)
    return [(m.name, cost(m, problems, unit)) for m in methods]


@pytest.mark.parametrize("unit", ["calls", "tokens"])
def test_equal_cost_fills_up_to_the_cost_of_one_method(file: Path, unit: str) -> None:
    costs = dict(equal(file, unit))
    target = costs["utility"]
    assert 0.5 * target < costs["judge"] <= target
    assert 0.5 * target < costs["answer-only"] <= target
    assert costs["length"] == costs["random"] == 0


def test_paths_of_a_configuration_are_relative_to_it(file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.j2").write_text("{{ question }} {{ candidate }} MINE {{ neighbor }}")
    config = read_config(file, ["methods.utility.template=mine.j2"])
    problems = [pool("p0", POOLS["p0"])]
    method = build(config, problems, lambda table: table.model, file.parent)[0]
    assert isinstance(method, Utility)
    assert "MINE" in method.template
    assert config.data == (tmp_path / "set.jsonl",)


def test_models_with_other_sampling_cannot_share_a_method() -> None:
    config = BenchConfig.model_validate(
        {
            "data": ["x"],
            "models": {"a": {"model": "fake/a"}, "b": {"model": "fake/b", "temperature": 0.1}},
            "methods": {"utility": {"model": ["a", "b"]}},
        }
    )
    with pytest.raises(ConfigError, match="different sampling"):
        build(config, [], lambda table: table.model, Path())


EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("name", ["bench.toml", "paper.toml"])
def test_the_configurations_that_ship_hold(name: str) -> None:
    config = read_config(EXAMPLES / name)
    problems = [pool(id, row) for id, row in POOLS.items()]
    methods = build(config, problems, lambda table: table.model, EXAMPLES)
    assert [m.name for m in methods] == list(config.methods)
    assert cost(methods[0], problems, "calls") > 0


def test_audit_and_stress_see_every_method(file: Path, tmp_path: Path) -> None:
    run("stress", "set.jsonl", "-o", "stressed.jsonl", "--style", "padding", cwd=tmp_path)
    done = run("run", file, "--set", "data=stressed.jsonl", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["methods"]["utility"]["auc"]["value"] == pytest.approx(AUC)  # copies are in no pool
    report = json.loads(run("stress", "--run", document["run"], "--json", cwd=tmp_path).stdout)["methods"]
    assert report["utility"][0]["score"]["value"] == 0
    assert report["length"][0]["score"]["value"] > 50
    counts = json.loads(run("verify", "--run", document["run"], "--json", cwd=tmp_path).stdout)["counts"]
    assert counts["correct"] > 0
