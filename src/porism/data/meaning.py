"""What no type can say about a problem: texts that are empty, ids given twice, answers that could be copied.

Works on plain values rather than records, so that it also sees rows in which something else is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from porism.data.answers import last_boxed, plain
from porism.data.finding import Doubt, KeyPath
from porism.verify.custom import is_custom
from porism.verify.typed import TYPES

_WHY_COPY = "a solver that copies it would look helpful"


def doubts(value: dict[str, Any]) -> Iterator[Doubt]:
    """Errors and warnings of one problem; what has a wrong type is passed over."""
    yield from _empty(value, (), ("id", "question"))
    candidates, neighbors = _items(value, "candidates"), _items(value, "neighbors")
    yield from _ids("candidates", candidates)
    yield from _ids("neighbors", neighbors)
    yield from _candidates(candidates)
    yield from _neighbors(_text(value, "question"), neighbors)
    yield from _copies(value, candidates, neighbors)


Items = list[tuple[int, dict[str, Any]]]


def _items(value: dict[str, Any], key: str) -> Items:
    found = value.get(key)
    return (
        [(i, item) for i, item in enumerate(found) if isinstance(item, dict)]
        if isinstance(found, list)
        else []
    )


def _text(item: dict[str, Any], key: str) -> str:
    """A text, empty where there is none."""
    found = item.get(key)
    return found if isinstance(found, str) else ""


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def _empty(item: dict[str, Any], path: KeyPath, keys: tuple[str, ...]) -> Iterator[Doubt]:
    for key in keys:
        if isinstance(item.get(key), str) and not item[key].strip():
            yield "error", (*path, key), "is empty"


def _ids(kind: str, items: Items) -> Iterator[Doubt]:
    first: dict[str, int] = {}
    for i, item in items:
        if (id := _text(item, "id")) and first.setdefault(id, i) != i:
            yield "error", (kind, i, "id"), f"{id!r} is used already: {kind}[{first[id]}]"


def _candidates(candidates: Items) -> Iterator[Doubt]:
    ids = {_text(item, "id") for _, item in candidates}
    first: dict[str, str] = {}
    for i, item in candidates:
        path = ("candidates", i)
        yield from _empty(item, path, ("id", "text"))
        if text := _fold(_text(item, "text")):
            id = _text(item, "id")
            if text in first:
                yield "warning", (*path, "text"), f"the same text as candidate {first[text]!r}"
            first.setdefault(text, id)
        if (origin := _text(item, "derived_from")) and origin not in ids:
            yield "warning", (*path, "derived_from"), f"no candidate here has the id {origin!r}"


def _neighbors(question: str, neighbors: Items) -> Iterator[Doubt]:
    target = _fold(question)
    first: dict[str, str] = {}
    for i, item in neighbors:
        path = ("neighbors", i)
        yield from _empty(item, path, ("id", "question"))
        if isinstance(item.get("answer"), str) and not item["answer"].strip():
            yield "error", (*path, "answer"), "is empty: a neighbor is a question with a known answer"
        yield from answer_type_doubts(_text(item, "answer_type"), path)
        asked = _fold(_text(item, "question"))
        if asked and asked == target:
            yield "error", (*path, "question"), "repeats the problem's own question"
        elif asked:
            if asked in first:
                yield "warning", (*path, "question"), f"the same question as neighbor {first[asked]!r}"
            first.setdefault(asked, _text(item, "id"))


def answer_type_doubts(name: str, path: KeyPath) -> Iterator[Doubt]:
    """Warns of a type that the verifier does not know, and so decides by the look of the answer."""
    name = name if is_custom(name) else name.partition(":")[0]
    if not name or name in TYPES or is_custom(name):
        return
    close = get_close_matches(name, TYPES, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(TYPES))}"
    yield "warning", (*path, "answer_type"), f"{name!r} is not known, and auto is used; {hint}"


def _copies(value: dict[str, Any], candidates: Items, neighbors: Items) -> Iterator[Doubt]:
    """Warns of neighbors answered by the target's answer or by one a candidate shows."""
    shown: dict[str, list[str]] = {}
    for _, item in candidates:
        answer = _text(item, "answer") or last_boxed(_text(item, "text"))
        if answer and (bare := plain(answer)):
            shown.setdefault(bare, []).append(repr(_text(item, "id")))
    target = plain(_text(value, "answer"))
    for i, item in neighbors:
        answer = plain(_text(item, "answer"))
        path = ("neighbors", i, "answer")
        if answer and answer in shown:
            who = ", ".join(shown[answer][:3]) + (", ..." if len(shown[answer]) > 3 else "")
            yield "warning", path, f"is also the answer of candidate {who}: {_WHY_COPY}"
        elif answer and answer == target:
            yield "warning", path, f"is also the answer of the problem: {_WHY_COPY}"
