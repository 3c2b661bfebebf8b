"""The report as one HTML file that opens from disk, sends nothing anywhere, and can be read without JavaScript.

A small run is plain HTML throughout. Of a large one the overview is plain, and each problem is packed (gzip, base64)
and unpacked when it is opened, so that tens of thousands of texts neither swell the file nor slow its opening. The
page's one style and one script are named by their hashes in its security policy; no other can ever run.
"""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path

from msgspec import Struct, structs

from porism.methods.ranking import Ranking
from porism.report.bench import bench_context
from porism.report.evidence import evidence, pairs
from porism.report.facts import facts
from porism.report.load import Folder, Page
from porism.report.template import asset, environment, markup, share
from porism.report.text import LONGEST
from porism.types import Candidate, Score

FULL = 10  # problems of a run that shows every pair of every problem
PLAIN = 2_000_000  # bytes of plain HTML of problems; the rest is packed
PACKED = 45_000_000  # bytes of packed problems; the rest is left out, and said so
ROWS = 100  # problems in a part of a list; a browser lays out the parts that are in view, and no other
SHORT = 6_000  # characters of a text in a run that is packed


class Entry(Struct, frozen=True, kw_only=True):
    """A problem as the page holds it: plain (body), packed, or neither. state: words the filter goes by."""

    number: int
    page: Page
    body: str | None
    packed: str | None
    state: str
    first: str
    decisive: str
    rates: list[float | None]
    spoken: str
    warnings: int


@dataclass(frozen=True, slots=True)
class Layout:
    """What goes into the file in which form.

    wanted: ids of problems to show in full. plain, packed: bytes that the problems may take in either form; in a small
    run, and where they are wanted, they are plain whatever they take. rows: problems in one part of a list. live: the
    page's number where it is served while the run goes on; such a page may ask its own server for the next.
    """

    wanted: Collection[str] = ()
    plain: int = PLAIN
    packed: int = PACKED
    rows: int = ROWS
    live: int | None = None


async def write_html(folder: Folder, file: Path, layout: Layout) -> None:
    """Write the report of an open run folder, in one step."""
    entries: list[Entry] = []
    single = len(folder.problems) == 1
    plain, packed = layout.plain, layout.packed
    async for page in folder.pages():
        full = len(folder.problems) <= FULL or page.problem.id in layout.wanted
        body = _body(folder, page, len(entries), level=3 if single else 4, full=full)
        if full or len(body) <= plain:
            plain -= 0 if full else len(body)
            entries.append(_entry(len(entries), page, body, None))
            continue
        small = b64encode(gzip.compress(body.encode(), 9, mtime=0)).decode()
        fits = len(small) <= packed
        packed -= len(small) if fits else 0
        entries.append(_entry(len(entries), page, None, small if fits else None))
    bench = await folder.benchmark()
    analyses = await folder.analyses() if bench else None
    style, script = asset("style.css"), asset("script.js")
    stream = (
        environment()
        .get_template("page.html.j2")
        .stream(
            **facts(folder, [entry.page for entry in entries]),
            bench=environment().get_template("bench.html.j2").render(**bench_context(bench, analyses))
            if bench
            else "",
            problems=entries,
            rows=layout.rows,
            right=_right(entry.page for entry in entries),
            single=single and bool(entries),
            style=markup(style),
            script=markup(script),
            policy=_policy(style, script, live=layout.live is not None),
            live=layout.live,
        )
    )
    stream.enable_buffering(64)
    temporary = file.with_name(f".{file.name}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as out:
            out.writelines(stream)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _body(folder: Folder, page: Page, number: int, *, level: int, full: bool) -> str:
    most = LONGEST if full else SHORT
    problem, ranking = page.problem, page.ranking
    found = [evidence(folder, page, pair, most) for pair in pairs(page, every=full)]
    rows = [*ranking.ranking, *([ranking.no_example] if ranking.no_example else [])]
    return (
        environment()
        .get_template("problem.html.j2")
        .render(
            page=page,
            key=f"p{number}",
            level=level,
            most=most,
            evidence=[e for e in found if e is not None],
            heat_rows=rows,
            candidates={c.id: c for c in problem.candidates},
            position={c.id: i for i, c in enumerate(problem.candidates)},
            labels={c.id: markup(_label(c)) for c in problem.candidates},
            right=_right([page]),
            first_of={name: _highest(scores) for name, scores in page.scores.items()},
            base=folder.method.name if folder.method else "",
            solvers=len(folder.method.solvers) if folder.method else 0,
        )
    )


def _right(pages: Iterable[Page]) -> str | None:
    """What P(right) takes for the share of right candidates; None where nobody has a P(right)."""
    given = (place.p_right for page in pages for place in page.ranking.ranking)
    return next((p.supposed for p in given if p is not None), None)


def _highest(scores: dict[str, Score]) -> list[str]:
    """The candidates with the highest score."""
    values = {id: score.value for id, score in scores.items() if score.value is not None}
    return [id for id, value in values.items() if value == max(values.values())]


def _entry(number: int, page: Page, body: str | None, packed: str | None) -> Entry:
    ranking, top = page.ranking, page.ranking.ranking[0] if page.ranking.ranking else None
    decided = [p for p in ranking.ranking if p.rank is not None]
    state = "open" if not decided else "ahead" if len(ranking.leaders) == 1 and len(decided) > 1 else "tied"
    warnings = len(ranking.warnings) + (page.answered + page.missing < page.planned)
    rates = [top.by_neighbor[n.id].rate for n in ranking.neighbors] if top else []
    return Entry(
        number=number,
        page=structs.replace(page, rollouts={}),  # they are many, and in the body
        body=body,
        packed=packed,
        state=f"{state} warned" if warnings else state,
        first=_first(ranking),
        decisive=_decisive(ranking),
        rates=rates,
        spoken=", ".join(f"{n.id} {share(rate)}" for n, rate in zip(ranking.neighbors, rates, strict=False)),
        warnings=warnings,
    )


def _first(ranking: Ranking) -> str:
    if not ranking.leaders:
        return "–"
    shown = ", ".join(ranking.leaders[:3])
    return shown if len(ranking.leaders) <= 3 else f"{shown} and {len(ranking.leaders) - 3} more"


def _decisive(ranking: Ranking) -> str:
    """The counts that set the first two apart, for the line of a problem that is folded."""
    decided = [p for p in ranking.ranking if p.rank is not None]
    if len(decided) < 2:
        return ""
    a, b = decided[:2]
    rates = [(a.by_neighbor[n.id], b.by_neighbor[n.id], n.id) for n in ranking.neighbors]
    both = [(x, y, n, x.rate - y.rate) for x, y, n in rates if x.rate is not None and y.rate is not None]
    if not both:
        return ""
    x, y, name, _ = max(both, key=lambda each: each[3])
    return (
        f"{a.candidate} {x.counts.correct}/{x.counts.decided} against {b.candidate} "
        f"{y.counts.correct}/{y.counts.decided} on {name}"
    )


def _label(candidate: Candidate) -> str:
    """What the file says of a candidate, as small marks."""
    marks = []
    if candidate.correct is not None:
        word = "right" if candidate.correct else "wrong"
        marks.append(f'<span class="chip {word}">labelled {word}</span>')
    if candidate.kind is not None and candidate.kind != "right":
        marks.append(f'<span class="chip">{escape(candidate.kind)}</span>')
    if candidate.human:
        marks.append('<span class="chip">by a person</span>')
    return "".join(f" {mark}" for mark in marks)


def _policy(style: str, script: str, *, live: bool) -> str:
    def hashed(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; style-src {hashed(style)}; script-src {hashed(script)}; base-uri 'none'; "
        "form-action 'none'" + ("; connect-src 'self'" if live else "")
    )


__all__ = ["Layout", "write_html"]
