"""What replicas on a cluster are made of, without a cluster: the actor's class, a server of its own, settings."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from porism.bench.config import read_config
from porism.config import Placement, RankConfig
from porism.data import write_problems
from porism.errors import ConfigError, ModelError
from porism.models.fake import FakeModel
from porism.prepare import plan
from porism.scale.vllm import VllmModel
from porism.scale.worker import Facts, Failed, Place, Setup, Worker
from porism.types import Call, Message, Prompt, Reply, Sampling
from samples import problem
from server import serving

SAMPLING = Sampling(max_tokens=60)
# Speaks as `vllm serve` is spoken to, has a child of its own as vLLM does, and answers like the test server.
SERVES = """
import os, pathlib, subprocess, sys
model, options = sys.argv[1], sys.argv[2:]
if "--broken" in options:
    sys.exit("no room for the weights")
helper = subprocess.Popen(["sleep", "600"])
pathlib.Path(os.environ["PIDS"]).write_text(f"{os.getpid()} {helper.pid}")
pathlib.Path(os.environ["PIDS"] + ".options").write_text(" ".join(options))
sys.path.insert(0, os.environ["TESTS"])
port = options[options.index("--port") + 1]
sys.argv[1:] = ["--port", port, "--key=" + os.environ["VLLM_API_KEY"], "--latency", "0.1"]
import server
server.main()
"""


def prompt(model: str = "fake") -> Prompt:
    return Prompt(model, (Message("user", "And 5? [[answer: 5]]"),), SAMPLING)


def alive(pid: int) -> bool:
    """Whether a process runs; what only waits to be reaped does not."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def gone(pids: list[int]) -> bool:
    started = time.monotonic()
    while any(map(alive, pids)):
        if time.monotonic() - started > 60:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    script = tmp_path / "serve.py"
    script.write_text(SERVES)
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    monkeypatch.setenv("TESTS", str(Path(__file__).parent))
    return sys.executable, str(script)


def test_a_worker_answers_as_its_model_does() -> None:
    async def work() -> None:
        worker = Worker(Setup(spec="fake/tokens=30,max_n=4", concurrency=3), 0)
        assert await worker.place() == Place(os.uname().nodename, os.getpid())
        facts = await worker.start()
        model = FakeModel("fake/tokens=30,max_n=4", concurrency=3)
        assert facts == Facts(
            identity=model.identity,
            concurrency=3,
            max_n=4,
            context=None,
            chain=False,
            host=None,
            weights={},
        )
        assert await worker.generate(Call(prompt(), 2, 3)) == await model.generate(Call(prompt(), 2, 3))
        assert await worker.probe() == ([], facts)
        await worker.stop()

    asyncio.run(work())


def test_a_worker_tells_failures_as_values() -> None:
    async def work() -> None:
        busy = Worker(Setup(spec="fake/busy=1"), 0)
        await busy.start()
        told = await busy.generate(Call(prompt(), 0))
        assert isinstance(told, Failed)
        error = told.error("replica 1 on here")
        assert isinstance(error, ModelError)
        assert (error.retry, error.kind, error.fatal) == ("rate_limit", "rate_limit", False)
        assert str(error) == "replica 1 on here: the fake is busy, as ordered"
        unknown = await Worker(Setup(spec="nobody/x"), 0).start()
        assert isinstance(unknown, Failed)
        assert isinstance(unknown.error(), ConfigError)

    asyncio.run(work())


def test_workers_take_the_servers_in_turn() -> None:
    async def work() -> None:
        with serving(root="a/weights", models="m") as first, serving(root="b/weights", models="m") as second:
            setup = Setup(spec="generic/m", base_url=(first, second), max_n=8)
            found = []
            for number in range(3):
                worker = Worker(setup, number)
                facts = await worker.start()
                assert isinstance(facts, Facts)
                found.append(facts.weights)
                assert facts.max_n == 8  # as a trial of an earlier replica found
                assert isinstance(await worker.generate(Call(prompt("m"), 0)), Reply)
                await worker.stop()
        assert found[0] == found[2]

    asyncio.run(work())


def test_vllm_is_started_asked_and_ended(serve: tuple[str, str], tmp_path: Path) -> None:
    async def work() -> list[int]:
        model = VllmModel("test-model", gpus=2, arguments=("--dtype", "half"), command=serve)
        async with model:
            pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
            reply = await model.generate(Call(prompt("test-model"), 0))
            assert len(reply.completions) == 1
            assert all(map(alive, pids))
        return pids

    assert gone(asyncio.run(work()))
    options = (tmp_path / "pids.options").read_text()
    assert "--host 127.0.0.1" in options
    assert "--tensor-parallel-size 2" in options
    assert options.endswith("--dtype half")


def test_vllm_that_cannot_start_says_why(serve: tuple[str, str]) -> None:
    async def work() -> None:
        with pytest.raises(ModelError, match="no room for the weights") as caught:
            await VllmModel("test-model", arguments=("--broken",), command=serve).__aenter__()
        assert caught.value.fatal

    asyncio.run(work())


def test_vllm_that_ends_is_a_fatal_loss(serve: tuple[str, str], tmp_path: Path) -> None:
    async def work() -> None:
        async with VllmModel("test-model", command=serve) as model:
            pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
            asked = asyncio.ensure_future(model.generate(Call(prompt("test-model"), 0)))
            await asyncio.sleep(0.03)
            os.kill(pids[0], signal.SIGKILL)
            with pytest.raises(ModelError, match="ended") as caught:
                await asked
            assert caught.value.fatal
            assert caught.value.kind == "connection"
            assert await asyncio.to_thread(gone, pids)  # what it left behind as well

    asyncio.run(work())


def test_vllm_does_not_outlive_who_started_it(serve: tuple[str, str], tmp_path: Path) -> None:
    starts = (
        "import asyncio, sys\n"
        "from porism.scale.vllm import VllmModel\n"
        "async def work():\n"
        "    async with VllmModel('test-model', command=sys.argv[1:]):\n"
        "        print('serves', flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(work())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", starts, *serve], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "serves\n"
        process.kill()
    assert gone([int(pid) for pid in (tmp_path / "pids").read_text().split()])


def test_vllm_missing_says_what_to_install() -> None:
    async def work() -> None:
        with pytest.raises(ModelError, match="pip install vllm"):
            await VllmModel("some-model", command=("no-such-vllm", "serve")).__aenter__()

    asyncio.run(work())


def test_settings_of_ray_need_ray() -> None:
    assert RankConfig(models=("fake/default",)).placement is None
    placed = RankConfig(models=("fake/default",), executor="ray", replicas=4, gpus=2).placement
    assert placed == Placement(replicas=4, gpus=2)
    assert str(placed) == "4 replicas with Ray on the cluster at auto"
    with pytest.raises(ConfigError, match="replicas, cpus: only with Ray"):
        RankConfig(replicas=2, cpus=1)
    with pytest.raises(ConfigError, match="'slurm': local, ray or ray-data"):
        RankConfig(executor="slurm")
    with pytest.raises(ConfigError, match="replicas is 0"):
        RankConfig(executor="ray", replicas=0)


def test_a_benchmark_may_be_asked_by_replicas(tmp_path: Path) -> None:
    write_problems([problem()], tmp_path / "p.jsonl")
    file = tmp_path / "bench.toml"
    file.write_text(
        'data = "p.jsonl"\nexecutor = "ray"\ncluster = { replicas = 3 }\nmodels.small.model = "fake/default"\n'
        'methods.utility.model = "small"\n'
    )
    assert read_config(file).placement == Placement(replicas=3)
    assert read_config(file, ["cluster.replicas=4", 'executor="ray"']).placement == Placement(replicas=4)
    with pytest.raises(ConfigError, match="replicas: only with Ray"):
        _ = read_config(file, ["executor=local"]).placement
    with pytest.raises(ConfigError, match=r"cluster\.replica: unknown key; did you mean 'replicas'"):
        read_config(file, ["cluster.replica=4"])
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "porism", "run", str(file), "--dry-run"),
            *("--replicas", "2", "--address", "10.0.0.1:6379", "-o", str(tmp_path / "run")),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stdout.startswith("asked by 2 replicas with Ray on the cluster at 10.0.0.1:6379\n")


def test_a_dry_run_says_who_asks(tmp_path: Path) -> None:
    write_problems([problem()], tmp_path / "p.jsonl")
    found = plan(tmp_path / "p.jsonl", model="fake/default", executor="ray", replicas=2, address="local")
    assert found.executor == "2 replicas with Ray on this machine"
    assert plan(tmp_path / "p.jsonl", model="fake/default").executor == "local"


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed here")
def test_ray_missing_says_what_to_install(tmp_path: Path) -> None:
    write_problems([problem()], tmp_path / "p.jsonl")
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "porism", "rank", str(tmp_path / "p.jsonl"), "-o", str(tmp_path / "run")),
            *("--model", "fake/default", "--executor", "ray"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 2
    assert ended.stderr == "porism: --executor ray needs the extra 'ray': pip install 'porism[ray]'\n"
