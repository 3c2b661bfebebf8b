"""Which verdicts of `wrong` a person should look at: those where the known answer was written after all."""

from __future__ import annotations

import re

from porism.types import Verdict
from porism.verify.extract import visible
from porism.verify.normalize import clean, squeeze

LINES = 3
TAIL = 2000


def suspicion(verdict: Verdict, text: str, gold: str, *, truncated: bool = False) -> str | None:
    """Why a verdict of wrong or no_answer may be doubted, or None.

    text: the whole completion. The gold standing in its last lines outside of the answer, or a cut text.
    """
    if verdict.kind not in ("wrong", "no_answer"):
        return None
    if verdict.suspicious:
        return verdict.suspicious
    known = squeeze(clean(gold))
    shown = visible(text)
    if shown is not None and known:
        lines = [line for line in shown[-TAIL:].splitlines() if line.strip()][-LINES:]
        place = re.compile(rf"(?<![\w.,]){re.escape(known)}(?![\w]|[.,]\d)")
        if any(place.search(squeeze(clean(line))) for line in lines):
            return "the gold stands in the last lines"
    return "truncated" if truncated else None


__all__ = ["suspicion"]
