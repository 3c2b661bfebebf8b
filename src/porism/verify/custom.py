"""A user's own checker, named by an answer type: python:package.module:function.

It runs in worker processes only, within their limits, and only when the user allowed code: a problem file
from elsewhere must not be able to start anything.
"""

from __future__ import annotations

import importlib

from porism.types import Verdict

PREFIX = "python:"


def is_custom(answer_type: str | None) -> bool:
    """Whether an answer type names a user's checker."""
    return answer_type is not None and answer_type.startswith(PREFIX)


def decide(answer: str, gold: str, answer_type: str) -> Verdict:
    """What function(answer, gold) says: True is correct, False wrong, None undecided.

    Raises what importing and calling it raise, and TypeError for any other result.
    """
    module, _, name = answer_type.removeprefix(PREFIX).partition(":")
    if not module or not name:
        return Verdict("undecided", "own rule: write python:package.module:function")
    found = getattr(importlib.import_module(module), name)(answer, gold)
    if found is None:
        return Verdict("undecided", answer_type)
    if not isinstance(found, bool):
        raise TypeError(f"{answer_type} gave {type(found).__name__}, not a bool")
    return Verdict("correct" if found else "wrong", answer_type)


__all__ = ["decide", "is_custom"]
