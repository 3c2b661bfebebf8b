"""The utility method: what it asks, in what order, and how it counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from porism.errors import ConfigError
from porism.methods.utility import Utility, rounds
from porism.types import (
    Candidate,
    Cell,
    Completion,
    Counts,
    Generate,
    Neighbor,
    Observation,
    Problem,
    Result,
    Sampling,
    Verdict,
    VerdictKind,
)


def make(rollouts: int = 8, *, solvers: tuple[str, ...] = ("m",), **settings: int) -> Utility:
    return Utility(solvers=solvers, sampling=Sampling(max_tokens=100), rollouts=rollouts, **settings)  # type: ignore[arg-type]


def problem(candidates: str = "ab", neighbors: int = 2) -> Problem:
    return Problem(
        id="p",
        question="THE-TARGET",
        candidates=tuple(Candidate(id=i, text=f"<{i}>") for i in candidates),
        neighbors=tuple(
            Neighbor(id=f"n{i}", question=f"NEIGHBOR {i}", answer=f"4{i}", answer_type="integer")
            for i in range(neighbors)
        ),
    )


def seen(
    candidate: str | None,
    neighbor: str | None,
    kinds: Sequence[VerdictKind],
    *,
    solver: str = "m",
    texts: Sequence[str] = (),
    truncated: bool = False,
) -> list[Observation]:
    return [
        Observation(
            cell=Cell("p", candidate, neighbor, "utility", solver, 0),
            rollout=i,
            verdict=Verdict(kind, "test"),
            truncated=truncated,
            text_key=texts[i] if texts else f"{candidate}{neighbor}{i}",
        )
        for i, kind in enumerate(kinds)
    ]


def mix(correct: int, wrong: int) -> list[VerdictKind]:
    return [*["correct"] * correct, *["wrong"] * wrong]  # type: ignore[list-item]


# Planning


def test_rounds_have_fixed_ends() -> None:
    assert rounds(1) == [(0, 1)]
    assert rounds(8) == [(0, 2), (2, 4), (4, 8)]
    assert rounds(11) == [(0, 2), (2, 4), (4, 8), (8, 11)]
    assert rounds(128)[-1] == (64, 128)


def test_what_is_asked() -> None:
    asks = make().plan(problem(), [])
    rows = Counter((a.cell.candidate, a.cell.neighbor) for a in asks)
    expected = {(c, n): 8 for c in ("a", "b", None) for n in ("n0", "n1")} | {(None, None): 4}
    assert rows == expected
    for ask in asks:
        assert isinstance(ask.work, Generate)
        (message,) = ask.work.prompt.messages
        assert message.role == "user"
        text, cell = message.content, ask.cell
        if cell.candidate is None:
            assert (cell.neighbor or "m/p") in ask.prefix
            assert not any(f"<{c}>" in text for c in "ab")
        else:
            assert text.index("THE-TARGET") < text.index(f"<{cell.candidate}>") < text.index("NEIGHBOR")
        assert ("THE-TARGET" in text) == (cell.candidate is not None or cell.neighbor is None)
        if cell.neighbor is None:
            assert ask.gold is None
        else:
            assert text.endswith(f"NEIGHBOR {cell.neighbor[1]}")
            assert ask.gold is not None
            assert (ask.gold.answer, ask.gold.answer_type) == (f"4{cell.neighbor[1]}", "integer")


def test_rollouts_share_one_prompt_and_neighbors_one_prefix() -> None:
    asks = make().plan(problem(), [])
    by_cell: dict[tuple[str | None, str | None], set[int]] = {}
    for ask in asks:
        assert isinstance(ask.work, Generate)
        by_cell.setdefault((ask.cell.candidate, ask.cell.neighbor), set()).add(id(ask.work.prompt))
    assert all(len(prompts) == 1 for prompts in by_cell.values())
    prefixes = {c: {a.prefix for a in asks if a.cell.candidate == c} for c in ("a", "b")}
    assert all(len(p) == 1 for p in prefixes.values())
    assert prefixes["a"] != prefixes["b"]


def test_more_rollouts_ask_only_for_the_difference() -> None:
    few, many = make(8).plan(problem(), []), make(16).plan(problem(), [])
    assert [a for a in many if a.cell.round < 3] == few
    assert {a.work.rollout for a in many if a.cell.round == 3} == set(range(8, 16))
    observations = [make().read(a, Result(None, None, Verdict("missing", "x"))) for a in few]
    assert make().plan(problem(), observations) == []
    assert make(16).plan(problem(), observations) == [a for a in many if a.cell.round == 3]
    assert make(8).plan(problem("abc"), observations) == make(8).plan(problem("abc"), [])


def test_duplicate_candidates_are_equal_work() -> None:
    p = problem()
    p = replace(p, candidates=(p.candidates[0], replace(p.candidates[0], id="twin")))
    asks = make().plan(p, [])
    ids = {c: [a.work.id for a in asks if a.cell.candidate == c] for c in ("a", "twin")}
    assert ids["a"] == ids["twin"]


def test_rows_that_were_not_wanted() -> None:
    asks = make(2, no_example=False, target_samples=0).plan(problem(), [])
    assert {a.cell.candidate for a in asks} == {"a", "b"}
    assert make(2, target_samples=0).baseline(problem(), []) is not None
    assert make(2, no_example=False).baseline(problem(), []) is None
    assert sum(a.cell.neighbor is None for a in make(2, target_samples=9).plan(problem(), [])) == 2


def test_settings_that_cannot_be_used() -> None:
    for wrong in ({"solvers": ()}, {"solvers": ("m", "m")}, {"rollouts": 0}, {"template": "x"}):
        with pytest.raises(ConfigError):
            Utility(**{"solvers": ("m",), "sampling": Sampling(max_tokens=9), **wrong})  # type: ignore[arg-type]


# Reading


def test_read() -> None:
    method = make()
    ask = method.plan(problem(), [])[3]
    cut = Completion(ask.work.rollout, "and so", "length")
    got = method.read(ask, Result(cut, None, Verdict("no_answer", "no box"), "key"))
    assert got == Observation(
        cell=ask.cell,
        rollout=ask.work.rollout,
        verdict=Verdict("no_answer", "no box"),
        truncated=True,
        text_key="key",
    )


# Scoring


def test_utility_is_the_mean_of_rates_not_the_pooled_rate() -> None:
    observations = seen("a", "n0", mix(4, 0)) + seen("a", "n1", mix(0, 8))
    score = make().score(problem(), observations)["a"]
    assert score.value == 0.5
    assert score.cells == {"m/n0": Counts(correct=4), "m/n1": Counts(wrong=8)}


def test_no_answer_fails_and_undecided_is_open() -> None:
    kinds: list[VerdictKind] = ["correct", "no_answer", "undecided", "missing"]
    score = make().score(problem(neighbors=1), seen("a", "n0", kinds))["a"]
    assert score.value == 0.5
    assert score.low <= 0.25
    assert score.high >= 0.75
    assert set(score.flags) == {"no answer 25%", "undecided 25%", "missing 25%"}


def test_several_solvers_weigh_the_same() -> None:
    method = make(solvers=("m", "k"))
    observations = seen("a", "n0", mix(8, 0)) + seen("a", "n0", mix(1, 1), solver="k")
    score = method.score(problem(neighbors=1), observations)["a"]
    assert score.value == 0.75
    assert set(score.cells) == {"m/n0", "k/n0"}


def test_nothing_seen_and_nothing_decided() -> None:
    for observations in ([], seen("a", "n0", ["undecided", "missing"])):
        score = make().score(problem(), observations)["a"]
        assert (score.value, score.low, score.high) == (None, 0, 1)
        assert score.flags


def test_a_neighbor_with_nothing_decided_is_named() -> None:
    observations = seen("a", "n0", mix(4, 4)) + seen("a", "n1", ["undecided"] * 8)
    score = make().score(problem(), observations)["a"]
    assert score.value == 0.5
    assert score.low < 0.25
    assert score.high > 0.75
    assert "nothing decided on n1" in score.flags


def test_flags() -> None:
    flags = {
        c: make().score(problem("abcd", 1), rows)[c].flags
        for c, rows in {
            "a": seen("a", "n0", mix(3, 5), texts=["same"] * 8),
            "b": seen("b", "n0", mix(3, 5), truncated=True),
            "c": seen("c", "n0", mix(8, 0)),
            "d": seen("d", "n0", mix(3, 5)),
        }.items()
    }
    assert flags == {
        "a": ("identical completions 88%",),
        "b": ("truncated 100%",),
        "c": ("always solved",),
        "d": (),
    }


def test_only_its_own_observations_count() -> None:
    good = seen("a", "n0", mix(2, 2))
    noise = [
        *seen("a", "n0", mix(4, 0), solver="stranger"),
        *seen("a", "gone", mix(4, 0)),
        *seen("gone", "n0", mix(4, 0)),
        *(replace_cell(o, method="judge") for o in good),
        *(replace_cell(o, problem="q") for o in good),
        *seen("a", "n0", mix(20, 0))[8:],
        *good,
    ]
    assert make().score(problem(), noise) == make().score(problem(), good)


def replace_cell(o: Observation, *, method: str = "utility", problem: str = "p") -> Observation:
    cell = Cell(problem, o.cell.candidate, o.cell.neighbor, method, o.cell.solver, o.cell.round)
    return Observation(cell=cell, rollout=o.rollout, verdict=Verdict("correct", "x"))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=4))
def test_the_value_is_the_exact_mean(rates: list[tuple[int, int]]) -> None:
    p = problem(neighbors=len(rates))
    observations = [o for i, (x, y) in enumerate(rates) for o in seen("a", f"n{i}", mix(x, y))]
    score = make().score(p, observations)["a"]
    known = [Fraction(x, x + y) for x, y in rates if x + y]
    assert score.value == (float(sum(known) / len(known)) if known else None)
