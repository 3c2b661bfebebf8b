"""What runs inside the subprocess: confine this process for good, then run the program in it.

Started by sandbox.py as a file of its own, `python -I -S jail.py`, so it uses the standard library alone. The kernel
holds every limit and none can be taken back: resource limits; Landlock, which leaves one folder to write in and the
Python libraries to read; a seccomp list of the system calls that computing needs. What is not on that list is
refused: starting a process or a thread, any socket, signals to others, changing the mode or owner of a file. So a
program stays one process, which dies with its parent. Works for ordinary users and for root, in containers too.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import signal
import struct
import sys
from types import ModuleType
from typing import Any

# The system calls a single-threaded computation makes, from the kernel's unistd_64.h and asm-generic/unistd.h.
CALLS = {
    "x86_64": (
        *(
            0,
            1,
            3,
            4,
            5,
            6,
            7,
            8,
            9,
            10,
            11,
            12,
            13,
            14,
            15,
            17,
            18,
            19,
            20,
            21,
            23,
            24,
            25,
            28,
            32,
            33,
            34,
            35,
        ),
        *(36, 37, 38, 39, 60, 63, 74, 77, 78, 79, 87, 89, 95, 96, 98, 99, 100, 102, 104, 107, 108, 110, 131),
        *(186, 201, 202, 204, 217, 218, 219, 228, 229, 230, 231, 262, 263, 267, 269, 270, 271, 273, 292, 309),
        *(318, 324, 332, 334, 439),
    ),
    "aarch64": (
        *(17, 23, 24, 35, 46, 48, 57, 61, 62, 63, 64, 65, 67, 68, 72, 73, 78, 79, 80, 82, 93, 94, 96, 98, 99),
        *(101, 102, 103, 113, 114, 115, 123, 124, 128, 132, 134, 135, 139, 153, 160, 165, 166, 168, 169, 172),
        *(173, 174, 175, 176, 177, 178, 179, 214, 215, 216, 222, 226, 233, 278, 283, 291, 293, 439),
    ),
}
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Calls allowed for some arguments only: (number, index of the argument).
OPEN = {
    "x86_64": ((2, 1), (257, 2)),
    "aarch64": ((56, 2),),
}  # not with O_TRUNC alone, which old Landlocks miss
FCNTL = {"x86_64": 72, "aarch64": 25}
IOCTL = {"x86_64": 16, "aarch64": 29}
FCNTLS = (0, 1, 2, 3, 4, 5, 6, 7, 1030)  # no F_SETOWN: it would send signals to others
IOCTLS = (0x5401, 0x5413, 0x5451)  # is it a terminal, how wide, close on exec
NEWER = 424  # calls from here on get "no such call", so that libraries fall back on older ones
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS = 1, 38

READ_FILE, READ_DIR = 1 << 2, 1 << 3
WRITE = READ_FILE | READ_DIR | 1 << 1 | 1 << 5 | 1 << 8  # write, remove and make plain files
TRUNCATE = 1 << 14
RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # bits of file rights each Landlock version knows; 16 from the fifth on


def confine(
    *, folder: str, libraries: list[str], cpu: int, memory: int, file_size: int, parent: int
) -> list[str]:
    """Confine this process to `folder` and to reading `libraries`; what now holds, in words.

    Raises OSError, naming the protection, where the machine lacks one.
    """
    machine = platform.machine()
    if sys.platform != "linux" or machine not in CALLS:
        raise OSError(
            f"system call filter: only on Linux, on x86_64 and aarch64; this is {sys.platform} {machine}"
        )
    libc = ctypes.CDLL(None, use_errno=True)
    _call("end with the parent", libc.prctl(1, signal.SIGKILL))
    if os.getppid() != parent:
        raise OSError("end with the parent: it is gone already")
    for what, soft, hard in (
        (resource.RLIMIT_CPU, cpu, cpu + 1),  # the soft limit can be caught, the hard one cannot
        (resource.RLIMIT_AS, memory, memory),
        (resource.RLIMIT_FSIZE, file_size, file_size),
        (resource.RLIMIT_NOFILE, 64, 64),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        resource.setrlimit(what, (soft, hard))
    _call("no new privileges", libc.prctl(38, 1, 0, 0, 0))
    header, none = struct.pack("Ii", 0x20080522, 0), bytes(24)
    _call("no capabilities", libc.capset(header, none))
    _landlock(libc, folder, libraries)
    _seccomp(libc, machine)
    return [
        f"CPU time at most {cpu} s",
        f"memory at most {memory >> 20} MiB",
        "one process, one thread (seccomp)",
        "no network, no signals to others (seccomp)",
        "writes only in an empty folder, reads only there and Python's libraries (Landlock)",
        "clean environment, no input",
    ]


def _call(what: str, result: int) -> int:
    if result < 0:
        raise OSError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def _landlock(libc: Any, folder: str, libraries: list[str]) -> None:
    def call(number: int, *arguments: Any) -> int:
        return _call("Landlock", libc.syscall(ctypes.c_long(number), *arguments))

    version = call(444, None, ctypes.c_size_t(0), 1)
    every = (1 << RIGHTS.get(version, 16)) - 1
    rules = call(444, struct.pack("Q", every), ctypes.c_size_t(8), 0)
    allowed = [(folder, WRITE | TRUNCATE)]
    allowed += [(path, READ_FILE | READ_DIR) for path in libraries if os.path.isdir(path)]  # noqa: PTH112
    allowed += [(path, READ_FILE) for path in ("/dev/null", "/dev/urandom", "/etc/ld.so.cache")]
    for path, rights in allowed:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        call(445, rules, 1, struct.pack("=Qi", rights & every, place), 0)
        os.close(place)
    call(446, rules, 0)
    os.close(rules)


def _seccomp(libc: Any, machine: str) -> None:
    def if_equal(value: int, verdict: int) -> list[bytes]:
        return [_bpf(0x15, value, 0, 1), _bpf(0x06, verdict)]

    def only(number: int, argument: int, values: tuple[int, ...]) -> list[bytes]:
        body = [_bpf(0x20, 16 + 8 * argument)]
        for value in values:
            body += if_equal(value, ALLOW)
        body.append(_bpf(0x06, ERROR | EPERM))
        return [_bpf(0x15, number, 0, len(body)), *body]

    refused = os.O_TRUNC  # with O_RDONLY
    code = [_bpf(0x20, 4), _bpf(0x15, AUDIT[machine], 1, 0), _bpf(0x06, KILL), _bpf(0x20, 0)]
    for number, argument in OPEN[machine]:
        body = [_bpf(0x20, 16 + 8 * argument), _bpf(0x54, os.O_TRUNC | os.O_ACCMODE)]
        body += [*if_equal(refused, ERROR | EPERM), _bpf(0x06, ALLOW)]
        code += [_bpf(0x15, number, 0, len(body)), *body]
    code += only(FCNTL[machine], 1, FCNTLS) + only(IOCTL[machine], 1, IOCTLS)
    for number in CALLS[machine]:
        code += if_equal(number, ALLOW)
    code += [_bpf(0x35, NEWER, 0, 1), _bpf(0x06, ERROR | ENOSYS), _bpf(0x06, ERROR | EPERM)]
    text = ctypes.create_string_buffer(b"".join(code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(text))
    _call("system call filter (seccomp)", libc.prctl(22, 2, program, 0, 0))


def _bpf(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
    """One instruction: load (0x20), and (0x54), equal (0x15), at least (0x35), return (0x06)."""
    return struct.pack("=HBBI", code, true, false, value)


def main() -> None:
    """Read the order from stdin, confine, report on the status pipe, run the program."""
    order = json.load(sys.stdin)
    source, status = order.pop("source"), order.pop("status")
    with open(os.devnull) as nothing:  # noqa: PTH123  (pathlib would import more)
        os.dup2(nothing.fileno(), 0)
    sys.path += order.pop("packages")
    try:
        report = {"held": confine(**order, libraries=[*_system(), *sys.path])}
    except (OSError, ValueError, AttributeError) as error:
        report = {"missing": [str(error)]}
    os.write(status, json.dumps(report).encode())
    os.close(status)
    if "held" in report:
        sys.argv = ["program.py"]
        module = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(source, "program.py", "exec"), module.__dict__)  # noqa: S102  (what all of this is for)


def _system() -> list[str]:
    """Where shared libraries lie."""
    return [
        f"{sys.base_prefix}/lib",
        "/lib",
        "/lib64",
        "/usr/lib",
        "/usr/lib64",
        "/usr/local/lib",
        "/nix/store",
    ]


if __name__ == "__main__":
    main()
