"""The report's pictures: intervals as inline SVG, solve rates as shades of one hue.

Own SVG and no plotting library: a line, a dot and a tick are smaller, sharper and printable, and take their colors from
the page, so that they follow the light and the dark theme. A picture never stands alone: the figures are beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT, PAD = 168, 20, 6
SHADES = 10


def interval(low: float, value: float | None, high: float, base: float | None = None) -> str:
    """A value in [0, 1] with its interval; base: a dashed line to compare it with."""
    y = HEIGHT / 2
    ticks = "".join(f"M{_x(t)} {y - 3}v6" for t in (0, 0.5, 1))
    parts = [f'<path class="axis" d="M{_x(0)} {y}H{_x(1)}{ticks}"/>']
    if base is not None:
        parts.append(f'<line class="base" x1="{_x(base)}" x2="{_x(base)}" y1="1" y2="{HEIGHT - 1}"/>')
    parts.append(f'<line class="span" x1="{_x(low)}" x2="{_x(high)}" y1="{y}" y2="{y}"/>')
    if value is not None:
        parts.append(f'<circle class="dot" cx="{_x(value)}" cy="{y}" r="4.5"/>')
    return (
        f'<svg class="interval" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" aria-hidden="true" '
        f'focusable="false">{"".join(parts)}</svg>'
    )


def strip(rates: Sequence[float | None]) -> str:
    """One small square a rate, shaded by it."""
    squares = "".join(
        f'<rect class="{shade(rate)}" x="{i * 11}" y="0" width="10" height="10" rx="2"/>'
        for i, rate in enumerate(rates)
    )
    width = max(1, 11 * len(rates) - 1)
    return (
        f'<svg class="strip" viewBox="0 0 {width} 10" width="{width}" height="10" aria-hidden="true" '
        f'focusable="false">{squares}</svg>'
    )


def shade(rate: float | None) -> str:
    """The class of a solve rate: h0 (none solved) to h10 (all), or hx where nothing was decided."""
    return "hx" if rate is None else f"h{round(rate * SHADES)}"


def _x(share: float) -> float:
    return round(PAD + share * (WIDTH - 2 * PAD), 1)


__all__ = ["interval", "shade", "strip"]
