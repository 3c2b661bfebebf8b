"""Large run folders: segments are rolled and compressed and lose nothing, and looks at a folder stay cheap."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from porism.errors import ConfigError, StoreError
from porism.segments import PATIENCE, Segments, compress, compressed
from porism.store import MISSING, Failure, Row, Store
from porism.totals import totals
from porism.types import Cell, Completion, Message, Prompt, Sampling, Usage

CELL = Cell("p", "a", "n", "utility", "m", 0)
FULL = 200_000
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def text(i: int) -> str:
    """About 2 KB; every tenth is long enough to span members of a compressed segment."""
    rng = random.Random(i)
    return f"{i} \N{SNOWMAN} " + " ".join(str(rng.random()) for _ in range(4000 if i % 10 == 9 else 100))


def fill(path: Path, numbers: range, full: int = FULL) -> None:
    with Store(path, full=full) as store:
        for i in numbers:
            store.add_prompt(Prompt("m", (Message("user", f"hello {i // 8}"),), Sampling(max_tokens=5)))
            store.add(Row(f"k-{i}", CELL, "stop", str(i), usage=Usage(10, 5, 2, 1)), Completion(i, text(i)))


def check(path: Path, numbers: range) -> None:
    with Store(path, write=False) as store:
        assert list(store.rows) == [f"k-{i}" for i in numbers]
        for i in random.Random(1).sample(numbers, len(numbers)):
            assert store.completion(store.rows[f"k-{i}"], i).text == text(i)
        prompts = [prompt.messages[0].content for prompt in store.prompts()]
    assert prompts == [f"hello {i}" for i in range(numbers[-1] // 8 + 1)]


def names(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "text").iterdir())


def test_full_segments_are_compressed_and_every_row_is_read(tmp_path: Path) -> None:
    fill(tmp_path, range(60))
    *full, last = names(tmp_path)
    assert len(full) > 1
    assert all(name.endswith(".jsonl.gz") for name in full)
    assert last == f"{len(full) + 1:05}.jsonl"
    check(tmp_path, range(60))
    fill(tmp_path, range(60, 90))  # another session begins a segment of its own
    check(tmp_path, range(90))


def test_compressed_segments_are_ordinary_gzip_files(tmp_path: Path) -> None:
    fill(tmp_path / "plain", range(40), full=2**30)
    file = tmp_path / "plain" / "text" / "00001.jsonl"
    plain = file.read_bytes()
    assert compress(file)
    assert not file.exists()
    unpacked = subprocess.run(["gzip", "-dc", compressed(file)], check=True, capture_output=True)
    assert unpacked.stdout == plain
    check(tmp_path / "plain", range(40))
    subprocess.run(["gzip", "-d", compressed(file)], check=True)
    check(tmp_path / "plain", range(40))


def test_old_folders_are_compressed_by_the_next_session(tmp_path: Path) -> None:
    fill(tmp_path, range(40), full=2**30)
    assert names(tmp_path) == ["00001.jsonl"]
    fill(tmp_path, range(40, 41))
    assert names(tmp_path) == ["00001.jsonl.gz", "00002.jsonl"]
    check(tmp_path, range(41))


def test_a_segment_may_be_compressed_between_two_reads(tmp_path: Path) -> None:
    fill(tmp_path, range(20), full=2**30)
    with Store(tmp_path, write=False) as store:
        assert store.completion(store.rows["k-3"], 3).text == text(3)
        assert compress(tmp_path / "text" / "00001.jsonl")
        assert store.completion(store.rows["k-4"], 4).text == text(4)


def test_killed_while_compressing(tmp_path: Path) -> None:
    fill(tmp_path, range(300), full=2**30)
    file = tmp_path / "text" / "00001.jsonl"
    code = f"import pathlib; from porism.segments import compress; compress(pathlib.Path({str(file)!r}))"
    for wait in (0.0, 0.02, 0.05, 0.1):
        process = subprocess.Popen([sys.executable, "-c", code])
        part = file.with_name(".00001.jsonl.gz.tmp")
        while process.poll() is None and not part.exists():
            time.sleep(0.001)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert file.exists() or compressed(file).exists()
    check(tmp_path, range(300))


@pytest.mark.parametrize("other", [b"cut", None])
def test_killed_between_the_new_name_and_the_end_of_the_old(tmp_path: Path, other: bytes | None) -> None:
    fill(tmp_path, range(60), full=2**30)
    file = tmp_path / "text" / "00001.jsonl"
    plain = file.read_bytes()
    assert compress(file)
    file.write_bytes(plain)
    if other is not None:
        compressed(file).write_bytes(other)
    check(tmp_path, range(60))
    fill(tmp_path, range(60, 61))
    assert names(tmp_path) == ["00001.jsonl.gz", "00002.jsonl"]
    check(tmp_path, range(61))


def test_no_room_to_compress(tmp_path: Path) -> None:
    fill(tmp_path, range(60), full=2**30)
    file = tmp_path / "text" / "00001.jsonl"
    before = file.read_bytes()
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        assert not compress(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, old)
    assert names(tmp_path) == ["00001.jsonl"]
    assert file.read_bytes() == before


def test_damage_is_named(tmp_path: Path) -> None:
    fill(tmp_path, range(60))
    file = tmp_path / "text" / "00001.jsonl.gz"
    whole = file.read_bytes()
    file.write_bytes(whole[:500] + bytes(40) + whole[540:])
    store = Store(tmp_path, write=False)
    with pytest.raises(StoreError, match=r"00001\.jsonl\.gz: its part at byte 0 is damaged"):
        store.completion(store.rows["k-0"], 0)
    file.write_bytes(whole[:-100])
    store = Store(tmp_path, write=False)
    with pytest.raises(StoreError, match="cut short"):
        store.completion(store.rows["k-0"], 0)
    file.unlink()
    store = Store(tmp_path, write=False)
    with pytest.raises(StoreError, match="text of rollout k-0 cannot be read"):
        store.completion(store.rows["k-0"], 0)


def test_a_foreign_gzip_file_is_told_from_ours(tmp_path: Path) -> None:
    fill(tmp_path, range(8), full=2**30)
    subprocess.run(["gzip", tmp_path / "text" / "00001.jsonl"], check=True)
    store = Store(tmp_path, write=False)
    with pytest.raises(StoreError, match="gunzip"):
        store.completion(store.rows["k-0"], 0)


def test_incompressible_text_fits_its_member(tmp_path: Path) -> None:
    file = tmp_path / "00001.jsonl"
    noise = random.Random(3).randbytes(500_000).replace(b"\n", b" ")
    file.write_bytes(noise + b"\n" + b"next\n")
    assert len(zlib.compress(noise)) > len(noise)
    assert compress(file)
    segments = Segments(tmp_path)
    assert segments.line(1, 0) == noise + b"\n"
    assert segments.line(1, len(noise) + 1) == b"next\n"
    assert segments.line(1, len(noise) + 6) == b""
    assert list(segments.lines(1)) == [noise + b"\n", b"next\n"]


def test_totals_are_those_of_the_store(tmp_path: Path) -> None:
    fill(tmp_path, range(30))
    with Store(tmp_path) as store:
        store.add(Row("k-x", CELL, MISSING, again=True))
        store.add(Row("k-y", CELL, MISSING, again=True))
        store.add(Row("k-x", CELL, "stop", "1"), Completion(0, "1"))
        store.add_answer(store.rows["k-3"], "7", "last number")
        store.add_failure(Failure("t", "m", "k", 0, 1, 1, "timeout", "slow"))
    with (tmp_path / "index.jsonl").open("ab") as index:
        index.write(b'\xff nonsense\n[1]\n{"id":"torn')
    found, store = totals(tmp_path), Store(tmp_path, write=False)
    assert {f"{key}-{n}" for key, numbers in found.rollouts.items() for n in numbers} == store.rows.keys()
    assert found.missing == sum(row.finish == MISSING for row in store.rows.values()) == 1
    assert (found.usage, found.failures, found.torn) == (store.usage, store.failures, store.torn)
    assert store.torn == 3
    with pytest.raises(ConfigError, match="no run here"):
        totals(tmp_path / "nothing")


def test_a_look_at_the_settings_reads_no_index(tmp_path: Path) -> None:
    fill(tmp_path, range(3))
    with Store(tmp_path) as store:
        store.write_json("run.json", {"name": "x"})
    (tmp_path / "index.jsonl").rename(tmp_path / "elsewhere")
    (tmp_path / "index.jsonl").mkdir()
    with Store(tmp_path, write=False) as store:
        assert store.read_json("run.json") == {"name": "x"}
        with pytest.raises(StoreError, match="cannot be read"):
            store.rows  # noqa: B018
    with pytest.raises(StoreError, match="cannot be read"):
        Store(tmp_path)  # one that writes says so at once


@pytest.mark.slow
@pytest.mark.ci
def test_closing_does_not_wait_for_a_segment_of_any_size(tmp_path: Path) -> None:
    """A huge file of an old folder is left plain by a short session, and stays readable."""
    fill(tmp_path, range(20), full=2**30)
    file = tmp_path / "text" / "00001.jsonl"
    with file.open("ab") as lines:
        noise = random.Random(1).randbytes(2**20).replace(b"\n", b" ") + b"\n"
        for _ in range(700):
            lines.write(noise)
    begun = time.monotonic()
    with Store(tmp_path) as store:
        assert store.completion(store.rows["k-7"], 7).text == text(7)
    assert time.monotonic() - begun < PATIENCE + 10
    assert not list((tmp_path / "text").glob(".*"))
    with Store(tmp_path, write=False) as store:
        assert store.completion(store.rows["k-8"], 8).text == text(8)


def large(folder: Path, rollouts: int) -> str:
    """What the benchmark of large stores prints."""
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "large_store.py", folder, str(rollouts)],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
        timeout=3000,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def figures(told: str) -> dict[str, tuple[float, float]]:
    """Seconds and GB by line of the benchmark."""
    found = {}
    for line in told.splitlines():
        name, *rest = [part.strip() for part in line.split("  ") if part.strip()]
        if len(rest) >= 2 and rest[0].endswith(" s") and rest[1].endswith("GB"):
            found[name] = (float(rest[0][:-2]), float(rest[1][:-3]))
    return found


def test_a_store_of_twenty_thousand_rollouts(tmp_path: Path) -> None:
    told = figures(large(tmp_path / "run", 20_000))
    assert told.keys() >= {"write", "open", "status", "export"}
    assert told["open"][1] < 0.3
    assert told["status"][1] < 0.3


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_store_of_a_million_rollouts(tmp_path: Path) -> None:
    told = figures(large(tmp_path / "run", 1_000_000))
    assert told["open"][0] < 20
    assert told["open"][1] < 1.5
    assert told["status"][0] < 3
    assert told["export"][1] < 2.5
