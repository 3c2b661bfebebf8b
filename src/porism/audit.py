"""What a run's figures stand on: every stored answer with its verdict, those a person should look at, all decided anew.

Nothing here asks a model, and `audit` writes nothing. `again` only appends: an answer found anew is a later index row
of the same text, a verdict a later line under this version. It may be killed anywhere and repeated: until all is
written, the folder still says that it was checked by the old version, and is refused where results are made.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from porism.errors import ConfigError
from porism.prepare import refuse_code
from porism.store import MISSING, Row, Store
from porism.stored import stored_methods
from porism.types import Ask, Cell, Gold, Verdict
from porism.verify.custom import is_custom
from porism.verify.extract import extract
from porism.verify.pool import Verifier
from porism.verify.suspicion import suspicion

Pair: TypeAlias = tuple[str, Gold]

LINES = 5  # the end of a text that a person or a second opinion is shown
WIDTH = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One answer with its verdict, which also says why it may be doubted.

    answer: None where the text gives none. text: its last lines, kept for doubted verdicts only. cell: what a rollout
    of a run was for.
    """

    id: str
    gold: str
    answer: str | None
    verdict: Verdict
    question: str = ""
    text: str = ""
    cell: Cell | None = None

    @property
    def doubted(self) -> bool:
        """Whether a person should look: not decided, or decided and suspicious."""
        return self.verdict.kind == "undecided" or self.verdict.suspicious is not None


@dataclass(frozen=True, slots=True)
class Again:
    """What deciding anew has changed: verdicts by (before, after), and answers found differently in their texts.

    before is `unchecked` where no verdict was stored.
    """

    changed: Counter[tuple[str, str]]
    answers: int


@dataclass(frozen=True, slots=True)
class _Stored:
    """A stored rollout and one of the things it was for."""

    ask: Ask
    gold: Gold
    row: Row
    question: str


def last_lines(text: str) -> str:
    """The last lines of a text that have anything in them."""
    return "\n".join([line for line in text[-WIDTH:].splitlines() if line.strip()][-LINES:])


def with_doubt(checked: Checked, text: str, *, truncated: bool) -> Checked:
    """The same, with what the whole text says against the verdict, and with its last lines where it is doubted."""
    doubt = suspicion(checked.verdict, text, checked.gold, truncated=truncated)
    found = dataclasses.replace(checked, verdict=replace(checked.verdict, suspicious=doubt))
    return dataclasses.replace(found, text=last_lines(text)) if found.doubted else found


def is_run(path: Path) -> None:
    """Raises ConfigError where no run lies, before anything is opened or made there."""
    if not (path / "run.json").is_file():
        raise ConfigError(f"{path}: no run.json here, so this is no run folder")


async def audit(store: Store, verifier: Verifier) -> list[Checked]:
    """Every stored rollout that has a gold, as the run's plan orders them, missing ones too. Writes nothing.

    What was never decided is decided now. Raises ConfigError where another version of the verifier decided.
    """
    store.check_version(verifier.version)
    stored = list(_stored(store, verifier))
    known: dict[Pair, Verdict] = {}
    new: list[Pair] = []
    for pair in _pairs(stored):
        if (verdict := store.verdict(*pair, verifier.version)) is None:
            new.append(pair)
        else:
            known[pair] = verdict
    known |= await _decide(new, verifier)
    return [_checked(store, s, known) for s in stored]


async def again(store: Store, verifier: Verifier) -> Again:
    """Find every answer in its text anew and decide it anew, store what differs, and say what has changed."""
    version = verifier.version
    noted = (store.read_json("run.json") or {}).get("verifier")
    before = [_kind(store, s, noted) for s in _stored(store, verifier)]
    answers = 0
    for row in [row for row in store.rows.values() if row.finish != MISSING]:
        completion = store.completion(row, 0)
        found = extract(completion.text, truncated=completion.truncated)
        if (found.answer, found.rule) != (row.answer, row.rule):
            answers += found.answer != row.answer
            store.add_answer(row, found.answer, found.rule)
    stored = list(_stored(store, verifier))
    # Also what the plan does not ask for now: it counts again when the settings are changed back.
    kept = [pair for pair in store.decided if verifier.allow_code or not is_custom(pair[1].answer_type)]
    for pair, verdict in (await _decide([*_pairs(stored), *kept], verifier)).items():
        if store.verdicts(*pair).get(version) != verdict:
            store.add_verdict(*pair, version, verdict)
    store.update_settings(lambda settings: settings | {"verifier": version})
    after = [_kind(store, s, version) for s in stored]
    return Again(Counter(pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]), answers)


def _stored(store: Store, verifier: Verifier) -> Iterator[_Stored]:
    problems, methods = stored_methods(store)
    refuse_code(problems, allow_code=verifier.allow_code)
    told: set[tuple[str, Gold]] = set()  # methods may share a rollout
    for problem in problems:
        questions = {neighbor.id: neighbor.question for neighbor in problem.neighbors}
        for ask in (ask for method in methods for ask in method.plan(problem, [])):
            row = store.rows.get(ask.work.id)
            if ask.gold is not None and row is not None and (row.id, ask.gold) not in told:
                told.add((row.id, ask.gold))
                yield _Stored(ask, ask.gold, row, questions.get(ask.cell.neighbor or "", problem.question))


def _kind(store: Store, stored: _Stored, version: str | None) -> str:
    """The kind of the verdict under a version, or under the latest where that one has none."""
    row = stored.row
    if row.finish == MISSING:
        return "missing"
    if row.answer is None:
        return "no_answer"
    known = store.verdicts(row.answer, stored.gold)
    if not known:
        return "unchecked"
    return (known.get(version or "") or known[[*known][-1]]).kind


def _pairs(stored: Iterable[_Stored]) -> list[Pair]:
    return [(s.row.answer, s.gold) for s in stored if s.row.answer is not None]


def _checked(store: Store, stored: _Stored, verdicts: Mapping[Pair, Verdict]) -> Checked:
    row, gold = stored.row, stored.gold
    if row.finish == MISSING:
        verdict = Verdict("missing", row.rule)
    elif row.answer is None:
        verdict = Verdict("no_answer", row.rule)
    else:
        verdict = verdicts[row.answer, gold]
    checked = Checked(
        id=row.id,
        gold=gold.answer,
        answer=row.answer,
        verdict=verdict,
        question=stored.question,
        cell=stored.ask.cell,
    )
    if verdict.kind in ("correct", "missing"):
        return checked
    completion = store.completion(row, stored.ask.work.rollout)
    return with_doubt(checked, completion.text, truncated=completion.truncated)


async def _decide(pairs: Iterable[Pair], verifier: Verifier) -> dict[Pair, Verdict]:
    distinct = list(dict.fromkeys(pairs))
    verdicts = await asyncio.gather(*(verifier.verify(*pair) for pair in distinct))
    return dict(zip(distinct, verdicts, strict=True))


__all__ = ["Again", "Checked", "again", "audit", "is_run", "last_lines", "with_doubt"]
