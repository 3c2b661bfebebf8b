"""Which neighbors are worth anything: each one's difficulty, discrimination, likeness, leaks, gold and cost.

A neighbor measures candidates when the solver cannot do it alone but can once shown how, when candidates differ on
it, when nothing can be copied, and when its known answer is right. What a run has seen says the first two; the texts
say the rest. Pure: the command gathers what is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from porism.methods.diagnose import rate
from porism.methods.ranking import Ranking
from porism.methods.utility import Utility, count
from porism.neighbors.likeness import duplicates, leaks, near
from porism.types import Counts, Neighbor, Observation, Problem

SWEET_SPOT = (0.05, 0.8)  # solve rates without example between which a neighbor may speak
LEAST = 8  # decided rollouts before a rate accuses a neighbor
WANTED = 3  # neighbors worth keeping, at least
MINE = frozenset(  # flags that a check writes, and takes away again
    {"too easy", "too hard", "no signal", "suspect gold", "duplicate", "leak", "gold not understood"}
)

Span = tuple[float, float]


class Texts(Struct, frozen=True, kw_only=True):
    """What the texts alone say of a neighbor. gold: why its known answer cannot be checked against; None if it can."""

    duplicates: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()
    gold: str | None = None


class Rates(Struct, frozen=True, kw_only=True):
    """What rollouts say of a neighbor.

    no_example, shown: solve rates without example and with `reference`: right candidates where labelled, else the one
    that does best here. discrimination: the share of the variance of a rollout's outcome that the choice of candidate
    explains (intraclass correlation, 0 to 1). gap: right minus wrong candidates, where labelled. alike: earlier
    neighbors on which candidates do the same. tokens: completion tokens a rollout. decided: rollouts without example.
    no_signal: candidates differ by less than equally good ones often do.
    """

    no_example: float | None
    no_example_ci95: Span
    decided: int
    reference: str | None
    shown: float | None
    discrimination: float | None
    discrimination_ci95: Span | None
    gap: float | None
    gap_ci95: Span | None
    no_signal: bool = False
    alike: tuple[str, ...] = ()
    agreed_answer: str | None = None
    tokens: float | None = None


class Checked(Struct, frozen=True, kw_only=True):
    """One neighbor: what was found, the flags it earns, and whether to keep, drop or check it by hand."""

    id: str
    advice: str
    flags: tuple[str, ...]
    why: tuple[str, ...]
    texts: Texts
    rates: Rates | None = None


class Neighborhood(Struct, frozen=True, kw_only=True):
    """A problem's neighbors as checked, and what to do about them in a sentence or two."""

    id: str
    neighbors: tuple[Checked, ...]
    message: str


def texts(problem: Problem, golds: Mapping[str, str | None]) -> dict[str, Texts]:
    """What the texts say, by neighbor id. golds: the fault of each known answer, None where there is none."""
    same, close, copied = duplicates(problem), near(problem), leaks(problem)
    return {
        n.id: Texts(
            duplicates=tuple(same[n.id]),
            near=tuple(close[n.id]),
            leaks=tuple(copied[n.id]),
            gold=golds.get(n.id),
        )
        for n in problem.neighbors
    }


def rates(
    problem: Problem,
    method: Utility,
    seen: list[Observation],
    ranking: Ranking,
    tokens: Mapping[str, float],
) -> dict[str, Rates]:
    """What the rollouts say, by neighbor id. tokens: completion tokens a rollout, by neighbor id."""
    from porism.neighbors.discrimination import alike, intraclass
    from porism.stats import difference, mean_rate

    rows = method.rows(problem, seen)

    def on(neighbor: str, row: str | None) -> list[Counts]:
        return [count(rows[row][solver, neighbor]) for solver in method.solvers]

    right = [c.id for c in problem.candidates if c.correct]
    wrong = [c.id for c in problem.candidates if c.correct is False]
    reports = {report.id: report for report in ranking.neighbors}
    profiles = {n.id: [on(n.id, c.id) for c in problem.candidates] for n in problem.neighbors}
    twins = alike(profiles)
    found = {}
    for n in problem.neighbors:
        base = mean_rate(on(n.id, None))
        each = {c.id: r for c in problem.candidates if (r := rate(on(n.id, c.id))) is not None}
        reference = _reference(right, each)
        gap = None
        if any(i in each for i in right) and any(i in each for i in wrong):
            good, bad = ([c for i in ids for c in on(n.id, i)] for ids in (right, wrong))
            gap = difference(mean_rate(good), mean_rate(bad))
        share = intraclass([_total(row) for row in profiles[n.id]])
        shown = [each[i] for i in reference if i in each]
        found[n.id] = Rates(
            no_example=None if base.value is None else float(base.value),
            no_example_ci95=(base.low, base.high),
            decided=sum(c.decided for c in on(n.id, None)),
            reference=", ".join(reference) or None,
            shown=sum(shown) / len(shown) if shown else None,
            discrimination=share.value if share else None,
            discrimination_ci95=(share.low, share.high) if share else None,
            gap=float(gap.value) if gap and gap.value is not None else None,
            gap_ci95=(gap.low, gap.high) if gap else None,
            no_signal="no signal" in reports[n.id].flags,
            alike=tuple(twins[n.id]),
            agreed_answer=reports[n.id].agreed_answer,
            tokens=tokens.get(n.id),
        )
    return found


def check(
    problem: Problem,
    said: Mapping[str, Texts],
    seen: Mapping[str, Rates] | None = None,
    *,
    sweet_spot: Span = SWEET_SPOT,
) -> Neighborhood:
    """Every neighbor with its flags and advice, and what the neighborhood needs."""
    checked = tuple(
        _checked(n, said[n.id], seen.get(n.id) if seen else None, sweet_spot) for n in problem.neighbors
    )
    return Neighborhood(
        id=problem.id, neighbors=checked, message=_message(checked, measured=seen is not None)
    )


def flagged(problem: Problem, found: Neighborhood) -> tuple[Neighbor, ...]:
    """The problem's neighbors with the flags that were found; flags of others stay."""
    import dataclasses

    flags = {c.id: c.flags for c in found.neighbors}
    return tuple(
        dataclasses.replace(
            n, flags=(*(f for f in n.flags if f.partition(":")[0] not in MINE), *flags.get(n.id, ()))
        )
        for n in problem.neighbors
    )


def _reference(right: Sequence[str], each: Mapping[str, float]) -> list[str]:
    if right:
        return list(right)
    return [max(sorted(each), key=lambda i: each[i])] if each else []


def _total(cells: Sequence[Counts]) -> Counts:
    return Counts(correct=sum(c.correct for c in cells), wrong=sum(c.decided - c.correct for c in cells))


def _checked(neighbor: Neighbor, said: Texts, seen: Rates | None, sweet_spot: Span) -> Checked:
    found = [*_textual(said), *(_measured(seen, sweet_spot) if seen else ())]
    order = ("drop", "check", "keep")
    advice = min((advice for advice, _, _ in found), key=order.index, default="keep")
    return Checked(
        id=neighbor.id,
        advice=advice,
        flags=tuple(dict.fromkeys(flag for _, flag, _ in found if flag)),
        why=tuple(why for _, _, why in found),
        texts=said,
        rates=seen,
    )


Fault = tuple[str, str, str]  # advice, flag (may be empty), why


def _textual(said: Texts) -> Iterator[Fault]:
    if said.duplicates:
        yield "drop", "duplicate", f"asks the same as {', '.join(said.duplicates)}"
    if said.near:
        yield "check", "", f"nearly the text of {', '.join(said.near)}"
    for leak in said.leaks:
        yield "check", "leak", leak
    if said.gold is not None:
        yield "check", "gold not understood", said.gold


def _measured(seen: Rates, sweet_spot: Span) -> Iterator[Fault]:
    low, high = sweet_spot
    alone = seen.no_example
    if alone is not None and seen.decided >= LEAST:
        if alone > high:
            yield "drop", "too easy", f"solved {alone:.0%} of the time without example"
        elif alone < low and (seen.shown is None or seen.shown < low) and seen.agreed_answer is None:
            helped = " and with the reference" if seen.shown is not None else ""
            yield "drop", "too hard", f"solved {alone:.0%} of the time without example{helped}"
    if seen.no_signal and seen.decided >= LEAST:
        yield "check", "no signal", "candidates do not differ on it beyond chance"
    if seen.agreed_answer is not None:
        yield "check", "suspect gold", f"most rollouts agree on {seen.agreed_answer}"
    if seen.alike:
        yield "keep", "", f"candidates do on it as on {', '.join(seen.alike)}"  # so do good neighbors
    if seen.gap_ci95 is not None and seen.gap_ci95[1] < 0:
        yield "check", "", "wrong candidates do better on it than right ones"


def _message(checked: Sequence[Checked], *, measured: bool) -> str:
    by = {advice: [c.id for c in checked if c.advice == advice] for advice in ("keep", "drop", "check")}
    parts = []
    if by["drop"]:
        parts.append(f"Drop {', '.join(by['drop'])}.")
    if by["check"]:
        parts.append(f"Look at {', '.join(by['check'])}.")
    parts.append(f"Keep {', '.join(by['keep'])}." if by["keep"] else "None can be kept as it is.")
    missing = WANTED - len(by["keep"])
    if missing > 0:
        flags = [flag for c in checked for flag in c.flags]
        easy, hard = flags.count("too easy"), flags.count("too hard")
        kind = "harder " if easy > hard else "easier " if hard > easy else ""
        parts.append(f"Add {missing} {kind}neighbor{'s' if missing > 1 else ''}.")
    few = any(c.rates and c.rates.decided < LEAST for c in checked)
    if not measured:
        parts.append("Nothing was measured: only the texts were looked at.")
    elif few:
        parts.append(
            f"Rates without example need {LEAST} decided rollouts before they count against a neighbor."
        )
    return " ".join(parts)


__all__ = [
    "SWEET_SPOT", "Checked", "Neighborhood", "Rates", "Texts", "check", "flagged", "rates", "texts",
]  # fmt: skip
