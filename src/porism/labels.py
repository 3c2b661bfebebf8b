"""Judgements of candidates by people: what one holds, which of them count, how far raters agree, what follows.

A judgement is one line in a log beside the problem file and is never changed; the last one of a rater on a candidate
counts. It carries a hash of all that the rater saw, so one about a text that has changed since counts no more. Nothing
here looks at who wrote a candidate, and the order a rater gets is that rater's own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import combinations
from typing import Literal

from msgspec import Struct

from porism.types import Candidate, Problem

Opinion = Literal["yes", "no", "unsure"]
FEW = 20  # judgements by both raters below which a kappa says next to nothing
RATERS = 2  # who must agree, at least, before a candidate counts as labelled


class Judgement(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one rater said of one candidate. answer_matches is None where the problem has no known answer."""

    rater: str
    time: str
    problem: str
    candidate: str
    text_hash: str
    answer_matches: Opinion | None
    derivation_holds: Opinion
    note: str = ""

    @property
    def correct(self) -> bool | None:
        """Right only if all that was asked was answered yes, wrong after any no, open after unsure."""
        said = {self.answer_matches or "yes", self.derivation_holds}
        return False if "no" in said else None if "unsure" in said else True


@dataclass(frozen=True, slots=True)
class Item:
    """A candidate in its problem, and the hash of what a rater sees of them."""

    problem: Problem
    candidate: Candidate
    text_hash: str

    @property
    def key(self) -> tuple[str, str]:
        """Ids of the problem and the candidate."""
        return self.problem.id, self.candidate.id


@dataclass(frozen=True, slots=True)
class Standing:
    """A candidate with the judgement of each rater that counts, by rater."""

    item: Item
    judgements: dict[str, Judgement]

    @property
    def disputed(self) -> bool:
        """Whether one rater holds it right and another wrong."""
        return {True, False} <= {j.correct for j in self.judgements.values()}

    def agreed(self, raters: int = RATERS) -> bool | None:
        """The label that so many raters or more give and none contradicts; None where there is none."""
        said = [j.correct for j in self.judgements.values() if j.correct is not None]
        return said[0] if len(said) >= max(1, raters) and len(set(said)) == 1 else None


class Agreement(Struct, frozen=True, kw_only=True):
    """How far two raters agree on what both decided; kappa is None where chance alone would make them agree.

    about: answer_matches, derivation_holds, or correct. few: n is below FEW, so that kappa should not be relied on.
    """

    raters: tuple[str, str]
    about: str
    n: int
    agree: int
    raw: float | None
    kappa: float | None
    few: bool


def items(problems: Iterable[Problem]) -> list[Item]:
    """All candidates, in the order of the file."""
    return [Item(p, c, _digest(p.question, p.answer or "", c.text)) for p in problems for c in p.candidates]


def in_order(found: Iterable[Item], rater: str) -> list[Item]:
    """The items in this rater's order: problems one after another, shuffled, and the candidates in each of them.

    Drawn by a hash of names, so that new candidates never change the order of the others.
    """
    return sorted(found, key=lambda i: (_digest(rater, i.problem.id), _digest(rater, *i.key)))


def standings(found: Sequence[Item], judgements: Iterable[Judgement]) -> tuple[list[Standing], int, int]:
    """Every item with what counts, and how many judgements are of another text, and of candidates not there."""
    hashes = {item.key: item.text_hash for item in found}
    counting: dict[tuple[str, str], dict[str, Judgement]] = {item.key: {} for item in found}
    stale: set[tuple[str, str, str]] = set()
    gone: set[tuple[str, str, str]] = set()
    for j in judgements:
        key, id = (j.problem, j.candidate), (j.rater, j.problem, j.candidate)
        if key not in hashes:
            gone.add(id)
        elif j.text_hash != hashes[key]:
            stale.add(id)
        else:
            counting[key][j.rater] = j
    stale -= {(rater, *key) for key, said in counting.items() for rater in said}
    return [Standing(item, counting[item.key]) for item in found], len(stale), len(gone)


def agreements(all_standings: Sequence[Standing]) -> list[Agreement]:
    """Raw agreement and Cohen's kappa of every pair of raters that have judged a candidate in common."""
    raters = sorted({rater for s in all_standings for rater in s.judgements})
    found = []
    for a, b in combinations(raters, 2):
        both = [
            (s.judgements[a], s.judgements[b])
            for s in all_standings
            if a in s.judgements and b in s.judgements
        ]
        for about in ("answer_matches", "derivation_holds", "correct") if both else ():
            said = [(_decided(getattr(x, about)), _decided(getattr(y, about))) for x, y in both]
            pairs = [(x, y) for x, y in said if x is not None and y is not None]
            agree = sum(x == y for x, y in pairs)
            found.append(
                Agreement(
                    raters=(a, b),
                    about=about,
                    n=len(pairs),
                    agree=agree,
                    raw=agree / len(pairs) if pairs else None,
                    kappa=kappa(pairs),
                    few=len(pairs) < FEW,
                )
            )
    return found


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's kappa: (observed - chance) / (1 - chance), chance from each rater's own shares (Cohen 1960).

    None where it is not defined: without pairs, and where both raters always say the same one thing.
    """
    n = len(pairs)
    if not n:
        return None
    first, second = sum(a for a, _ in pairs), sum(b for _, b in pairs)
    chance = first * second + (n - first) * (n - second)  # times n squared, as is the next: exact
    observed = sum(a == b for a, b in pairs) * n
    return None if chance == n * n else (observed - chance) / (n * n - chance)


def labelled(
    problems: Iterable[Problem], all_standings: Sequence[Standing], raters: int = RATERS
) -> tuple[list[Problem], Counter[str], list[str]]:
    """The problems with `correct` as agreed, unset where raters disagree, and as it was where nobody judged.

    Also counts of candidates (set, changed, unset, open) and a line for each label that a judgement overturned.
    """
    by_key = {s.item.key: s for s in all_standings}
    counts: Counter[str] = Counter(set=0, changed=0, unset=0, open=0)
    overturned: list[str] = []
    result = []
    for problem in problems:
        candidates = []
        for candidate in problem.candidates:
            standing = by_key[problem.id, candidate.id]
            agreed = standing.agreed(raters)
            value = agreed if agreed is not None else None if standing.disputed else candidate.correct
            if agreed is not None:
                counts["set"] += 1
            elif standing.disputed:
                counts["unset"] += 1
            elif standing.judgements:
                counts["open"] += 1
            if candidate.correct is not None and value != candidate.correct:
                counts["changed"] += 1
                overturned.append(
                    f"{problem.id}/{candidate.id}: was {_word(candidate.correct)}, now {_word(value)}"
                )
            candidates.append(replace(candidate, correct=value))
        result.append(replace(problem, candidates=tuple(candidates)))
    return result, counts, overturned


def _word(correct: bool | None) -> str:
    return {True: "right", False: "wrong", None: "open"}[correct]


def _decided(value: object) -> bool | None:
    return value if isinstance(value, bool) else {"yes": True, "no": False}.get(str(value))


def _digest(*parts: str) -> str:
    return blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


__all__ = [
    "Agreement", "Item", "Judgement", "Standing", "agreements", "in_order", "items", "kappa", "labelled", "standings",
]  # fmt: skip
