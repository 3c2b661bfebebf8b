"""Is this answer the known one? Certain cheap rules first, symbolic comparison only where they end.

`quick` is exact, linear and safe anywhere. `compare` goes on to sympy, may be slow or hang on hostile
text, and therefore runs in worker processes only. A rule that is not sure says undecided, never wrong.
"""

from __future__ import annotations

from porism.types import Verdict
from porism.verify.normalize import clean, squeeze
from porism.verify.numbers import literal

MAX_LENGTH = 20_000  # longer answers are not read


def quick(answer: str, gold: str, answer_type: str | None = None) -> Verdict | None:
    """The verdict where equal text or two number literals settle it, else None. Never slow."""
    del answer_type
    if len(answer) > MAX_LENGTH or len(gold) > MAX_LENGTH:
        return Verdict("undecided", "too-long")
    left, right = clean(answer), clean(gold)
    if left and squeeze(left) == squeeze(right):
        return Verdict("correct", "text")
    given, known = literal(left), literal(right)
    if given is None or known is None:
        return None
    if given.value == known.value:
        return Verdict("correct", "number")
    if given.percent != known.percent:
        return None
    if given.digits is None and known.digits is None:
        return Verdict("wrong", "number")
    return None


def compare(answer: str, gold: str, answer_type: str | None = None) -> Verdict:
    """The verdict on an answer; undecided where neither exact rules nor symbolic ones are sure."""
    verdict = quick(answer, gold, answer_type)
    if verdict is not None:
        return verdict
    from porism.verify.symbolic import symbolic

    return symbolic(clean(answer), clean(gold))


__all__ = ["MAX_LENGTH", "compare", "quick"]
