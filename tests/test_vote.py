"""Vote: whose answers are the same, who votes, and what a vote cannot tell. And the baselines that ask nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from porism.engine import Engine, Outcome, replay
from porism.errors import ConfigError
from porism.methods.trivial import Length, Random
from porism.methods.vote import Vote
from porism.models.fake import FakeModel
from porism.progress import SilentWatch
from porism.store import Store
from porism.types import Candidate, Compare, Generate, Method, Problem, Prompt, Sampling
from porism.verify.pool import Verifier
from samples import problem

SAMPLING = Sampling(max_tokens=100)


def pool(*answers: str | None, text: str = "As one sees.") -> Problem:
    return Problem(
        id="p",
        question="What is it?",
        candidates=tuple(Candidate(id=f"c{i}", text=text, answer=a) for i, a in enumerate(answers)),
        neighbors=(),
    )


def run(path: Path, p: Problem, method: Method, model: FakeModel | None = None) -> Outcome:
    """The method through the engine, with the real verifier."""

    async def work() -> Outcome:
        with Store(path) as store:
            async with Verifier(workers=1) as checker:
                models = {model.identity: model} if model else {}
                outcome = await Engine(models, store, checker, SilentWatch()).run([p], [method])
                assert await replay(store, checker, [p], [method]) == outcome.seen
                return outcome

    return asyncio.run(work())


def voted(path: Path, p: Problem, method: Vote, model: FakeModel | None = None) -> dict[str, float | None]:
    outcome = run(path, p, method, model)
    assert outcome.stopped is None
    return {id: s.value for id, s in method.score(p, outcome.seen["p", "vote"]).items()}


# The candidates vote


def test_the_same_answer_in_other_words_is_the_same_vote(tmp_path: Path) -> None:
    p = pool(r"\frac{1}{2}", "0.5", "x = 1/2", "(x+1)^2", "x^2 + 2x + 1", "3")
    method = Vote()
    seen = run(tmp_path / "run", p, method).seen["p", "vote"]
    classes = method.classes(p, seen)
    assert classes["c0"] == classes["c1"] == classes["c2"] == {"c0", "c1", "c2"}
    assert classes["c3"] == classes["c4"] == {"c3", "c4"}
    assert classes["c5"] == {"c5"}
    values = {id: s.value for id, s in method.score(p, seen).items()}
    assert values == {"c0": 0.5, "c1": 0.5, "c2": 0.5, "c3": 2 / 6, "c4": 2 / 6, "c5": 1 / 6}


def test_answers_are_found_in_the_text(tmp_path: Path) -> None:
    p = pool(None, None, None, text="So it is \\boxed{12}.")
    assert set(voted(tmp_path / "run", p, Vote()).values()) == {1.0}


def test_a_candidate_without_an_answer_votes_for_nobody(tmp_path: Path) -> None:
    p, method = pool("7", "7", None, None), Vote()
    seen = run(tmp_path / "run", p, method).seen["p", "vote"]
    scores = method.score(p, seen)
    assert scores["c0"].value == scores["c1"].value == 0.5
    assert scores["c0"].flags == ("no answer 2 of 4",)
    assert scores["c2"].value is None
    assert scores["c2"].flags == ("no final answer",)
    nothing = pool(None, None)
    assert set(method.score(nothing, run(tmp_path / "other", nothing, method).seen["p", "vote"])) == {
        "c0",
        "c1",
    }


def test_copies_of_a_candidate_have_no_vote(tmp_path: Path) -> None:
    p = pool("7", "7", "7", "8")
    copies = tuple(replace(c, derived_from="c0") if c.id in ("c1", "c2") else c for c in p.candidates)
    values = voted(tmp_path / "run", replace(p, candidates=copies), Vote())
    assert values == {"c0": 0.5, "c1": 0.5, "c2": 0.5, "c3": 0.5}


def test_an_undecided_comparison_is_no_vote_and_is_said(tmp_path: Path) -> None:
    p, method = pool("the Klein bottle", "a sphere with two handles glued on", "the Klein bottle"), Vote()
    scores = method.score(p, run(tmp_path / "run", p, method).seen["p", "vote"])
    assert {id: s.value for id, s in scores.items()} == {"c0": 2 / 3, "c1": 1 / 3, "c2": 2 / 3}
    assert scores["c1"].high == 1.0
    assert scores["c1"].flags == ("undecided 2 of 3",)
    open_votes = [a for a in method.plan(p, []) if isinstance(a.work, Compare)]
    assert len(open_votes) == 6
    assert all("undecided" in " ".join(s.flags) for s in method.score(p, []).values())


# A solver votes


def fixed(texts: list[str]) -> FakeModel:
    def answer(prompt: Prompt, rollout: int) -> str:
        assert "Method" not in prompt.messages[0].content  # it has seen no candidate
        return texts[rollout]

    return FakeModel("fake/", answer=answer)


def test_attempts_vote_and_each_is_asked_once(tmp_path: Path) -> None:
    model = fixed([r"\boxed{7}", r"\boxed{7.0}", r"\boxed{8}", "I cannot say."])
    p = pool("7", "8", "9")
    method = Vote(pool=False, solvers=(model.identity,), sampling=SAMPLING, samples=4)
    assert voted(tmp_path / "run", p, method, model) == {"c0": 0.5, "c1": 0.25, "c2": 0.0}
    assert sum(model.answered.values()) == 4
    asks = method.plan(p, [])
    assert len(asks) == 12
    assert len({a.work.id for a in asks}) == 4
    assert all(isinstance(a.work, Generate) and a.gold is not None for a in asks)


def test_more_samples_ask_for_the_difference_and_fewer_count_fewer(tmp_path: Path) -> None:
    texts = [r"\boxed{7}", r"\boxed{7}", r"\boxed{8}", r"\boxed{8}"]
    p = pool("7", "8")

    def vote(samples: int, model: FakeModel) -> dict[str, float | None]:
        method = Vote(pool=False, solvers=(model.identity,), sampling=SAMPLING, samples=samples)
        return voted(tmp_path / "run", p, method, model)

    first, second, third = fixed(texts), fixed(texts), fixed(texts)
    assert vote(2, first) == {"c0": 1.0, "c1": 0.0}
    assert vote(4, second) == {"c0": 0.5, "c1": 0.5}
    assert sorted(second.answered.values()) == [1, 1]
    assert vote(2, third) == {"c0": 1.0, "c1": 0.0}
    assert not third.answered


def test_both_vote_together(tmp_path: Path) -> None:
    model = fixed([r"\boxed{8}"] * 2)
    method = Vote(solvers=(model.identity,), sampling=SAMPLING, samples=2)
    assert voted(tmp_path / "run", pool("7", "7", "8"), method, model) == {"c0": 0.4, "c1": 0.4, "c2": 0.6}


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"pool": False}, "nobody votes"),
        ({"samples": 4}, "need a solver"),
        ({"samples": 4, "solvers": ("m",)}, "sampling"),
        ({"samples": -1}, "need a solver"),
        ({"samples": 2, "solvers": ("m", "m"), "sampling": SAMPLING}, "only once"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Vote(**settings)  # type: ignore[arg-type]


# Nobody votes


def test_length_counts_characters(tmp_path: Path) -> None:
    p = problem(candidates=2)
    outcome = run(tmp_path / "run", p, Length())
    assert outcome.seen == {("p", "length"): []}
    scores = Length().score(p, [])
    assert {id: s.value for id, s in scores.items()} == {c.id: len(c.text) for c in p.candidates}


def test_random_is_fixed_by_its_seed_and_looks_random() -> None:
    p = replace(problem(), candidates=tuple(Candidate(id=f"c{i}", text="x") for i in range(400)))
    first, again, other = (
        [s.value or 0 for s in Random(seed=seed).score(p, []).values()] for seed in (0, 0, 1)
    )
    assert first == again != other
    assert all(0 <= v < 1 for v in first)
    assert abs(sum(first) / 400 - 0.5) < 0.06
    assert len(set(first)) == 400
    elsewhere = Random().score(replace(p, id="q"), [])
    assert [s.value for s in elsewhere.values()] != first
