"""Every error porism raises on purpose, as one tree named after the boundary that failed.

    PorismError
    +-- InputError          what the user gave is wrong: files, keys, flags           exit 2
    |   +-- DataError           problem files, all findings at once
    |   +-- ConfigError         flags, templates, a run that was made with other settings
    |   +-- MissingExtra        an optional dependency is not installed
    +-- ModelError          a model or its server failed; says whether asking again may help
    +-- StoreError          the run folder cannot be read or written
    +-- Stopped             the run ended before its plan did, on purpose; everything is stored
        +-- BudgetReached       a budget the user set                                 exit 3
        +-- CircuitOpen         the model fails again and again                       exit 1
        +-- Interrupted         Ctrl-C                                                exit 130

A message says what happened, where, and what to type. Keys and prompts never stand in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal


class PorismError(Exception):
    """The root: `exit_code` is what the command line ends with."""

    exit_code = 1


class InputError(PorismError):
    """Something the user gave is wrong; nothing was done."""

    exit_code = 2


class DataError(InputError):
    """One or more findings in problem files; `findings` holds them all, one line each."""

    def __init__(self, findings: Sequence[str]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(self.findings))


class ConfigError(InputError):
    """A flag, a template or a setting that cannot be used."""


class MissingExtra(InputError):
    """An optional dependency is missing; the message is the command that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra!r}: pip install 'porism[{extra}]'")


Retry = Literal["no", "transient", "rate_limit"]


class ModelError(PorismError):
    """A call failed.

    retry says whether the same call may succeed later; retry_after is the server's own wish in
    seconds, if it stated one. fatal means that no call to this model can succeed (a refused key, an
    unknown model), so the run stops; otherwise only this call is lost.
    """

    def __init__(
        self,
        message: str,
        *,
        retry: Retry = "no",
        retry_after: float | None = None,
        fatal: bool = False,
        kind: str = "model",
    ) -> None:
        self.retry = retry
        self.retry_after = retry_after
        self.fatal = fatal
        self.kind = kind
        super().__init__(message)


class StoreError(PorismError):
    """The run folder cannot be read or written: a full disk, a read-only folder, a foreign file."""


class Stopped(PorismError):
    """The run ended early, on purpose: what is stored is whole, and the same command goes on."""


class BudgetReached(Stopped):
    exit_code = 3


class CircuitOpen(Stopped):
    exit_code = 1


class Interrupted(Stopped):
    exit_code = 130
