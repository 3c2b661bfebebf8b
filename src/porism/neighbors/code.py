"""Answer rules that are code, run in a process of their own, as verification workers are.

The user allowed the code, so this is no prison: it is a process without output, with bounded memory, no file to write,
none of the user's environment but what Python needs, and a clock for each call, so that a function that loops,
grows or sleeps is an error and not a hang. The process takes calls as JSON on stdin and answers one line a call.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from porism.neighbors.rules import CODE, Values
from porism.neighbors.values import RuleError

LIMIT = 2.0  # CPU seconds a call
WALL = 10.0  # seconds a call, however it spends them
_LENGTH = 10_000  # characters of an answer
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "PYTHONHOME", "LD_LIBRARY_PATH")


def run_code(rule: str, calls: Sequence[Values], *, limit: float = LIMIT, wall: float = WALL) -> list[Any]:
    """What function(**values) gives for each call of python:package.module:function: int, Fraction or text.

    Modules are found where Python finds them and in the current folder. limit, wall: seconds of a call, CPU and
    clock. RuleError for a call that raises, overruns its limits or gives something else.
    """
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join([path for path in sys.path if path] + [str(Path.cwd())])
    work = {"rule": rule, "calls": [_packed(values) for values in calls], "limit": limit, "wall": wall}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "porism.neighbors.code"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
    try:
        output = _talk(process, json.dumps(work).encode(), len(calls), patience=4 * wall)
    finally:
        with suppress(ProcessLookupError):  # whatever the function started goes with it
            os.killpg(process.pid, signal.SIGKILL)
        assert process.stdout is not None
        process.stdout.close()
        process.wait()
    found = [_unpacked(json.loads(line)) for line in output.splitlines()]
    if len(found) < len(calls):
        reason = {
            -signal.SIGPROF: f"takes more than {limit:g} s of CPU time",
            -signal.SIGALRM: f"takes more than {wall:g} s",
        }.get(process.returncode, "ended its process")
        at = ", ".join(f"{name} = {value}" for name, value in calls[len(found)].items())
        raise RuleError(f"{rule} {reason} (for {at[:200]})")
    for values, (kind, value) in zip(calls, found, strict=True):
        if kind == "fault":
            at = ", ".join(f"{name} = {value}" for name, value in values.items())
            raise RuleError(f"{rule} {value} (for {at[:200]})")
    return [value for _, value in found]


def _talk(process: subprocess.Popen[bytes], work: bytes, lines: int, *, patience: float) -> bytes:
    """What the process answers until it has said `lines` lines, has ended, or was silent for too long."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError), process.stdin as stdin:
        stdin.write(work)  # it reads all of it before it answers
    output = b""
    while output.count(b"\n") < lines and select.select([process.stdout], [], [], patience)[0]:
        if not (data := os.read(process.stdout.fileno(), 1 << 16)):
            break
        output += data
    return output


def _packed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _packed(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_packed(item) for item in value]
    return {"fraction": str(value)} if isinstance(value, Fraction) else value


def _argument(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_argument(item) for item in value)
    return Fraction(value["fraction"]) if isinstance(value, dict) else value


def _unpacked(line: Any) -> tuple[str, Any]:
    kind, text = line
    if kind != "number":
        return kind, text
    value = Fraction(text)
    return kind, value.numerator if value.denominator == 1 else value


def _called(work: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Kind and text of each call's outcome: a number, a text, or a fault in words."""
    module, _, name = work["rule"].removeprefix(CODE).partition(":")
    signal.setitimer(signal.ITIMER_REAL, 3 * work["wall"])  # an import may take its time
    try:
        function = getattr(importlib.import_module(module), name)
    except Exception as error:  # noqa: BLE001  (the boundary: whatever the user's module does)
        yield from (("fault", f"cannot be imported: {type(error).__name__}: {error}") for _ in work["calls"])
        return
    for values in work["calls"]:
        signal.setitimer(signal.ITIMER_PROF, work["limit"])
        signal.setitimer(signal.ITIMER_REAL, work["wall"])
        try:
            found = function(**{name: _argument(value) for name, value in values.items()})
            text = str(found)
        except Exception as error:  # noqa: BLE001  (the boundary: a fault is an outcome of this call)
            yield "fault", f"raises {type(error).__name__}: {error}"[:300]
            continue
        if isinstance(found, bool) or not isinstance(found, int | Fraction | str):
            yield "fault", f"gives {type(found).__name__}, and an answer is an int, a Fraction or text"
        elif len(text) > _LENGTH:
            yield "fault", f"gives an answer of more than {_LENGTH} characters"
        else:
            yield ("text" if isinstance(found, str) else "number"), text


def _main() -> None:
    """The process: calls from stdin, outcomes to what stdout was; what the function prints goes nowhere."""
    from porism.verify.worker import confine

    work = json.load(sys.stdin)
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    confine()
    for outcome in _called(work):
        os.write(out, json.dumps(outcome).encode() + b"\n")
    os._exit(0)


if __name__ == "__main__":
    _main()

__all__ = ["run_code"]
