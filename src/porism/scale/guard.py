"""Runs a command that must not outlive whoever started it: `python -m porism.scale.guard COMMAND ...`.

A server of large models is a family of processes that hold GPU memory, and one that is left behind blocks the next
start. The command gets a process group of its own. It is ended, politely and then surely, when this process' stdin
ends, which the kernel sees to however the starter died; and on Linux it is told to go should this process be killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import NoReturn

POLITE = 15.0  # seconds between asking the group to end and killing it


def main() -> NoReturn:
    """Run the command until it ends or stdin does. Exits with its code."""
    try:
        child = subprocess.Popen(  # noqa: S603  what the user runs
            sys.argv[1:],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
    except OSError as error:
        sys.exit(f"{sys.argv[1]}: {error.strerror or error}")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _end(child))
    threading.Thread(target=_end_with_stdin, args=(child,), daemon=True).start()
    code = child.wait()
    _signal_group(child, signal.SIGKILL)  # what it left behind
    os._exit(code if code >= 0 else 128 - code)


def _end_with_stdin(child: subprocess.Popen[bytes]) -> None:
    while sys.stdin.buffer.read(4096):
        pass
    _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    _signal_group(child, signal.SIGTERM)
    threading.Timer(POLITE, _signal_group, (child, signal.SIGKILL)).start()


def _signal_group(child: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def _end_with_parent() -> None:
    import ctypes

    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGTERM)


if __name__ == "__main__":
    main()
