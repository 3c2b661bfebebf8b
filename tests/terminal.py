"""A command on a real pseudo-terminal of its own, driven as a person would: wait for a text, type a line."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Session:
    """`porism ...` whose stdin, stdout and stderr are one terminal. Use as a context manager."""

    def __init__(self, *words: object, cwd: Path, width: int = 100, **env: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "porism", *map(str, words)],
            cwd=cwd,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", **env},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C reaches it
        )
        os.close(theirs)
        self.raw = ""
        self._read = 0  # how far `expect` has come

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)

    @property
    def text(self) -> str:
        """All that was shown so far, without styles."""
        return _ESCAPE.sub("", self.raw).replace("\r\n", "\n")

    def expect(self, wanted: str, timeout: float = 20) -> None:
        """Wait until the text appears after what was expected last."""
        deadline = time.monotonic() + timeout
        while (at := self.text.find(wanted, self._read)) < 0:
            assert time.monotonic() < deadline, (
                f"{wanted!r} does not appear after {self.text[self._read :]!r}"
            )
            assert self._more(0.2) or self.process.poll() is None, f"{wanted!r} never came: {self.text!r}"
        self._read = at + len(wanted)

    def type(self, line: str) -> None:
        os.write(self._ours, (line + "\n").encode())

    def press(self, key: bytes) -> None:
        os.write(self._ours, key)

    def end(self) -> int:
        """Wait for the end; the exit code."""
        deadline = time.monotonic() + 20
        while self._more(0.2) or self.process.poll() is None:
            assert time.monotonic() < deadline, self.text
        return self.process.wait()

    def _more(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], seconds)[0]:
            return False
        with contextlib.suppress(OSError):  # the other side has gone
            data = os.read(self._ours, 65536)
            self.raw += data.decode(errors="replace")
            return bool(data)
        return False
