"""Which display a run gets: live on a terminal, plain lines elsewhere, or none."""

from __future__ import annotations

import os
import sys
from typing import Literal, TextIO

from porism.progress import PlainWatch, SilentWatch, Tally

Mode = Literal["auto", "rich", "plain", "none"]


def choose(stream: TextIO | None = None, mode: Mode = "auto") -> Tally:
    """The display for a stream (stderr unless given): live on a terminal; plain elsewhere, in CI, on a dumb one."""
    stream = stream or sys.stderr
    if mode == "auto":
        live = (
            stream.isatty()
            and not os.environ.get("CI")
            and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
        )
        mode = "rich" if live else "plain"
    if mode == "none":
        return SilentWatch()
    if mode == "plain":
        return PlainWatch(stream)
    from porism.live import RichWatch

    return RichWatch(stream)
