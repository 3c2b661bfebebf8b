"""A second way to an answer: a program that a model writes, run in the sandbox, whose output must agree.

It errs in other ways than a chain of thought does, so their agreement is worth more than another vote.
"""

from __future__ import annotations

import ast
import re

from msgspec import Struct

from porism.neighbors.consensus import Checker
from porism.neighbors.sandbox import Limits, run_program
from porism.types import Completion, Gold
from porism.verify.extract import visible

OUTPUT = 500  # characters of an output that are kept
_BLOCK = re.compile(r"```[ \t]*(?:python|py|python3)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)


class ProgramCheck(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a program's output agrees: "agrees", "disagrees", "undecided", "failed" or "no program".

    output: its last line. error: why it failed or was stopped.
    """

    outcome: str
    output: str = ""
    error: str | None = None


def program_of(text: str) -> str | None:
    """The last code block of a reply that is Python, or the whole reply where it is; None where nothing is."""
    shown = visible(text) or ""
    for source in [*reversed(_BLOCK.findall(shown)), shown]:
        try:
            if source.strip() and ast.parse(source).body:
                return str(source)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


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
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.For | ast.While | ast.comprehension | ast.BinOp):
            return False
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id == "print"):
            return False
    return True


__all__ = ["ProgramCheck", "check_program", "program_of"]
