"""Rankings, and the sentences under them, on tables of counts small enough to judge by eye."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from porism.methods.diagnose import shown, target_report
from porism.methods.message import CAVEAT, names
from porism.methods.ranking import Ranking, rank
from porism.methods.utility import Utility
from porism.types import Candidate, Cell, Neighbor, Observation, Problem, Sampling, Verdict, VerdictKind

Table = Mapping[str | None, Sequence[tuple[int, int]]]  # row -> (correct, wrong) on each neighbor


def observe(
    row: str | None,
    neighbor: str | None,
    kinds: Sequence[VerdictKind],
    *,
    wrong_answer: str = "",
    answers: Sequence[str | None] = (),
) -> list[Observation]:
    return [
        Observation(
            cell=Cell("p", row, neighbor, "utility", "m", 0),
            rollout=i,
            verdict=Verdict(kind, "test"),
            answer=answers[i]
            if answers
            else wrong_answer
            if kind == "wrong" and wrong_answer
            else f"{kind}{row}{i}",
            text_key=f"{row}/{neighbor}/{i}",
        )
        for i, kind in enumerate(kinds)
    ]


def setup(table: Table, *, rollouts: int = 64) -> tuple[Problem, Utility, list[Observation]]:
    count = max(len(rates) for rates in table.values())
    problem = Problem(
        id="p",
        question="Q",
        candidates=tuple(Candidate(id=i, text=i) for i in table if i is not None),
        neighbors=tuple(Neighbor(id=f"n{j}", question=f"N{j}", answer="1") for j in range(count)),
    )
    method = Utility(
        solvers=("m",), sampling=Sampling(max_tokens=9), rollouts=rollouts, no_example=None in table
    )
    found = [
        o
        for row, rates in table.items()
        for j, (x, y) in enumerate(rates)
        for o in observe(row, f"n{j}", [*["correct"] * x, *["wrong"] * y])  # type: ignore[list-item]
    ]
    return problem, method, found


def ranked(table: Table) -> Ranking:
    return rank(*setup(table))


CLEAR: Table = {
    "x": [(1, 7)] * 3,
    "best": [(7, 1), (8, 0), (6, 2)],
    "y": [(0, 8), (2, 6), (1, 7)],
    None: [(0, 8)] * 3,
}


def test_a_clear_lead() -> None:
    found = ranked(CLEAR)
    first, second, third = found.ranking
    assert [(p.rank, p.candidate) for p in found.ranking] == [(1, "best"), (2, "x"), (2, "y")]
    assert first.utility == pytest.approx(21 / 24)
    assert first.lift == pytest.approx(21 / 24)
    assert first.lift_ci95 is not None
    assert first.lift_ci95[0] > 0.5
    assert first.p_highest > 0.99
    assert first.tied == ()
    assert (second.tied, third.tied) == (("y",), ("x",))
    assert {n: r.rate for n, r in first.by_neighbor.items()} == {"n0": 7 / 8, "n1": 1, "n2": 6 / 8}
    assert found.leaders == ("best",)
    assert found.no_example is not None
    assert found.no_example.utility == 0
    assert found.no_example.flags == ("never solved",)
    assert found.leave_one_out is not None
    assert found.leave_one_out.top_changes == ()
    assert found.message == f"best is ahead with utility 0.88; next is x with 0.12. {CAVEAT}"
    assert found.warnings == ()


def test_two_leaders_that_cannot_be_told_apart() -> None:
    found = ranked({"a": [(7, 1)] * 3, "b": [(6, 2)] * 3, "c": [(0, 8)] * 3, None: [(0, 8)] * 3})
    assert found.leaders == ("a", "b")
    assert "a and b lead and are not distinguishable with these neighbors; " in found.message
    assert found.message.endswith(CAVEAT)


def test_neighbors_that_cannot_decide() -> None:
    found = ranked(
        {"a": [(4, 4), (3, 5)], "b": [(3, 5), (3, 5)], "c": [(2, 6), (3, 5)], None: [(2, 6), (3, 5)]}
    )
    assert found.leaders == ("a", "b", "c")
    assert found.message.startswith(
        "These neighbors cannot decide: a, b and c are not distinguishable, since a gap"
    )
    assert "No candidate helps more than no example (solve rate 0.31 without one) beyond" in found.message


def test_no_candidate_helps() -> None:
    found = ranked({"a": [(2, 6)] * 2, "b": [(1, 7)] * 2, None: [(3, 5)] * 2})
    assert "No candidate helps more than no example (solve rate 0.38 without one)." in found.message
    assert found.ranking[0].lift == pytest.approx(-1 / 8)


def test_help_beyond_chance_though_nobody_leads() -> None:
    found = ranked({"a": [(7, 1)] * 3, "b": [(7, 1)] * 3, None: [(0, 8)] * 3})
    assert "no example" not in found.message
    assert "(a and b are exactly tied)" in found.message
    assert [p.rank for p in found.ranking] == [1, 1]
    assert found.ranking[0].p_highest == found.ranking[1].p_highest == 0.5


def test_all_zero_and_all_one() -> None:
    hard = ranked({"a": [(0, 8)] * 2, "b": [(0, 8)] * 2, None: [(0, 8)] * 2})
    assert hard.message.startswith("No rollout solved any neighbor")
    assert hard.message.count(".") == 1
    assert [n.flags for n in hard.neighbors] == [("too hard",)] * 2
    assert {p.p_highest for p in hard.ranking} == {0.5}
    easy = ranked({"a": [(8, 0)] * 2, "b": [(8, 0)] * 2, None: [(8, 0)] * 2})
    assert easy.message.startswith("Every rollout solved its neighbor")
    assert "no example" in easy.message
    assert [n.flags for n in easy.neighbors] == [("too easy",)] * 2


def test_few_rollouts_are_said() -> None:
    found = ranked({"a": [(3, 1)] * 2, "b": [(1, 3)] * 2})
    assert found.message.startswith("With only 4 rollouts a neighbor, these neighbors cannot decide")


def test_one_candidate_and_one_neighbor() -> None:
    found = ranked({"a": [(5, 3)], None: [(0, 8)]})
    assert found.message == "The utility of a is 0.62; there is no other candidate."
    assert (found.ranking[0].rank, found.ranking[0].p_highest) == (1, 1)
    assert found.leave_one_out is None
    assert found.chance_gap is None


def test_nothing_seen() -> None:
    problem, method, _ = setup(CLEAR)
    found = rank(problem, method, [])
    assert found.message == "Nothing is decided yet."
    assert [(p.rank, p.utility, p.ci95) for p in found.ranking] == [(None, None, (0, 1))] * 3
    assert [p.candidate for p in found.ranking] == ["best", "x", "y"]
    assert found.leaders == ()


def test_everything_undecided() -> None:
    problem, method, _ = setup(CLEAR)
    found = rank(problem, method, observe("x", "n0", ["undecided"] * 8))
    assert found.message == "Nothing is decided yet."


def test_open_rollouts_hold_back_a_claim() -> None:
    table: Table = {"a": [(6, 2)] * 3, "b": [(1, 7)] * 3}
    problem, method, seen = setup(table)
    assert rank(problem, method, seen).leaders == ("a",)
    opened = [
        Observation(cell=o.cell, rollout=o.rollout + 8, verdict=Verdict("undecided", "limit"))
        for o in seen
        if o.cell.candidate == "b"
    ]
    found = rank(problem, method, seen + opened)
    assert found.leaders == ("a", "b")
    assert "undecided 50%" in found.ranking[1].flags


def test_a_candidate_without_decisions_comes_last_and_is_no_leader() -> None:
    problem, method, seen = setup({"a": [(0, 8)], "b": [(0, 8)], "c": [(1, 7)]})
    found = rank(problem, method, [o for o in seen if o.cell.candidate != "a"])
    assert [(p.candidate, p.rank) for p in found.ranking] == [("c", 1), ("b", 2), ("a", None)]
    assert "a" not in found.leaders


def test_leaving_one_out() -> None:
    found = ranked({"a": [(8, 0), (0, 8), (4, 4)], "b": [(2, 6), (4, 4), (4, 4)]})
    assert found.leave_one_out is not None
    assert found.leave_one_out.ranks["n0"] == {"a": 2, "b": 1}
    assert found.leave_one_out.top_changes == ("n0",)
    assert "leaving out neighbor n0 changes who is first" in found.warnings


def test_neighbors_with_and_without_signal() -> None:
    found = ranked({"a": [(8, 0), (4, 4)], "b": [(0, 8), (4, 4)], None: [(0, 8), (4, 4)]})
    assert [n.flags for n in found.neighbors] == [(), ("no signal",)]
    assert [(n.no_example, n.mean, n.spread) for n in found.neighbors] == [(0, 0.5, 1), (0.5, 0.5, 0)]


def test_suspect_gold() -> None:
    problem, method, _ = setup({"a": [(0, 8)], "b": [(0, 8)]})
    kinds: list[VerdictKind] = ["wrong"] * 8
    kinds[0] = "correct"
    seen = observe("a", "n0", kinds, wrong_answer="1/2") + observe(
        "b", "n0", kinds, wrong_answer=r"\frac{1}{2}"
    )
    (neighbor,) = rank(problem, method, seen).neighbors
    assert "suspect gold" in neighbor.flags
    assert neighbor.agreed_answer in {"1/2", r"\frac{1}{2}"}
    scattered = observe("a", "n0", kinds) + observe("b", "n0", kinds)
    assert rank(problem, method, scattered).neighbors[0].agreed_answer is None


def test_own_answers_that_agree_are_a_warning() -> None:
    problem, method, seen = setup(CLEAR)
    own = observe(None, None, ["undecided"] * 4, answers=["12", "$12$", "012", "7"])
    found = rank(problem, method, seen + own)
    assert found.target is not None
    assert (found.target.attempts, found.target.answered, found.target.share) == (4, 4, 0.75)
    assert found.target.agreed is not None
    assert found.target.agreed.strip("$").lstrip("0") == "12"
    (warning,) = found.warnings
    assert warning.startswith("75% of the solver's own attempts at the question answer")
    split = observe(None, None, ["undecided"] * 4, answers=["12", "11", None, "7"])
    assert rank(problem, method, seen + split).warnings == ()
    assert shown("a\n b\x1b[31m" + "c" * 99) == "a b [31m" + "c" * 49 + "..."
    assert not target_report([]).easy
    assert not target_report(own[:1]).easy


def test_the_file_order_is_nothing() -> None:
    problem, method, seen = setup(CLEAR)
    turned = replace(problem, candidates=problem.candidates[::-1])
    assert rank(turned, method, seen[::-1]) == rank(problem, method, seen)


cell = st.tuples(st.integers(0, 5), st.integers(0, 5))


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 3).flatmap(
        lambda m: st.lists(st.lists(cell, min_size=m, max_size=m), min_size=1, max_size=4)
    ),
    st.randoms(use_true_random=False),
)
def test_any_table_has_a_ranking(rows: list[list[tuple[int, int]]], random: object) -> None:
    table: dict[str | None, list[tuple[int, int]]] = {"abcd"[i]: row for i, row in enumerate(rows[1:])}
    problem, method, seen = setup({**table, "z": rows[0], None: rows[0]})
    found = rank(problem, method, seen)
    assert sum(p.p_highest for p in found.ranking) == pytest.approx(1)
    assert found.message.endswith(".")
    values = [p.utility for p in found.ranking if p.utility is not None]
    assert values == sorted(values, reverse=True)
    if values:
        assert found.leaders[0] == found.ranking[0].candidate
    for place in found.ranking:
        if place.utility is not None:
            assert place.ci95[0] <= place.utility <= place.ci95[1]
        if place.lift is not None and place.lift_ci95 is not None:
            assert place.lift_ci95[0] - 1e-12 <= place.lift <= place.lift_ci95[1] + 1e-12
    document = msgspec.json.decode(msgspec.json.encode(found))
    assert {"id", "ranking", "no_example", "neighbors", "message"} <= set(document)
    assert msgspec.convert(document, Ranking) == found
    neighbors = list(problem.neighbors)
    turned = replace(problem, candidates=problem.candidates[::-1], neighbors=tuple(neighbors[::-1]))
    again = rank(turned, method, seen)
    assert again.ranking == found.ranking
    assert again.message == found.message


def test_names() -> None:
    assert names(["a"]) == "a"
    assert names(["a", "b"], "or") == "a or b"
    assert names(list("abcdef")) == "a, b, c, d, e and f"
    assert names(list("abcdefgh")) == "a, b, c, d, e and 3 more"
