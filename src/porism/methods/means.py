"""From marks to a candidate's score: the mean over calls and models, its interval, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from porism.methods.calls import UNREAD, Calls
from porism.types import Counts, Observation, Sampling, Score


def mean_score(
    rows: Sequence[Sequence[Observation]],
    least: int,
    most: int,
    *,
    calls: Calls,
    sampling: Sampling,
    whole: bool = True,
) -> Score:
    """The mean over models of the mean mark, with a 95 % interval and what was left out as flags.

    rows: the readings of each model, from least to most; whole: whether they are whole numbers. Interval: Student's
    t on each model's marks, the variance of whole ones raised by 1/12 for their rounding (so that eight equal marks
    are not certainty), combined in squares and cut to the scale; with fewer than two marks of a model it is the
    scale. What could not be read, or never came, widens it as if it were all least, or all most.
    """
    marks = [[Fraction(o.score) for o in row if o.score is not None] for row in rows]
    open_calls = [sum(o.score is None for o in row) for row in rows]
    known = [sum(m) / len(m) for m in marks if m]
    value = sum(known) / len(known) if known else None
    low, high = float(least), float(most)
    if value is not None and len(known) == len(rows):
        (middle, width), (other, wider) = (
            _half_width([m + [Fraction(fill)] * n for m, n in zip(marks, open_calls, strict=True)], whole)
            for fill in (least, most)
        )
        low = min(max(low, middle - width), float(value))
        high = max(min(high, other + wider), float(value))
    return Score(
        value=None if value is None else float(value),
        low=low,
        high=high,
        flags=left_out([o for row in rows for o in row], calls, sampling),
    )


def accepted_share(rows: Sequence[Sequence[Observation]], *, calls: Calls, sampling: Sampling) -> Score:
    """The mean over models of the share of marks that are 1 (all others are 0), as stats.mean_rate has it."""
    from porism.stats import mean_rate

    found = mean_rate([_tally(row) for row in rows])
    return Score(
        value=None if found.value is None else float(found.value),
        low=found.low,
        high=found.high,
        flags=left_out([o for row in rows for o in row], calls, sampling),
    )


def left_out(readings: Sequence[Observation], calls: Calls, sampling: Sampling) -> tuple[str, ...]:
    """What a reader must know of the answers that give no mark."""
    flags = []
    unread = sum(o.verdict is not None and o.verdict.kind == UNREAD for o in readings)
    missing = sum(o.verdict is not None and o.verdict.kind == "missing" for o in readings)
    if not readings:
        flags.append("nothing seen")
    if unread:
        limits = f"{sampling.max_tokens} and {calls.again_tokens} tokens"
        flags.append(f"unparsed {unread} of {len(readings)} (asked twice, with {limits})")
    if missing:
        flags.append(f"missing {missing} of {len(readings)}")
    return tuple(flags)


def _tally(row: Sequence[Observation]) -> Counts:
    return Counts(
        correct=sum(o.score == 1 for o in row),
        wrong=sum(o.score == 0 for o in row),
        undecided=sum(o.score is None for o in row),
    )


def _half_width(rows: Sequence[Sequence[Fraction]], whole: bool) -> tuple[float, float]:
    """The mean over rows of their means, and half its interval's width."""
    from scipy.special import stdtrit

    means = [sum(row) / len(row) for row in rows]
    squares = 0.0
    for row, mean in zip(rows, means, strict=True):
        if len(row) < 2:
            squares = float("inf")
            continue
        variance = float(sum((x - mean) ** 2 for x in row)) / (len(row) - 1) + (1 / 12 if whole else 0)
        squares += float(stdtrit(len(row) - 1, 0.975)) ** 2 * variance / len(row)
    return float(sum(means) / len(means)), squares**0.5 / len(rows)


__all__ = ["accepted_share", "left_out", "mean_score"]
