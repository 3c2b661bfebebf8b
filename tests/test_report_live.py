"""`porism view` and `porism report` as commands: real processes, real requests, a run that goes on meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from porism.data import write_problems
from porism.run import rank
from reports import mathematical

ENVIRONMENT = {**os.environ, "NO_COLOR": "1"}


def porism(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "porism", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)


def more(run: Path, rollouts: int) -> None:
    rank([mathematical()], model="fake/default", output=run, rollouts=rollouts)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    more(tmp_path / "run", 2)
    return tmp_path / "run"


@contextmanager
def viewing(run: Path) -> Iterator[str]:
    """The address of a viewer of the run; at the end it has stopped at once, and quietly."""
    command = [sys.executable, "-m", "porism", "view", str(run)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    assert process.stdout
    try:
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
        assert process.returncode == 0
        assert said == ""
    finally:
        process.kill()
        process.communicate()


def get(address: str, path: str = "", **headers: str) -> tuple[int, str, dict[str, str]]:
    parts = urlsplit(address)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    connection.request("GET", path or parts.path, headers=headers)
    answer = connection.getresponse()
    result = answer.status, answer.read().decode(), dict(answer.getheaders())
    connection.close()
    return result


def test_the_page_follows_the_run(run: Path) -> None:
    with viewing(run) as address:
        status, page, headers = get(address)
        assert status == 200
        assert 'data-live="1"' in page
        assert "2 for every candidate and neighbor" in page
        assert "connect-src &#39;self&#39;" in page
        assert headers["Cache-Control"] == "no-store"
        parts = urlsplit(address)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        connection.request("GET", f"{parts.path}events")
        events = connection.getresponse()
        assert events.readline() == b"data: 1\n"
        assert events.readline() == b"\n"
        more(run, 4)
        assert events.readline().startswith(b"data: ")
        connection.close()
        while "4 for every candidate and neighbor" not in get(address)[1]:
            pass


def test_nobody_else_reads_it(run: Path) -> None:
    with viewing(run) as address:
        path = urlsplit(address).path
        assert len(path) > 30
        for other in ("/", "/report.html", path[:-3] + "/", "/../run.json", f"{path}run.json"):
            assert get(address, other)[0] == 404
        assert get(address, Host="evil.example")[0] == 404
        assert get(address, f"{path}events", Host=f"evil.example:{urlsplit(address).port}")[0] == 404
        assert get(address)[0] == 200


def test_what_cannot_be_viewed(tmp_path: Path, run: Path) -> None:
    done = porism("view", tmp_path / "nothing")
    assert done.returncode == 2
    assert "there is no run here" in done.stderr
    with viewing(run) as address:
        done = porism("view", run, "--port", urlsplit(address).port)
        assert done.returncode == 2
        assert "cannot be listened on" in done.stderr


def test_the_report_command(run: Path, tmp_path: Path) -> None:
    done = porism("report", run)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(run / "report.html")
    assert "a against b" in (run / "report.html").read_text(encoding="utf-8")
    done = porism("report", run, "-o", tmp_path / "x.html", "--problems", "valuation")
    assert (tmp_path / "x.html").is_file()
    done = porism("report", run, "--format", "csv")
    assert done.stdout.startswith("problem,candidate,rank")
    done = porism("report", run, "--format", "md", "-o", tmp_path / "x.md")
    assert (tmp_path / "x.md").read_text(encoding="utf-8").startswith("# ")
    assert porism("score", run, "--json").returncode == 0  # the report is no part of the run


def test_the_report_command_says_what_is_wrong(run: Path, tmp_path: Path) -> None:
    done = porism("report", run, "--problems", "valuatoin")
    assert done.returncode == 2
    assert "did you mean 'valuation'" in done.stderr
    done = porism("report", run, "--format", "md", "--open")
    assert done.returncode == 2
    done = porism("report", tmp_path / "nothing")
    assert done.returncode == 2
    assert "there is no run here" in done.stderr


def test_rank_opens_its_report(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {tmp_path}/opened\n', encoding="utf-8")
    browser.chmod(0o755)
    file = tmp_path / "problem.jsonl"
    write_problems([mathematical()], file)
    command = [sys.executable, "-m", "porism", "rank", str(file), "-m", "fake/default", "-n", "2"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "run"), "--open", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**ENVIRONMENT, "BROWSER": f"{browser} %s"},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["problems"]
    assert (tmp_path / "run" / "report.html").is_file()
    assert (tmp_path / "opened").read_text(encoding="utf-8").endswith("run/report.html")
