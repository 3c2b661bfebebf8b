"""The process that holds the embedded model: llama.cpp's own HTTP server, on loopback, for its parent alone.

Started by LocalModel as `python -m porism.models.local_server`. The first line of stdin is the settings (with the
key, which so stands in no process list); one line on stdout says the address once the model answers; all that
llama.cpp says goes to stderr. The process must never outlive its parent, however that ends, so there are three
watches: the kernel's (Linux), the end of stdin, and a look at who the parent is.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

import msgspec
from msgspec import Struct


class Settings(Struct, frozen=True, kw_only=True):
    """How to serve. context: tokens of one prompt and answer; slots: calls served at once."""

    path: str
    key: str
    slots: int
    context: int
    threads: int


def main() -> NoReturn:
    """Serve until the parent ends or closes stdin. Never returns."""
    parent = os.getppid()
    _die_with_parent()
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # llama.cpp may print; stdout is for the address alone
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=Settings)
    threading.Thread(target=_exit_with_stdin, daemon=True).start()
    try:
        server = _serve(settings)
    except RuntimeError:  # llama.cpp has said why
        os._exit(1)
    answer.write(f"{server.listening_address}\n")
    answer.close()
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


def _serve(settings: Settings) -> Any:
    """The server, once the model is loaded. Raises RuntimeError, with the reason on stderr."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings.path
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # the system picks a free one
    params.api_keys = [settings.key]
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = 2
    params.n_parallel = settings.slots
    # One pool of context for all slots: a long prompt may use what the others leave.
    params.kv_unified = True
    params.n_ctx = settings.context * settings.slots
    params.kv_unified_per_slot = settings.context
    params.cpuparams.n_threads = settings.threads
    params.cpuparams_batch.n_threads = settings.threads
    return xllamacpp.Server(params)


def _exit_with_stdin() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL)


if __name__ == "__main__":
    main()
