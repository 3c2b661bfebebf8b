"""Metrics: a dozen pools worked by hand, the same by brute force and by scikit-learn, and known effects."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, permutations
from math import log2, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from porism.errors import InputError
from porism.metrics import (
    METRICS,
    Pool,
    Scored,
    Value,
    averaged,
    by_neighbor,
    chance,
    compare,
    evaluate,
    exact,
    measure,
    pool,
    prepared,
    values,
)
from porism.metrics.formulas import Sides
from porism.metrics.pools import label
from porism.types import Candidate, Counts, Neighbor, Problem, Score

F = Fraction
LABELS = {"R": (True, False), "W": (False, False), "H": (True, True), "?": (None, False)}


def made(text: str, problem: str = "p", group: str = "", variant: str = "", even: bool = True) -> Pool:
    """'4R 3/2W -R' is a right candidate with score 4, a wrong one with 3/2, a right one without a score."""
    found = []
    for i, word in enumerate(text.split()):
        correct, human = LABELS[word[-1]]
        score = None if word[:-1] == "-" else F(word[:-1])
        found.append(Scored(id=f"c{i}", score=score, correct=correct, human=human))
    return Pool(problem=problem, group=group or problem, candidates=tuple(found), variant=variant, even=even)


def gain(*ranks: int) -> float:
    return sum(1 / log2(1 + r) for r in ranks)


def measured(text: str, human: Any = "right") -> dict[str, Any]:
    sides = label(made(text), human).sides
    return {metric: measure(metric, sides) for metric in METRICS}


# name, pool, then acc@1, recall@R, recall@5, auc, human_win, mean_win, mrr, ndcg, pairwise
BY_HAND: list[tuple[str, str, tuple[Any, ...]]] = [
    # Order R R W W. R = 2.
    ("perfect", "4R 3R 2W 1W", (1, 1, 1, 1, None, 1, 1, 1, 1)),
    # W W R R: the first right one is third; gains at ranks 3 and 4 over those at 1 and 2.
    ("upside down", "1R 2R 3W 4W", (0, 0, 1, 0, None, 0, F(1, 3), gain(3, 4) / gain(1, 2), 0)),
    # All five tie, 2 of them right. First is right: 2/5. Two places hold 2 * 2/5 right ones, of 2: 2/5. All pairs
    # tie: auc 1/2, pairwise 0; means equal: 1/2. The first right one is at place 1, 2, 3, 4 in 4, 3, 2, 1
    # of 10 ways: (4 + 3/2 + 2/3 + 1/4) / 10 = 77/120. Each rank is right with 2/5.
    (
        "one score",
        "1R 1W 1W 1R 1W",
        (F(2, 5), F(2, 5), 1, F(1, 2), None, F(1, 2), F(77, 120), 0.4 * gain(1, 2, 3, 4, 5) / gain(1, 2), 0),
    ),
    # (R W) R W: first right: 1/2. The tied two fill both places, with 1 right of 2: 1/2. Pairs: 9R-9W 1/2, 9R-1W 1,
    # 5R-9W 0, 5R-1W 1: auc 5/8, pairwise 2/4. Means 7 and 5. First right at 1 or 2: (1 + 1/2) / 2.
    (
        "tie at the top",
        "9R 9W 5R 1W",
        (F(1, 2), F(1, 2), 1, F(5, 8), None, 1, F(3, 4), (0.5 * gain(1, 2) + gain(3)) / gain(1, 2), F(1, 2)),
    ),
    # R (R W W) R, R = 3: 1 + two places of the three tied, with 2 * 1/3: (1 + 2/3) / 3 = 5/9. Pairs: 9R 2,
    # 5R 1/2 + 1/2, 1R 0: 3/6; decided rightly 2/6. Means 5 and 5.
    (
        "tie across the cut",
        "9R 5R 5W 5W 1R",
        (
            1,
            F(5, 9),
            1,
            F(1, 2),
            None,
            F(1, 2),
            1,
            (gain(1) + gain(2, 3, 4) / 3 + gain(5)) / gain(1, 2, 3),
            F(1, 3),
        ),
    ),
    # W R R R R R R: of the first 6, 5 right: 5/6; of the first 5, 4: 4/6. Means 5.5 and 9.
    (
        "six right ones",
        "9W 8R 7R 6R 5R 4R 3R",
        (0, F(5, 6), F(2, 3), 0, None, 0, F(1, 2), gain(2, 3, 4, 5, 6, 7) / gain(1, 2, 3, 4, 5, 6), 0),
    ),
    # H W R W W; the human solution is right. Mean of the wrong ones 3 < 7. Pairs: H 3 of 3, R 2 of 3.
    (
        "human first",
        "7H 6W 5R 2W 1W",
        (1, F(1, 2), 1, F(5, 6), 1, 1, 1, gain(1, 3) / gain(1, 2), F(5, 6)),
    ),
    # R W H W: the human's 3 is the mean of 4 and 2: 1/2. Mean of right 6. Pairs: R 2, H 1 of 2: 3/4.
    (
        "human between",
        "9R 4W 3H 2W",
        (1, F(1, 2), 1, F(3, 4), F(1, 2), 1, 1, gain(1, 3) / gain(1, 2), F(3, 4)),
    ),
    # No wrong one: nothing is defined. No right one either way.
    ("all right", "3R 2R 1H", (None,) * 9),
    ("all wrong", "3W 2W", (None,) * 9),
    # Who has no score, and whose label nobody knows, is in no side: R W is left.
    ("gaps", "9? -R 5R 4W -W", (1, 1, 1, 1, None, 1, 1, 1, 1)),
    # 1/3 and 2/6 are one score: a tie of two, then a wrong one. Pairs 1/2 and 1.
    (
        "fractions",
        "1/3R 2/6W 0W",
        (F(1, 2), F(1, 2), 1, F(3, 4), None, 1, F(3, 4), 0.5 * gain(1, 2) / gain(1), F(1, 2)),
    ),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in BY_HAND], ids=[row[0] for row in BY_HAND])
def test_by_hand(text: str, expected: tuple[Any, ...]) -> None:
    found = measured(text)
    for metric, value in zip(METRICS, expected, strict=True):
        if metric == "ndcg" and value is not None:
            assert found[metric] == pytest.approx(value, abs=1e-12)
        else:
            assert found[metric] == value, metric


def test_the_human_solution_apart() -> None:
    # Without H the pool is W R W W: R is second, above 2 of 3.
    found = measured("7H 6W 5R 2W 1W", "apart")
    assert (found["acc@1"], found["recall@R"], found["auc"], found["mrr"]) == (0, 0, F(2, 3), F(1, 2))
    assert found["human_win"] == 1
    # With nothing right but the human solution, it alone can win.
    alone = measured("7H 6W", "apart")
    assert [m for m in METRICS if alone[m] is not None] == ["human_win"]
    # A human solution known to be wrong is a wrong candidate.
    wrong = Pool(
        problem="p",
        group="p",
        candidates=(
            Scored(id="h", score=2, correct=False, human=True),
            Scored(id="r", score=1, correct=True),
        ),
    )
    assert label(wrong, "right").sides == Sides([F(1)], [F(2)], [])


def test_floats_are_the_numbers_they_are() -> None:
    up, down = 0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1  # not equal as floats, and so no tie
    sides = label(
        Pool(
            problem="p",
            group="p",
            candidates=(
                Scored(id="a", score=down, correct=True),
                Scored(id="b", score=up, correct=False),
            ),
        ),
        "right",
    ).sides
    assert measure("auc", sides) == 0
    assert measured("6/10R 6/10W")["auc"] == F(1, 2)


def test_unknown_names_and_numbers() -> None:
    for name in ("acc", "recall@0", "recall@", "recall@-1", "recall@x"):
        with pytest.raises(InputError, match="unknown metric"):
            evaluate([made("2R 1W")], metrics=[name])
    assert evaluate([made("2R 1W")], metrics=["recall@12"]).metrics["recall@12"].value == 1
    bad = Pool(problem="p", group="p", candidates=(Scored(id="a", score=float("nan"), correct=True),))
    with pytest.raises(InputError, match="problem 'p', candidate 'a'"):
        evaluate([bad])
    with pytest.raises(InputError, match="two pools for variant ''"):
        evaluate([made("2R 1W"), made("2R 1W")])
    with pytest.raises(InputError, match="two groups: 'g' and 'h'"):
        evaluate([made("2R 1W", group="g"), made("2R 1W", group="h", variant="2")])


# The same numbers by other ways

small = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=2, max_size=6).filter(
    lambda rows: len({right for _, right in rows}) == 2
)
larger = st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=30).filter(
    lambda rows: len({right for _, right in rows}) == 2
)
RANKED = ("acc@1", "recall@R", "recall@2", "recall@5", "auc", "mrr", "ndcg")


def sides_of(rows: Sequence[tuple[Any, bool]]) -> Sides:
    return Sides([F(s) for s, right in rows if right], [F(s) for s, right in rows if not right])


def ordered(metric: str, labels: Sequence[bool]) -> float:
    """A metric of a strict order, first to last, straight from its definition."""
    ranks = [i + 1 for i, right in enumerate(labels) if right]
    places = {"recall@R": len(ranks), "recall@2": 2, "recall@5": 5}
    if metric in places:
        return sum(r <= places[metric] for r in ranks) / len(ranks)
    if metric == "acc@1":
        return float(labels[0])
    if metric == "mrr":
        return 1 / ranks[0]
    if metric == "ndcg":
        return gain(*ranks) / gain(*range(1, len(ranks) + 1))
    wrongs = [i + 1 for i, right in enumerate(labels) if not right]
    return float(np.mean([r < w for r in ranks for w in wrongs]))


@given(small)
def test_the_expectation_over_ties_is_the_mean_over_all_orders(rows: list[tuple[int, bool]]) -> None:
    orders = [
        [right for _, right in order]
        for order in permutations(rows)
        if all(a[0] >= b[0] for a, b in pairwise(order))
    ]
    for metric in RANKED:
        brute = np.mean([ordered(metric, labels) for labels in orders])
        assert float(measure(metric, sides_of(rows)) or 0) == pytest.approx(brute, abs=1e-12), metric


@settings(deadline=None)
@given(larger)
def test_auc_and_ndcg_are_scikit_learns(rows: list[tuple[int, bool]]) -> None:
    from sklearn.metrics import ndcg_score, roc_auc_score

    scores, labels = [s for s, _ in rows], [int(right) for _, right in rows]
    sides = sides_of(rows)
    assert float(measure("auc", sides) or 0) == pytest.approx(roc_auc_score(labels, scores))
    assert measure("ndcg", sides) == pytest.approx(ndcg_score([labels], [scores]))


@given(larger, st.randoms(use_true_random=False))
def test_order_and_scale_play_no_part(rows: list[tuple[int, bool]], random: Any) -> None:
    before = {m: measure(m, sides_of(rows)) for m in METRICS}
    shuffled = list(rows)
    random.shuffle(shuffled)
    after = {m: measure(m, sides_of(shuffled)) for m in METRICS}
    assert {m: v for m, v in before.items() if m != "ndcg"} == {m: v for m, v in after.items() if m != "ndcg"}
    bent = sides_of([(s**3 * 7 - 1000, right) for s, right in rows])
    for m in METRICS:
        if m not in ("mean_win", "human_win"):  # these look at means, which only straight lines keep
            assert measure(m, bent) == before[m]
    straight = sides_of([(3 * s - 8, right) for s, right in rows])
    assert measure("mean_win", straight) == before["mean_win"]


@given(larger)
def test_turning_the_order_round(rows: list[tuple[int, bool]]) -> None:
    there, back = sides_of(rows), sides_of([(-s, right) for s, right in rows])
    for metric in ("auc", "mean_win"):
        assert F(measure(metric, there) or 0) + F(measure(metric, back) or 0) == 1
    ties = 2 * (F(measure("auc", there) or 0) - F(measure("pairwise", there) or 0))
    equal = sum(r == w for r in there.right for w in there.wrong)
    assert ties == F(equal, len(there.right) * len(there.wrong))
    for metric in METRICS:
        value = measure(metric, there)
        assert value is None or 0 <= value <= 1


@given(larger)
def test_a_better_right_candidate_never_lowers_a_metric(rows: list[tuple[int, bool]]) -> None:
    at = next(i for i, (_, right) in enumerate(rows) if right)
    better = [(s + 1 if i == at else s, right) for i, (s, right) in enumerate(rows)]
    for metric in METRICS:
        low, high = measure(metric, sides_of(rows)), measure(metric, sides_of(better))
        assert (low is None and high is None) or float(high or 0) >= float(low or 0) - 1e-12


# Over pools


def test_means_go_by_problem_then_group() -> None:
    # Group g: problems 1 (acc 1) and 2 (acc 0): 1/2. Group h: problem 3 with variants 1 and 1/2: 3/4. Mean 5/8.
    pools = [
        made("2R 1W", "1", "g"),
        made("1R 2W", "2", "g"),
        made("2R 1W", "3", "h", "a"),
        made("1R 1W", "3", "h", "b"),
        made("2R 1R", "4", "h"),
    ]
    found = evaluate(pools)
    acc = found.metrics["acc@1"]
    assert (acc.value, acc.n, acc.groups, acc.dropped, acc.uneven, acc.chance) == (0.625, 3, 2, 1, 0, 0.5)
    assert acc.ci95 is not None
    assert acc.ci95[0] < 0.625 < acc.ci95[1]
    assert found.metrics["human_win"].value is None
    assert found.metrics["human_win"].dropped == 4
    assert (found.unscored, found.unlabelled) == (0, 0)
    one = evaluate(pools[:2]).metrics["acc@1"]
    assert (one.value, one.ci95, one.groups) == (0.5, None, 1)
    assert evaluate([]).metrics["auc"].value is None


def test_the_two_estimands_differ() -> None:
    # Variant a has the right one first, variant b has it third: acc (1 + 0) / 2, mrr (1 + 1/3) / 2.
    # The means are 3/2, 2 and 1/2: the right one is second.
    pools = [made("3R 2W 0W", "p", variant="a"), made("0R 2W 1W", "p", variant="b")]
    apart = evaluate(pools, metrics=["acc@1", "mrr"]).metrics
    assert apart["acc@1"].value == 0.5
    assert apart["mrr"].value == pytest.approx((1 + 1 / 3) / 2)
    together = evaluate(pools, metrics=["acc@1", "mrr"], estimand="average-then-rank").metrics
    assert (together["acc@1"].value, together["mrr"].value) == (0, 0.5)
    assert averaged(pools)[0].candidates[0].score == F(3, 2)
    gappy = [made("3R 2W 0W", variant="a"), made("0R -W 1W", variant="b")]
    assert [c.score for c in averaged(gappy)[0].candidates] == [F(3, 2), None, F(1, 2)]
    with pytest.raises(InputError, match="variants 'a' and 'b' have different candidates"):
        averaged([made("1R 2W", variant="a"), made("1R", variant="b")])


def test_left_out_is_counted() -> None:
    found = evaluate([made("9? -R 5R 4W -W"), made("1R 2W 3?", "q")])
    assert (found.unscored, found.unlabelled) == (2, 2)


def test_uneven_pools_feed_no_metric_of_levels() -> None:
    found = evaluate([made("2R 1W", "1", even=False), made("1R 2W", "2")]).metrics
    assert (found["auc"].n, found["auc"].uneven, found["auc"].value) == (1, 1, 0)
    assert (found["mean_win"].n, found["pairwise"].uneven) == (1, 1)
    assert (found["acc@1"].n, found["acc@1"].uneven, found["acc@1"].value) == (2, 0, 0.5)


def test_pools_from_records() -> None:
    problem = Problem(
        id="p",
        group="g",
        question="q",
        candidates=(
            Candidate(id="a", text="", correct=True),
            Candidate(id="b", text="", correct=False),
            Candidate(id="h", text="", human=True),
        ),
        neighbors=(Neighbor(id="1", question="", answer=""), Neighbor(id="x/1", question="", answer="")),
    )

    def score(first: int, second: int) -> Score:
        cells = {
            "m/1": Counts(correct=first, wrong=3 - first),
            "m/x/1": Counts(correct=second, wrong=6 - second),
        }
        return Score(value=(first / 3 + second / 6) / 2, low=0, high=1, cells=cells)

    scores = {"a": score(1, 4), "b": score(2, 2), "h": score(0, 0)}
    # 1/3 and 4/6 against 2/3 and 2/6: both have mean 1/2, exactly.
    assert exact(scores["a"]) == exact(scores["b"]) == F(1, 2)
    whole = pool(problem, {i: exact(s) for i, s in scores.items()})
    assert (whole.group, measure("auc", label(whole, "apart").sides)) == ("g", F(1, 2))
    apart = by_neighbor(problem, scores)
    assert [p.variant for p in apart] == ["1", "x/1"]
    assert [[c.score for c in p.candidates] for p in apart] == [[F(1, 3), F(2, 3), 0], [F(2, 3), F(1, 3), 0]]
    assert averaged(apart)[0].candidates == whole.candidates
    plain = {i: Score(value=0.5, low=0, high=1) for i in scores}
    assert [c.score for c in by_neighbor(problem, plain)[0].candidates] == [0.5] * 3
    with pytest.raises(InputError, match="cell 'm/2' names no neighbor"):
        by_neighbor(problem, {"a": Score(value=1, low=0, high=1, cells={"m/2": Counts(correct=1)})})


# Simulated pools with known answers


def drawn(right: Any, wrong: Any) -> list[Pool]:
    """One group a row of scores."""
    return [
        Pool(
            problem=str(i),
            group=str(i),
            candidates=tuple(
                Scored(id=f"{side}{j}", score=float(s), correct=side == "r", human=side + str(j) == "r0")
                for side, row in (("r", r), ("w", w))
                for j, s in enumerate(row)
            ),
        )
        for i, (r, w) in enumerate(zip(right, wrong, strict=True))
    ]


def test_chance_is_a_half_on_the_papers_pools() -> None:
    rng = np.random.default_rng(1)
    for coarse in (False, True):  # with and without ties
        scores = rng.random((600, 10))
        if coarse:
            scores = np.floor(scores * 4)
        pools = drawn(scores[:, :5], scores[:, 5:])
        found = evaluate(pools).metrics
        for metric in ("acc@1", "recall@5", "recall@R", "auc", "human_win", "mean_win"):
            estimate = found[metric]
            own = [float(v) for by in values(prepared(pools), metric).by_group.values() for v in by.values()]
            assert estimate.value == pytest.approx(0.5, abs=4 * float(np.std(own)) / sqrt(600)), metric
            assert estimate.chance == 0.5, metric
        luck = found["mrr"]
        assert luck.value == pytest.approx(luck.chance or 0, abs=0.05)


def test_planted_effects_give_known_answers() -> None:
    # Right ones N(1, 1), wrong ones N(0, 1): auc is Phi(1 / sqrt 2); the best of five right ones beats all.
    rng = np.random.default_rng(2)
    found = evaluate(drawn(rng.normal(1, 1, (1_000, 5)), rng.normal(0, 1, (1_000, 5)))).metrics
    assert found["auc"].value == pytest.approx(float(ndtr(1 / sqrt(2))), abs=0.02)
    x = np.linspace(-8, 10, 20_001)
    density = 5 * np.exp(-((x - 1) ** 2) / 2) / sqrt(2 * np.pi) * ndtr(x - 1) ** 4 * ndtr(x) ** 5
    assert found["acc@1"].value == pytest.approx(float(density.sum() * (x[1] - x[0])), abs=0.045)
    # Difference of the means N(1, 2/5); the human's N(1, 1) against the mean of five, N(0, 1/5).
    assert found["mean_win"].value == pytest.approx(float(ndtr(1 / sqrt(0.4))), abs=0.03)
    assert found["human_win"].value == pytest.approx(float(ndtr(1 / sqrt(1.2))), abs=0.045)
    # Three of four pools in perfect order, the others upside down: everything is 3/4.
    turned = np.where(np.arange(400)[:, None] % 4 == 0, -1, 1) * np.arange(1, 6)
    planted = evaluate(drawn(turned, -turned)).metrics
    for metric in ("acc@1", "recall@5", "auc", "human_win", "mean_win", "pairwise"):
        assert planted[metric].value == 0.75, metric


@given(st.integers(1, 6), st.integers(1, 6))
def test_chance_needs_no_simulation(right: int, wrong: int) -> None:
    sides = Sides([F(i) for i in range(right)], [F(i) for i in range(wrong)])
    assert chance("acc@1", sides) == F(right, right + wrong)
    assert chance("recall@5", sides) == F(min(5, right + wrong), right + wrong)
    assert chance("auc", sides) == chance("pairwise", sides) == chance("mean_win", sides) == F(1, 2)
    assert chance("human_win", sides) is None


# Method against method


def test_compare_on_what_both_scored() -> None:
    # 8 problems: a has the right one first everywhere, b nowhere; a has no score for one wrong one, b for another.
    a = [made("3R 2W -W 0W", str(i)) for i in range(8)]
    b = [made("1R 2W 3W -W", str(i)) for i in range(8)] + [made("1R 2W", "only b")]
    (found,) = compare({"a": a, "b": b}, [("a", "b")], metrics=["acc@1"])
    assert (found.difference, found.n, found.groups, found.left_out) == (1, 8, 8, 16)
    # All 8 differences have one sign: 2 of 2^8 flips are as far out.
    assert found.p == found.p_holm == 2 / 2**8
    assert found.verdict == "a is higher"
    assert "acc@1: a minus b = +1.000" in found.sentence()
    (back,) = compare({"a": a, "b": b}, [("b", "a")], metrics=["acc@1"])
    assert (back.difference, back.verdict) == (-1, "a is higher")


def test_not_distinguishable_says_what_it_could_have_seen() -> None:
    rng = np.random.default_rng(3)
    a, b = (drawn(rng.normal(0.5, 1, (24, 5)), rng.normal(0, 1, (24, 5))) for _ in range(2))
    (found,) = compare({"a": a, "b": b}, [("a", "b")])
    assert found.verdict == "not distinguishable"
    assert found.detectable is not None
    assert 0.05 < found.detectable < 0.5
    assert f"24 groups like these would find a difference of {found.detectable:.3f}" in found.sentence()
    several = compare({"a": a, "b": b}, [("a", "b")], metrics=["auc", "acc@1", "mrr"])
    assert several[0].p == found.p
    assert several[0].p_holm >= several[0].p
    assert (several[0].detectable or 0) > found.detectable  # a third of the level
    (same,) = compare({"a": a, "b": a}, [("a", "b")])
    assert (same.difference, same.p, same.verdict, same.detectable) == (0, 1, "not distinguishable", None)


def test_too_few_groups_find_nothing() -> None:
    # Five groups: the least p is 2 / 2^5 = .0625, whatever the scores.
    a = [made("2R 1W", str(i)) for i in range(4)] + [made("2R 1W 1W", "4")]
    b = [made("1R 2W", str(i)) for i in range(4)] + [made("1R 1W 2W", "4")]
    (found,) = compare({"a": a, "b": b}, [("a", "b")])
    assert (found.p, found.verdict, found.detectable) == (0.0625, "not distinguishable", None)
    assert "what 5 groups like these could find cannot be told" in found.sentence()


def test_holm_over_the_family() -> None:
    # a beats b in 6 of 6 groups: p = 2/64 alone; among two comparisons it has to be below .025, and is not.
    a = [made("2R 1W", str(i)) for i in range(6)]
    b = [made("1R 2W", str(i)) for i in range(6)]
    assert compare({"a": a, "b": b}, [("a", "b")])[0].verdict == "a is higher"
    two = compare({"a": a, "b": b}, [("a", "b")], metrics=["auc", "mrr"])
    assert [c.p_holm for c in two] == [0.0625, 0.0625]
    assert {c.verdict for c in two} == {"not distinguishable"}


def test_compare_refuses_what_does_not_fit() -> None:
    a, b = [made("2R 1W", "1", "g")], [made("2R 1W", "1", "h")]
    with pytest.raises(InputError, match="another group or other labels"):
        compare({"a": a, "b": b}, [("a", "b")])
    with pytest.raises(InputError, match="another group or other labels"):
        compare({"a": a, "b": [made("2W 1R", "1", "g")]}, [("a", "b")])
    with pytest.raises(InputError, match="unknown method 'c'"):
        compare({"a": a}, [("a", "c")])
    (nothing,) = compare({"a": a, "b": [made("2R 1W", "2")]}, [("a", "b")])
    assert (nothing.difference, nothing.groups, nothing.verdict) == (None, 0, "not distinguishable")
    assert "no problem counts for both" in nothing.sentence()


def test_a_method_with_variants_against_one_without() -> None:
    # The judge has one score a candidate, utility one a neighbor: acc 1 against (1 + 0) / 2.
    judge = [made("2R 1W", "p")]
    utility = [made("2R 1W", "p", variant="a"), made("1R 2W", "p", variant="b")]
    apart = compare({"j": judge, "u": utility}, [("j", "u")], metrics=["acc@1"])[0]
    assert (apart.difference, apart.n, apart.groups) == (0.5, 1, 1)
    together = compare(
        {"j": judge, "u": utility}, [("j", "u")], metrics=["acc@1"], estimand="average-then-rank"
    )[0]
    assert together.difference == 0.5  # both have mean 3/2: a tie


def test_scores_may_be_any_numbers() -> None:
    numbers: list[Value] = [2, F(5, 2), 1.5]
    found = Pool(
        problem="p",
        group="p",
        candidates=tuple(Scored(id=str(n), score=n, correct=n != 2) for n in numbers),
    )
    assert evaluate([found]).metrics["auc"].value == 0.5
