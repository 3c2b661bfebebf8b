"""Copies of candidates in another style, made by rules or by a model. The mathematics must come out as it went in.

A model's copy is kept only if every formula and number of the original is in it, and it ends in the same answer.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from porism.methods.prompt import load_template, render
from porism.methods.sentences import formulas
from porism.stress.rules import STYLES, restyle
from porism.types import Candidate, Completion, Problem
from porism.verify.extract import extract
from porism.verify.normalize import clean, normal_form, squeeze

DESCRIPTIONS = {
    "padding": "long-winded, with remarks between the steps that say nothing",
    "confident": "supremely confident, asserting at every turn that all is certain",
    "authoritative": "authoritative, with references to theorems and papers that sound real but do not exist",
    "terse": "as terse as possible, without any word that can be spared",
    "reformatted": "as a numbered list of short steps",
}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def by_rules(problem: Problem, styles: Sequence[str] = STYLES) -> Problem:
    """The problem with a copy of each original candidate in each style; styles that change nothing make none."""
    made = []
    for candidate in originals(problem):
        for style in styles:
            text = restyle(candidate.text, style, seed=f"{problem.id}\0{candidate.id}")
            if text is not None:
                made.append(copy(candidate, style, text, by="rules"))
    return with_copies(problem, made)


def request(candidate: Candidate, style: str) -> str:
    """What a model is asked for a copy in a style."""
    template = load_template(None, "restyle")
    return render(template, style=DESCRIPTIONS[style], text=candidate.text)


def by_model(
    problem: Problem, answers: Mapping[tuple[str, str], Completion | None], model: str
) -> tuple[Problem, Counter[str]]:
    """The problem with the copies that hold, and why others do not, by count.

    answers: by (candidate id, style).
    """
    made, refused = [], Counter[str]()
    by_id = {c.id: c for c in problem.candidates}
    for (id, style), completion in answers.items():
        reason = "no answer" if completion is None else fault(by_id[id].text, completion.text)
        if completion is not None and completion.truncated:
            reason = "cut off"
        if reason is not None or completion is None:
            refused[reason or "no answer"] += 1
        else:
            made.append(copy(by_id[id], style, completion.text.strip(), by=model))
    return with_copies(problem, made), refused


def fault(original: str, rewritten: str) -> str | None:
    """Why a rewritten text is not the same mathematics, or None where nothing shows that it is not."""
    own, other = extract(original).answer, extract(rewritten).answer
    if own is not None and (other is None or normal_form(own) != normal_form(other)):
        return "another final answer"
    text = squeeze(clean(rewritten))
    if any(squeeze(clean(formula)) not in text for formula in formulas(original)):
        return "a formula is missing or changed"
    if Counter(_NUMBER.findall(original)) - Counter(_NUMBER.findall(rewritten)):
        return "a number is missing"
    return None


def originals(problem: Problem) -> list[Candidate]:
    """The candidates that are no copies."""
    return [c for c in problem.candidates if c.derived_from is None]


def copy(candidate: Candidate, style: str, text: str, *, by: str) -> Candidate:
    """A candidate in another style: the same labels, an id of its own, and where it comes from."""
    return dataclasses.replace(
        candidate,
        id=f"{candidate.id}+{style}",
        text=text,
        human=False,
        derived_from=candidate.id,
        metadata={**(candidate.metadata or {}), "style": style, "restyled_by": by},
    )


def with_copies(problem: Problem, made: Sequence[Candidate]) -> Problem:
    """The problem with more candidates; those whose id is there already are left out."""
    have = {c.id for c in problem.candidates}
    new = tuple(c for c in made if c.id not in have)
    return dataclasses.replace(problem, candidates=problem.candidates + new)


__all__ = ["by_model", "by_rules", "fault", "originals", "request"]
