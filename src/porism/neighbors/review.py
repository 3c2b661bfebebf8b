"""What a person decides about neighbors, and what becomes of the problem then.

A decision is one line in a log beside the problem file: accepted, edited (with the new text) or rejected (with the old
one, so that nothing is lost). It carries a hash of the neighbor's text, so one about a text that has changed since
counts no more. Accepted neighbors are flagged `reviewed`, edited ones `reviewed` and `edited`; rejected ones leave the
file, since everything that reads neighbors would use them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from porism.types import Neighbor, Problem

EDITED = ("question", "answer", "answer_type", "kind", "solution")  # the keys a person may change
HEADER = "# Save and close to keep this. LaTeX stands in single quotes, in none, or in a block after `|`.\n"
_FILE = Path("neighbor.yaml")


class Decision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was decided of one neighbor. text_hash: of the text decided on; edited_hash: of what an edit made of it.

    record: the EDITED keys after an edit; all keys of a rejected neighbor.
    """

    time: str
    problem: str
    neighbor: str
    text_hash: str
    decision: Literal["accept", "edit", "reject"]
    note: str = ""
    edited_hash: str = ""
    record: dict[str, Any] | None = None


Decisions = Mapping[tuple[str, str], Decision]


def text_hash(neighbor: Neighbor) -> str:
    """32 hex digits that stand for all a person may change."""
    values = [getattr(neighbor, key) for key in EDITED]
    return blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()


def latest(rows: Iterable[Decision]) -> dict[tuple[str, str], Decision]:
    """The last decision on each neighbor, by ids of problem and neighbor."""
    return {(row.problem, row.neighbor): row for row in rows}


def decided(problem: Problem, neighbor: Neighbor, decisions: Decisions) -> Decision | None:
    """The decision that counts for this neighbor as it stands, if there is one."""
    decision = decisions.get((problem.id, neighbor.id))
    if decision is None or text_hash(neighbor) not in (decision.text_hash, decision.edited_hash):
        return None
    return decision


def edited(neighbor: Neighbor, decision: Decision) -> Neighbor:
    """The neighbor as an edit left it: provenance kept, and marked."""
    values: dict[str, Any] = {**dict.fromkeys(EDITED), **(decision.record or {})}
    return replace(
        neighbor,
        **values,
        provenance={**(neighbor.provenance or {}), "edited": decision.time},
        flags=_with(neighbor.flags, "reviewed", "edited"),
    )


def settle(problems: Iterable[Problem], decisions: Decisions) -> tuple[list[Problem], Counter[str]]:
    """The problems as decided, and how many neighbors were accepted, edited, rejected and are open."""
    counts: Counter[str] = Counter(accept=0, edit=0, reject=0, open=0)
    result = []
    for problem in problems:
        kept = []
        for neighbor in problem.neighbors:
            decision = decided(problem, neighbor, decisions)
            counts[decision.decision if decision else "open"] += 1
            if decision is None:
                kept.append(neighbor)
            elif decision.decision == "accept":
                kept.append(replace(neighbor, flags=_with(neighbor.flags, "reviewed")))
            elif decision.decision == "edit":
                done = text_hash(neighbor) == decision.edited_hash and "edited" in neighbor.flags
                kept.append(neighbor if done else edited(neighbor, decision))
        result.append(replace(problem, neighbors=tuple(kept)))
    return result, counts


def as_yaml(neighbor: Neighbor) -> str:
    """What the editor gets: the keys that may change."""
    from porism.data.yamlwrite import yaml_text

    values = {key: getattr(neighbor, key) for key in EDITED}
    return HEADER + yaml_text([{key: value for key, value in values.items() if value is not None}])


def from_yaml(text: str, problem: Problem, neighbor: Neighbor) -> tuple[Neighbor | None, list[str]]:
    """The neighbor with what the editor left, and what is wrong or doubtful; None where it cannot be used."""
    from porism.data import yamltree
    from porism.data.finding import FileFaultError, Row
    from porism.data.rows import check_rows
    from porism.data.write import as_dict

    try:
        documents = list(yamltree.parse(text, _FILE))
    except FileFaultError as fault:
        return None, [str(fault)]
    value, node = documents[0] if len(documents) == 1 else (None, None)
    if node is None or not isinstance(value, dict):
        return None, [f"{_FILE}: must be keys and values: {', '.join(EDITED)}"]
    known = {field.name for field in fields(Neighbor)}
    foreign = [key for key in value if key in known and key not in EDITED]
    if foreign:
        line = yamltree.line_of(node, (foreign[0],)) + 1
        return None, [f"{_FILE}:{line}: {foreign[0]}: is not edited here; keys: {', '.join(EDITED)}"]
    kept = {key: item for key, item in as_dict(neighbor).items() if key not in EDITED}
    others = {key: item for key, item in as_dict(problem).items() if key not in ("neighbors", "metadata")}
    row = others | {"neighbors": [{**kept, **value}]}
    report = check_rows([Row(row, lambda path: (str(_FILE), yamltree.line_of(node, path[2:]) + 1))])
    said = [
        f"{'warning: ' if f.severity == 'warning' else ''}{str(f).replace('neighbors[0].', '')}"
        for f in report.findings
        if f.key.startswith("neighbors[0]")
    ]
    return (report.problems[0].neighbors[0] if report.problems else None), said


def _with(flags: tuple[str, ...], *more: str) -> tuple[str, ...]:
    return (*flags, *(flag for flag in more if flag not in flags))


__all__ = [
    "EDITED", "Decision", "Decisions", "as_yaml", "decided", "edited", "from_yaml", "latest", "settle", "text_hash",
]  # fmt: skip
