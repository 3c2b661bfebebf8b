"""Generative reward models: the dummy stands second, and only the first rating counts."""

from __future__ import annotations

from math import log

import pytest

from porism.errors import ConfigError
from porism.methods.genrm import FORMS, Form, GenRM
from porism.methods.marks import first_of_pair
from porism.types import Completion, Generate, Observation, Result, Sampling, Token
from samples import problem

SAMPLING = Sampling(max_tokens=100, temperature=0.6, top_p=0.95)
ONE = problem(candidates=1)


def genrm(form: Form = "responses", calls: int = 4) -> GenRM:
    return GenRM(judges=("g",), sampling=SAMPLING, form=form, calls=calls)


def rated(method: GenRM, texts: list[str]) -> list[Observation]:
    return [
        method.read(a, Result(Completion(a.work.rollout, texts[a.work.rollout]), None, None))
        for a in method.plan(ONE, [])
    ]


def test_responses_are_roles_of_the_servers_template() -> None:
    for ask in genrm().plan(problem(), []):
        assert isinstance(ask.work, Generate)
        text = next(c.text for c in problem().candidates if c.id == ask.cell.candidate)
        shown = [(m.role, m.content) for m in ask.work.prompt.messages]
        assert shown == [("user", problem().question), ("response_1", text), ("response_2", "N/A")]
        assert ask.cell.against is None


@pytest.mark.parametrize("form", ["text", "yes-no"])
def test_in_words(form: Form) -> None:
    method = genrm(form)
    for ask in method.plan(problem(), []):
        assert isinstance(ask.work, Generate)
        (message,) = ask.work.prompt.messages
        text = next(c.text for c in problem().candidates if c.id == ask.cell.candidate)
        assert message.content.index(problem().question) < message.content.index(text)
        assert ("N/A" in message.content) == (form == "text")
        assert method.read(ask, Result(Completion(0, message.content), None, None)).score is None


@pytest.mark.parametrize(
    ("text", "rating"),
    [
        (r"Individual scores: \boxed{4, 1}", 4),
        (r"\boxed{ 2 ,5 }", 2),
        (r"First \boxed{1, 1}, on reflection \boxed{3, 1}", 3),
        (r"\boxed{4, 1} and the ranking is \boxed{2}", 4),
        (r"\boxed{4}", None),
        (r"\boxed{6, 1}", None),
        (r"\boxed{0, 1}", None),
        (r"\boxed{4, 9}", None),
        (r"\boxed{4.5, 1}", None),
        (r"\boxed{4, 1, 2}", None),
        ("4, 1", None),
        ("", None),
    ],
)
def test_only_the_first_of_two_ratings_is_read(text: str, rating: int | None) -> None:
    assert first_of_pair(text, 1, 5) == rating


def test_the_score_is_the_mean_rating() -> None:
    texts = [r"\boxed{4, 1}", r"\boxed{5, 1}", r"\boxed{2, 3}", "so it goes"]
    method = genrm()
    seen = rated(method, texts)
    score = method.score(ONE, seen)["a"]
    assert score.value == pytest.approx(11 / 3)
    assert 1 <= score.low < 11 / 3 < score.high <= 5
    assert score.flags == ("unparsed 1 of 4 (asked twice, with 100 and 200 tokens)",)
    (again,) = method.plan(ONE, seen)
    assert isinstance(again.work, Generate)
    assert again.work.rollout == 3
    assert again.work.prompt.sampling.max_tokens == 200


def test_yes_or_no_is_a_share() -> None:
    method = genrm("yes-no", 8)
    score = method.score(ONE, rated(method, ["Correct: yes"] * 6 + ["**Correct: No.**"] * 2))["a"]
    assert score.value == 0.75
    assert 0 < score.low < 0.75 < score.high < 1


def test_the_probability_of_yes() -> None:
    method = GenRM(judges=("g",), sampling=SAMPLING, form="yes-no", expected=True, calls=3)
    seen = []
    for ask in method.plan(ONE, []):
        assert isinstance(ask.work, Generate)
        assert ask.work.prompt.sampling.top_logprobs == 20
        p = (0.5, 0.6, 0.7)[ask.work.rollout]
        top = {" yes": log(p), " no": log(0.9 - p)}
        ending = (Token("Correct:", {}), Token(max(top, key=lambda t: top[t]), top))
        text = "".join(token.text for token in ending)
        completion = Completion(ask.work.rollout, text, ending=ending)
        seen.append(method.read(ask, Result(completion, None, None)))
    score = method.score(ONE, seen)["a"]
    assert score.value == pytest.approx(0.6 / 0.9)
    # Three shares, 5/9, 6/9 and 7/9: standard error (1/9) / sqrt(3), t(2, .975) = 4.302653.
    assert score.high - score.low == pytest.approx(2 * 4.302653 / 9 / 3**0.5, abs=1e-5)


def test_settings_that_cannot_be_used() -> None:
    with pytest.raises(ConfigError, match=", ".join(FORMS)):
        genrm("stars")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="probability"):
        GenRM(judges=("g",), sampling=SAMPLING, expected=True)
    with pytest.raises(ConfigError, match="template"):
        GenRM(judges=("g",), sampling=SAMPLING, template="{{ question }}")
    with pytest.raises(ConfigError, match="second"):
        GenRM(judges=("g",), sampling=SAMPLING, form="text", template="{{ question }}{{ first }}")
    with pytest.raises(ConfigError, match="at least one model"):
        GenRM(judges=(), sampling=SAMPLING)
