"""A second way to an answer: a program that a model writes, run in the sandbox, whose output must agree.

It errs in other ways than a chain of thought does, so their agreement is worth more than another vote.
"""

from __future__ import annotations

import re

from msgspec import Struct

from porism.neighbors.consensus import Checker
from porism.neighbors.sandbox import Limits, run_program
from porism.types import Completion, Gold
from porism.verify.extract import visible

OUTPUT = 500  # characters of an output that are kept
_BLOCK = re.compile(r"```[ \t]*([A-Za-z0-9]*)[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
_PYTHON = ("python", "py", "python3")
_SAID = re.compile(r"#.*|(?<![fF])(?:\"[^\"\n]*\"|'[^'\n]*')")  # comments and texts, which compute nothing
_COMPUTES = re.compile(r"\w\s*[-+*/%]|\bfor\b|\bwhile\b|(?<!\bprint)\(")


class ProgramCheck(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a program's output agrees: "agrees", "disagrees", "undecided", "failed" or "no program".

    output: its last line. error: why it failed or was stopped.
    """

    outcome: str
    output: str = ""
    error: str | None = None


def program_of(text: str) -> str | None:
    """The last Python block of a reply, else its last block, else all of it where it prints; None where nothing does.

    Whether it is Python at all is found out in the sandbox: a parser can be brought down by what it reads.
    """
    shown = visible(text) or ""
    blocks = [(name.lower() in _PYTHON, source) for name, source in _BLOCK.findall(shown)]
    sources = [source for python, source in blocks if python] or [source for _, source in blocks] or [shown]
    return sources[-1] if "print" in sources[-1] else None


async def check_program(
    completion: Completion | None, answer: str, checker: Checker, *, limits: Limits | None = None
) -> ProgramCheck:
    """Run the program in a completion and compare what it prints last with an answer.

    ConfigError where this machine lacks a protection (sandbox.py).
    """
    source = program_of(completion.text) if completion is not None else None
    if source is None or _is_constant(source):
        return ProgramCheck(outcome="no program")
    ran = await run_program(source, limits)
    lines = ran.output.strip().splitlines()
    last = lines[-1].strip()[:OUTPUT] if lines else ""
    if ran.stopped or ran.error:
        return ProgramCheck(outcome="failed", output=last, error=ran.stopped or ran.error)
    if not last:
        return ProgramCheck(outcome="failed", error="it printed nothing")
    verdict = await checker.verify(last, Gold(answer))
    outcome = {"correct": "agrees", "wrong": "disagrees"}.get(verdict.kind, "undecided")
    return ProgramCheck(outcome=outcome, output=last)


def _is_constant(source: str) -> bool:
    """Whether a program computes nothing: it prints what its writer believes."""
    return _COMPUTES.search(_SAID.sub("''", source)) is None


__all__ = ["ProgramCheck", "check_program", "program_of"]
