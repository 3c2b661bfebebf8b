"""Every fault of a problem file is one line that names file, line and key."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from porism.data import check, load, read_problems, same_answer, write_problems
from porism.data.write import save
from porism.errors import DataError, InputError
from porism.types import Candidate, Neighbor, Problem

GOOD: dict[str, Any] = {
    "id": "a",
    "question": "q",
    "candidates": [{"id": "c", "text": "t"}],
    "neighbors": [{"id": "n", "question": "r", "answer": "1"}],
}


def row(**changes: Any) -> str:
    return json.dumps(GOOD | changes)


def candidate(**changes: Any) -> str:
    return row(candidates=[{"id": "c", "text": "t"} | changes])


def neighbor(**changes: Any) -> str:
    value = {"id": "n", "question": "r", "answer": "1"} | changes
    return row(neighbors=[{key: item for key, item in value.items() if item != "gone"}])


ERRORS = [
    ("a.jsonl", row(anwser="1"), "a.jsonl:1: anwser: unknown key; did you mean 'answer'?"),
    ("a.jsonl", candidate(txet="1"), "a.jsonl:1: candidates[0].txet: unknown key; did you mean 'text'?"),
    ("a.jsonl", neighbor(answer="gone", anwser="1"), "a.jsonl:1: neighbors[0].anwser: unknown key; did you mean"),
    ("a.jsonl", "\n\n" + row(schema=2), "a.jsonl:3: schema: schema 2 is not known; this version reads schema 1"),
    ("a.jsonl", row(metadata=[1]), "a.jsonl:1: metadata: must be keys and values, not a list"),
    ("a.jsonl", row(question=3), "a.jsonl:1: question: must be text, not the number 3"),
    ("a.jsonl", row(question=" \n"), "a.jsonl:1: question: is empty"),
    ("a.jsonl", row(id=None), "a.jsonl:1: id: is missing"),
    ("a.jsonl", row(candidates="c"), "a.jsonl:1: candidates: must be a list, not text"),
    ("a.jsonl", row(candidates=["c"]), "a.jsonl:1: candidates[0]: must be keys and values, not text"),
    ("a.jsonl", candidate(text=" "), "a.jsonl:1: candidates[0].text: is empty"),
    ("a.jsonl", candidate(kind="rihgt"), "a.jsonl:1: candidates[0].kind: must be one of 'right',"),
    ("a.jsonl", candidate(correct="yes"), "a.jsonl:1: candidates[0].correct: must be true or false, not 'yes'"),
    ("a.jsonl", candidate(human=1), "a.jsonl:1: candidates[0].human: must be true or false"),
    ("a.jsonl", neighbor(answer="gone"), "a.jsonl:1: neighbors[0].answer: is missing: a neighbor is a question"),
    ("a.jsonl", neighbor(answer=None), "a.jsonl:1: neighbors[0].answer: is missing"),
    ("a.jsonl", neighbor(answer=" "), "a.jsonl:1: neighbors[0].answer: is empty"),
    ("a.jsonl", neighbor(question=" Q\n"), "a.jsonl:1: neighbors[0].question: repeats the problem's own question"),
    ("a.jsonl", neighbor(flags="x"), "a.jsonl:1: neighbors[0].flags: must be a list, not text"),
    ("a.jsonl", row(candidates=GOOD["candidates"] * 2), "a.jsonl:1: candidates[1].id: 'c' is used already"),
    ("a.jsonl", row() + "\n" + row(), "a.jsonl:2: id: 'a' is used already: a.jsonl:1"),
    ("a.jsonl", row() + "\n[1]", "a.jsonl:2: a problem must be keys and values (id, question, ...), not a list"),
    ("a.jsonl", row() + '\n{"id": }', "a.jsonl:2: not valid JSON at column 8: Expecting value"),
    ("a.jsonl", row() + '\n{"id": 1, "id": 2}', "a.jsonl:2: the key 'id' is given twice"),
    ("a.jsonl", '{"a": {"id": 1, "id": 2}]},', "a.jsonl:1: the key 'id' is given twice"),
    ("a.jsonl", row() + '\n{"id": NaN}', "a.jsonl:2: NaN is not JSON"),
    ("a.jsonl", row(metadata={"x": 0}).replace("0", "1e999"), "a.jsonl:1: metadata.x: the number 1e999 is too large"),
    ("a.jsonl", row(metadata={"x": 0}).replace("0", "1" * 5000), "a.jsonl:1: metadata.x: a number of 5000 digits"),
    ("a.jsonl", "[" * 100_000, "a.jsonl:1: nested too deeply"),
    ("a.jsonl", row(metadata={"x": 0}).replace("0", "[" * 300 + "]" * 300), "a.jsonl:1: metadata.x[0][0]: nested more"),
    ("a.jsonl", row().encode() + b'\n{"id": "\xe9"}', "a.jsonl:2: byte 0xe9 at byte 9 of the line is not UTF-8"),
    ("a.jsonl", row().encode() + b'\n{"id": "\0"}', "a.jsonl:2: holds a NUL byte at byte 9 of the line"),
    ("a.jsonl", row(question="\0x"), "a.jsonl:1: question: holds a NUL character"),
    ("a.jsonl", row(metadata={"x": "\ud800"}), "a.jsonl:1: metadata.x: holds half of a surrogate pair"),
    ("a.jsonl", row().encode("utf-16"), "a.jsonl:1: this is UTF-16 text; save it as UTF-8"),
    ("a.jsonl", "", "a.jsonl: the file is empty"),
    ("a.jsonl", "\n \n", "a.jsonl: the file is empty"),
    ("a.json", "[]", "a.json: the list of problems is empty"),
    ("a.json", '[{"id": 1,\n ]', "a.json:2: not valid JSON at column 2: "),
    ("a.json", '{"id": 1,\n "metadata": {"id": 2,\n\n "id": 3}}', "a.json:4: the key 'id' is given twice"),
    ("a.json", f'[{row()},\n{{"id": "b",\n "qestion": "[{{\\"",\n "answer": 1}}]', "a.json:3: qestion: unknown key"),
    ("a.yaml", "# nothing\n", "a.yaml: no problem in the file"),
    ("a.yaml", "id: a\nquestion: q\n foo: [\n", "a.yaml:3: not valid YAML at column 5: mapping values are not allowed"),
    ("a.yaml", "id: a\nquestion: q\nid: b\n", "a.yaml:3: the key 'id' is given twice"),
    ("a.yaml", "id: a\nquestion: &q [1]\nanswer: *q\n", "a.yaml:2: anchors and aliases"),
    ("a.yaml", "id: a\nquestion: *q\n", "a.yaml:2: not valid YAML at column 11: found undefined alias"),
    ("a.yaml", "id: a\nquestion: !!binary q\n", "a.yaml:2: the tag !!binary is not read here"),
    ("a.yaml", "id: a\n<<: {}\nquestion: q\n", "a.yaml:2: <<: unknown key"),
    ("a.yaml", "id: a\n? [b]\n: c\n", "a.yaml:2: a key must be plain text"),
    ("a.yaml", "id: a\nquestion: \x07\n", "a.yaml:2: the character U+0007 is not allowed in YAML"),
    ("a.yaml", "id: é\n\nquestion: é\x08", "a.yaml:3: the character U+0008 is not allowed in YAML"),
    ("a.yaml", "[" * 100_000, "a.yaml:1: not valid YAML at column"),
    ("a.yaml", "id: a\nquestion: q\ncandidates:\n- id: c\n  text: ''\n", "a.yaml:5: candidates[0].text: is empty"),
    ("a.yaml", "id: a\nquestion: q\nneighbors:\n- id: n\n  question: r\n", "a.yaml:4: neighbors[0].answer: is missing"),
    ("a.yaml", b"id: a\nquestion: \xff\n", "a.yaml:2: byte 0xff at byte 11 of the line is not UTF-8"),
    ("a.parquet", b"PAR1 not really PAR1", "a.parquet: not a Parquet file that can be read: "),
    ("a.txt", "x", "a.txt: .txt is not read: use a folder or .jsonl, "),
    ("a.csv", "original question,foo\n1,2\n", "a.csv:1: the column 'variant question' is missing"),
    ("a.csv", "original question,variant question,variant answer\n", "a.csv: no rows under the header"),
    ("a.csv", "original question,variant question,variant answer\n1,2\n", "a.csv:2: 2 cells under 3 columns"),
    ("a.csv", "original question,variant question,variant answer\nq,r,\n", "a.csv:2: neighbors[0].answer: is empty"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def put(name: str, data: str | bytes) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize(("name", "data", "message"), ERRORS, ids=[m[:60] for _, _, m in ERRORS])
def test_a_fault_is_one_line(name: str, data: str | bytes, message: str) -> None:
    report = check(put(name, data))
    (error,) = report.errors
    assert str(error).startswith(message)
    with pytest.raises(DataError) as caught:
        read_problems(Path(name))
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (row(neighbors=[]), "a.jsonl:1: neighbors: 1 problem has no neighbors yet"),
        (row(candidates=[]), "a.jsonl:1: candidates: 1 problem has no candidates yet"),
        (
            row(answer="$1.0$"),
            "a.jsonl:1: neighbors[0].answer: is also the answer of the problem: a solver that",
        ),
        (
            candidate(answer="1."),
            "a.jsonl:1: neighbors[0].answer: is also the answer of candidate 'c': a solver",
        ),
        (
            candidate(text="So $\\boxed{1}$."),
            "a.jsonl:1: neighbors[0].answer: is also the answer of candidate 'c'",
        ),
        (
            candidate(derived_from="d"),
            "a.jsonl:1: candidates[0].derived_from: no candidate here has the id 'd'",
        ),
        (
            row(candidates=[{"id": "c", "text": "t"}, {"id": "d", "text": " T"}]),
            "a.jsonl:1: candidates[1].text: the same text as candidate 'c'",
        ),
        (
            row(neighbors=[GOOD["neighbors"][0], {"id": "m", "question": "r", "answer": "2"}]),
            "a.jsonl:1: neighbors[1].question: the same question as neighbor 'n'",
        ),
        (
            row(neighbors=[{**GOOD["neighbors"][0], "answer_type": "integr"}]),
            "a.jsonl:1: neighbors[0].answer_type: 'integr' is not known, and auto is used; did you mean 'integer'?",
        ),
    ],
)
def test_a_doubt_is_a_warning(text: str, message: str) -> None:
    report = load(put("a.jsonl", text))
    assert len(report.problems) == 1
    assert [str(finding)[: len(message)] for finding in report.warnings] == [message]


@pytest.mark.parametrize("kind", ["decimal:0.01", "python:my.checker:same", "auto", "set"])
def test_a_known_answer_type_is_no_doubt(kind: str) -> None:
    text = row(neighbors=[{**GOOD["neighbors"][0], "answer_type": kind}])
    assert load(str(put("a.jsonl", text))).findings == ()


def test_all_faults_at_once_and_the_good_rows() -> None:
    lines = [row(), "{", candidate(text="", kind="no", foo=1), row(id="b"), neighbor(id="", answer="")]
    report = check(put("a.jsonl", "\n".join(lines)))
    assert [problem.id for problem in report.problems] == ["a", "b"]
    assert [(finding.line, finding.key) for finding in report.errors] == [
        (2, ""),
        (3, "candidates[0].foo"),
        (3, "candidates[0].kind"),
        (3, "candidates[0].text"),
        (3, "id"),
        (5, "neighbors[0].id"),
        (5, "neighbors[0].answer"),
        (5, "id"),
    ]


def test_findings_before_a_syntax_error_are_kept() -> None:
    report = check(put("a.yaml", "id: a\nquestion: ''\n---\nid: [\n---\n"))
    assert [finding.line for finding in report.errors] == [2, 5]


def test_limit_stops_before_a_later_fault() -> None:
    path = put("a.jsonl", row() + "\n" + row(id="b") + "\n{")
    assert [problem.id for problem in read_problems(path, limit=2)] == ["a", "b"]
    with pytest.raises(DataError):
        read_problems(path, limit=3)


def test_a_message_does_not_grow_with_the_file() -> None:
    path = put("a.jsonl", "{\n" * 200)
    with pytest.raises(DataError) as caught:
        load(path)
    assert len(caught.value.findings) == 51
    assert caught.value.findings[-1] == "... and 150 more: porism data check a.jsonl"


@pytest.mark.parametrize(
    ("written", "answer"),
    [("42", "42"), ("0.10", "0.10"), ("007", "007"), ("1e5", "1e5"), ("no", "no"), ("true", "true"), ("0x1F", "0x1F"),
     ("2020-01-01", "2020-01-01"), ("1:30", "1:30"), ("1_000", "1_000"), ("'5'", "5"), ("null", None), ("", None),
     (".inf", ".inf"), ("9" * 5000, "9" * 5000)],
)  # fmt: skip
def test_a_yaml_answer_is_what_was_written(written: str, answer: str | None) -> None:
    path = put(
        "a.yaml", f"id: 1\nquestion: q\nanswer: {written}\nmetadata: {{a: 1, b: 1.5, c: yes, d: true}}\n"
    )
    (problem,) = read_problems(path)
    assert (problem.id, problem.answer) == ("1", answer)
    assert repr(problem.metadata) == repr({"a": 1, "b": 1.5, "c": "yes", "d": True})


def test_a_json_answer_is_what_was_written() -> None:
    (problem,) = read_problems(
        put("a.json", '{"id": 1, "question": "q", "answer": 0.10, "metadata": {"answer": 0.10}}')
    )
    assert (problem.id, problem.answer, problem.metadata) == ("1", "0.10", {"answer": 0.1})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "id: a\nquestion: q\n"),
        ("a.yml", "- id: a\n  question: q\n"),
        ("a.yaml", "---\nid: a\nquestion: q\n---\n- {id: b, question: q}\n- {id: c, question: q}\n"),
        ("a.json", '{"id": "a", "question": "q"}'),
        ("a.JSON", '\ufeff[{"id": "a", "question": "q"}]'),
        ("a.ndjson", '\ufeff{"id": "a", "question": "q"}\r\n\r\n'),
    ],
)
def test_shapes_of_a_file(name: str, text: str) -> None:
    problems = read_problems(put(name, text))
    assert [problem.id for problem in problems] == ["a", "b", "c"][: len(problems)]
    assert problems[0] == Problem(id="a", question="q", candidates=(), neighbors=())


def test_parquet_of_others() -> None:
    pl.DataFrame(
        {"id": [1, 2], "quesion": ["a", "b"], "candidates": [[{"id": "a", "txt": "b"}], None]}
    ).write_parquet("a.parquet")
    assert [str(finding) for finding in check(Path("a.parquet")).errors] == [
        "a.parquet: quesion: unknown column; did you mean 'question'?",
        "a.parquet: candidates.txt: unknown field; did you mean 'text'?",
    ]
    pl.DataFrame(
        {
            "id": [1, 2],
            "question": ["a", "b"],
            "candidates": [[{"id": 7, "text": "b"}], None],
            "answer": [1.5, 2],
        }
    ).write_parquet("b.parquet")
    problems = read_problems(Path("b.parquet"))
    assert [(problem.id, problem.answer) for problem in problems] == [("1", "1.5"), ("2", "2.0")]
    assert problems[0].candidates == (Candidate(id="7", text="b"),)
    data = Path("b.parquet").read_bytes()
    put("c.parquet", data[: len(data) // 2])
    assert "not a Parquet file that can be read" in str(check(Path("c.parquet")).errors[0])


def test_expertmath_csv() -> None:
    text = (
        "Original_Question,source,Original answer,variant source,VARIANT QUESTION,variant_answer\n"
        '"What is\n1+1?",book,2,staff,What is 1+2?,3\n'
        "Other?,paper,7,,,\n"
        '"What is\n1+1?",book,2,staff,What is 2+2?,"$4$, no more"\n'
    )
    problems = read_problems(put("a.csv", text))
    assert problems == [
        Problem(
            id="q001",
            group="q001",
            question="What is\n1+1?",
            answer="2",
            candidates=(),
            neighbors=(
                Neighbor(id="v1", question="What is 1+2?", answer="3", source="staff"),
                Neighbor(id="v2", question="What is 2+2?", answer="$4$, no more", source="staff"),
            ),
            metadata={"source": "book"},
        ),
        Problem(
            id="q002",
            group="q002",
            question="Other?",
            answer="7",
            candidates=(),
            neighbors=(),
            metadata={"source": "paper"},
        ),
    ]


def test_a_csv_fault_names_the_first_line_of_its_row() -> None:
    text = 'original question,variant question,variant answer\n"q\n\n",r,\n"p\n",r,\n'
    errors = check(put("a.csv", text)).errors
    assert [(finding.line, finding.key) for finding in errors] == [
        (2, "neighbors[0].answer"),
        (5, "neighbors[0].answer"),
    ]


FOLDER = {
    "question.md": "What?\n",
    "candidates/b.md": "---\nanswer: 0.10\ncorrect: true\n---\n\nText *b*.\n",
    "candidates/a.tex": "Text $a$.\n\n---\n\nmore\n",
    "candidates/.hidden": "x",
    "neighbors.yaml": "- question: r\n  answer: 1\n- {id: two, question: s, answer: no}\n",
    "answer.md": "0.1\n",
    "solution.tex": "Because.\n",
    "problem.yaml": "subject: s\nmetadata: {year: 2020}\n",
}


def folder(name: str = "p", **changes: str) -> Path:
    for file, text in (
        FOLDER | {key.replace("__", "/").replace("_", "."): text for key, text in changes.items()}
    ).items():
        put(f"{name}/{file}", text)
    return Path(name)


def test_a_folder_is_a_problem() -> None:
    assert load(folder()).findings == ()
    assert read_problems(Path("p")) == [
        Problem(
            id="p",
            question="What?",
            candidates=(
                Candidate(id="a", text="Text $a$.\n\n---\n\nmore"),
                Candidate(id="b", text="Text *b*.", answer="0.10", correct=True),
            ),
            neighbors=(
                Neighbor(id="n1", question="r", answer="1"),
                Neighbor(id="two", question="s", answer="no"),
            ),
            answer="0.1",
            solution="Because.",
            subject="s",
            metadata={"year": 2020},
        )
    ]
    os.chdir("p")
    assert read_problems(Path())[0].id == "p"


def test_a_folder_of_folders() -> None:
    folder("all/one")
    folder("all/two")
    Path("all/notes").mkdir()
    assert [problem.id for problem in read_problems(Path("all"))] == ["one", "two"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question_tex": "What?"}, "p/question.tex: question.md is there too: keep one of them"),
        ({"question_md": " "}, "p/question.md: the file is empty"),
        ({"candidates__b_md": ""}, "p/candidates/b.md: the file is empty"),
        ({"candidates__b_md": "---\ncorrect: true\n---\n"}, "p/candidates/b.md:2: candidates[1].text: is empty"),
        ({"candidates__b_md": "---\na: 1\n\ncorect: true\n---\nb"}, "p/candidates/b.md:4: candidates[1].corect: "),
        ({"candidates__b_md": "---\nanswer: [\n---\nb"}, "p/candidates/b.md:3: not valid YAML"),
        ({"candidates__b_md": "---\nanswer: 1\nid: x\n---\nb"}, "p/candidates/b.md:3: leave out 'id'"),
        ({"candidates__a_md": "b"}, "p/candidates/a.tex:1: candidates[1].id: 'a' is used already: candidates[0]"),
        ({"neighbors_yaml": "- question: r\n"}, "p/neighbors.yaml:1: neighbors[0].answer: is missing"),
        ({"neighbors_yaml": "- answer: 2\n  question: what?"}, "p/neighbors.yaml:2: neighbors[0].question: repeats"),
        ({"neighbors_yaml": "question: r\nanswer: 1"}, "p/neighbors.yaml:1: must be a list"),
        ({"neighbors_yaml": "# none\n"}, "p/neighbors.yaml: no values in the file"),
        ({"problem_yaml": "a: 1\nquestion: x"}, "p/problem.yaml:2: 'question' stands in files of its own"),
        ({"problem_yaml": "subject: x\nanswer: 1"}, "p/answer.md: problem.yaml gives 'answer' too"),
        ({"problem_yaml": "subject: x\nsubjct: x"}, "p/problem.yaml:2: subjct: unknown key; did you mean 'subject'?"),
    ],
)  # fmt: skip
def test_a_fault_in_a_folder_names_its_file(changes: dict[str, str], message: str) -> None:
    errors = [str(finding) for finding in check(folder(**changes)).errors]
    assert [error for error in errors if error.startswith(message)], errors


def test_a_folder_with_other_files() -> None:
    put("q/notes.md", "x")
    assert str(check(Path("q")).errors[0]) == "q: no question.md or question.tex here; make one: porism new q"
    folder()
    put("p/candidates/c.txt", "x")
    (warning,) = check(Path("p")).findings
    assert str(warning) == "p/candidates/c.txt: not read: a candidate is a .md or .tex file"
    assert str(check(Path("nowhere")).errors[0]) == "nowhere: no such file or folder"


def test_a_line_of_200_mb_is_refused_without_being_held() -> None:
    """Peak memory is that of a fresh process that reads the file."""
    with Path("a.jsonl").open("wb") as stream:
        stream.write(b'{"id": "')
        for _ in range(200):
            stream.write(b"x" * 1_000_000)
        stream.write(b'"}\n' + row().encode())
    program = (
        "import tracemalloc; from pathlib import Path; from porism.data import check; tracemalloc.start();"
        "r = check(Path('a.jsonl')); print(tracemalloc.get_traced_memory()[1]);"
        "print(len(r.problems)); print(*r.errors)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    peak, problems, error = done.stdout.splitlines()
    assert int(peak) < 120_000_000  # one line of the longest that is read, and its decoding
    assert problems == "1"
    assert error.startswith("a.jsonl:1: the line is longer than 50 MB")


def test_a_large_file_is_read_line_by_line() -> None:
    with Path("a.jsonl").open("w") as stream:
        for number in range(100):
            stream.write(candidate(text="word " * 20_000).replace('"a"', f'"{number}"', 1) + "\n")
    assert Path("a.jsonl").stat().st_size > 10_000_000
    assert check(Path("a.jsonl")).counts["candidates"] == 100
    assert len(read_problems(Path("a.jsonl"), limit=3)) == 3


def test_writing_refuses_and_keeps_a_copy() -> None:
    one = Problem(id="a", question="q", candidates=(), neighbors=())
    path = Path("deep/a.jsonl")
    write_problems([one], path)
    with pytest.raises(InputError, match="exists already; add --force"):
        write_problems([one], path)
    old = path.read_bytes()
    write_problems([one, Problem(id="b", question="q", candidates=(), neighbors=())], path, force=True)
    assert Path("deep/a.jsonl.bak").read_bytes() == old
    assert len(read_problems(path)) == 2
    for bad in (Path("a.csv"), Path("a"), Path("deep")):
        with pytest.raises(InputError):
            write_problems([one], bad)
    with pytest.raises(InputError, match="no problems"):
        write_problems([], Path("b.jsonl"))
    for odd in (float("nan"), {1, 2}, "\ud800"):
        with pytest.raises(InputError, match="problem 'a' cannot be written"):
            write_problems(
                [Problem(id="a", question="q", candidates=(), neighbors=(), metadata={"x": odd})],
                Path("b.json"),
            )
    assert sorted(str(p) for p in Path().rglob("*")) == ["deep", "deep/a.jsonl", "deep/a.jsonl.bak"]


def test_a_write_that_fails_leaves_the_old_file() -> None:
    """A real failure: the process may write no file of more than 1000 bytes."""
    put("a.jsonl", row())
    program = (
        "import resource, signal; from pathlib import Path; from porism.data.write import save;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        "save(Path('a.jsonl'), b'x' * 5000, force=True)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "InputError: a.jsonl: cannot be written: File too large" in done.stderr
    assert Path("a.jsonl").read_text() == row()
    assert [path.name for path in Path().iterdir()] == ["a.jsonl"]


def test_a_link_stays_a_link() -> None:
    put("real.md", "old")
    Path("link.md").symlink_to("real.md")
    save(Path("link.md"), b"new", force=True)
    assert Path("link.md").is_symlink()
    assert Path("real.md").read_text() == "new"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1/2", r"\frac{1}{2}", True), ("1/2", r"$\dfrac12$", True), ("5", r"$\boxed{5}$.", True),
        ("1,000", "1000", True), ("2.50", "2.5", True), ("+3", "3", True), ("10", "1", False),
        ("100", "1", False), ("x", "X", False),
        (r"\boxed{\frac{1}{2}}", "1/2", True), ("", ".", True), ("(1, 2)", "(1,2)", True), ("12", "1,2", False),
    ],
)  # fmt: skip
def test_same_answer(one: str, other: str, same: bool) -> None:
    assert same_answer(one, other) is same
    assert same_answer(other, one) is same


def test_the_examples_of_the_manual_hold() -> None:
    manual = (Path(__file__).parents[1] / "docs" / "problem-files.md").read_text()
    blocks = re.findall(r"```(yaml|json|csv)\n(.*?)```", manual, re.DOTALL)
    whole = [(ending, text) for ending, text in blocks if not text.startswith("#")]
    assert [ending for ending, _ in whole] == ["yaml", "json", "csv"]
    for ending, text in whole:
        report = load(put(f"example.{ending}", text))
        assert report.counts["neighbors"] == 1
    attempt = re.findall(r"```markdown\n(.*?)```", manual, re.DOTALL)[0]
    neighbors = next(text for _, text in blocks if text.startswith("# neighbors.yaml"))
    assert load(folder(candidates__b_md=attempt, neighbors_yaml=neighbors)).findings == ()
