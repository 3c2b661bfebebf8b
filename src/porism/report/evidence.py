"""Why one candidate stands above another: the neighbor that separates them most, and a transcript of each.

The transcripts are typical ones: of the better candidate one that solves the neighbor, of the other its most frequent
failure. In each, two places are worth a reader's time: the final answer, and the first step with a value that the
other transcript never has. That is a place to start reading, not a proof of where the fault lies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from porism.methods.diagnose import rate
from porism.methods.utility import count
from porism.report.load import Folder, Page, Rollout
from porism.report.text import Block, blocks
from porism.types import Completion, Neighbor
from porism.verify.normalize import normal_form

_BEST_FIRST = ("correct", "wrong", "no_answer", "undecided", "missing")
_WORST_FIRST = ("wrong", "no_answer", "undecided", "missing", "correct")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One candidate (None: no example) on a neighbor: its rollouts by answer, and a typical one.

    answers: (answer or None, verdict, number), the most frequent first. blocks is empty where fault says why there
    is no text. different: the first block with a value that the other side never has, and that value; final: the block
    with the final answer.
    """

    candidate: str | None
    solved: int
    decided: int
    answers: tuple[tuple[str | None, str, int], ...]
    rollout: Rollout
    blocks: tuple[Block, ...] = ()
    reasoning: str = ""
    fault: str | None = None
    different: tuple[int, str] | None = None
    final: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Two candidates on the neighbor that separates them most. gap: the difference of their solve rates there."""

    neighbor: Neighbor
    gap: float
    left: Side
    right: Side


def pairs(page: Page, *, every: bool) -> list[tuple[str | None, str | None]]:
    """The pairs worth showing: the first candidate and its rival; with `every`, and all others and no example."""
    order: list[str | None] = [p.candidate for p in page.ranking.ranking if p.rank is not None]
    if page.ranking.no_example is not None:
        order.append(None)
    if len(order) < 2:
        return []
    return [(order[0], other) for other in (order[1:] if every else order[1:2])]


def evidence(folder: Folder, page: Page, pair: tuple[str | None, str | None], most: int) -> Evidence | None:
    """What separates the pair; None where no neighbor has decided rollouts of both. most: characters of a text."""
    best: tuple[float, Neighbor, list[Rollout], list[Rollout]] | None = None
    for neighbor in page.problem.neighbors:
        left, right = (_on(page, row, neighbor.id) for row in pair)
        rates = [rate([count([r.seen for r in side])]) for side in (left, right)]
        if rates[0] is None or rates[1] is None:
            continue
        gap = rates[0] - rates[1]
        if best is None or gap > best[0]:
            best = gap, neighbor, left, right
    if best is None:
        return None
    gap, neighbor, left, right = best
    orders = (_BEST_FIRST, _WORST_FIRST) if gap >= 0 else (_WORST_FIRST, _BEST_FIRST)
    chosen = [_typical(side, order) for side, order in zip((left, right), orders, strict=True)]
    texts = [folder.completion(rollout) for rollout in chosen]
    shown = [tuple(blocks(text.text, most)) if isinstance(text, Completion) else () for text in texts]
    sides = [
        _side(pair[i], (left, right)[i], chosen[i], texts[i], shown[i], shown[1 - i], neighbor)
        for i in (0, 1)
    ]
    return Evidence(neighbor=neighbor, gap=gap, left=sides[0], right=sides[1])


def _on(page: Page, row: str | None, neighbor: str) -> list[Rollout]:
    return [r for r in page.rollouts.get(row, ()) if r.seen.cell.neighbor == neighbor]


def _kind(rollout: Rollout) -> str:
    return rollout.seen.verdict.kind if rollout.seen.verdict else "undecided"


def _form(rollout: Rollout) -> str:
    return normal_form(rollout.seen.answer) if rollout.seen.answer is not None else ""


def _typical(side: Sequence[Rollout], order: Sequence[str]) -> Rollout:
    """A rollout of the first kind in `order` that there is, with the most frequent answer of that kind."""
    kind = next(kind for kind in order if any(_kind(r) == kind for r in side))
    those = [r for r in side if _kind(r) == kind]
    answer = Counter(map(_form, those)).most_common(1)[0][0]
    return next(r for r in those if _form(r) == answer)


def _side(
    candidate: str | None,
    side: Sequence[Rollout],
    chosen: Rollout,
    text: Completion | str,
    mine: tuple[Block, ...],
    other: tuple[Block, ...],
    neighbor: Neighbor,
) -> Side:
    counts = count([r.seen for r in side])
    groups = Counter((_form(r), _kind(r)) for r in side)
    spelled = {(_form(r), _kind(r)): r.seen.answer for r in reversed(side)}
    return Side(
        candidate=candidate,
        solved=counts.correct,
        decided=counts.decided,
        answers=tuple((spelled[key], key[1], number) for key, number in groups.most_common()),
        rollout=chosen,
        blocks=mine,
        reasoning=text.reasoning if isinstance(text, Completion) else "",
        fault=None if isinstance(text, Completion) else text,
        different=first_difference(mine, other, neighbor.question),
        final=final_block(mine, chosen.seen.answer),
    )


def first_difference(mine: Sequence[Block], other: Sequence[Block], question: str) -> tuple[int, str] | None:
    """The first block with a number that neither the other text nor the question has, and that number."""
    known = {number for block in other for number in block.numbers}
    known.update(number for block in blocks(question) for number in block.numbers)
    for i, block in enumerate(mine):
        for number in block.numbers:
            if number not in known:
                return i, number
    return None


def final_block(mine: Sequence[Block], answer: str | None) -> int | None:
    """The last block with a box or, without any, the last that has the answer as written."""
    if answer is None:
        return None
    boxed = [i for i, block in enumerate(mine) if r"\boxed" in block.source]
    holds = [i for i, block in enumerate(mine) if answer in block.source]
    return max(boxed or holds, default=None)


__all__ = ["Evidence", "Side", "evidence", "final_block", "first_difference", "pairs"]
