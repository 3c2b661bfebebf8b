"""Checks of what the candidates are measured with: each neighbor, and the target's difficulty.

A ranking is worth what its neighbors are worth. A neighbor that everybody solves, or nobody, tells nothing; one
whose rollouts agree on another answer than the known one may have a wrong answer in the file. And where the
solver answers the target itself, and always alike, the target may be too easy for utility to speak.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from porism.types import Counts, Neighbor, Observation
from porism.verify.normalize import normal_form

TOO_EASY = 0.95
NO_SIGNAL_LEVEL = 0.2  # a flag accuses the neighbor, so it waits for the absence of any hint, not of proof
SUSPECT_LEAST = 4  # decided rollouts before an agreement means anything
AGREE = 0.75


class NeighborReport(Struct, frozen=True, kw_only=True):
    """How one neighbor discriminates. Rates are solve rates; spread is the best candidate's minus the worst's.

    chance_spread: a spread that equally good candidates reach one time in five; None where any would do.
    """

    id: str
    no_example: float | None
    mean: float | None
    spread: float | None
    chance_spread: float | None
    flags: tuple[str, ...] = ()
    agreed_answer: str | None = None  # where most rollouts agree on another answer than the known one


class Target(Struct, frozen=True, kw_only=True):
    """The solvers' own attempts at the target: how many, how many gave an answer, the most frequent one."""

    attempts: int
    answered: int
    agreed: str | None = None
    share: float | None = None  # of the attempts that gave this answer

    @property
    def easy(self) -> bool:
        """Whether the attempts agree so well that the target may be easy for the solver."""
        return self.attempts > 1 and self.share is not None and self.share >= AGREE


def rate(cells: Iterable[Counts]) -> float | None:
    """The mean solve rate over cells with a decided rollout."""
    rates = [c.correct / c.decided for c in cells if c.decided]
    return sum(rates) / len(rates) if rates else None


def neighbor_report(
    neighbor: Neighbor,
    rows: Sequence[Sequence[Counts]],
    base: Sequence[Counts] | None,
    observations: Sequence[Observation],
    *,
    seed: str,
) -> NeighborReport:
    """rows: each candidate's counts on this neighbor, a cell a solver; base: the same without an example."""
    from porism.stats import chance_gap

    decided = [row for row in rows if any(c.decided for c in row)]
    rates = [r for r in map(rate, decided) if r is not None]
    without = rate(base) if base is not None else None
    spread = max(rates) - min(rates) if rates else None
    chance = chance_gap(decided, seed, NO_SIGNAL_LEVEL) if len(decided) > 1 else float("inf")
    everybody = rates if without is None else [*rates, without]
    flags: list[str] = []
    if everybody and max(everybody) == 0:
        flags.append("too hard")
    elif everybody and min(everybody) >= TOO_EASY:
        flags.append("too easy")
    elif len(decided) > 1 and spread is not None and spread < chance - 1e-9:
        flags.append("no signal")
    other = _agreed_other(observations)
    if other is not None:
        flags.append("suspect gold")
    return NeighborReport(
        id=neighbor.id,
        no_example=without,
        mean=sum(rates) / len(rates) if rates else None,
        spread=spread,
        chance_spread=None if chance == float("inf") else chance,
        flags=(*neighbor.flags, *flags),
        agreed_answer=other,
    )


def target_report(attempts: Sequence[Observation]) -> Target:
    """What the solvers' own attempts at the target have in common."""
    answers = [o.answer for o in attempts if o.answer is not None]
    if not answers:
        return Target(attempts=len(attempts), answered=0)
    answer, number = _most_common(answers)
    return Target(attempts=len(attempts), answered=len(answers), agreed=answer, share=number / len(attempts))


def shown(answer: str, most: int = 60) -> str:
    """A model's answer fit to stand in a sentence: one line, printable, not long."""
    text = "".join(c if c.isprintable() else " " for c in " ".join(answer.split()))
    return text if len(text) <= most else text[: most - 3] + "..."


def _agreed_other(observations: Sequence[Observation]) -> str | None:
    """The answer, not the known one, that more than half of the decided rollouts give."""
    decided = [o for o in observations if o.verdict and o.verdict.kind in ("correct", "wrong", "no_answer")]
    wrong = [o.answer for o in decided if o.verdict and o.verdict.kind == "wrong" and o.answer is not None]
    if 2 * len(wrong) <= len(decided) or len(decided) < SUSPECT_LEAST:
        return None
    answer, number = _most_common(wrong)
    return answer if 2 * number > len(decided) else None


def _most_common(answers: Sequence[str]) -> tuple[str, int]:
    """The most frequent answer up to spelling, in its first spelling, and how often; ties by spelling."""
    spellings = Counter(answers)
    form_of = {answer: normal_form(answer) for answer in spellings}
    forms: Counter[str] = Counter()
    for answer, number in spellings.items():
        forms[form_of[answer]] += number
    form, number = min(forms.items(), key=lambda item: (-item[1], item[0]))
    return min(answer for answer in spellings if form_of[answer] == form), number


__all__ = ["NeighborReport", "Target", "neighbor_report", "rate", "shown", "target_report"]
