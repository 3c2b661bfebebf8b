"""The run folder: what is written is found again, whatever ends the writer."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest

from porism.errors import ConfigError, StoreError
from porism.store import MISSING, Failure, Row, Store
from porism.types import Cell, Completion, Gold, Message, Prompt, Sampling, Usage, Verdict

CELL = Cell("p", "a", "n", "utility", "m", 0)
GOLD = Gold("7")


def prompt() -> Prompt:
    return Prompt("m", (Message("user", "hello"),), Sampling(max_tokens=5))


def fill(path: Path, numbers: range) -> None:
    with Store(path) as store:
        for i in numbers:
            store.add_prompt(prompt())
            row = Row(f"k-{i}", CELL, "stop", answer=str(i), usage=Usage(10, 5, 2, 1))
            store.add(row, Completion(i, f"text {i} \N{SNOWMAN}\n", reasoning=f"because {i}"))
            store.add_verdict(str(i), GOLD, "1", Verdict("correct" if i == 7 else "wrong", "equal"))


def test_everything_is_found_again(tmp_path: Path) -> None:
    fill(tmp_path / "run", range(4))
    fill(tmp_path / "run", range(4, 8))
    store = Store(tmp_path / "run", write=False)
    assert list(store.rows) == [f"k-{i}" for i in range(8)]
    assert store.usage == Usage(80, 40, 16, 8)
    assert store.torn == 0
    for i in range(8):
        found = store.completion(store.rows[f"k-{i}"], i)
        assert (found.text, found.reasoning) == (f"text {i} \N{SNOWMAN}\n", f"because {i}")
    assert store.verdict("7", GOLD, "1") == Verdict("correct", "equal")
    with pytest.raises(ConfigError, match=r"version 1 .* version 2.*verify --run .*run --again"):
        store.verdict("7", GOLD, "2")
    assert store.verdict("8", GOLD, "2") is None
    assert store.verdict("7", Gold("7", "integer"), "1") is None


@pytest.mark.parametrize("cut", [1, 7, 40])
def test_a_torn_line_is_owed_and_nothing_else(tmp_path: Path, cut: int) -> None:
    fill(tmp_path / "run", range(3))
    index = tmp_path / "run" / "index.jsonl"
    index.write_bytes(index.read_bytes()[:-cut])
    with Store(tmp_path / "run") as store:
        assert list(store.rows) == ["k-0", "k-1"] if cut > 1 else 3
        store.add(Row("k-9", CELL, "stop"), Completion(9, "nine"))
    again = Store(tmp_path / "run", write=False)
    assert "k-9" in again.rows
    assert again.completion(again.rows["k-9"], 9).text == "nine"
    assert again.torn == (cut > 1)


def test_garbage_in_the_middle_is_counted(tmp_path: Path) -> None:
    fill(tmp_path / "run", range(3))
    index = tmp_path / "run" / "index.jsonl"
    lines = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(lines[0] + b"\xff\x00 nonsense\n" + b"[1,2]\n" + lines[2])
    store = Store(tmp_path / "run", write=False)
    assert list(store.rows) == ["k-0", "k-2"]
    assert store.torn == 2


def test_a_later_answer_replaces_a_missing_one(tmp_path: Path) -> None:
    with Store(tmp_path / "run") as store:
        store.add(Row("k", CELL, MISSING, again=True))
    with Store(tmp_path / "run") as store:
        assert store.rows["k"].finish == MISSING
        store.add(Row("k", CELL, "stop", answer="1"), Completion(0, "1"))
    assert Store(tmp_path / "run", write=False).rows["k"].finish == "stop"


def test_failures_are_counted(tmp_path: Path) -> None:
    with Store(tmp_path / "run") as store:
        store.add_failure(Failure("t", "m", "k", 0, 1, 1, "timeout", "slow"))
    assert Store(tmp_path / "run", write=False).failures == 1


def test_two_writers_are_one_too_many(tmp_path: Path) -> None:
    with Store(tmp_path / "run"), pytest.raises(StoreError, match="another porism process"):
        Store(tmp_path / "run")
    Store(tmp_path / "run").close()


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run here"):
        Store(tmp_path / "nothing", write=False)


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("in the way")
    with pytest.raises(ConfigError, match="is a file"):
        Store(tmp_path / "run")


def test_settings_round_trip(tmp_path: Path) -> None:
    with Store(tmp_path / "run") as store:
        store.update_settings(lambda old: {**old, "name": "x", "nothing": None})
        assert store.read_json("run.json") == {"schema": 1, "name": "x", "nothing": None}
    assert not list((tmp_path / "run").glob("*.tmp"))


def test_a_line_that_a_full_disk_cut_is_closed_before_the_next(tmp_path: Path) -> None:
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Store(tmp_path / "run") as store:
        store.add(Row("k-0", CELL, "stop"), Completion(0, "zero"))
        size = (tmp_path / "run" / "text" / "00001.jsonl").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
        try:
            with pytest.raises(StoreError, match="cannot be written"):
                store.add(Row("k-1", CELL, "stop"), Completion(1, "one"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, old)
        store.add(Row("k-2", CELL, "stop"), Completion(2, "two"))
    again = Store(tmp_path / "run", write=False)
    assert list(again.rows) == ["k-0", "k-2"]
    assert again.completion(again.rows["k-2"], 2).text == "two"
    lines = (tmp_path / "run" / "text" / "00001.jsonl").read_bytes().splitlines()
    assert [line.endswith(b"}") for line in lines] == [True, False, True]


def test_foreign_files_among_the_texts_are_passed_over(tmp_path: Path) -> None:
    fill(tmp_path / "run", range(1))
    (tmp_path / "run" / "text" / "00001 (copy).jsonl").write_text("{}")
    fill(tmp_path / "run", range(1, 2))
    assert len(Store(tmp_path / "run", write=False).rows) == 2
