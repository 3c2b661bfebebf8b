"""What a run folder adds up to, without opening it as a store: ids, tokens and counts, for looks at large runs.

A row of the index is read for its id, its end and its tokens only, and no verdict at all; so a million rollouts take a
second or two, where Store takes ten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from msgspec import Struct

from porism.errors import ConfigError
from porism.lines import decoded
from porism.records import MISSING, Failure
from porism.types import Generate, Method, Problem, Usage


class _Row(Struct, frozen=True, gc=False):
    id: str
    finish: str
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What is stored: the numbers of the rollouts, as texts, by prompt key; those missing; tokens; failed attempts.

    torn: unreadable lines. An id is a prompt's key and a number, and thousands of ids have their key in common.
    """

    rollouts: dict[str, set[str]]
    missing: int
    usage: Usage
    failures: int
    torn: int

    @property
    def answered(self) -> int:
        """Rollouts with an answer."""
        return sum(map(len, self.rollouts.values())) - self.missing


def totals(path: Path) -> Totals:
    """What the run folder holds, in the numbers that Store counts.

    Raises ConfigError where there is none, StoreError where it cannot be read.
    """
    if not path.is_dir():
        raise ConfigError(f"{path}: there is no run here")
    rollouts: dict[str, set[str]] = {}
    missing: set[str] = set()
    usage = Usage()
    torn = failures = 0
    for row in decoded(path / "index.jsonl", _Row):
        if row is None:
            torn += 1
            continue
        key, _, number = row.id.rpartition("-")
        numbers = rollouts.get(key)
        if numbers is None:
            numbers = rollouts[key] = set()
        if row.finish == MISSING:
            if number not in numbers:
                missing.add(row.id)
        elif missing:
            missing.discard(row.id)
        numbers.add(number)
        if row.usage is not None:
            usage += row.usage
    for failure in decoded(path / "errors.jsonl", Failure):
        failures += failure is not None
        torn += failure is None
    return Totals(rollouts=rollouts, missing=len(missing), usage=usage, failures=failures, torn=torn)


def planned(problems: Iterable[Problem], methods: Sequence[Method]) -> dict[str, set[str]]:
    """The rollouts that the first plans ask for, in the form of Totals.rollouts. Equal work is there once."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for problem in problems:
        for method in methods:
            works = (ask.work for ask in method.plan(problem, []))
            generates = (work for work in works if isinstance(work, Generate))
            for prompt, group in groupby(generates, key=attrgetter("prompt")):
                found[prompt.key].update(str(work.rollout) for work in group)
    return found


__all__ = ["Totals", "planned", "totals"]
