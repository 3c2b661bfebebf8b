"""The ranking of one problem's candidates as a record, with everything a reader needs to weigh it.

Order and ties come from exact counts. Whether the order can be told from chance is decided by a permutation test
(stats.chance_gap): a candidate is below the best one only if the gap between them, with every open rollout held
against the claim, is as wide as equally good candidates show in 5 % of the cases, both among all candidates, so
that picking the best of many is paid for, and between the two alone, so that a crowd of hopeless ones does not
make the test of two good ones lax. Where an allocation chose who was asked how often, that test does not hold: claims
and intervals are then those of methods/allocate. The field names are the JSON contract of `porism rank --json`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from msgspec import Struct

from porism.calibrate.model import Probability
from porism.methods.allocate.settings import Allocation, Claim
from porism.methods.diagnose import NeighborReport, Target, neighbor_report, rate, shown, target_report
from porism.methods.message import Standing, message, names
from porism.methods.utility import STARVED, Key, Row, Utility, count, identical_share, row_flags
from porism.types import Counts, Observation, Problem

if TYPE_CHECKING:
    from porism.stats import Interval

Cells = dict[Key, Counts]
Span = tuple[float, float]


class OnNeighbor(Struct, frozen=True):
    """A row's solve rate on one neighbor (mean over solvers) and the counts of all solvers together.

    identical: the share of completions that repeat an earlier one of the same cell word for word.
    """

    rate: float | None
    counts: Counts
    identical: float


class Place(Struct, frozen=True, kw_only=True):
    """One candidate's line. utility, rank and lift are None where nothing was decided.

    ci95, lift_ci95: 95 % intervals, given these neighbors. p_highest: the chance that its utility is the highest,
    which is not the chance that it is right. tied: other candidates with exactly this utility. p_right: the chance that
    it is right, where a calibration was given.
    """

    rank: int | None
    candidate: str
    utility: float | None
    ci95: Span
    lift: float | None
    lift_ci95: Span | None
    p_highest: float
    by_neighbor: dict[str, OnNeighbor]
    by_solver: dict[str, float | None]
    counts: Counts
    tied: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    p_right: Probability | None = None


class NoExample(Struct, frozen=True, kw_only=True):
    """The line of the solver without any example."""

    utility: float | None
    ci95: Span
    by_neighbor: dict[str, OnNeighbor]
    by_solver: dict[str, float | None]
    counts: Counts
    flags: tuple[str, ...] = ()


class LeaveOneOut(Struct, frozen=True):
    """Ranks without one neighbor at a time, {neighbor: {candidate: rank}}, and those that change who is first."""

    ranks: dict[str, dict[str, int | None]]
    top_changes: tuple[str, ...]


class Ranking(Struct, frozen=True, kw_only=True):
    """Candidates best first; those that tie are listed by id.

    leaders: the first candidate and those that cannot be told apart from it. chance_gap: what a gap in utility
    must reach to be more than chance; None where chance may make any gap, and under an allocation, which makes a claim
    instead.
    """

    id: str
    ranking: tuple[Place, ...]
    no_example: NoExample | None
    neighbors: tuple[NeighborReport, ...]
    target: Target | None
    leave_one_out: LeaveOneOut | None
    leaders: tuple[str, ...]
    chance_gap: float | None
    message: str
    warnings: tuple[str, ...] = ()
    claim: Claim | None = None


def rank(problem: Problem, method: Utility, seen: list[Observation]) -> Ranking:
    """The ranking of the problem's candidates by `method` from what was seen. Pure; never asks anything."""
    from porism.stats import p_highest

    rows = method.rows(problem, seen)
    cells = {row: {key: count(got) for key, got in found.items()} for row, found in rows.items()}
    ids = [c.id for c in problem.candidates]
    spans = {row: method.interval(list(found.values())) for row, found in cells.items()}
    given_up = method.starved(problem, rows)
    base = spans[None] if method.no_example else None
    chances = dict(zip(ids, p_highest([list(cells[i].values()) for i in ids]), strict=True))
    ranks = _ranks(problem, cells)
    places = []
    for i in sorted(ids, key=lambda i: (ranks[i] or len(ids) + 1, i)):
        lift = _lift(method, cells[i], cells[None]) if base and base.value is not None else None
        tied = tuple(sorted(j for j in ids if j != i and ranks[j] == ranks[i] is not None))
        places.append(
            Place(
                rank=ranks[i],
                candidate=i,
                utility=_float(spans[i].value),
                ci95=(spans[i].low, spans[i].high),
                lift=_float(lift.value) if lift else None,
                lift_ci95=(lift.low, lift.high) if lift else None,
                p_highest=chances[i],
                by_neighbor=_by_neighbor(problem, rows[i], cells[i]),
                by_solver=_by_solver(method, cells[i]),
                counts=_total(cells[i]),
                tied=tied,
                flags=(*row_flags(rows[i]), *[STARVED] * (i in given_up)),
            )
        )
    order = [place.candidate for place in places if place.rank is not None]
    claim = _claim(method.allocation, ids, cells) if method.allocation and order else None
    leaders, gap = (list(claim.ahead) or order, None) if claim else _leaders(problem.id, order, cells, spans)
    reports = tuple(_neighbor_reports(problem, method, rows, cells))
    target = target_report(method.attempts(problem, seen)) if method.target_samples else None
    left_out = _leave_one_out(problem, cells, ranks)
    standing = Standing(
        candidates=[(i, value) for i in order if (value := spans[i].value) is not None],
        leaders=leaders,
        undecided=[place.candidate for place in places if place.rank is None],
        no_example=base.value if base else None,
        best_helps=_helps(problem.id, method, order, cells, spans) if base and order else None,
        gap=gap,
        rollouts=min((c.decided for i in order for c in cells[i].values()), default=0),
        claim=claim.message if claim else None,
    )
    return Ranking(
        id=problem.id,
        ranking=tuple(places),
        no_example=_no_example(problem, method, rows[None], cells[None], base) if base else None,
        neighbors=reports,
        target=target,
        leave_one_out=left_out,
        leaders=tuple(leaders),
        chance_gap=gap,
        message=message(standing),
        warnings=tuple(_warnings(target, reports, left_out)),
        claim=claim,
    )


def _leaders(
    seed: str, order: list[str], cells: dict[str | None, Cells], spans: dict[str | None, Interval]
) -> tuple[list[str], float | None]:
    """Who cannot be told apart from the first, and the gap that among all of them would be more than chance."""
    from porism.stats import chance_gap

    if len(order) < 2:
        return order, None
    first = order[0]
    every = chance_gap([list(cells[i].values()) for i in order], seed)
    leaders = [first]
    for i in order[1:]:
        # 1e-9 is for rounding only: gaps of equal counts are equal.
        apart = spans[first].worst - spans[i].best + 1e-9
        pair = [list(cells[first].values()), list(cells[i].values())]
        if apart < every or apart < chance_gap(pair, seed):
            leaders.append(i)
    return leaders, None if every == float("inf") else every


def _claim(allocation: Allocation, ids: list[str], cells: dict[str | None, Cells]) -> Claim:
    from porism.methods.allocate.rounds import claim_of

    return claim_of(allocation, {i: list(cells[i].values()) for i in ids})


def _lift(method: Utility, row: Cells, base: Cells) -> Interval:
    from porism.stats import difference, mean_rate

    if method.allocation is None:
        return difference(mean_rate(list(row.values())), mean_rate(list(base.values())))
    from porism.methods.allocate.rounds import anytime_lift

    return anytime_lift(list(row.values()), list(base.values()))


def _helps(
    seed: str,
    method: Utility,
    order: list[str],
    cells: dict[str | None, Cells],
    spans: dict[str | None, Interval],
) -> bool | None:
    """Whether the best candidate is above the no-example row beyond chance."""
    from porism.stats import lift_gap

    if spans[None].value is None:
        return None
    base = list(cells[None].values())
    if method.allocation is not None:
        from porism.methods.allocate.rounds import helps

        return helps(list(cells[order[0]].values()), base, among=len(order))
    gap = lift_gap([list(cells[i].values()) for i in order], base, seed)
    return spans[order[0]].worst - spans[None].best + 1e-9 >= gap


def _ranks(
    problem: Problem, cells: dict[str | None, Cells], without: str | None = None
) -> dict[str, int | None]:
    from porism.stats import competition_ranks, exact_mean

    kept = [[c for (_, n), c in cells[i.id].items() if n != without] for i in problem.candidates]
    ranks = competition_ranks([exact_mean(row) for row in kept])
    return {c.id: r for c, r in zip(problem.candidates, ranks, strict=True)}


def _leave_one_out(
    problem: Problem, cells: dict[str | None, Cells], ranks: dict[str, int | None]
) -> LeaveOneOut | None:
    if len(problem.neighbors) < 2 or len(problem.candidates) < 2:
        return None
    found = {n.id: _ranks(problem, cells, n.id) for n in problem.neighbors}
    top = {i for i, r in ranks.items() if r == 1}
    return LeaveOneOut(
        found, tuple(n for n, by in found.items() if {i for i, r in by.items() if r == 1} != top)
    )


def _neighbor_reports(
    problem: Problem, method: Utility, rows: dict[str | None, Row], cells: dict[str | None, Cells]
) -> list[NeighborReport]:
    def on(neighbor: str, row: str | None) -> list[Counts]:
        return [cells[row][solver, neighbor] for solver in method.solvers]

    return [
        neighbor_report(
            n,
            [on(n.id, c.id) for c in problem.candidates],
            on(n.id, None) if method.no_example else None,
            [o for found in rows.values() for (_, where), got in found.items() if where == n.id for o in got],
            seed=f"{problem.id}/{n.id}",
        )
        for n in problem.neighbors
    ]


def _no_example(problem: Problem, method: Utility, row: Row, cells: Cells, span: Interval) -> NoExample:
    return NoExample(
        utility=_float(span.value),
        ci95=(span.low, span.high),
        by_neighbor=_by_neighbor(problem, row, cells),
        by_solver=_by_solver(method, cells),
        counts=_total(cells),
        flags=row_flags(row),
    )


def _warnings(
    target: Target | None, reports: tuple[NeighborReport, ...], left_out: LeaveOneOut | None
) -> list[str]:
    found = []
    if target and target.easy:
        found.append(
            f"{target.share:.0%} of the solver's own attempts at the question answer {shown(target.agreed or '')}: "
            "the question may be easy for this solver, and utility says little about easy questions"
        )
    found += [
        f"neighbor {r.id}: most rollouts agree on {shown(r.agreed_answer)}, which is not its known answer: "
        "check that answer"
        for r in reports
        if r.agreed_answer is not None
    ]
    useless = {"too easy", "too hard", "no signal"}
    if reports and all(useless & set(r.flags) for r in reports):
        found.append(
            "every neighbor is too easy, too hard or without signal: these neighbors cannot decide; "
            "porism neighbors check tells more"
        )
    if left_out and left_out.top_changes:
        found.append(f"leaving out neighbor {names(left_out.top_changes, 'or')} changes who is first")
    return found


def _by_neighbor(problem: Problem, row: Row, cells: Cells) -> dict[str, OnNeighbor]:
    found = {}
    for n in problem.neighbors:
        own = {key: c for key, c in cells.items() if key[1] == n.id}
        identical = max(identical_share(row[key]) for key in own)
        found[n.id] = OnNeighbor(rate(own.values()), _total(own), identical)
    return found


def _by_solver(method: Utility, cells: Cells) -> dict[str, float | None]:
    return {s: rate(c for (solver, _), c in cells.items() if solver == s) for s in method.solvers}


def _total(cells: Cells) -> Counts:
    fields = Counts.__struct_fields__
    return Counts(*(sum(getattr(c, name) for c in cells.values()) for name in fields))


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


__all__ = ["LeaveOneOut", "NoExample", "OnNeighbor", "Place", "Ranking", "rank"]
