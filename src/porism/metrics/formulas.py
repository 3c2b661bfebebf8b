"""The metrics of one pool as formulas on the scores of its right, wrong and human candidates.

A rank metric is the expected value over a random order within ties. It needs no order then, only the
blocks of equal scores from the top down, each with how many right and wrong ones it holds; all but NDCG are
exact fractions. chance() is the same formula with everybody in one block: what a blind order earns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import comb, log2
from typing import NamedTuple

from porism.errors import InputError

METRICS = ("acc@1", "recall@R", "recall@5", "auc", "human_win", "mean_win", "mrr", "ndcg", "pairwise")
BY_LEVEL = frozenset({"auc", "human_win", "mean_win", "pairwise"})  # they compare scores far from the top

Exact = Fraction | int

_HALF = Fraction(1, 2)
_RECALL = re.compile(r"recall@(R|[1-9][0-9]{0,8})")


class Sides(NamedTuple):
    """The scores of a pool by label, exact, in any unit: only their order and the order of their means count.

    human: the human solution's (usually one), whether or not it is in right.
    """

    right: Sequence[Exact]
    wrong: Sequence[Exact]
    human: Sequence[Exact] = ()


class Block(NamedTuple):
    """Candidates of one score: `above` stand over it."""

    above: int
    right: int
    wrong: int

    @property
    def size(self) -> int:
        return self.right + self.wrong


def check(metric: str) -> None:
    """InputError unless it is the name of a metric: one of METRICS, or recall@K for any K."""
    if metric not in METRICS and not _RECALL.fullmatch(metric):
        raise InputError(f"unknown metric {metric!r}: use {', '.join(METRICS)}, or recall@K")


def measure(metric: str, sides: Sides) -> Fraction | float | None:
    """The pool's value, 0 .. 1; None where it is not defined: no right or no wrong one, or no human solution.

    acc@1       chance that the first is right
    recall@K    share of the right ones among the first K; recall@R: K = number of right ones
    auc         share of right-wrong pairs with the right one above, a tie counts half
    pairwise    the same with a tie as failure: pairs that are really decided, and decided rightly
    human_win   whether the human solution is above the mean of the wrong ones, equal counts half
    mean_win    whether the mean of the right ones is above the mean of the wrong ones, equal counts half
    mrr         1 / rank of the first right one
    ndcg        discounted gain 1 / log2(1 + rank) of the right ones, over that of a perfect order
    """
    right, wrong, human = sides
    if not wrong or not (human if metric == "human_win" else right):
        return None
    if metric == "human_win":
        return sum((_beats(score, _mean(wrong)) for score in human), Fraction()) / len(human)
    if metric == "mean_win":
        return _beats(_mean(right), _mean(wrong))
    return _from_blocks(metric, blocks(right, wrong))


def chance(metric: str, sides: Sides) -> Fraction | float | None:
    """What an order that knows nothing earns on average; None where the metric is not defined."""
    blind = Sides(*([0] * len(side) for side in sides))
    # The auc of equal scores is that of a blind order; pairwise counts ties as failures, and an order has none.
    return measure("auc" if metric == "pairwise" else metric, blind)


def blocks(right: Sequence[Exact], wrong: Sequence[Exact]) -> list[Block]:
    """The blocks of equal scores, highest first."""
    by_right: Counter[Exact] = Counter(right)
    by_wrong: Counter[Exact] = Counter(wrong)
    found: list[Block] = []
    above = 0
    for score in sorted(by_right.keys() | by_wrong.keys(), reverse=True):
        found.append(Block(above, by_right[score], by_wrong[score]))
        above += found[-1].size
    return found


def _from_blocks(metric: str, order: list[Block]) -> Fraction | float:
    right = sum(b.right for b in order)
    wrong = sum(b.wrong for b in order)
    match metric:
        case "acc@1":
            return Fraction(order[0].right, order[0].size)
        case "auc":
            return sum((b.wrong * (_rights_above(order, b) + b.right * _HALF) for b in order), Fraction()) / (
                right * wrong
            )
        case "pairwise":
            return Fraction(sum(b.wrong * _rights_above(order, b) for b in order), right * wrong)
        case "mrr":
            return _first_right(next(b for b in order if b.right))
        case "ndcg":
            gain = sum(b.right / b.size * _discount(b.above, b.above + b.size) for b in order)
            return gain / _discount(0, right)
    places = right if metric == "recall@R" else int(metric.removeprefix("recall@"))
    taken = (Fraction(b.right * min(max(places - b.above, 0), b.size), b.size) for b in order)
    return sum(taken, Fraction()) / right


def _rights_above(order: list[Block], block: Block) -> int:
    return sum(b.right for b in order if b.above < block.above)


def _first_right(block: Block) -> Fraction:
    """The mean of 1 / place of the first right one in a random order of the block.

    It is the j-th of the block in C(size - j, right - 1) of C(size, right) ways.
    """
    ways = sum(
        Fraction(comb(block.size - j, block.right - 1), block.above + j) for j in range(1, block.wrong + 2)
    )
    return Fraction(ways) / comb(block.size, block.right)


def _discount(first: int, end: int) -> float:
    return sum(1 / log2(2 + place) for place in range(first, end))


def _mean(scores: Sequence[Exact]) -> Fraction:
    return Fraction(sum(scores)) / len(scores)


def _beats(a: Exact, b: Exact) -> Fraction:
    return Fraction(1) if a > b else _HALF if a == b else Fraction(0)


__all__ = ["BY_LEVEL", "METRICS", "Block", "Sides", "blocks", "chance", "check", "measure"]
