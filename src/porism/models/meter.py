"""How far a download is: a bar on a terminal, a line for every tenth elsewhere. All on stderr."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Meter:
    """Shows `update(bytes)` against `size` bytes, and lines given to `say`, while it is entered."""

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        self._tenth = 0
        self._bar: Progress | None = None
        self._task: TaskID

    def __enter__(self) -> Meter:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                Progress,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )

            self._bar = Progress(
                "{task.description}",
                BarColumn(),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task(self._name, total=self._size)
            self._bar.start()
        else:
            self.say(f"downloading {self._name}, {self._size / 1e6:.0f} MB")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, size: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=size)
        elif (tenth := 10 * size // self._size) > self._tenth:
            self._tenth = tenth
            self.say(f"{self._name}: {size / 1e6:.0f} of {self._size / 1e6:.0f} MB")

    def say(self, line: str) -> None:
        if self._bar is not None:
            self._bar.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=sys.stderr, flush=True)  # noqa: T201


__all__ = ["Meter"]
