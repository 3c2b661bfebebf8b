"""The family of a problem, and the problem with neighbors drawn from it.

In a problem file a family has two keys more: how many neighbors to draw, and a seed. Left out, the seed comes from
the problem's id and the family as written, so that every reader of a file draws the same neighbors, and two problems
with the same family draw different ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b
from itertools import count
from typing import Any

from porism.data.answers import last_boxed, plain
from porism.data.finding import Doubt, key_text
from porism.errors import DataError
from porism.neighbors.definition import Fault, check_family
from porism.neighbors.family import Family, RunCode
from porism.types import Problem

NEIGHBORS = 5  # drawn where the problem does not say how many
_MOST = 10_000
_SETTINGS = ("neighbors", "seed")


def expanded(problem: Problem, *, run: RunCode | None = None) -> Problem:
    """The problem with its family's neighbors after its own, and without the family; itself where it has none.

    None of them has the question or the answer of the problem, of a candidate or of its other neighbors' questions.
    run: runs an answer rule that is code; without it such a family is a DataError, as is one that cannot be drawn from.
    """
    if problem.family is None:
        return problem
    family, faults = _read(problem.family)
    if family is None:
        raise DataError(
            [f"problem {problem.id!r}: {key_text(('family', *path))}: {message}" for path, message in faults]
        )
    avoid = [problem.question, *(neighbor.question for neighbor in problem.neighbors)]
    shown = [problem.answer, *(item.answer or last_boxed(item.text) for item in problem.candidates)]
    drawn = family.draw(
        problem.family.get("neighbors", NEIGHBORS),
        problem.family.get("seed", _seed(problem)),
        avoid=[*avoid, *(answer for answer in shown if answer)],
        run=run,
    )
    used = {neighbor.id for neighbor in problem.neighbors}
    ids = (id for i in count(1) if (id := f"family-{i}") not in used)
    named = tuple(replace(neighbor, id=id) for id, neighbor in zip(ids, drawn, strict=False))
    return replace(problem, neighbors=problem.neighbors + named, family=None)


def doubts(problem: Problem) -> Iterator[Doubt]:
    """Errors and warnings about the family of a problem that is otherwise whole.

    An answer rule that is code is not run.
    """
    if problem.family is None:
        return
    family, faults = _read(problem.family)
    for path, message in faults:
        yield "error", ("family", *path), message
    if family is None or isinstance(family.answer, str):
        return
    try:
        expanded(problem)
        if family.target is not None and problem.answer is not None:
            target = family.answer_of(family.target)
            if plain(target) != plain(problem.answer):
                said = f"gives {target} for the family's target, and the problem's answer is {problem.answer}"
                yield "warning", ("family", "answer"), said
    except DataError as error:
        for finding in error.findings:
            yield "error", ("family",), finding


def _read(value: Mapping[str, Any]) -> tuple[Family | None, list[Fault]]:
    """The family of a problem, and what is wrong with it."""
    family, faults = check_family({key: item for key, item in value.items() if key not in _SETTINGS})
    for key, low, high in (("neighbors", 1, _MOST), ("seed", 0, 2**63)):
        given = value.get(key, low)
        if isinstance(given, bool) or not isinstance(given, int) or not low <= given <= high:
            faults.append(((key,), f"must be a whole number from {low} to {high}"))
    return (None if faults else family), faults


def _seed(problem: Problem) -> int:
    """31 bits from the problem's id and its family, whatever the number of neighbors."""
    family = {key: item for key, item in (problem.family or {}).items() if key not in _SETTINGS}
    text = json.dumps([problem.id, family], sort_keys=True, ensure_ascii=False)
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest()) >> 1


__all__ = ["NEIGHBORS", "doubts", "expanded"]
