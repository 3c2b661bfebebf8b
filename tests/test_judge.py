"""The judge and what it shares with other methods that read marks: parsing, the second asking, means."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porism.engine import Engine, replay
from porism.errors import ConfigError
from porism.methods.judge import SCALES, Judge, Scale
from porism.methods.make import METHODS, make
from porism.methods.marks import expected_mark, first_of_pair, last_mark, whole_number, word
from porism.methods.utility import Utility
from porism.models.openai import OpenAIModel
from porism.progress import SilentWatch
from porism.store import Store
from porism.types import (
    Ask,
    Completion,
    Generate,
    Observation,
    Problem,
    Result,
    Sampling,
    Score,
    Token,
    Verdict,
)
from porism.verify.pool import Verifier
from samples import problem
from server import misbehaving

SAMPLING = Sampling(max_tokens=100, temperature=0.7)
ONE = problem(candidates=1)


def judge(
    calls: int = 4, *, scale: Scale = "1-10", judges: tuple[str, ...] = ("j",), again_tokens: int = 0
) -> Judge:
    return Judge(judges=judges, sampling=SAMPLING, calls=calls, scale=scale, again_tokens=again_tokens)


def answered(method: Judge, ask: Ask, text: str, finish: str = "stop") -> Observation:
    return method.read(ask, Result(Completion(ask.work.rollout, text, finish), None, None, text))


def graded(method: Judge, marks: Sequence[str], p: Problem = ONE) -> list[Observation]:
    """What is seen when the first candidate's calls end in these lines, and all others in the first of them."""
    asks = method.plan(p, [])
    return [answered(method, a, marks[a.work.rollout] if a.cell.candidate == "a" else marks[0]) for a in asks]


def scored(method: Judge, marks: Sequence[str]) -> Score:
    return method.score(ONE, graded(method, marks))["a"]


# Reading a mark


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("It is fine.\nScore: 8", 8),
        ("Score: 10", 10),
        ("score: 1", 1),
        ("**Score:** 7", 7),
        ("**Score: 7**", 7),
        ("### Final score: 7.", 7),
        ("Score: 7/10", 7),
        ("Score: 7 / 10", 7),
        ("Score: 7 out of 10", 7),
        (r"Score: \boxed{7}", 7),
        (r"Score: $\boxed{\text{7}}$", 7),
        ("Score: `7`", 7),
        ("Score: <7>", 7),
        ("Score = 7", 7),
        ("Score: 3\nNo, there is a gap less than I thought.\nScore: 5\n\n", 5),
        ("Score: 5\n\nI hope this helps.", 5),
        ("", None),
        ("A fine solution, 8 of 10.", None),
        ("Score:", None),
        ("Score: <grade>", None),
        ("Score: 0", None),
        ("Score: 11", None),
        ("Score: 100", None),
        ("Score: -3", None),
        ("Score: 7.5", None),
        ("Score: 7-8", None),
        ("Score: 7 or 8", None),
        ("Score: 7/7", None),
        ("Score: 7%", None),
        ("Score: seven", None),
        ("Score: ٧", None),
        ("The score: 7", None),
        ("I would give it a score of 7", None),
        ("Score: 8 because the argument is right", None),
        ("Score: 4\nScore: unclear", None),
        ("Score: " + "\\boxed{" * 5000 + "7" + "}" * 5000, None),
    ],
)
def test_a_mark_is_read_strictly(text: str, mark: int | None) -> None:
    assert whole_number(text, "score", 1, 10) == mark


@given(st.text())
def test_no_text_breaks_the_reading(text: str) -> None:
    for found in (whole_number(text, "score", 0, 7), word(text, "verdict", {"accept": 1.0})):
        assert found is None or 0 <= found <= 7


@pytest.mark.timeout(10)
@pytest.mark.parametrize("part", ["*", "\n", "score ", "final ", "Score:", "\\boxed{", "\\boxed{4, ", "<"])
def test_long_texts_are_read_in_no_time(part: str) -> None:
    assert last_mark(part * 200_000, "score") is None
    assert first_of_pair(part * 200_000, 1, 5) is None


def test_words() -> None:
    marks = {"accept": 1.0, "reject": 0.0}
    assert word("Verdict: **Accept**", "verdict", marks) == 1
    assert word("verdict: REJECT.", "verdict", marks) == 0
    assert word("Verdict: accept or reject", "verdict", marks) is None
    assert word("Verdict: not accept", "verdict", marks) is None


# Asking


@pytest.mark.parametrize("scale", SCALES)
def test_the_prompt_shows_question_and_candidate_and_says_how_to_end(scale: Scale) -> None:
    method = judge(scale=scale)
    for ask in method.plan(problem(), []):
        assert isinstance(ask.work, Generate)
        assert ask.text
        (message,) = ask.work.prompt.messages
        assert message.role == "user"
        candidate = next(c for c in problem().candidates if c.id == ask.cell.candidate)
        assert problem().question in message.content
        assert candidate.text in message.content
        ending = message.content.rstrip().rpartition("form")[2]
        assert ("Verdict: <" if scale == "accept" else "Score: <") in ending
        assert answered(method, ask, message.content).score is None  # the prompt repeated is no answer


def test_calls_come_in_rounds_of_every_judge() -> None:
    asks = judge(8, judges=("j", "k")).plan(problem(), [])
    assert len(asks) == 3 * 2 * 8
    assert {(a.cell.round, a.work.rollout) for a in asks} == {
        *((0, i) for i in (0, 1)),
        *((1, i) for i in (2, 3)),
        *((2, i) for i in (4, 5, 6, 7)),
    }
    assert {a.work.id for a in judge(4).plan(problem(), [])} < {
        a.work.id for a in judge(8).plan(problem(), [])
    }


def test_what_cannot_be_read_is_asked_once_more_with_a_larger_limit() -> None:
    method = judge(4, again_tokens=700)
    first = graded(method, ["Score: 8", "no idea", "Score: 99", "Score: 6"])
    assert [o.score for o in first] == [8, None, None, 6]
    assert {o.verdict.kind for o in first if o.verdict} == {"no_answer"}
    again = method.plan(ONE, first)
    assert [a.work.rollout for a in again] == [1, 2]
    for ask in again:
        assert isinstance(ask.work, Generate)
        assert ask.work.prompt.sampling == Sampling(max_tokens=700, temperature=0.7)
        assert ask.cell.round == 2
    second = [answered(method, again[0], "Score: 4"), answered(method, again[1], "still no idea")]
    seen = first + second
    assert method.plan(ONE, seen) == []
    score = method.score(ONE, seen)["a"]
    assert score.value == 6  # of 8, 4 and 6
    assert score.flags == ("unparsed 1 of 4 (asked twice, with 100 and 700 tokens)",)


def test_more_calls_later_keep_every_first_and_second_asking() -> None:
    few, many = judge(2), judge(4)
    first = graded(few, ["no", "Score: 5"])
    again = few.plan(ONE, first)
    asks = many.plan(ONE, [])
    assert {o.rollout for o in first} == {a.work.rollout for a in asks if a.cell.round == 0}
    later = many.plan(ONE, graded(many, ["no", "Score: 5", "Score: 5", "Score: 5"]))
    assert [a.work.id for a in later] == [a.work.id for a in again]


def test_what_was_cut_off_has_no_mark() -> None:
    method = judge()
    ask = method.plan(ONE, [])[0]
    cut = answered(method, ask, "Score: 1", "length")  # it may have been a 10
    assert cut.score is None
    assert cut.truncated
    assert cut.verdict == Verdict("no_answer", "cut off")


def test_a_thought_is_no_answer() -> None:
    method = judge()
    ask = method.plan(ONE, [])[0]
    assert answered(method, ask, "<think>Score: 2</think>\nScore: 9").score == 9
    assert answered(method, ask, "<think>\nScore: 2").score is None


def test_a_missing_answer_is_not_asked_again() -> None:
    method = judge(2)
    missing = Result(None, None, Verdict("missing", "gave up"))
    seen = [method.read(a, missing) for a in method.plan(ONE, [])]
    assert method.plan(ONE, seen) == []
    score = method.score(ONE, seen)["a"]
    assert (score.value, score.low, score.high) == (None, 1, 10)
    assert score.flags == ("missing 2 of 2",)


# Scoring


@given(st.lists(st.integers(1, 10), min_size=4, max_size=4))
def test_the_value_is_the_exact_mean_inside_its_interval(marks: list[int]) -> None:
    score = scored(judge(4), [f"Score: {m}" for m in marks])
    assert score.value == float(Fraction(sum(marks), 4))
    assert 1 <= score.low <= score.value <= score.high <= 10
    assert score.flags == ()


def test_the_interval_by_hand() -> None:
    # Marks 4, 6, 6, 8: variance 8/3, and 1/12 for the rounding; t(3, .975) = 3.182446.
    score = scored(judge(4), ["Score: 4", "Score: 6", "Score: 6", "Score: 8"])
    half = 3.182446 * ((8 / 3 + 1 / 12) / 4) ** 0.5
    assert score.low == pytest.approx(6 - half, abs=1e-5)
    assert score.high == pytest.approx(6 + half, abs=1e-5)
    # Equal marks are no certainty, and one mark is none at all.
    equal = scored(judge(4), ["Score: 6"] * 4)
    assert equal.high - equal.low == pytest.approx(2 * 3.182446 * (1 / 48) ** 0.5, abs=1e-5)
    single = scored(judge(1), ["Score: 6"])
    assert (single.value, single.low, single.high) == (6, 1, 10)


def test_what_is_left_out_widens_the_interval_and_moves_no_mean() -> None:
    whole = scored(judge(4), ["Score: 6", "Score: 7", "Score: 6", "Score: 7"])
    part = scored(judge(5), ["Score: 6", "Score: 7", "Score: 6", "Score: 7", "?"])
    assert part.value == whole.value
    assert part.low < whole.low
    assert part.high > whole.high


def test_judges_weigh_the_same() -> None:
    method = judge(2, judges=("j", "k"))
    asks = method.plan(ONE, [])
    texts = {"j": ["Score: 2", "Score: 2"], "k": ["Score: 8", "?"]}
    seen = [answered(method, a, texts[a.cell.solver][a.work.rollout]) for a in asks]
    assert method.score(ONE, seen)["a"].value == 5


def test_accept_is_a_share() -> None:
    method = judge(8, scale="accept")
    marks = ["Verdict: accept"] * 6 + ["Verdict: reject"] * 2
    score = scored(method, marks)
    assert score.value == 0.75
    assert 0.3 < score.low < 0.75 < score.high < 1
    never = scored(method, ["Verdict: reject"] * 8)
    assert (never.value, never.low) == (0, 0)
    assert 0.2 < never.high < 0.4
    unread = scored(method, [*["Verdict: accept"] * 4, *["?"] * 4])
    assert unread.value == 1
    assert unread.low < 0.5


# Expected marks


def tokens(*steps: str | dict[str, float]) -> tuple[Token, ...]:
    """Tokens drawn for sure, and the likeliest of each dict, given with its probabilities."""
    return tuple(
        Token(step, {step: 0.0})
        if isinstance(step, str)
        else Token(max(step, key=lambda k: step[k]), {k: math.log(p) for k, p in step.items() if p})
        for step in steps
    )


NUMBERS = {str(k): float(k) for k in range(8)}
DECISIONS = {"accept": 1.0, "accepted": 1.0, "reject": 0.0, "rejected": 0.0}


@pytest.mark.parametrize(
    ("ending", "mark"),
    [
        (tokens("Score", ":", {" 6": 0.5, " 4": 0.25, " 2": 0.25}), 4.5),
        (tokens("So.\nScore", ":", " ", {"6": 0.75, "2": 0.25}, "\n", "Done."), 5),
        (tokens("**Score", ":**", " ", {"7": 0.9, "7/": 0.1}), 7),
        (tokens("Score: 1\n", "Score: ", {"3": 0.6, "5": 0.2, "the": 0.2}), 3.5),
        (tokens("Score", ":", {" 6": 0.2, " 5": 0.2, " unclear": 0.6}), None),
        (tokens("Score", ":", {" 12": 1.0}), None),
        (tokens("Sco", "re of 6"), None),
        ((), None),
    ],
)
def test_an_expected_mark_weighs_the_tokens_that_may_begin_one(
    ending: tuple[Token, ...], mark: float | None
) -> None:
    assert expected_mark(ending, "score", NUMBERS) == (None if mark is None else pytest.approx(mark))


def test_words_may_begin_with_a_part() -> None:
    ending = tokens("Verdict", ":", {" ac": 0.5, " re": 0.3, " accept": 0.1, " maybe": 0.1}, "cept")
    assert expected_mark(ending, "verdict", DECISIONS) == pytest.approx(0.6 / 0.9)


def test_expected_grades_over_a_run(tmp_path: Path) -> None:
    """From the server's log-probabilities through client, store and replay to the score."""

    async def work(says: str, **settings: Any) -> tuple[Score, set[object]]:
        async with (
            misbehaving(ends=says) as server,
            OpenAIModel("test-model", name="generic/test-model", base_url=server.url) as model,
            Verifier(workers=1) as checker,
        ):
            method = make("judge", judges=(model.identity,), sampling=SAMPLING, calls=4, **settings)
            with Store(tmp_path / says[-3:]) as store:
                engine = Engine({model.identity: model}, store, checker, SilentWatch())
                outcome = await engine.run([ONE], [method])
            with Store(tmp_path / says[-3:], write=False) as store:
                assert await replay(store, checker, [ONE], [method]) == outcome.seen
            score = method.score(ONE, outcome.seen["p", "judge"])["a"]
            return score, {body.get("top_logprobs") for body in server.stats.bodies}

    score, asked = asyncio.run(work("Score: 6", scale="0-7", expected=True))
    assert score.value == pytest.approx((0.7 * 6 + 0.25 * 5) / 0.95)
    assert asked == {20}
    score, _ = asyncio.run(work("Verdict: accept", scale="accept", expected=True))
    assert score.value is not None
    assert score.value == pytest.approx(0.7 / 0.95)
    assert 0 <= score.low <= score.value <= score.high <= 1
    score, asked = asyncio.run(work("Score: 5", scale="0-7"))
    assert score.value == 5
    assert asked == {None}


def test_without_probabilities_there_is_no_expected_grade() -> None:
    method = make("judge", judges=("j",), sampling=SAMPLING, calls=2, scale="0-7", expected=True)
    seen = [
        method.read(a, Result(Completion(a.work.rollout, "Score: 5"), None, None))
        for a in method.plan(ONE, [])
    ]
    assert {o.verdict.rule for o in seen if o.verdict} == {"no token probabilities of the mark"}
    assert method.score(ONE, seen)["a"].value is None
    with pytest.raises(ConfigError, match="different tokens"):
        make("judge", judges=("j",), sampling=SAMPLING, expected=True)


def test_a_template_of_ones_own() -> None:
    own = Judge(judges=("j",), sampling=SAMPLING, template="{{ question }}|{{ candidate }}")
    ask = own.plan(ONE, [])[0]
    assert isinstance(ask.work, Generate)
    assert ask.work.prompt.messages[0].content == f"{ONE.question}|{ONE.candidates[0].text}"
    with pytest.raises(ConfigError, match="candidate"):
        replace(own, template="{{ question }}")


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"judges": ()}, "at least one model"),
        ({"judges": ("j", "j")}, "only once"),
        ({"calls": 0}, "at least 1"),
        ({"again_tokens": 100}, "above max_tokens"),
        ({"scale": "1-5"}, "1-10, 0-7, accept"),
    ],
)
def test_settings_that_cannot_be_used(wrong: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        make("judge", **{"judges": ("j",), "sampling": SAMPLING, **wrong})


# By name


def test_methods_by_name() -> None:
    assert list(METHODS) == ["utility", "judge", "pairwise", "genrm", "reward", "vote", "length", "random"]
    method = make("utility", solvers=("m",), sampling=SAMPLING, exemplar="none", name="bare")
    assert isinstance(method, Utility)
    assert (method.name, method.exemplar) == ("bare", "none")
    assert make("random", seed=3).name == "random"


@pytest.mark.parametrize(
    ("name", "settings", "complaint"),
    [
        ("jugde", {}, "did you mean 'judge'.*utility, judge, pairwise"),
        ("reranker", {}, "no method 'reranker'"),
        ("judge", {"judges": ("j",), "sampling": SAMPLING, "call": 3}, "did you mean 'calls'"),
        ("judge", {"calls": 3}, "say judges and sampling"),
        ("length", {"seed": 1}, "unknown setting 'seed'"),
    ],
)
def test_names_and_settings_that_are_not_known(
    name: str, settings: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        make(name, **settings)
