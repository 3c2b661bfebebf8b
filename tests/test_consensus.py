"""Answers by agreement, and by a program: with the real verifier and the real sandbox."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from itertools import product
from typing import Any

import pytest

from porism.errors import ConfigError
from porism.neighbors.consensus import (
    Rule,
    Votes,
    count,
    in_reach,
    objection,
    samples_each,
    stages,
)
from porism.neighbors.program import ProgramCheck, check_program, program_of
from porism.neighbors.sandbox import Limits
from porism.types import Completion
from porism.verify.pool import Verifier


@pytest.fixture(scope="module")
def checked() -> Iterator[Callable[[Callable[[Verifier], Coroutine[Any, Any, Any]]], Any]]:
    """Runs what needs a verifier, with one for all tests here."""
    with asyncio.Runner() as runner:
        verifier = Verifier(workers=1)
        yield lambda act: runner.run(act(verifier))
        runner.run(verifier.__aexit__(None, None, None))


@pytest.fixture
def votes(checked: Callable[..., Votes]) -> Callable[..., Votes]:
    """The votes of models whose samples box these answers; "" is a sample without an answer."""

    def counted(*models: list[str | None]) -> Votes:
        samples = {
            f"m{i}": tuple(
                None if a is None else Completion(k, f"So \\boxed{{{a}}}." if a else "I do not know.")
                for k, a in enumerate(answers)
            )
            for i, answers in enumerate(models)
        }
        return checked(lambda verifier: count(samples, verifier))

    return counted


def test_equal_answers_are_one_class_however_they_are_written(votes: Callable[..., Votes]) -> None:
    found = votes(["1/2", "\\frac{1}{2}", "0.5", "\\frac12", "1/2", "0.50", "\\dfrac{1}{2}", "1/2"])
    assert (found.answer, found.agreeing, found.asked, found.others) == ("1/2", 8, 8, {})
    assert objection(found, Rule()) is None


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (["7"] * 8, None),
        (["7"] * 7 + [""], None),  # 87.5 %, and no second answer
        (["7"] * 6 + [""] * 2, "no agreement"),
        (["7"] * 7 + ["8"], "a second answer"),  # 12.5 %
        (["7"] * 18 + ["8", "9"], None),  # 90 %, 5 % each
        (["7"] * 17 + ["8", "8", "8"], "a second answer"),
        (["7"] * 16 + ["8", "8", "", ""], None),  # 80 % and 10 %: both just so
        (["7"] * 4 + ["8"] * 4, "no agreement"),
        ([""] * 8, "no answer"),
        (["7"] * 7 + [None], "samples missing"),
        (["it follows from the theorem that no such number can exist"] * 8, "answer is a sentence"),
    ],
)
def test_one_model_needs_four_fifths_and_no_second_answer(
    answers: list[str | None], why: str | None, votes: Callable[..., Votes]
) -> None:
    assert objection(votes(answers), Rule()) == why


@pytest.mark.parametrize(
    ("models", "why"),
    [
        ([["7"], ["7.0"], ["\\frac{14}{2}"]], None),
        ([["7"], ["7"], ["8"]], "no agreement"),
        ([["7"], ["7"], [""]], "no agreement"),
        ([["7"] * 4, ["7"] * 4], None),
        ([["7"] * 4, ["7"] * 3 + [""]], None),
        ([["7"] * 20, ["8", ""]], "models differ"),
        ([["7"] * 4, ["8"] * 4], "no agreement"),
        ([["7"]] * 4 + [["8"]], "a second answer"),
    ],
)
def test_several_models_must_agree_each_for_itself(
    models: list[list[str | None]], why: str | None, votes: Callable[..., Votes]
) -> None:
    found = votes(*models)
    assert objection(found, Rule()) == why
    assert sum(agreeing for agreeing, _ in found.by_model.values()) == found.agreeing


def test_what_is_not_sure_counts_against(votes: Callable[..., Votes]) -> None:
    found = votes(["7"] * 5 + ["7 or perhaps something else"] * 3)
    assert found.answer == "7"
    assert found.undecided + sum(found.others.values()) == 3
    assert objection(found, Rule()) == "no agreement"


def test_the_counts_add_up(votes: Callable[..., Votes]) -> None:
    found = votes(["1", "2", "", None, "x^2", "one", "1"], ["1", None])
    rest = found.no_answer + found.undecided + found.missing
    assert found.agreeing + sum(found.others.values()) + rest == found.asked == 9
    assert votes([]).answer is None


def tallied(answers: tuple[str, ...]) -> Votes:
    """The votes of one model's answers, equal where their texts are; "" is a sample without one."""
    given = Counter(a for a in answers if a).most_common()
    first, agreeing = given[0] if given else (None, 0)
    return Votes(
        answer=first,
        agreeing=agreeing,
        asked=len(answers),
        others=dict(given[1:]),
        no_answer=answers.count(""),
        by_model={"m": (agreeing, len(answers))},
    )


def test_solves_end_early_only_where_all_of_them_would_not_agree_either() -> None:
    assert [stages(samples) for samples in (1, 2, 4, 8)] == [(1,), (1, 2), (1, 2, 4), (2, 4, 8)]
    rules = (Rule(), Rule(agreement=0.6, second=0.3), Rule(agreement=1.0))
    ends = Counter[bool]()
    for rule in rules:
        for answers in product(("7", "8", ""), repeat=8):
            kept = objection(tallied(answers), rule) is None
            for asked in (2, 4):
                early = tallied(answers[:asked])
                if not in_reach(early, rule, 8):
                    assert not kept
                    assert objection(early, rule) is not None
                    ends[True] += 1
                else:
                    ends[False] += 1
    assert min(ends.values()) > 1000


def test_a_rule_below_a_half_is_refused() -> None:
    with pytest.raises(ConfigError, match="a share above"):
        Rule(agreement=0.5)
    assert [samples_each(models) for models in (1, 2, 3, 5)] == [8, 4, 1, 1]


FENCED = "Here it is:\n```python\nprint(sum(range(5)))\n```\nIt prints 10."


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (FENCED, "print(sum(range(5)))\n"),
        ("```py\nprint(2)\n```\nIt prints:\n```\n2\n```", "print(2)\n"),
        ("```\nprint(1)\n```\nBetter:\n```\nprint(2)\n```", "print(2)\n"),
        ("```python\nfor i in range(3):\n    print(i)", "for i in range(3):\n    print(i)"),
        ("print(1 + 1)", "print(1 + 1)"),
        ("I cannot write one.", None),
        ("```python\nx = 2\n```", None),
        ("", None),
        ("<think>```python\nprint(1)\n```", None),
    ],
)
def test_the_program_in_a_reply(text: str, source: str | None) -> None:
    assert program_of(text) == source


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux only")
@pytest.mark.parametrize(
    ("program", "outcome"),
    [
        ("print(sum(range(5)))", "agrees"),
        ("from sympy import Rational\nprint('working...')\nprint(Rational(20, 2))", "agrees"),
        ("print(sum(range(6)))", "disagrees"),
        ("print(10)", "no program"),
        ("x = -10\n# so 5 * 2\nprint(x, ' + ')", "no program"),
        ("print(" + "(" * 50_000, "failed"),
        ("this is no program, print it (or not)", "failed"),
        ("print(sum(range(5)) / 0)", "failed"),
        ("sum(range(5))", "no program"),
        ("while True: x = 1\nprint(x)", "failed"),
        ("import os\nos.fork()\nprint(10)", "failed"),
        ("import socket\nsocket.create_connection(('127.0.0.1', 1))\nprint(10)", "failed"),
        ("print(str(10) + ' or so, perhaps')", "undecided"),
        ("print(f'{2 * 5}')", "agrees"),
        ("if False: print(2 * 5)", "failed"),
    ],
)
def test_a_programs_output_must_agree(
    program: str, outcome: str, checked: Callable[..., ProgramCheck]
) -> None:
    reply = Completion(0, f"```python\n{program}\n```")
    found = checked(lambda verifier: check_program(reply, "10", verifier, limits=Limits(cpu=1)))
    assert found.outcome == outcome
    assert bool(found.error) == (outcome == "failed")
