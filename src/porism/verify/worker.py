"""The server that verification workers are forked from, and the loop that a worker runs.

A fresh import of sympy takes seconds and a fork of a process that has it takes milliseconds, so one
server imports it and forks a worker whenever asked. The server has no threads and no event loop; it
talks over one socket: each request carries the socket of a new worker, each reply its process id, and
each end of a worker is reported with its status. When the asking process ends in any way, the socket
closes, and the server kills its workers and leaves.

Workers have no output, no environment but what Python needs, bounded memory, and a CPU clock that
starts when they start on an item. The kernel ends them when it runs out, whatever they are doing.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import select
import signal
import socket
import struct
import sys

import msgspec

from porism.types import Verdict

MEMORY = 1 << 30  # bytes of address space a worker may use beyond what the server had
ITEMS = 5000  # after as many items a worker makes room for a fresh one: caches grow
DEPTH = 5000  # Python frames; a sum of a thousand terms is a tree as deep
FRAME = struct.Struct("!I")
FORK = struct.Struct("!d")  # request: CPU seconds an item
EVENT = struct.Struct("!ii")  # reply: process id, -1 for a start or else the wait status


class Item(msgspec.Struct, frozen=True, array_like=True):
    """What a worker decides."""

    answer: str
    gold: str
    answer_type: str | None = None


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """The verdict, and whether the worker goes on."""

    verdict: Verdict
    alive: bool


def serve(fd: int) -> None:
    """Import what workers need, then fork workers on request until the other side closes."""
    os.nice(10)  # generation comes first: loading sympy beside it would cost more than it saves
    control = socket.socket(fileno=fd)
    _load()
    gc.collect()
    gc.freeze()
    wake, alarm = os.pipe()
    os.set_blocking(alarm, False)
    signal.set_wakeup_fd(alarm)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: set[int] = set()
    try:
        while True:
            ready, _, _ = select.select([control.fileno(), wake], [], [])
            if wake in ready:
                os.read(wake, 512)
                _report_ended(control, children)
            if control.fileno() in ready:
                message, fds, _, _ = socket.recv_fds(control, FORK.size, 1)
                if not message:
                    return
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    for other in (wake, alarm):
                        os.close(other)
                    control.close()
                    _run(socket.socket(fileno=fds[0]), FORK.unpack(message)[0])
                os.close(fds[0])
                children.add(pid)
                control.sendall(EVENT.pack(pid, -1))
    except OSError:
        return  # the other side is gone
    finally:
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _load() -> None:
    """Import and run once whatever is slow the first time, so that forked workers find it warm."""
    from porism.verify.compare import compare

    for answer, gold in (
        ("\\sqrt{2}x", "x\\sqrt{3}"),
        ("\\int_0^1 x\\,dx", "\\frac{1}{2}"),
        ("(1,2]", "[1,2)"),
    ):
        compare(answer, gold)


def _report_ended(control: socket.socket, children: set[int]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        children.discard(pid)
        control.sendall(EVENT.pack(pid, status))


def _run(link: socket.socket, limit: float) -> None:
    """A worker's life: bounded, silent, and ended by os._exit."""
    try:
        confine()
        items = 0
        while True:
            size = _receive(link, FRAME.size)
            if size is None:
                break
            body = _receive(link, FRAME.unpack(size)[0])
            if body is None:
                break
            items += 1
            verdict, healthy = _decide(msgspec.msgpack.decode(body, type=Item), limit)
            healthy = healthy and items < ITEMS
            reply = msgspec.msgpack.encode(Reply(verdict, healthy))
            link.sendall(FRAME.pack(len(reply)) + reply)
            if not healthy:
                break
    finally:
        os._exit(0)


def confine() -> None:
    """Bound this process: memory, no files, no core; a CPU timer ends it, and so does its parent's end."""
    sys.setrecursionlimit(DEPTH)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: never outlive the server
        with open("/proc/self/statm") as file:  # noqa: PTH123  (pathlib would import more)
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    for what in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(what, (0, 0))


def _decide(item: Item, limit: float) -> tuple[Verdict, bool]:
    """The verdict, and whether the worker may go on."""
    from porism.verify.compare import compare
    from porism.verify.custom import decide, is_custom

    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        if item.answer_type is not None and is_custom(item.answer_type):
            return decide(item.answer, item.gold, item.answer_type), True
        return compare(item.answer, item.gold, item.answer_type), True
    except (MemoryError, RecursionError) as fault:
        return Verdict("undecided", f"error: {type(fault).__name__}"), False
    except Exception as fault:  # noqa: BLE001  (the one boundary: a fault is an undecided verdict)
        return Verdict("undecided", f"error: {type(fault).__name__}"), True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _receive(link: socket.socket, size: int) -> bytes | None:
    parts = []
    while size:
        part = link.recv(min(size, 1 << 16))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
