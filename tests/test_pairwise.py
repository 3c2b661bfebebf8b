"""Pairwise comparison: who meets whom, both orders, and the scale that is made of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porism.errors import ConfigError
from porism.methods.pairwise import Orders, Pairwise
from porism.methods.scale import PRIOR, Strength, strengths
from porism.types import Ask, Candidate, Completion, Generate, Observation, Problem, Result, Sampling, Verdict
from samples import problem

SAMPLING = Sampling(max_tokens=100)
Decide = Callable[[str, str], str]  # (first, second) -> A, B, tie, or something else


def method(**settings: int) -> Pairwise:
    return Pairwise(judges=("j",), sampling=SAMPLING, **settings)  # type: ignore[arg-type]


def decided(pairwise: Pairwise, p: Problem, decide: Decide) -> list[Observation]:
    """What is seen when every answer is `decide` of the two ids, in the order shown."""
    seen: list[Observation] = []
    while asks := pairwise.plan(p, seen):
        seen += [_answer(pairwise, ask, decide) for ask in asks]
    return seen


def _answer(pairwise: Pairwise, ask: Ask, decide: Decide) -> Observation:
    assert ask.cell.candidate is not None
    assert ask.cell.against is not None
    text = f"I have compared them.\nBetter: {decide(ask.cell.candidate, ask.cell.against)}"
    return pairwise.read(ask, Result(Completion(ask.work.rollout, text), None, None, text))


def values(pairwise: Pairwise, p: Problem, decide: Decide) -> dict[str, float | None]:
    return {id: s.value for id, s in pairwise.score(p, decided(pairwise, p, decide)).items()}


def by_alphabet(first: str, second: str) -> str:
    return "A" if first < second else "B"


# Asking


def test_every_pair_is_shown_in_both_orders() -> None:
    p = problem(candidates=4)
    asks = method(calls=2).plan(p, [])
    shown = Counter((a.cell.candidate, a.cell.against) for a in asks)
    assert shown == {(i, j): 2 for i in "abcd" for j in "abcd" if i != j}
    texts = {c.id: c.text for c in p.candidates}
    for ask in asks:
        assert isinstance(ask.work, Generate)
        (message,) = ask.work.prompt.messages
        first, second = texts[ask.cell.candidate or ""], texts[ask.cell.against or ""]
        assert (
            message.content.index(p.question) < message.content.index(first) < message.content.index(second)
        )
        assert method().read(ask, Result(Completion(0, message.content), None, None)).score is None


@given(st.integers(2, 14), st.integers(1, 14), st.integers(0, 3))
def test_a_tournament_hangs_together_and_is_small(size: int, opponents: int, seed: int) -> None:
    p = problem(candidates=size)
    pairs = method(opponents=opponents, seed=seed).pairs(p)
    meets = {c.id: {i for pair in pairs if c.id in pair for i in pair - {c.id}} for c in p.candidates}
    for met in meets.values():
        assert min(opponents, size - 1) <= len(met) <= min(opponents + 1, size - 1) or size == 2
    reached, new = set[str](), {"a"}
    while new:
        reached |= new
        new = {i for j in new for i in meets[j]} - reached
    assert reached == set(meets)
    turned = replace(p, candidates=p.candidates[::-1])
    assert method(opponents=opponents, seed=seed).pairs(turned) == pairs


def test_the_seed_decides_who_meets_whom() -> None:
    p = problem(candidates=10)
    assert len({frozenset(method(opponents=2, seed=s).pairs(p)) for s in range(8)}) > 4
    assert len(method().pairs(p)) == 45
    assert len(method(opponents=2).pairs(p)) == 10
    assert len(method(opponents=4).pairs(p)) == 20


def test_a_single_candidate_meets_nobody() -> None:
    p = problem(candidates=1)
    assert method().plan(p, []) == []
    assert method().score(p, [])["a"].value is None


# Reading


@pytest.mark.parametrize(
    ("line", "score"),
    [
        ("Better: A", 1),
        ("**Better:** B", 0),
        ("better: Tie.", 0.5),
        ("Better: A and B", None),
        ("Better: C", None),
        ("A is better", None),
    ],
)
def test_reading(line: str, score: float | None) -> None:
    pairwise = method()
    ask = pairwise.plan(problem(), [])[0]
    assert pairwise.read(ask, Result(Completion(0, line), None, None)).score == score


def test_what_cannot_be_read_is_asked_once_more_and_left_out() -> None:
    p, pairwise = problem(candidates=2), method()
    seen = decided(pairwise, p, lambda first, second: "A" if first == "a" else "who knows")
    assert len(seen) == 3  # two orders, one of them twice
    scores = pairwise.score(p, seen)
    assert all("unparsed 1 of 2 (asked twice, with 100 and 200 tokens)" in s.flags for s in scores.values())
    assert (scores["a"].value or 0) > 0.5 > (scores["b"].value or 1)


# Scoring


def test_a_clear_order_is_found() -> None:
    p = problem(candidates=8)
    for pairwise in (method(), method(calls=4), method(opponents=6)):
        found = values(pairwise, p, by_alphabet)
        assert all(v is not None and 0 < v < 1 for v in found.values())
        assert max(found, key=lambda i: found[i] or 0) == "a"
        assert min(found, key=lambda i: found[i] or 0) == "h"
        if not pairwise.opponents:
            assert sorted(found, key=lambda i: -(found[i] or 0)) == list("abcdefgh")


def test_two_candidates_by_hand() -> None:
    # a wins 3 of 4, a half win and half loss added to each: odds (3 + .5) : (1 + .5).
    ((a, b),) = [strengths([[0, 3], [1, 0]])]
    assert a.value == pytest.approx(3.5 / 5, abs=1e-8)
    assert b.value == pytest.approx(1.5 / 5, abs=1e-8)
    # The information of a logit from 5 trials at .7: the interval is that of an ordinary log odds.
    half = 1.959964 * (1 / (5 * 0.7 * 0.3)) ** 0.5
    logit = math.log(3.5 / 1.5)
    assert a.low == pytest.approx(1 / (1 + math.exp(half - logit)), abs=1e-6)
    assert a.high == pytest.approx(1 / (1 + math.exp(-half - logit)), abs=1e-6)


@given(st.lists(st.integers(0, 6), min_size=6, max_size=6))
def test_the_fit_is_the_maximum_of_the_likelihood(counts: list[int]) -> None:
    """At the maximum each item's expected wins are its wins; checked through the values of three items."""
    pairs = list(combinations(range(3), 2))
    wins = [[0.0] * 3 for _ in range(3)]
    for (i, j), won, lost in zip(pairs, counts[:3], counts[3:], strict=True):
        wins[i][j], wins[j][i] = won, lost
    found = strengths(wins)
    if not any(counts):
        assert all(s.value is None for s in found)
        return
    import choix
    import numpy as np

    table = np.asarray(wins) + PRIOR / 2
    np.fill_diagonal(table, 0)
    data = [(i, j) for i in range(3) for j in range(3) for _ in range(round(4 * table[i, j]))]
    theta = choix.mm_pairwise(3, data, tol=1e-12)  # quarters of a win, by another algorithm
    for i, strength in enumerate(found):
        expected = np.mean([1 / (1 + math.exp(theta[j] - theta[i])) for j in range(3) if j != i])
        if strength.value is not None:
            assert strength.value == pytest.approx(float(expected), abs=1e-5)
            assert strength.low <= strength.value <= strength.high


def test_hopeless_cases_converge() -> None:
    for n in (2, 9, 30):
        never_lost = [[64.0 * (i < j) for j in range(n)] for i in range(n)]
        found = [s.value for s in strengths(never_lost)]
        assert found == sorted(found, key=lambda v: -(v or 0))
        ring = [[64.0 * ((j - i) % n == 1) for j in range(n)] for i in range(n)]
        assert {s.value for s in strengths(ring)} == {0.5} or n == 2


def test_ties_and_equal_records_are_exact_ties() -> None:
    p = problem(candidates=4)
    assert set(values(method(), p, lambda first, second: "tie").values()) == {0.5}
    best = values(method(), p, lambda first, second: "A" if first == "a" else "B" if second == "a" else "tie")
    assert best["b"] == best["c"] == best["d"]
    assert (best["a"] or 0) > 0.8


def test_an_item_nobody_compared_has_no_strength() -> None:
    found = strengths([[0, 2, 0], [1, 0, 0], [0, 0, 0]])
    assert found[2] == Strength(None, 0, 1)
    assert (found[0].value or 0) > (found[1].value or 0)
    p, pairwise = problem(candidates=3), method()
    missing = Result(None, None, Verdict("missing", "gave up"))
    seen = [pairwise.read(ask, missing) for ask in pairwise.plan(p, [])]
    assert pairwise.plan(p, seen) == []
    scores = pairwise.score(p, seen)
    assert {s.value for s in scores.values()} == {None}
    assert scores["a"].flags == ("missing 4 of 4",)


def test_more_answers_narrow_the_interval() -> None:
    p = problem(candidates=3)
    widths = []
    for calls in (1, 8, 64):
        pairwise = method(calls=calls)
        score = pairwise.score(p, decided(pairwise, p, lambda first, second: "tie"))["a"]
        widths.append(score.high - score.low)
    assert widths[0] > 2 * widths[1] > 4 * widths[2]


# Orders


def test_a_judge_of_substance_agrees_with_itself() -> None:
    p, pairwise = problem(candidates=4), method(calls=2)
    orders = pairwise.orders(p, decided(pairwise, p, by_alphabet))
    assert orders == Orders(same=12, changed=0, reversed=0, first_won=0.5)
    assert orders.agreement == 1


def test_a_judge_of_places_is_found_out() -> None:
    p, pairwise = problem(candidates=4), method()
    seen = decided(pairwise, p, lambda first, second: "A")
    assert pairwise.orders(p, seen) == Orders(same=0, changed=0, reversed=6, first_won=1.0)
    scores = pairwise.score(p, seen)
    assert {s.value for s in scores.values()} == {0.5}
    assert all("the order changes 100% of its comparisons" in s.flags for s in scores.values())
    half = decided(pairwise, p, lambda first, second: "A" if first < second else "tie")
    assert pairwise.orders(p, half) == Orders(same=0, changed=6, reversed=0, first_won=1.0)
    assert pairwise.orders(p, []) == Orders(0, 0, 0, None)


def test_candidates_with_the_same_text_tie() -> None:
    p = problem(candidates=3)
    p = replace(p, candidates=(*p.candidates, Candidate(id="twin", text=p.candidates[0].text)))
    asks = method().plan(p, [])
    ids = {(a.cell.candidate, a.cell.against): a.work.id for a in asks}
    assert ids["a", "b"] == ids["twin", "b"]
    assert ids["a", "twin"] == ids["twin", "a"]


def test_settings_that_cannot_be_used() -> None:
    with pytest.raises(ConfigError, match="opponents"):
        method(opponents=-1)
    with pytest.raises(ConfigError, match="at least one model"):
        Pairwise(judges=(), sampling=SAMPLING)
    with pytest.raises(ConfigError, match="second"):
        Pairwise(judges=("j",), sampling=SAMPLING, template="{{ question }}{{ first }}")
