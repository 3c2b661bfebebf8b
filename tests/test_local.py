"""The embedded model, with a real llama.cpp server on the smallest model of the catalog."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from conformance.test_model import ModelConformance
from porism.errors import InputError, MissingExtra, ModelError
from porism.models.catalog import CATALOG, pull
from porism.models.local import RESTARTS, LocalModel, physical_cores
from porism.models.local_server import Settings
from porism.types import Call, Message, Model, Prompt, Sampling

pytest.importorskip("xllamacpp")
T = TypeVar("T")
SMALLEST = CATALOG["smollm2-135m"]


@pytest.fixture(scope="module", autouse=True)
def _model_is_here() -> None:
    pull(SMALLEST)


def use(act: Callable[[LocalModel], Awaitable[T]]) -> T:
    async def run() -> T:
        async with LocalModel(SMALLEST.name, context=1024, parallel=4) as model:
            return await act(model)

    return asyncio.run(run())


def ask(model: Model, text: str, max_tokens: int = 12) -> Prompt:
    return Prompt(model.identity, (Message("user", text),), Sampling(max_tokens=max_tokens))


def server_of(model: LocalModel) -> int:
    """The pid of the child."""
    assert model._server is not None
    return model._server._process.pid


def read(path: str) -> bytes:
    return Path(path).read_bytes()


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def ends(pid: int, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_it_answers_and_counts() -> None:
    async def act(model: LocalModel) -> None:
        assert model.name == "local/smollm2-135m"
        assert model.identity == SMALLEST.sha256
        prompt = ask(model, "Name one fruit. " * 20)
        first = await model.generate(Call(prompt, 0))
        assert first.completions[0].text
        assert first.usage.prompt > 80
        assert 1 <= first.usage.completion <= 12
        again = await model.generate(Call(prompt, 0))
        third = await model.generate(Call(prompt, 0))
        assert third.completions == again.completions  # the seed settles it, where the cache is the same
        assert again.usage.cached >= 0.9 * again.usage.prompt
        many = await model.generate(Call(prompt, 0, 4))
        assert [c.rollout for c in many.completions] == [0, 1, 2, 3]
        assert len({c.text for c in many.completions}) > 1
        assert many.usage.completion > 12
        with pytest.raises(ModelError) as caught:
            await model.generate(Call(ask(model, "word " * 1500), 0))
        assert (caught.value.kind, caught.value.retry) == ("context", "no")

    use(act)


def test_its_key_is_no_secret_shared() -> None:
    """Neither the command line nor the environment of the child holds the key, and no other key opens it."""

    async def act(model: LocalModel) -> None:
        assert model._server is not None
        client = model._server.client
        assert client._key is not None
        for file in ("cmdline", "environ"):
            assert client._key.encode() not in read(f"/proc/{server_of(model)}/{file}")
        assert client._key not in repr(model._server.client)
        stranger = type(client)("x", name="x", base_url=client.base_url, key="guess", context=1)
        async with stranger:
            with pytest.raises(ModelError) as caught:
                await stranger.generate(Call(ask(model, "Hello"), 0))
        assert caught.value.kind == "key"
        assert client.host is None  # loopback

    use(act)


def test_a_crash_costs_the_calls_in_flight_and_no_more() -> None:
    async def act(model: LocalModel) -> None:
        long = ask(model, "Tell a very long story about the sea.", 900)
        calls = [asyncio.ensure_future(model.generate(Call(long, i))) for i in range(3)]
        await asyncio.sleep(0.5)
        dead = server_of(model)
        os.kill(dead, signal.SIGKILL)
        for error in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(error, ModelError)
            assert (error.retry, error.fatal) == ("transient", False)
            assert "signal 9" in str(error)
        replies = await asyncio.gather(*(model.generate(Call(ask(model, "Hello"), i)) for i in range(3)))
        assert all(reply.completions[0].text for reply in replies)
        assert server_of(model) != dead

    use(act)


def test_crash_after_crash_is_fatal() -> None:
    async def act(model: LocalModel) -> None:
        for _ in range(RESTARTS):
            os.kill(server_of(model), signal.SIGKILL)
            assert ends(server_of(model))
            await asyncio.sleep(0.1)
            await model.generate(Call(ask(model, "Hello", 1), 0))
        os.kill(server_of(model), signal.SIGKILL)
        await asyncio.sleep(0.5)
        with pytest.raises(ModelError, match=f"ended {RESTARTS + 1} times") as caught:
            await model.generate(Call(ask(model, "Hello", 1), 0))
        assert caught.value.fatal

    use(act)


def test_leaving_ends_the_server() -> None:
    async def act(model: LocalModel) -> int:
        assert os.getpgid(server_of(model)) != os.getpgid(0)  # Ctrl-C does not reach it
        return server_of(model)

    assert ends(use(act), 1.0)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_parent_leaves_no_server(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import asyncio\nfrom porism.models.local import LocalModel\n"
        "async def main():\n"
        f"    async with LocalModel({SMALLEST.name!r}, context=512, parallel=2) as model:\n"
        "        print(model._server._process.pid, flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.kill()
    assert ends(pid, 5.0)


def serve_by_hand(stdin: int, prefix: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", "porism.models.local_server"],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def test_the_server_ends_with_its_input() -> None:
    """The watch that works on every system: the pipe from the parent closes."""
    settings = Settings(path=str(SMALLEST.path), key="k", slots=1, context=256, threads=1)
    with serve_by_hand(subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(msgspec.json.encode(settings) + b"\n")
        server.stdin.flush()
        assert server.stdout.readline().startswith(b"http://127.0.0.1:")
        assert server.poll() is None
        server.stdin.close()
        assert server.wait(5) == 0


def test_a_broken_file_says_what_llama_said(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(SMALLEST.path.read_bytes()[:1_000_000])

    async def run() -> None:
        async with LocalModel(str(broken)):
            pass

    with pytest.raises(ModelError, match="could not start") as caught:
        asyncio.run(run())
    assert caught.value.fatal
    assert "failed to load model" in str(caught.value)


def test_an_unknown_name_and_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(name: str) -> None:
        async with LocalModel(name):
            pass

    with pytest.raises(InputError, match=r"did you mean local/smollm2-135m\?"):
        asyncio.run(run("smollm-135m"))
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtra, match=r"pip install 'porism\[local\]'"):
        asyncio.run(run(SMALLEST.name))


def test_threads_do_not_outnumber_the_cores() -> None:
    assert 1 <= physical_cores() <= (os.cpu_count() or 1)


@pytest.mark.slow
class TestLocalModel(ModelConformance):
    deterministic = False  # what is computed together changes the last bits, and so the draws

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Model]:
        async with LocalModel(SMALLEST.name, context=1024, parallel=4) as model:
            yield model


def test_ping_and_list_tell_in_json() -> None:
    def porism(*arguments: str) -> dict[str, object]:
        code = "import sys; from porism.cli.models import app; app(sys.argv[1:])"
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, check=True)
        return dict(json.loads(done.stdout))

    listed = porism("list", "--json")["models"]
    assert isinstance(listed, list)
    assert {"local/smollm2-135m": str(SMALLEST.path)}.items() <= {
        m["name"]: m["path"] for m in listed
    }.items()
    found = porism("ping", "local/smollm2-135m", "--json")
    assert found["identity"] == SMALLEST.sha256
    assert found["answer"]
    assert found["warnings"] == []
