"""Rankings as Markdown for a paper or an issue, and as CSV for a spreadsheet: the figures and nothing else."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from csv import writer

from porism.methods.ranking import NoExample, Place
from porism.report.facts import summary
from porism.report.load import Folder, Page
from porism.report.text import clean

COLUMNS = (
    "problem",
    "candidate",
    "rank",
    "leader",
    "utility",
    "low",
    "high",
    "lift",
    "lift_low",
    "lift_high",
    "p_highest",
    "p_right",
    "p_right_low",
    "p_right_high",
    "correct",
    "decided",
    "wrong",
    "no_answer",
    "undecided",
    "missing",
    "truncated",
    "labelled",
    "flags",
)
_SPECIAL = re.compile(r"([\\`*_|<>\[\]#])")


def csv(pages: Sequence[Page]) -> str:
    """One row a candidate and one a row without example (candidate empty), under COLUMNS. Shares from 0 to 1.

    A text that a spreadsheet would take for a formula gets a leading apostrophe.
    """
    out = io.StringIO()
    rows = writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    for page in pages:
        labels = {c.id: c.correct for c in page.problem.candidates}
        for place in page.ranking.ranking:
            leader = int(place.candidate in page.ranking.leaders)
            label = labels[place.candidate]
            known = "" if label is None else "right" if label else "wrong"
            lift = place.lift_ci95 or ("", "")
            rows.writerow(
                [
                    *(_cell(page.problem.id), _cell(place.candidate), place.rank, leader, place.utility),
                    *(
                        *place.ci95,
                        place.lift,
                        *lift,
                        place.p_highest,
                        *_right(place),
                        *_counts(place),
                        known,
                    ),
                    _cell("; ".join(place.flags)),
                ]
            )
        if (base := page.ranking.no_example) is not None:
            rows.writerow(
                [
                    *(
                        _cell(page.problem.id),
                        "",
                        "",
                        "",
                        base.utility,
                        *base.ci95,
                        "",
                        "",
                        "",
                        "",
                        "",
                        "",
                        "",
                    ),
                    *(*_counts(base), "", _cell("; ".join(base.flags))),
                ]
            )
    return out.getvalue()


def markdown(folder: Folder, pages: Sequence[Page]) -> str:
    """A section a problem: its message, its table, its warnings."""
    lines = [f"# {_plain(folder.name)}", ""]
    for notice in folder.notices:
        lines += [f"> {_plain(notice)}", ""]
    if len(pages) != 1:
        lines += [summary(pages), ""]
    for page in pages:
        lines += _section(page)
    return "\n".join(lines).rstrip() + "\n"


def _section(page: Page) -> list[str]:
    ranking, names = page.ranking, [n.id for n in page.ranking.neighbors]
    prior = next((p.p_right.supposed for p in ranking.ranking if p.p_right is not None), None)
    right = ["P(right)"] if prior else []
    fixed = ["rank", "candidate", "utility", "95 %", "lift", "P(highest)", *right]
    head = [*fixed, *map(_plain, names)]
    lines = [f"## {_plain(ranking.id)}", "", _plain(ranking.message), ""]
    if page.answered + page.missing < page.planned:
        lines += [f"Not finished: {page.answered} of {page.planned} rollouts are answered.", ""]
    lines += [_row(head), _row(["--:", ":--", *["--:"] * (len(head) - 2)])]
    for place in ranking.ranking:
        lift = "" if place.lift is None else f"{place.lift:+.2f}"
        lines.append(
            _row(
                [
                    *(
                        "" if place.rank is None else str(place.rank),
                        _plain(place.candidate),
                        _share(place.utility),
                    ),
                    *(_span(place), lift, f"{place.p_highest:.2f}"),
                    *([str(place.p_right or "").replace("-", "–")] if right else []),
                    *(_solved(place, n) for n in names),
                ]
            )
        )
    if (base := ranking.no_example) is not None:
        solved = [_solved(base, n) for n in names]
        lines.append(
            _row(["", "(no example)", _share(base.utility), _span(base), *[""] * (len(fixed) - 4), *solved])
        )
    remarks = [f"- {_plain(p.candidate)}: {_plain('; '.join(p.flags))}" for p in ranking.ranking if p.flags]
    remarks += [
        f"- neighbor {_plain(n.id)}: {_plain('; '.join(n.flags))}" for n in ranking.neighbors if n.flags
    ]
    remarks += [f"- {_plain(warning)}" for warning in ranking.warnings]
    remarks += [f"- P(right): the chance of being right, by the calibration, {prior}"] if prior else []
    return [*lines, "", *remarks, *([""] if remarks else [])]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(clean(text, 400).split()))


def _cell(text: str) -> str:
    shown = clean(text, 400)
    return f"'{shown}" if shown[:1] in "=+-@\t" and shown else shown


def _counts(row: Place | NoExample) -> list[int]:
    c = row.counts
    return [c.correct, c.decided, c.wrong, c.no_answer, c.undecided, c.missing, c.truncated]


def _right(place: Place) -> list[float | None]:
    p = place.p_right
    return [None, None, None] if p is None else [p.value, p.low, p.high]


def _span(row: Place | NoExample) -> str:
    return f"{row.ci95[0]:.2f}–{row.ci95[1]:.2f}"


def _solved(row: Place | NoExample, neighbor: str) -> str:
    counts = row.by_neighbor[neighbor].counts
    return f"{counts.correct}/{counts.decided}"


def _share(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"


__all__ = ["COLUMNS", "csv", "markdown"]
