"""Pictures as SVG text: panels with axes, points, lines, bars and intervals. Small, and without a library.

Inline-safe: no script, no style sheet or attribute, no outside reference; text and axes take the page's own color
(currentColor) and the background is left alone, so that a picture is at home on light and dark pages. Series differ
in color, shape and dash, and the colors have a contrast of at least 3 to 1 with white and with near-black.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10
from typing import Literal

from msgspec import Struct

COLORS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#b35fa0",
    "#7f7f7f",
    "#7a6fd0",
)  # the first three after Okabe and Ito
SHAPES = ("circle", "square", "diamond", "triangle")
DASHES = ("", "6 3", "2 3", "8 3 2 3")
WIDTH, HEIGHT = 300, 220  # of a panel's plot
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 26, 44
LEGEND = 18
FONT = 'font-family="system-ui, sans-serif" font-size="12" fill="currentColor"'

Kind = Literal["points", "line", "bars"]


class Mark(Struct, frozen=True):
    """A place, and where there is one an interval of y. `width` is that of a bar, in units of x."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    width: float = 0.0
    title: str = ""


class Series(Struct, frozen=True, kw_only=True):
    """Marks of one name: the same name has the same look in all panels of a picture."""

    name: str
    marks: tuple[Mark, ...]
    kind: Kind = "points"


class Panel(Struct, frozen=True, kw_only=True):
    """One plot. ticks: names in the place of numbers, at x = 0, 1, 2, ... reference: a dashed line between two places.

    A range that is None is that of the marks.
    """

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    log: bool = False
    ticks: tuple[str, ...] = ()
    reference: tuple[tuple[float, float], tuple[float, float]] | None = None


def picture(title: str, panels: Sequence[Panel], *, columns: int = 3, width: int = WIDTH) -> str:
    """The panels in rows, one legend, as an <svg> element. title: for readers who cannot see it. width: of a plot."""
    names = list(dict.fromkeys(s.name for p in panels for s in p.series))
    across = max(1, min(columns, len(panels)))
    rows = ceil(len(panels) / across)
    wide, high = LEFT + width + RIGHT, TOP + HEIGHT + BOTTOM
    lines = _legend(names, across * wide)
    top = LEGEND * (1 + max((line for line, *_ in lines), default=0)) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across * wide} {top + rows * high}" role="img" '
        f'width="{across * wide}" height="{top + rows * high}" {FONT}>',
        f"<title>{escape(title)}</title>",
    ]
    for line, x, name in lines:
        y = LEGEND * line + 12
        parts.append(_symbol(names.index(name), x + 8, y))
        parts.append(f'<text x="{x + 20}" y="{y + 4}">{escape(name)}</text>')
    for i, panel in enumerate(panels):
        parts.append(
            f'<g transform="translate({i % across * wide + LEFT} {top + i // across * high + TOP})">'
        )
        parts += _panel(panel, names, width)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def escape(text: str) -> str:
    """The text fit to stand in XML; characters that XML cannot hold are left out."""
    kept = "".join(
        c
        for c in text
        if c in "\t\n" or (c >= " " and not 0xD800 <= ord(c) <= 0xDFFF and c not in "\ufffe\uffff")
    )
    return kept.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


class _Axis:
    """Where values lie on one axis, and its ticks."""

    def __init__(self, span: tuple[float, float], length: float, *, log: bool = False) -> None:
        low, high = span
        self.log = log and low > 0
        if self.log:
            low, high = log10(low), log10(high)
        if high - low < 1e-12:
            low, high = low - 0.5, high + 0.5
        self.low, self.high, self.length = low, high, length

    def at(self, value: float) -> float:
        place = log10(max(value, 1e-12)) if self.log else value
        share = (place - self.low) / (self.high - self.low)
        return round(min(max(share, 0.0), 1.0) * self.length, 1)

    def ticks(self) -> list[tuple[float, str]]:
        if self.log:
            powers = range(floor(self.low), ceil(self.high) + 1)
            found = [m * 10.0**p for p in powers for m in (1, 2, 5)]
            inside = [t for t in found if self.low - 1e-9 <= log10(t) <= self.high + 1e-9]
            while len(inside) > 5:
                inside = inside[::2]
            return [(t, short(t)) for t in inside]
        rough = (self.high - self.low) / 4
        unit = 10.0 ** floor(log10(rough))
        step = next(m * unit for m in (1, 2, 2.5, 5, 10) if m * unit >= rough - 1e-12)
        first = ceil(self.low / step - 1e-9)
        count = floor(self.high / step + 1e-9) - first + 1
        return [(t, short(t)) for i in range(count) for t in ((first + i) * step,)]


def short(value: float) -> str:
    """A number for an axis: no more digits than it needs, thousands as k and M."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{round(value, 10):.3g}"


def _panel(panel: Panel, names: Sequence[str], width: int) -> list[str]:
    marks = [m for s in panel.series for m in s.marks]
    x_range = panel.x_range or ((-0.5, len(panel.ticks) - 0.5) if panel.ticks else _span(m.x for m in marks))
    ys = (y for m in marks for y in (m.y, m.low, m.high) if y is not None)
    across, up = _Axis(x_range, width, log=panel.log), _Axis(panel.y_range or _span(ys), HEIGHT)
    parts = [f'<text x="0" y="-10" font-weight="600">{escape(panel.title)}</text>']
    parts.append(
        f'<g stroke="currentColor" stroke-opacity="0.25"><path fill="none" d="M0 0V{HEIGHT}H{width}"/>'
    )
    parts += [f'<path d="M0 {HEIGHT - up.at(t)}H{width}" stroke-opacity="0.12"/>' for t, _ in up.ticks()]
    if panel.reference is not None:
        (x0, y0), (x1, y1) = panel.reference
        parts.append(
            f'<path d="M{across.at(x0)} {HEIGHT - up.at(y0)}L{across.at(x1)} {HEIGHT - up.at(y1)}" '
            'stroke-dasharray="4 4" stroke-opacity="0.6"/>'
        )
    parts.append("</g>")
    for t, text in up.ticks():
        parts.append(f'<text x="-6" y="{HEIGHT - up.at(t) + 4}" text-anchor="end">{text}</text>')
    ticks = [(float(i), name) for i, name in enumerate(panel.ticks)] or across.ticks()
    for t, text in ticks:
        parts.append(
            f'<text x="{across.at(t)}" y="{HEIGHT + 16}" text-anchor="middle">{escape(cut(text))}</text>'
        )
    parts.append(f'<text x="{width / 2}" y="{HEIGHT + 34}" text-anchor="middle">{escape(panel.x)}</text>')
    parts.append(
        f'<text transform="translate(-42 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(panel.y)}</text>'
    )
    for series in panel.series:
        parts += _series(series, names.index(series.name), across, up)
    return parts


def _series(series: Series, look: int, across: _Axis, up: _Axis) -> list[str]:
    color = COLORS[look % len(COLORS)]
    parts = [f'<g stroke="{color}" fill="{color}">']
    if series.kind == "line" and len(series.marks) > 1:
        path = "L".join(f"{across.at(m.x)} {HEIGHT - up.at(m.y)}" for m in series.marks)
        dash = f' stroke-dasharray="{DASHES[look % len(DASHES)]}"' if DASHES[look % len(DASHES)] else ""
        parts.append(f'<path d="M{path}" fill="none" stroke-width="1.8"{dash}/>')
    for m in series.marks:
        x, y = across.at(m.x), HEIGHT - up.at(m.y)
        if series.kind == "bars":
            left, right = across.at(m.x - m.width / 2), across.at(m.x + m.width / 2)
            parts.append(
                f'<rect x="{left}" y="{y}" width="{max(round(right - left, 1), 0.5)}" height="{round(HEIGHT - y, 1)}" '
                f'stroke="none"><title>{escape(m.title)}</title></rect>'
            )
            continue
        if m.low is not None and m.high is not None:
            low, high = HEIGHT - up.at(m.low), HEIGHT - up.at(m.high)
            parts.append(f'<path d="M{x} {low}V{high}" stroke-opacity="0.6"/>')
        parts.append(_shape(look, x, y, m.title))
    parts.append("</g>")
    return parts


def _shape(look: int, x: float, y: float, title: str = "") -> str:
    told = f"<title>{escape(title)}</title>" if title else ""
    match SHAPES[look % len(SHAPES)]:
        case "circle":
            return f'<circle cx="{x}" cy="{y}" r="3.2" stroke="none">{told}</circle>'
        case "square":
            return f'<rect x="{x - 3}" y="{y - 3}" width="6" height="6" stroke="none">{told}</rect>'
        case "diamond":
            return f'<path d="M{x} {y - 4}l4 4l-4 4l-4 -4z" stroke="none">{told}</path>'
    return f'<path d="M{x} {y - 4}l4 7h-8z" stroke="none">{told}</path>'


def _symbol(look: int, x: float, y: float) -> str:
    color = COLORS[look % len(COLORS)]
    return f'<g fill="{color}">{_shape(look, x, y)}</g>'


def _legend(names: Sequence[str], width: float) -> list[tuple[int, float, str]]:
    """(line, x, name) of each entry; a new line where the last one is full."""
    placed: list[tuple[int, float, str]] = []
    line, x = 0, 4.0
    for name in names:
        room = 34 + 7.0 * len(name)
        if x > 4 and x + room > width:
            line, x = line + 1, 4.0
        placed.append((line, x, name))
        x += room
    return placed


def cut(text: str, most: int = 14) -> str:
    """The text, or its beginning where it is too long for an axis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _span(values: Iterable[float]) -> tuple[float, float]:
    found = list(values) or [0.0, 1.0]
    return min(found), max(found)


__all__ = ["COLORS", "Mark", "Panel", "Series", "cut", "escape", "picture", "short"]
