"""porism export: the tables hold what the store holds, in files of bounded size, and nothing there is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import porism
from porism.errors import ConfigError, StoreError
from porism.export import COLUMNS, ROWS, TEXTS, Exported, export
from porism.store import MISSING, Row, Store
from porism.types import Cell, Completion
from samples import problem

FAKE = "fake/rate_right=0.9,rate_wrong=0.1"
SCHEMA = {name: pl.String if kind is str else pl.Int64 for name, kind in (COLUMNS | TEXTS).items()}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    problems = [problem("first"), problem("second/odd: name"), problem("third")]
    porism.rank(problems, model=FAKE, rollouts=4, output=tmp_path / "run")
    return tmp_path / "run"


def command(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "porism", "export", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
    )


def compare(run: Path, folder: Path) -> pl.DataFrame:
    """Every row of the table is that of the store, and none is missing."""
    table = pl.read_parquet(folder / "rollouts" / "*.parquet")
    assert dict(table.schema) == SCHEMA
    with Store(run, write=False) as store:
        assert sorted(table["id"]) == sorted(store.rows)
        for line in table.iter_rows(named=True):
            row = store.rows[line["id"]]
            assert line["candidate"] == row.cell.candidate
            assert (line["problem"], line["neighbor"]) == (row.cell.problem, row.cell.neighbor)
            assert (line["finish"], line["answer"]) == (row.finish, row.answer)
            assert line["text"] == (None if row.finish == MISSING else store.completion(row, 0).text)
        sums = table.select(pl.col("requests", "prompt_tokens", "cached_tokens", "completion_tokens").sum())
        usage = store.usage
        assert sums.row(0) == (usage.requests, usage.prompt, usage.cached, usage.completion)
    return table


def test_all_rollouts_with_their_texts(run: Path, tmp_path: Path) -> None:
    done = export(run, tmp_path / "out")
    assert done == Exported(folder=str(tmp_path / "out"), rollouts=3 * (4 * 2 * 4 + 4), prompts=27, files=2)
    compare(run, tmp_path / "out")


def test_by_problem_has_files_of_one_problem_each(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "out", by="problem")
    compare(run, tmp_path / "out")
    files = sorted((tmp_path / "out" / "rollouts").iterdir())
    assert [file.name for file in files] == [
        "00000-first-00000.parquet",
        "00001-second_odd_name-00000.parquet",
        "00002-third-00000.parquet",
    ]
    assert all(pl.read_parquet(file)["problem"].n_unique() == 1 for file in files)


def test_verdicts_count_as_the_ranking_counts(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "out")
    table = pl.read_parquet(tmp_path / "out" / "rollouts")
    ranking = json.loads((run / "ranking.json").read_text())["problems"][0]["ranking"]
    for place in ranking:
        mine = table.filter((pl.col("problem") == "first") & (pl.col("candidate") == place["candidate"]))
        rate = (mine["verdict"] == "correct").mean()
        assert rate == pytest.approx(place["utility"])
    own = table.filter(pl.col("neighbor").is_null())
    assert own["gold"].null_count() == own.height == 12
    assert set(table.drop_nulls("gold")["gold"]) == {"100", "101"}


def test_prompts_join_with_rollouts(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "out")
    table, prompts = (pl.read_parquet(tmp_path / "out" / part) for part in ("rollouts", "prompts"))
    joined = table.join(prompts, on="prompt", how="left", validate="m:1")
    assert joined["messages"].null_count() == 0
    line = joined.filter(pl.col("candidate") == "a").row(0, named=True)
    (message,) = json.loads(line["messages"])
    assert message["role"] == "user"
    assert f"Method 0 of {line['problem']}" in message["content"]
    assert json.loads(line["sampling"])["max_tokens"] > 0


def test_without_texts(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "out", texts=False)
    assert pl.read_parquet(tmp_path / "out" / "rollouts").columns == list(COLUMNS)


def test_odd_rows_and_compressed_segments(tmp_path: Path) -> None:
    """Missing rollouts, answers found anew, no problems file, ids of another form, and texts in many segments."""
    with Store(tmp_path / "run", full=20_000) as store:
        for i in range(100):
            cell = Cell("p", None, f"n{i % 3}", "utility", "m", 0)
            store.add(
                Row(f"k-{i}", cell, "stop", str(i)), Completion(i, f"{i} " * 500, reasoning="so" * (i % 2))
            )
        store.add(Row("lost-1", Cell("p", None, None, "utility", "m", 0), MISSING, rule="timeout: slow"))
        store.add(Row("odd", Cell("p", None, None, "utility", "m", 0), "stop"), Completion(0, ""))
        store.add_answer(store.rows["k-3"], "7", "last number")
    assert list((tmp_path / "run" / "text").glob("*.gz"))
    export(tmp_path / "run", tmp_path / "out")
    table = compare(tmp_path / "run", tmp_path / "out")
    by_id = {line["id"]: line for line in table.iter_rows(named=True)}
    assert by_id["k-3"]["answer"] == "7"
    assert (by_id["k-3"]["reasoning"], by_id["k-4"]["reasoning"]) == ("so", None)
    assert (by_id["lost-1"]["rule"], by_id["lost-1"]["text"]) == ("timeout: slow", None)
    assert (by_id["odd"]["rollout"], by_id["k-3"]["rollout"]) == (None, 3)
    assert pl.read_parquet(tmp_path / "out" / "prompts").height == 0


def test_an_empty_run_has_tables_with_columns(tmp_path: Path) -> None:
    Store(tmp_path / "run").close()
    done = export(tmp_path / "run", tmp_path / "out", by="problem")
    assert (done.rollouts, done.prompts) == (0, 0)
    assert pl.read_parquet(tmp_path / "out" / "rollouts" / "*.parquet").columns == list(COLUMNS | TEXTS)


def test_files_are_of_bounded_size(tmp_path: Path) -> None:
    with Store(tmp_path / "run") as store:
        for i in range(ROWS + 7):
            store.add(Row(f"k-{i}", Cell("p", None, None, "utility", "m", 0), "stop"), Completion(i, "x"))
    export(tmp_path / "run", tmp_path / "out")
    files = sorted((tmp_path / "out" / "rollouts").iterdir())
    assert [pl.read_parquet(file).height for file in files] == [ROWS, 7]


def test_nothing_that_is_there_is_touched(run: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="something is there already"):
        export(run, tmp_path / "out")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_a_failed_export_leaves_nothing(run: Path, tmp_path: Path) -> None:
    for file in (run / "text").iterdir():
        file.write_bytes(file.read_bytes()[:300])
    with pytest.raises(StoreError, match="cannot be read"):
        export(run, tmp_path / "out")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run"]


def test_the_command(run: Path, tmp_path: Path) -> None:
    done = command(run, "--to", "parquet", "--by", "problem", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document == {"folder": str(run / "parquet"), "rollouts": 108, "prompts": 27, "files": 4}
    compare(run, run / "parquet")
    again = command(run)
    assert again.returncode == 2
    assert "-o" in again.stderr
    assert command(run, "-o", tmp_path / "other").stdout.startswith(f"{tmp_path / 'other'}: 108 rollouts")
    assert command(tmp_path / "nothing").returncode != 0
    # What a run derives is no part of it: the run goes on as before.
    status = subprocess.run(
        [sys.executable, "-m", "porism", "status", run], capture_output=True, text=True, check=True
    )
    assert "answered   108 rollouts, 0 missing" in status.stdout
