"""Controls of utility: what each shows, what it may not show, and that the method itself is what it was."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from hashlib import blake2b

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from porism.errors import ConfigError
from porism.methods.controls import Donor, Exemplar, donors, own_answer, shown, shuffled
from porism.methods.prompt import QUESTION_FIELDS, check_template, load_template
from porism.methods.utility import Utility
from porism.types import Ask, Candidate, Generate, Problem, Sampling
from samples import problem

OTHERS = [replace(problem(f"q{k}"), group=f"g{k % 3}") for k in range(6)]


def control(exemplar: Exemplar, **settings: object) -> Utility:
    return Utility(
        solvers=("m",),
        sampling=Sampling(max_tokens=100),
        exemplar=exemplar,
        others=donors(OTHERS),
        **settings,  # type: ignore[arg-type]
    )


def texts(asks: list[Ask], candidate: str | None, neighbor: str = "n0") -> set[str]:
    return {
        a.work.prompt.messages[0].content
        for a in asks
        if isinstance(a.work, Generate) and (a.cell.candidate, a.cell.neighbor) == (candidate, neighbor)
    }


def ids(asks: list[Ask], candidate: str | None) -> list[str]:
    return [a.work.id for a in asks if a.cell.candidate == candidate and a.cell.neighbor is not None]


def test_full_is_byte_for_byte_what_it_was() -> None:
    """Identities, prefixes and cells of the plan as the first version of the method made them."""
    asks = Utility(solvers=("m",), sampling=Sampling(max_tokens=100)).plan(problem(), [])
    lines = [
        f"{a.work.id} {a.prefix} {a.cell.candidate} {a.cell.neighbor} {a.cell.method} {a.cell.round}"
        for a in asks
    ]
    digest = blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()
    assert (len(asks), digest) == (68, "c35232740ec952aa4063db9dc1b36a3b")
    assert asks == control("full").plan(problem(), [])


def test_none_is_the_no_example_row_and_costs_nothing() -> None:
    asks = control("none").plan(problem(), [])
    assert ids(asks, "a") == ids(asks, "b") == ids(asks, None)
    full = control("full").plan(problem(), [])
    assert {a.work.id for a in asks} < {a.work.id for a in full}


def test_question_only_is_the_same_for_all_candidates() -> None:
    asks = control("question-only").plan(problem(), [])
    assert ids(asks, "a") == ids(asks, "b") != ids(asks, None)
    (text,) = texts(asks, "a")
    assert problem().question in text
    assert "Method" not in text
    assert "solution above" not in text
    for name in ("utility-question", "utility-question-embedded"):
        assert check_template(load_template(None, name), QUESTION_FIELDS) == []


def test_answer_only_shows_the_answer_and_nothing_else_of_the_candidate() -> None:
    p = problem()
    p = replace(p, candidates=(replace(p.candidates[0], answer="1234"), *p.candidates[1:]))
    asks = control("answer-only").plan(p, [])
    (given_answer,), (found_answer,) = texts(asks, "a"), texts(asks, "b")
    assert "The final answer is 1234." in given_answer
    assert "The final answer is 1." in found_answer
    assert "it does not help" not in found_answer
    proof = replace(p, candidates=(Candidate(id="a", text="It follows by induction."),))
    assert own_answer(proof.candidates[0]) is None
    question_only = control("question-only").plan(proof, [])
    assert ids(control("answer-only").plan(proof, []), "a") == ids(question_only, "a")


def test_other_question_comes_from_another_group() -> None:
    target = replace(problem("q0"), group="g0")
    for candidate in target.candidates:
        question, text = shown("other-question", target, candidate, donors(OTHERS))
        donor = next(p for p in OTHERS if p.question == question)
        assert donor.group != "g0"
        assert text in {c.text for c in donor.candidates}
    asks = control("other-question").plan(target, [])
    for candidate in target.candidates:
        (prompt,) = texts(asks, candidate.id)
        assert candidate.text not in prompt
        assert target.question not in prompt.splitlines()


def test_the_choice_of_a_donor_is_spread_and_fixed() -> None:
    p = replace(problem(), candidates=tuple(Candidate(id=f"c{i}", text=f"T{i}") for i in range(60)))
    picks = [shown("other-question", p, c, donors(OTHERS)) for c in p.candidates]
    assert picks == [shown("other-question", p, c, donors(OTHERS[::-1])) for c in p.candidates]
    assert len(set(picks)) > 10
    fewer = [shown("other-question", p, c, donors(OTHERS[:-1])) for c in p.candidates]
    assert sum(a != b for a, b in zip(picks, fewer, strict=True)) < 30


def test_without_another_group_there_is_nothing_to_show() -> None:
    with pytest.raises(ConfigError, match="donors"):
        Utility(solvers=("m",), sampling=Sampling(max_tokens=9), exemplar="other-question")
    kin = donors([replace(problem("q"), group="g")])
    target = replace(problem(), group="g")
    assert shown("other-question", target, target.candidates[0], kin) == (None, None)


def test_donors_carry_no_labels() -> None:
    assert Donor.__struct_fields__ == ("problem", "group", "question", "text")
    assert len(donors(OTHERS)) == 18
    assert donors([problem("q")])[0].group == "q"


def test_shuffled_has_the_same_sentences_in_another_order() -> None:
    text = "Let n = 3.5 be given. Then f(n) is odd! Is it prime?\n\nIt is.  So the answer is \\boxed{4}."
    mixed = shuffled(text, "seed")
    assert mixed == shuffled(text, "seed")
    assert sorted(mixed.split("\n")) == sorted(
        [
            "Let n = 3.5 be given.",
            "Then f(n) is odd!",
            "Is it prime?",
            "It is.",
            "So the answer is \\boxed{4}.",
        ]
    )
    assert len({shuffled(text, str(k)) for k in range(20)}) > 10
    assert shuffled("One sentence.", "seed") == "One sentence."
    assert shuffled("Yes. Yes.", "seed") == "Yes. Yes."


@given(st.text())
def test_shuffling_loses_no_word(text: str) -> None:
    mixed = shuffled(text, "seed")
    assert Counter("".join(mixed.split())) == Counter("".join(text.split()))
    parts = [part for part in re.split(r"(?<=[.!?])\s+|\s*\n\s*", text.strip()) if part]
    if len(set(parts)) > 1:
        assert mixed != "\n".join(parts)


def test_shuffled_prompts_differ_from_candidate_to_candidate() -> None:
    asks = control("shuffled").plan(problem(), [])
    (one,), (full,) = texts(asks, "a"), texts(control("full").plan(problem(), []), "a")
    assert one != full
    assert "[[helps]]" in one


def test_a_control_survives_a_settings_file() -> None:
    method = control("other-question", name="utility-other-question")
    again = msgspec.convert(msgspec.json.decode(msgspec.json.encode(method)), type=Utility)
    assert again == method
    old = msgspec.to_builtins(Utility(solvers=("m",), sampling=Sampling(max_tokens=9)))
    for key in ("exemplar", "others", "question_template"):
        del old[key]
    assert msgspec.convert(old, type=Utility).exemplar == "full"


def test_an_exemplar_that_is_not_known() -> None:
    with pytest.raises(ConfigError, match="question-only, answer-only"):
        control("half")  # type: ignore[arg-type]


def test_controls_of_one_problem_differ_only_where_they_should() -> None:
    p: Problem = problem(neighbors=1)
    kinds: tuple[Exemplar, ...] = (
        "full",
        "question-only",
        "answer-only",
        "none",
        "other-question",
        "shuffled",
    )
    prompts = {kind: texts(control(kind).plan(p, []), "a") for kind in kinds}
    assert len({text for found in prompts.values() for text in found}) == 6
    for found in prompts.values():
        (text,) = found
        assert text.rstrip().endswith(p.neighbors[0].question)
