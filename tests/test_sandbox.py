"""Programs that a model might write, hostile ones included, in the real sandbox."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from porism.neighbors.jail import CALLS
from porism.neighbors.sandbox import JAIL, Limits, Ran, check, run_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux only")
SHORT = Limits(cpu=5, wall=20.0)


def ran(source: str, limits: Limits = SHORT) -> Ran:
    return asyncio.run(run_program(source, limits))


def jailed(below: Path) -> set[int]:
    """The processes that run the jail in a folder below this one."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                inside = (entry / "cwd").readlink().is_relative_to(below)
                if inside and str(JAIL).encode() in (entry / "cmdline").read_bytes():
                    found.add(int(entry.name))
    return found


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test runs, afterwards there is no file and no process of it."""
    own = tmp_path / "temporary"
    own.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    yield
    assert not jailed(tmp_path)
    assert not list(own.iterdir())


def test_a_program_computes() -> None:
    done = ran("from sympy import *\nx = symbols('x')\nprint(integrate(x**2, (x, 0, 1)))\n")
    assert (done.output, done.stopped, done.error) == ("1/3\n", None, None)
    assert any("seccomp" in line for line in done.held)
    assert any("Landlock" in line for line in done.held)
    assert ran("if __name__ == '__main__':\n    print(7)").output == "7\n"


def test_every_protection_is_tried() -> None:
    held = asyncio.run(check())
    assert {"one process, one thread (seccomp)", "clean environment, no input"} <= set(held)


@pytest.mark.parametrize(
    "act",
    [
        "while True: os.fork()",
        "os.fork() or os.setsid() or os.fork() or time.sleep(1000)",  # a daemon
        "os.system('sleep 1000 &') == 0 or sys.exit('refused')",
        "subprocess.Popen(['sleep', '1000'])",
        "os.posix_spawn('/bin/sleep', ['sleep', '1000'], {})",
        "os.execv('/bin/sleep', ['sleep', '1000'])",
        "multiprocessing.Process(target=print).start()",
        "[threading.Thread(target=time.sleep, args=(1000,)).start() for _ in range(9)]",
        "libc.syscall(435, ctypes.create_string_buffer(88), 88) >= 0 or sys.exit('refused')",  # clone3
        "socket.socket()",
        "socket.socketpair()",
        "socket.create_connection(('127.0.0.1', 80))",
        "urllib.request.urlopen('http://127.0.0.1/')",
        "libc.syscall(425, 8, ctypes.create_string_buffer(120)) >= 0 or sys.exit('refused')",  # io_uring
        "open(TEMP + '/porism-was-here', 'w')",
        "open(os.path.dirname(os.path.dirname(PACKAGE)) + '/porism-was-here', 'w')",
        "open('../porism-was-here', 'w')",
        "open('/dev/shm/porism-was-here', 'w')",
        "open(PACKAGE, 'a')",
        "os.open(PACKAGE, os.O_RDONLY | os.O_TRUNC)",
        "os.truncate(PACKAGE, 0)",
        "os.remove(PACKAGE)",
        "os.chmod(PACKAGE, 0)",
        "os.utime(PACKAGE)",
        "os.link(PACKAGE, 'mine')",
        "os.symlink('/', 'root')",
        "os.mkdir('d')",
        "os.mkfifo('f')",
        "open('/etc/passwd')",
        "open('/proc/self/environ')",
        "os.listdir('/')",
        "os.kill(os.getppid(), 9)",
        "fcntl.fcntl(1, fcntl.F_SETOWN, os.getppid())",
        "resource.setrlimit(resource.RLIMIT_CPU, (99, 99))",
        "libc.prctl(1, 0) == 0 or sys.exit('refused')",  # live on without the parent
        "libc.ptrace(16, os.getppid(), 0, 0) == 0 or sys.exit('refused')",
        "libc.shmget(1, 4096, 0o1600) >= 0 or sys.exit('refused')",
        "os.memfd_create('m')",
        "os.setuid(1)",
        "libc.unshare(0x10000000) == 0 or sys.exit('refused')",
        "libc.mount(b'none', b'.', b'tmpfs', 0, None) == 0 or sys.exit('refused')",
    ],
)
def test_a_forbidden_act_is_refused(act: str) -> None:
    import sympy

    modules = "ctypes, fcntl, multiprocessing, os, resource, socket, subprocess, sys, threading, time, urllib.request"
    package = Path(sympy.__file__)
    whole = package.read_bytes()
    names = f"PACKAGE = {str(package)!r}\nTEMP = {tempfile.gettempdir()!r}"
    source = f"import {modules}\nlibc = ctypes.CDLL(None)\n{names}\n{act}\nprint('done')"
    done = ran(source)
    assert done.stopped is None
    assert done.error is not None
    assert any(
        word in done.error for word in ("refused", "Permission", "permitted", "not allowed", "can't start")
    )
    assert "done" not in done.output
    assert package.read_bytes() == whole
    assert not Path(tempfile.gettempdir(), "porism-was-here").exists()


def test_memory_is_bounded() -> None:
    assert ran("x = bytearray(10 * 2**30)").error == "MemoryError"
    assert ran("import mmap\nm = mmap.mmap(-1, 10 * 2**30)").error is not None
    grown = ran("x = []\nwhile True: x.append(bytearray(2**20))", Limits(memory=2**28))
    assert grown.error == "MemoryError"


@pytest.mark.parametrize("source", ["import time\ntime.sleep(1000)", "import signal\nsignal.pause()"])
def test_a_sleeper_is_stopped(source: str) -> None:
    started = time.monotonic()
    assert ran(source, Limits(wall=0.5)).stopped == "it took longer than 0.5 s"
    assert time.monotonic() - started < 3


def test_closed_output_does_not_hide_a_sleeper() -> None:
    source = "import os, time\nos.closerange(0, 100)\ntime.sleep(1000)"
    assert ran(source, Limits(wall=0.5)).stopped == "it took longer than 0.5 s"


def test_cpu_time_is_bounded_whatever_the_program_catches() -> None:
    assert ran("while True: pass", Limits(cpu=1)).stopped == "it used more than 1 s of CPU"
    stubborn = ran(
        "import signal\nfor s in (signal.SIGXCPU, signal.SIGTERM, signal.SIGINT):\n"
        "    signal.signal(s, signal.SIG_IGN)\nwhile True: pass",
        Limits(cpu=1),
    )
    assert stubborn.error == "the kernel killed it, for its CPU time or its memory"


def test_output_is_bounded() -> None:
    done = ran("for _ in range(1000): print('x' * 10**6)")
    assert done.stopped == "it printed more than 65536 bytes"
    assert len(done.output) == 65536
    assert ran("import sys\nsys.stderr.write('x' * 10**8)").stopped == "it printed more than 65536 bytes"


def test_files_are_bounded() -> None:
    assert ran("open('big', 'w').write('x' * 10**7)").error == "OSError: [Errno 27] File too large"
    many = ran("i = 0\nwhile True:\n    i += 1\n    open(str(i), 'w').write('x' * 10**6)")
    assert many.stopped == "it wrote more than 1000 files or 16 MiB"
    empty = ran("i = 0\nwhile True:\n    i += 1\n    open(str(i), 'w').close()")
    assert empty.stopped == "it wrote more than 1000 files or 16 MiB"


def test_nothing_goes_in_but_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    own_file = "open('mine', 'w').write('1')\nprint(open('mine').read())"
    done = ran(f"import os\nprint(sorted(os.environ), os.listdir('.'))\n{own_file}")
    assert "sk-secret" not in ran("import os\nprint(dict(os.environ))").output
    assert "KEY" not in done.output
    assert done.output.endswith("[]\n1\n")
    assert ran("print(input())").error == "EOFError: EOF when reading a line"
    # No file of ours is open in it.
    look = "try:\n        os.fstat(n)\n        print(n)\n    except OSError: pass"
    assert ran(f"import os\nfor n in range(3, 64):\n    {look}").output == ""


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("print(", "SyntaxError: '(' was never closed"),
        ("1/0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "it ended with exit code 3"),
        ("import os\nos.abort()", "it ended by signal"),
        ("import porism", "ModuleNotFoundError: No module named 'porism'"),
        ("x = '\0'", "source code string cannot contain null bytes"),
        ("x = '\ud800'", "UnicodeEncodeError"),
    ],
)
def test_a_program_that_fails_says_how(source: str, error: str) -> None:
    assert error in (ran(source).error or "")


def test_odd_programs() -> None:
    assert ran("").output == ""
    assert ran("#" * 200_000).stopped == "the program is longer than 100000 characters"
    assert "\ufffd" in ran("import sys\nsys.stdout.buffer.write(bytes(range(256)))").output


def test_cancelling_ends_the_program(tmp_path: Path) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(run_program("import time\ntime.sleep(1000)", Limits(wall=1000)))
        await asyncio.sleep(1)
        assert jailed(tmp_path)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    started = time.monotonic()
    asyncio.run(cancelled())
    assert time.monotonic() - started < 10


def test_a_program_dies_with_a_killed_parent(tmp_path: Path) -> None:
    source = (
        "import asyncio, tempfile\nfrom porism.neighbors.sandbox import Limits, run_program\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "asyncio.run(run_program('import time; time.sleep(1000)', Limits(wall=1000)))"
    )
    with subprocess.Popen([sys.executable, "-c", source], env=os.environ) as parent:
        deadline = time.monotonic() + 20
        while not jailed(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert jailed(tmp_path)
        time.sleep(0.2)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    while jailed(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not jailed(tmp_path)


WITHOUT = """
import asyncio, ctypes, os, struct, sys
from porism.errors import ConfigError
from porism.neighbors.sandbox import check, run_program
libc = ctypes.CDLL(None)
number, argument, marker = (int(word) for word in sys.argv[1:])
code = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, argument)]
code += [(0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7FFF0000)]
text = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in code))
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, struct.pack("HxxxxxxP", len(code), ctypes.addressof(text)), 0, 0) == 0
for act in (check(), run_program("open('/dev/stdout', 'w').write('ran')\\nprint('ran')")):
    try:
        asyncio.run(act)
    except ConfigError as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("call", "argument", "named"),
    [(444, 0, "Landlock"), (157, 22, "system call filter (seccomp)"), (157, 38, "no new privileges")],
)
@pytest.mark.skipif("x86_64" not in os.uname().machine, reason="numbers of x86_64")
def test_without_a_protection_nothing_runs(call: int, argument: int, named: str) -> None:
    """A process for which the kernel acts as one without Landlock, or without seccomp."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(call), str(argument), "0"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    for line in lines:
        assert line.startswith(f"programs written by models are not run on this machine: {named}")
    assert "ran" not in done.stdout.split()


def test_the_list_of_calls_holds_none_that_reach_out() -> None:
    forbidden = {  # fork, vfork, clone, execve, socket, connect, kill, tkill, ptrace, mount, chmod, prctl, bpf
        "x86_64": {57, 58, 56, 59, 41, 42, 62, 200, 234, 101, 165, 90, 157, 321, 425, 435, 302, 160},
        "aarch64": {220, 221, 198, 203, 129, 130, 131, 117, 40, 53, 52, 167, 280, 425, 435, 261, 164},
    }
    for machine, calls in CALLS.items():
        assert len(set(calls)) == len(calls)
        assert not forbidden[machine] & set(calls)


@pytest.mark.skipif("x86_64" not in os.uname().machine, reason="machine code of x86_64")
@pytest.mark.parametrize(
    "code",
    [
        b"\xb8\x02\x00\x00\x00\xcd\x80\xc3",  # fork by the 32-bit numbers: mov eax, 2; int 0x80; ret
        b"\xb8\x39\x00\x00\x40\x0f\x05\xc3",  # fork by the x32 numbers: mov eax, 0x40000039; syscall; ret
        b"\xb8\x39\x00\x00\x00\x0f\x05\xc3",  # fork, past the C library
    ],
)
def test_machine_code_reaches_no_further(code: bytes) -> None:
    source = (
        "import ctypes, mmap, os\n"
        "page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n"
        f"page.write({code!r})\n"
        "call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))\n"
        "print(call() < 0, flush=True)\n"
    )
    done = ran(source)
    assert done.output == "True\n" or (done.error or "").startswith("it ended by signal")
