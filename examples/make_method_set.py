"""Makes examples/method-set.jsonl from the sources in examples/method-set/ and the families they name.

    python examples/make_method_set.py            # writes the set
    python examples/make_method_set.py --check    # says what would change, and exits with 1 if anything would

A source gives, for one family, targets and candidates as texts with <name> in them, each wrong one with the rule of its
answer. Everything that can be computed is: answers, neighbors, and on which neighbors a wrong rule agrees with the
truth. docs/method-set.md says what the kinds mean.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

import yaml

from porism.cli.draw import family_mapping
from porism.data.write import as_dict
from porism.neighbors.definition import read_family
from porism.neighbors.expression import STEPS
from porism.neighbors.family import Family
from porism.neighbors.rules import Template
from porism.neighbors.values import Meter
from porism.types import Candidate, Neighbor, Problem
from porism.verify.compare import compare

HERE = Path(__file__).parent
SOURCES = HERE / "method-set"
TARGET = HERE / "method-set.jsonl"
NEIGHBORS = 4
RIGHT = ("right", "right-but-terse")
KEYS = {"id", "kind", "misconception", "style", "rule", "let", "text"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 where the set is not up to date"
    )
    given = parser.parse_args()
    problems = [p for source in sorted(SOURCES.glob("*.yaml")) for p in make(source)]
    text = "".join(json.dumps(as_dict(p), ensure_ascii=False) + "\n" for p in problems)
    if given.check:
        sys.exit(
            0 if TARGET.is_file() and TARGET.read_text("utf-8") == text else f"{TARGET} is not up to date"
        )
    TARGET.write_text(text, "utf-8")
    sys.stdout.write(f"{TARGET}: {len(problems)} problems\n")


def make(path: Path) -> list[Problem]:
    """The problems of one source. ValueError for a source that does not hold what it must."""
    source: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    mapping = family_mapping(HERE / "families" / f"{source['family']}.yaml")
    family = read_family(mapping)
    near = read_family(
        mapping | {"constraints": [*mapping.get("constraints", []), *source.get("constraints", [])]}
    )
    if source["half"] not in ("tune", "report"):
        raise ValueError(f"{path}: half is tune or report")
    return [
        problem(path, source, family, near.draw, settled(parameters), i)
        for i, parameters in enumerate(source["targets"], 1)
    ]


def problem(
    path: Path,
    source: dict[str, Any],
    family: Family,
    draw: Callable[..., list[Neighbor]],
    parameters: dict[str, Any],
    number: int,
) -> Problem:
    """One target with its candidates and neighbors. draw: draws neighbors, within the constraints of the source."""
    id = f"{source['family']}-{number}"
    question = family.fill(family.question, dict(parameters), "question", Meter(STEPS))
    answer = family.answer_of(parameters)
    written = [candidate(path, source, family, parameters, entry, answer) for entry in source["candidates"]]
    finals = [c.answer for c in written if c.answer is not None]
    neighbors = draw(NEIGHBORS, _seed(id), target=parameters, avoid=[answer, *finals])
    rules = {entry["id"]: entry.get("rule") for entry in source["candidates"]}
    order = list(range(len(written)))
    Random(_seed(id)).shuffle(order)  # noqa: S311
    candidates = tuple(
        _with(written[i], "abcdefghij"[place], agreeing(family, rules[written[i].id], neighbors))
        for place, i in enumerate(order)
    )
    return Problem(
        id=id,
        group=source["family"],
        question=question,
        answer=answer,
        subject=family.subject,
        candidates=candidates,
        neighbors=tuple(neighbors),
        metadata={
            "half": source["half"],
            "family": source["family"],
            "variant": number,
            "parameters": parameters,
        },
    )


def candidate(
    path: Path,
    source: dict[str, Any],
    family: Family,
    parameters: dict[str, Any],
    entry: dict[str, Any],
    truth: str,
) -> Candidate:
    """One candidate with its texts filled in, its id that of the source."""
    where = f"{path}: {entry.get('id')}"
    if unknown := set(entry) - KEYS:
        raise ValueError(f"{where}: unknown keys {sorted(unknown)}")
    right = entry["kind"] in (*RIGHT, "gap")
    if right == ("rule" in entry):
        raise ValueError(f"{where}: a wrong candidate has the rule of its answer, and a right one has none")
    answer = truth if right else written(family, entry["rule"], parameters)
    values: dict[str, Any] = dict(parameters)
    for name, rule in {**source.get("let", {}), **entry.get("let", {})}.items():
        values[name] = family.value(str(rule), values)
    values["result"] = answer
    if not right and same(answer, truth, family.answer_type):
        raise ValueError(f"{where}: its rule gives the right answer {answer} for {parameters}")
    return Candidate(
        id=entry["id"],
        text=family.fill(Template(entry["text"]), values, entry["id"], Meter(STEPS)).strip(),
        answer=answer,
        correct=entry["kind"] in RIGHT,
        kind=entry["kind"],
        metadata={
            "method": entry["id"],
            **{key: entry[key] for key in ("misconception", "style") if key in entry},
        },
    )


def agreeing(family: Family, rule: str | None, neighbors: list[Neighbor]) -> list[str]:
    """The neighbors on which a candidate's rule gives the known answer: all of them where it has no wrong rule."""
    found = []
    for neighbor in neighbors:
        parameters = settled((neighbor.provenance or {})["parameters"])
        if rule is None or same(written(family, rule, parameters), neighbor.answer, family.answer_type):
            found.append(neighbor.id)
    return found


def settled(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters as rules take them: a list of YAML or JSON is a tuple there."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in parameters.items()}


def written(family: Family, rule: str, parameters: dict[str, Any]) -> str:
    """What a rule gives for the parameters, as the family writes its answers."""
    return family.written(family.value(rule, parameters), dict(parameters), Meter(STEPS))


def same(one: str, other: str, answer_type: str | None) -> bool:
    return compare(one, other, answer_type).kind == "correct"


def _with(candidate: Candidate, id: str, agrees: list[str]) -> Candidate:
    from dataclasses import replace

    return replace(candidate, id=id, metadata={**(candidate.metadata or {}), "agrees": agrees})


def _seed(id: str) -> int:
    return int.from_bytes(blake2b(id.encode(), digest_size=4).digest(), "big")


if __name__ == "__main__":
    main()
