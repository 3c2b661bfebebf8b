"""What models answered, as candidates of a problem: their text, their final answer, where they come from.

A solution is dropped if its text stands there already. Two solutions with one final answer are two candidates: a pool
with one candidate an answer could not tell a sound derivation from a lucky one. Who wants that pool can have it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from msgspec import Struct

from porism.data.answers import last_boxed, plain
from porism.types import Candidate, Completion, Problem
from porism.verify.extract import extract, visible


class Added(Struct, frozen=True, kw_only=True):
    """What one problem got: ids of new candidates, how many of them are truncated, distinct final answers, what not.

    dropped: counts by reason. answers: distinct final answers among all candidates the problem now has.
    """

    id: str
    candidates: tuple[str, ...]
    truncated: int
    answers: int
    dropped: dict[str, int] = {}


def extend(
    problem: Problem,
    solutions: Sequence[tuple[str, Sequence[Completion | None]]],
    *,
    one_per_answer: bool = False,
) -> tuple[Problem, Added]:
    """The problem with new candidates after its own, and what was added and dropped.

    solutions: completions by model string. one_per_answer: only the first of each final answer, and none without one.
    """
    texts = {_fold(candidate.text) for candidate in problem.candidates}
    ids = {candidate.id for candidate in problem.candidates}
    answers = {plain(a) for c in problem.candidates if (a := c.answer or last_boxed(c.text))}
    new: list[Candidate] = []
    dropped: Counter[str] = Counter()
    for spec, completions in solutions:
        for rollout, completion in enumerate(completions):
            if completion is None:
                dropped["never answered"] += 1
                continue
            text = _clean(visible(completion.text) or "")
            answer = _clean(extract(completion.text, truncated=completion.truncated).answer or "") or None
            if not text:
                dropped["no solution in the answer"] += 1
            elif _fold(text) in texts:
                dropped["same text"] += 1
            elif one_per_answer and (answer is None or plain(answer) in answers):
                dropped["no final answer" if answer is None else "same final answer"] += 1
            else:
                candidate = Candidate(
                    id=_free(f"{_slug(spec)}-{rollout + 1}", ids),
                    text=text,
                    answer=answer,
                    source=spec,
                    metadata={"rollout": rollout} | ({"truncated": True} if completion.truncated else {}),
                )
                new.append(candidate)
                ids.add(candidate.id)
                texts.add(_fold(text))
                if answer is not None:
                    answers.add(plain(answer))
    added = Added(
        id=problem.id,
        candidates=tuple(candidate.id for candidate in new),
        truncated=sum(bool((candidate.metadata or {}).get("truncated")) for candidate in new),
        answers=len(answers),
        dropped=dict(dropped),
    )
    return replace(problem, candidates=(*problem.candidates, *new)), added


def _slug(spec: str) -> str:
    """The model's own name, fit for an id and a file name."""
    name = spec.rpartition("/")[2].removesuffix(".gguf")
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[:60] or "model"


def _free(id: str, taken: set[str]) -> str:
    number, free = 1, id
    while free in taken:
        number += 1
        free = f"{id}-{number}"
    return free


def _fold(text: str) -> str:
    return " ".join(text.split())


def _clean(text: str) -> str:
    """What a problem file can hold: no NUL, no half of a surrogate pair, one kind of line end."""
    text = text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    return text.replace("\r\n", "\n").strip()


__all__ = ["Added", "extend"]
