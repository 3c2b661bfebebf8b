"""The sentences under a ranking: who is ahead, whether it can be told, and what it does not mean.

They claim only what the test of chance_gap bears out. Where the data cannot decide, that is the message, with
what would help. Utility is not a chance of being right, and the last sentence says so whenever there is a lead.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

FEW_ROLLOUTS = 8
MOST_NAMES = 5
CAVEAT = "P(highest) is not a chance of being right: a pool without a right candidate still has a winner."


class Standing(Struct, frozen=True, kw_only=True):
    """What the message is made from. Candidates are (id, utility), best first, undecided ones left out.

    leaders: the first of them and those that cannot be told apart from it. best_helps: whether some candidate
    is above the no-example row beyond chance; None without that row. rollouts: the fewest decided in any cell.
    claim: what an allocation has established about the order, in place of what chance_gap tells.
    """

    candidates: Sequence[tuple[str, Fraction]]
    leaders: Sequence[str]
    undecided: Sequence[str] = ()
    no_example: Fraction | None = None
    best_helps: bool | None = None
    gap: float | None = None
    rollouts: int = 0
    claim: str | None = None


def message(standing: Standing) -> str:
    """One to three sentences."""
    if not standing.candidates:
        return "Nothing is decided yet."
    parts = [standing.claim or _order(standing), _help(standing)]
    values = [value for _, value in standing.candidates]
    if standing.claim or len(standing.leaders) < len(values):
        parts.append(CAVEAT)
    return " ".join(part for part in parts if part)


def names(ids: Sequence[str], word: str = "and") -> str:
    """a; a and b; a, b and c; beyond five, how many more."""
    if len(ids) > MOST_NAMES + 1:
        return f"{', '.join(ids[:MOST_NAMES])} {word} {len(ids) - MOST_NAMES} more"
    return f" {word} ".join([", ".join(ids[:-1]), ids[-1]] if len(ids) > 1 else ids)


def _order(s: Standing) -> str:
    (best, top), values = s.candidates[0], [value for _, value in s.candidates]
    few = ""
    if s.rollouts < FEW_ROLLOUTS:
        few = (
            f"with only {_many(s.rollouts, 'rollout')} a neighbor, "
            if s.rollouts
            else "with neighbors undecided, "
        )
    if len(values) == 1:
        others = (
            f"nothing is decided yet on {names(s.undecided)}"
            if s.undecided
            else "there is no other candidate"
        )
        return _capital(f"{few}the utility of {best} is {float(top):.2f}; {others}.")
    if not any(values):
        return "No rollout solved any neighbor with any candidate: these neighbors are too hard to decide."
    if all(value == 1 for value in values):
        return (
            "Every rollout solved its neighbor with every candidate: these neighbors are too easy to decide."
        )
    if len(s.leaders) == 1:
        second, value = s.candidates[1]
        return _capital(
            f"{few}{best} is ahead with utility {float(top):.2f}; next is {second} with {float(value):.2f}."
        )
    tied = [name for name, value in s.candidates if value == top]
    tie = f" ({names(tied)} are exactly tied)" if len(tied) > 1 else ""
    if len(s.leaders) == len(values):
        size = "any gap between them" if s.gap is None else f"a gap below {s.gap:.2f}"
        return _capital(
            f"{few}these neighbors cannot decide: {names(s.leaders)} are not distinguishable{tie}, since {size} may "
            f"be chance; {_remedy(values)} would help."
        )
    return _capital(
        f"{few}{names(s.leaders)} lead and are not distinguishable with these neighbors{tie}; "
        f"{_remedy(values)} would help."
    )


def _help(s: Standing) -> str:
    if s.no_example is None or s.best_helps or s.no_example == s.candidates[0][1] == 0:
        return ""
    rate = f"(solve rate {float(s.no_example):.2f} without one)"
    if s.candidates[0][1] <= s.no_example:
        return f"No candidate helps more than no example {rate}."
    return f"No candidate helps more than no example {rate} beyond what may be chance."


def _remedy(values: Sequence[Fraction]) -> str:
    mean = sum(values) / len(values)
    kind = "harder" if mean > Fraction(3, 4) else "easier" if mean < Fraction(1, 8) else "more"
    return f"more rollouts or {kind} neighbors"


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _capital(text: str) -> str:
    """A sentence may open with a candidate's id, which stays as it is."""
    return (
        text[0].upper() + text[1:]
        if text.startswith(("with only", "with neighbors", "the utility", "these neighbors"))
        else text
    )


__all__ = ["Standing", "message", "names"]
