"""Neighbors made by models: hostile replies, a real server that follows a script, real files, real ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porism.data import read_problems, write_problems
from porism.errors import ConfigError
from porism.neighbors.making import MakeConfig, plan
from porism.neighbors.proposals import Pair, Proposal, is_compact, parse, screen
from porism.types import Neighbor, Problem
from server import serving

TARGET = "How many 4-bead necklaces are there?"


def pair(question: str, answer: str) -> str:
    return f"<question>{question}</question>\n<answer>{answer}</answer>\n"


# Replies


@pytest.mark.parametrize(
    ("reply", "pairs"),
    [
        (
            pair("What is $\\frac{1}{2}+1$?", "$\\frac{3}{2}$"),
            [("What is $\\frac{1}{2}+1$?", "\\frac{3}{2}")],
        ),
        (
            "Sure!\n<Question 1>One?\n<Answer>1.\n<question>Two?</question> 2 <answer>2",
            [("One?", "1"), ("Two?", "2")],
        ),
        ("<question>No answer?</question>", [("No answer?", None)]),
        (
            "1. **Question:** 2+2?\n   **Answer:** 4\n\n2. **Question 2:** 3+3?\n**Answer**: $6$.",
            [("2+2?", "4"), ("3+3?", "6")],
        ),
        ("### Question 1:\nOne?\n\n<answer>1</answer>\n\nQuestion 2: Two?", [("One?", "1"), ("Two?", None)]),
        (
            '[{"question": "One?", "answer": 1}, {"question": "Two?", "answer": "2"}]',
            [("One?", "1"), ("Two?", "2")],
        ),
        ('```json\n{"questions": [{"Problem": "One?", "Answer": "1"}]}\n```', [("One?", "1")]),
        # A broken list gives its whole objects; LaTeX that JSON takes for escapes stays LaTeX.
        (
            r'[{"question": "Is \frac{1}{2} \neq \sqrt{3} \times \beta\nHm?", "answer": "\boxed{\frac12}"}, {"quest',
            [("Is \\frac{1}{2} \\neq \\sqrt{3} \\times \\beta\nHm?", "\\frac12")],
        ),
        (
            r'[{"question": "Escaped \\frac{1}{2} \"well\" \u00e9?", "answer": "1"}]',
            [('Escaped \\frac{1}{2} "well" é?', "1")],
        ),
        (pair("One?", "The answer is 7 because everything else was ruled out before."), [("One?", "7")]),
        ("<think>" + pair("Thought?", "1") + "</think>" + pair("Said?", "2"), [("Said?", "2")]),
        (pair("Odd \x00\x1b[31m\ud800 one?", "1"), [("Odd [31m? one?", "1")]),
    ],
)
def test_questions_are_found_in_whatever_form(reply: str, pairs: list[tuple[str, str | None]]) -> None:
    found = parse(reply)
    assert found.pairs == tuple(Pair(*p) for p in pairs)
    assert not found.faults


@pytest.mark.parametrize(
    ("reply", "faults"),
    [
        ("I would rather talk about the weather.", {"no question in the reply": 1}),
        ("", {"no question in the reply": 1}),
        ("[]", {"no question in the reply": 1}),
        ("[" * 50_000 + "{" * 50_000, {"no question in the reply": 1}),
        ("<think>I could ask <question>this?</question>", {"no question in the reply": 1}),
        ("<question>...</question><answer>...</answer>", {"empty question": 1}),
        (pair("x" * 5000, "1"), {"question too long": 1}),
        (
            pair("Show it.", "It follows by induction over all the prime divisors"),
            {"answer is a sentence": 1},
        ),
    ],
)
def test_what_holds_no_question_is_counted(reply: str, faults: dict[str, int]) -> None:
    found = parse(reply)
    assert not found.pairs
    assert found.faults == faults


def test_a_reply_that_was_cut_gives_what_is_whole() -> None:
    found = parse(pair("One?", "1") + "<question>How many of", truncated=True)
    assert found.pairs == (Pair("One?", "1"),)
    assert found.faults == {"cut off": 1}


@given(st.text(alphabet=st.sampled_from('<>/questionanwer{}[]":\\ \n\t*1u0dD.,$'), max_size=300))
def test_no_reply_is_too_odd(reply: str) -> None:
    for one in parse(reply).pairs:
        one.question.encode()
        assert one.question.strip()
        assert one.claimed is None or is_compact(one.claimed)


def problem(**more: Any) -> Problem:
    return Problem(**{"id": "p", "question": TARGET, "candidates": (), "neighbors": (), **more})


def proposals(*questions: str) -> list[Proposal]:
    return [
        Proposal(problem="p", question=q, claimed=None, strategy="perturb", model="m", prompt="", rollout=0)
        for q in questions
    ]


def test_the_target_and_what_was_said_already_are_counted() -> None:
    one = problem(neighbors=(Neighbor(id="n", question="How many of 3?", answer="2"),))
    asked = [
        TARGET.lower(),
        "How  many of $3$",
        "How many of 5?",
        "how many of 5",
        "How many of 6?",
        "How many of 7?",
    ]
    found = screen(one, proposals(*asked), 3, taken=proposals("How many of 6?"))
    assert [p.question for p in found.kept] == ["How many of 5?", "How many of 7?"]
    assert found.known == 1
    assert found.dropped == {"the target itself": 1, "duplicate": 2}


def test_five_hundred_proposals_are_too_many() -> None:
    replies = parse("".join(pair(f"How many of {i}?", str(i)) for i in range(500)))
    found = screen(problem(), proposals(*(p.question for p in replies.pairs)), 5)
    assert len(found.kept) == 5
    assert found.dropped == {"more than asked for": 495}


# The command


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "p.yaml"
    write_problems([problem(answer="6", neighbors=(Neighbor(id="n", question="Old?", answer="1"),))], path)
    return path


def run(*args: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "porism", "neighbors", "make", *map(str, args)],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def script(tmp_path: Path, rules: list[tuple[str, list[str]]]) -> str:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(rules))
    return str(path)


# The first rule whose text stands in the prompt answers: programs and solves first, for their prompts hold no others'.
GOOD, BAD, ODD, WRONG = (
    "How many 5-bead ones?",
    "How many 6-bead ones?",
    "How many colors?",
    "How many 7-bead ones?",
)
RULES: list[tuple[str, list[str]]] = [
    (GOOD, ["\\boxed{8}", "So \\boxed{8.0}", "\\boxed{\\frac{16}{2}}"]),
    (BAD, ["\\boxed{13}", "\\boxed{14}"]),
    (ODD, ["I do not know.", "\\boxed{6}"]),
    (WRONG, ["\\boxed{6}"]),  # the target's answer
    ("same idea", [pair(GOOD, "9") + pair(BAD, "13") + pair(TARGET, "6") + pair(GOOD, "8")]),
    ("special case", ["I cannot.", "[]", "{" + pair(ODD, "3") + pair(WRONG, "6")]),
    ("skills", ["no"]),
]


def made(
    tmp_path: Path, *args: object, rules: list[tuple[str, list[str]]] | None = None, **faults: Any
) -> Any:
    """What --json prints, and the process."""
    with serving(script=script(tmp_path, rules or RULES), **faults) as url:
        done = run(
            tmp_path / "p.yaml", "-g", "openai/test-model", "--base-url", url, "--json", *args, cwd=tmp_path
        )
    return (json.loads(done.stdout) if done.stdout else None), done


def test_what_solves_agree_on_is_kept_and_the_rest_set_aside(file: Path, tmp_path: Path) -> None:
    before = file.read_bytes()
    document, done = made(tmp_path)
    assert done.returncode == 0, done.stderr
    (one,) = read_problems(file)
    assert [n.id for n in one.neighbors] == ["n", "perturb-1"]
    new = one.neighbors[1]
    assert (new.question, new.kind, new.source) == (GOOD, "perturb", "model")
    provenance = new.provenance or {}
    assert provenance["model"] == "openai/test-model"
    assert provenance["claimed"] == "9"
    assert provenance["claim"] == "wrong"
    votes = provenance["votes"]
    assert (votes["agreeing"], votes["asked"]) == (8, 8)
    index = (tmp_path / document["run"] / "index.jsonl").read_text()
    assert f"{provenance['prompt']}-{provenance['rollout']}" in index
    assert file.with_name("p.yaml.bak").read_bytes() == before
    aside = [json.loads(line) for line in Path(document["aside_file"]).read_text().splitlines()]
    assert {(a["proposal"]["question"], a["reason"]) for a in aside} == {
        (BAD, "no agreement"),
        (ODD, "no agreement"),
        (WRONG, "the target's answer"),
    }
    asked = {a["proposal"]["question"]: a["votes"]["asked"] for a in aside}
    assert asked == {BAD: 2, ODD: 4, WRONG: 8}  # solved no further than agreement was in reach
    strategies = {s["name"]: s for s in document["problems"][0]["strategies"]}
    assert strategies["perturb"]["dropped"] == {"the target itself": 3, "duplicate": 7}
    assert strategies["special-case"]["malformed"] == {"no question in the reply": 2}
    assert strategies["sub-skill"]["malformed"] == {"no question in the reply": 3}
    for s in strategies.values():
        counted = [*s["malformed"].values(), *s["dropped"].values(), *s["aside"].values()]
        assert s["proposed"] == sum(counted) + s["known"] + s["kept"] + s["open"]


def test_the_same_command_again_asks_nothing_and_adds_nothing(file: Path, tmp_path: Path) -> None:
    first, _ = made(tmp_path)
    whole = file.read_bytes()
    second, done = made(tmp_path, error=1.0)  # a server that answers nothing
    assert done.returncode == 0, done.stderr
    assert second["usage"] == first["usage"]
    assert second["file"] is None
    assert file.read_bytes() == whole
    table = run(file, "-g", "fake/default", "-o", "out.jsonl", cwd=tmp_path)
    assert "no question in the reply" in table.stdout


def test_the_table_says_what_became_of_each(file: Path, tmp_path: Path) -> None:
    with serving(script=script(tmp_path, RULES)) as url:
        args = ["-g", "openai/test-model", "--base-url", url, "-o", "new.jsonl", "--price", "1,2"]
        done = run(file, *args, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith("perturb"))
    assert row == ["perturb", "12", "0", "10", "0", "1", "1", "0"]
    assert "set aside: the target's answer" in done.stdout
    assert "about $" in done.stdout
    assert len(read_problems(tmp_path / "new.jsonl")[0].neighbors) == 2
    assert len(read_problems(file)[0].neighbors) == 1
    assert not file.with_name("p.yaml.bak").exists()


def test_a_budget_stops_with_3_and_the_same_command_goes_on(file: Path, tmp_path: Path) -> None:
    stopped, done = made(tmp_path, "--max-requests", 10, "--concurrency", 1)
    assert done.returncode == 3
    assert "to go on: porism neighbors make" in done.stderr
    assert stopped["stopped"]
    assert sum(s["open"] for s in stopped["problems"][0]["strategies"]) > 0
    whole, done = made(tmp_path)
    assert done.returncode == 0, done.stderr
    assert sum(s["kept"] + s["known"] for s in whole["problems"][0]["strategies"]) == 1
    assert sum(s["open"] for s in whole["problems"][0]["strategies"]) == 0


def test_ctrl_c_ends_with_130_and_the_resume_command(file: Path, tmp_path: Path) -> None:
    with serving(script=script(tmp_path, RULES), latency=0.5) as url:
        command = ["neighbors", "make", str(file), "-g", "openai/test-model", "--base-url", url]
        process = subprocess.Popen(
            [sys.executable, "-m", "porism", *command, "--concurrency", "1"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not list((tmp_path / "runs").glob("*/index.jsonl")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 130, said
    assert "to go on: porism neighbors make" in said
    assert "Traceback" not in said
    assert len(read_problems(file)[0].neighbors) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux only")
def test_a_program_must_print_the_answer_too(file: Path, tmp_path: Path) -> None:
    agreed = [f"How many of {name}?" for name in ("one", "two", "three", "four")]
    programs = [
        "```python\nprint(sum([3, 5]))\n```",
        "```python\nprint(sum([3, 6]))\n```",
        "```python\nimport os\nwhile True: os.fork()\nprint(8)\n```",
        "I would print 8.",
    ]
    rules: list[tuple[str, list[str]]] = [
        (f"block.\n\nQuestion:\n{question}", [program])
        for question, program in zip(agreed, programs, strict=True)
    ]
    rules += [(question, ["\\boxed{8}"]) for question in agreed]
    rules += [("same idea", ["".join(pair(question, "8") for question in agreed)])]
    document, done = made(tmp_path, "--strategy", "perturb", "-n", 4, "--program-check", rules=rules)
    assert done.returncode == 0, done.stderr
    (one,) = read_problems(file)
    assert [n.question for n in one.neighbors[1:]] == agreed[:1]
    assert (one.neighbors[1].provenance or {})["program"] == {"outcome": "agrees", "output": "8"}
    aside = {a["proposal"]["question"]: a for a in document["problems"][0]["aside"]}
    assert [aside[q]["reason"] for q in agreed[1:]] == [
        "program: disagrees",
        "program: failed",
        "program: no program",
    ]
    assert "PermissionError" in aside[agreed[2]]["program"]["error"]
    assert any("seccomp" in line for line in document["protections"])


def test_three_solvers_give_one_sample_each(file: Path, tmp_path: Path) -> None:
    solvers = [f"fake/rate=1,seed={i}" for i in (1, 2)] + ["fake/rate=0"]
    question = "How many? [[answer: 5]]"
    rules = [("same idea", [pair(question, "5")])]
    args = [part for solver in solvers for part in ("--solver", solver)]
    document, _ = made(tmp_path, "--strategy", "perturb", "-n", 1, *args, rules=rules)
    (aside,) = document["problems"][0]["aside"]
    assert aside["reason"] == "no agreement"
    assert aside["votes"]["by_model"] == {solvers[0]: [1, 1], solvers[1]: [1, 1], solvers[2]: [0, 1]}
    args[-1] = "fake/rate=1,seed=3"
    document, _ = made(tmp_path, "--strategy", "perturb", "-n", 1, *args, rules=rules)
    (kept,) = document["problems"][0]["neighbors"]
    assert kept["answer"] == "5"


def test_dry_run_counts_and_touches_nothing(file: Path, tmp_path: Path) -> None:
    done = run(
        file, "-g", "openai/x", "--base-url", "http://127.0.0.1:1", "--dry-run", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rollouts"] == 3 + 3 * 5 * 8
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p.yaml"]


def test_a_text_gives_its_statements_to_one_strategy(file: Path, tmp_path: Path) -> None:
    text = tmp_path / "paper.txt"
    text.write_text("Theorem 1. Every necklace of prime length has (2^p - 2)/p + 2 colorings.\n")
    rules = [("Theorem 1. Every necklace", [pair("How many for p = 5?", "8")]), ("p = 5", ["\\boxed{8}"])]
    document, done = made(tmp_path, "--text", text, "-n", 1, rules=rules)
    assert done.returncode == 0, done.stderr
    assert [n["kind"] for n in document["problems"][0]["neighbors"]] == ["related-theorem"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--strategy", "pertrub"], "the strategies are perturb"),
        (["--strategy", "related-theorem"], "--text"),
        (["--text", "missing.txt"], "missing.txt"),
        (["-n", "0"], "at least 1"),
        (["--agreement", "0.3"], "above 0.5"),
        (["--max-cost", "1"], "--price"),
        (["-o", "out.txt"], "is not written"),
        (["--solver", "fake/a", "--solver", "fake/a"], "twice"),
    ],
)
def test_bad_input_exits_2_before_anything_is_asked(
    args: list[str], said: str, file: Path, tmp_path: Path
) -> None:
    done = run(file, "-g", "fake/default", *args, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


# Files


def test_a_folder_gets_them_in_its_neighbors(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    (folder / "question.md").write_text(TARGET)
    (folder / "neighbors.yaml").write_text("# mine\n- question: Old?\n  answer: 1\n")
    with serving(script=script(tmp_path, RULES)) as url:
        done = run("f", "-g", "openai/test-model", "--base-url", url, "--strategy", "perturb", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (one,) = read_problems(folder)
    assert [n.question for n in one.neighbors] == ["Old?", GOOD]
    assert (folder / "neighbors.yaml.bak").read_text().startswith("# mine")
    assert (tmp_path / "f.aside.jsonl").exists()


def test_a_file_that_is_there_is_not_replaced_unasked(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("mine\n")
    _, done = made(tmp_path, "-o", out)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert not (tmp_path / "runs").exists()
    _, done = made(tmp_path, "-o", out, "--force")
    assert done.returncode == 0, done.stderr
    assert len(read_problems(out)[0].neighbors) == 2
    assert out.with_name("out.jsonl.bak").read_text() == "mine\n"


def test_a_file_that_changed_meanwhile_is_left_alone(file: Path, tmp_path: Path) -> None:
    with serving(script=script(tmp_path, RULES), latency=0.3) as url:
        command = ["neighbors", "make", str(file), "-g", "openai/test-model", "--base-url", url]
        process = subprocess.Popen(
            [sys.executable, "-m", "porism", *command], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not list((tmp_path / "runs").glob("*/index.jsonl")):
            time.sleep(0.05)
        edited = file.read_text().replace("id: n\n", "id: perturb-1\n")
        file.write_text(edited)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 2, said
        assert "has changed meanwhile" in said
        assert file.read_text() == edited
        assert run(*command[2:], cwd=tmp_path).returncode == 0
    assert [n.id for n in read_problems(file)[0].neighbors] == ["perturb-1", "perturb-2"]


def test_more_problems_than_the_limit_stay_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    write_problems([problem(answer="6"), problem(id="q", question="Another?")], path)
    made(tmp_path, "--limit", 1)
    first, second = read_problems(path)
    assert [len(p.neighbors) for p in (first, second)] == [1, 0]


def test_the_plan_needs_no_machine_that_confines(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with_programs = plan(file, MakeConfig(generator="fake/default", program_check=True, n=2))
    assert with_programs.rollouts == 3 + 3 * 2 * (8 + 1)
    with pytest.raises(ConfigError):
        MakeConfig(generator="fake/default", samples=0)
