"""The lines of a run folder's files, as msgspec structs: the index, the texts, the verdicts, the failures.

They stand apart from the store that writes them, so that what only looks at a folder need not open it.
"""

from __future__ import annotations

from msgspec import Struct

from porism.types import Cell, Gold, Message, Sampling, Token, Usage, Verdict

MISSING = "missing"  # the finish of a rollout that was never answered
NO_USAGE = Usage()  # the one that stands on every row but the first of its call


class Row(Struct, frozen=True, omit_defaults=True, gc=False):
    """One rollout in the index.

    Large runs hold a million of these, none of them in a cycle, so the garbage collector leaves them alone (gc=False).
    usage stands on the first row of its call and is empty on the others, so sums are exact. finish is the
    server's finish reason, or `missing`; again says that a missing one may be asked again by a later session.
    """

    id: str
    cell: Cell
    finish: str
    answer: str | None = None
    rule: str = ""
    text_key: str = ""
    segment: int = 0
    offset: int = 0
    usage: Usage = NO_USAGE
    again: bool = False


class Failure(Struct, frozen=True):
    """One failed attempt, in errors.jsonl."""

    time: str
    model: str
    prompt: str
    first: int
    n: int
    attempt: int
    kind: str
    message: str


class StoredPrompt(Struct, frozen=True, omit_defaults=True):
    """What a model was shown, in text/. prompt: its key, with which the ids of its rollouts begin."""

    prompt: str
    messages: tuple[Message, ...]
    sampling: Sampling
    model: str


class VerdictRow(Struct, frozen=True, omit_defaults=True):
    """What one version of the verifier decided, in verdicts/."""

    answer: str
    gold: Gold
    version: str
    verdict: Verdict


class TextRow(Struct, frozen=True, omit_defaults=True):
    """An answer as it came, in text/. id: its row's."""

    id: str = ""
    text: str = ""
    reasoning: str = ""
    ending: tuple[Token, ...] = ()


__all__ = ["MISSING", "NO_USAGE", "Failure", "Row", "StoredPrompt", "TextRow", "VerdictRow"]
