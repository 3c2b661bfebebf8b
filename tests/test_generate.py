"""Texts from models outside of a ranking: stored, resumed, counted, stopped by budgets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from porism.budget import Budget
from porism.errors import ConfigError
from porism.generate import Generated, Generator, Request
from porism.types import Sampling
from server import closed_port, serving

SAMPLING = Sampling(max_tokens=64)
FAKE = "fake/rate=1"
REQUESTS = [Request(f"q{i}", f"What is {i}? [[answer: {i}]]", n=3) for i in range(5)]


def ask(folder: Path, requests: list[Request], *models: str, **settings: object) -> Generated:
    async def asked() -> Generated:
        async with Generator(folder, models or (FAKE,), sampling=SAMPLING, **settings) as generator:  # type: ignore[arg-type]
            return await generator.ask(requests)

    return asyncio.run(asked())


def test_every_request_has_its_answers_and_asking_again_costs_nothing(tmp_path: Path) -> None:
    first = ask(tmp_path, REQUESTS)
    assert first.exit_code == 0
    assert first.usage.requests == 5 or first.usage.requests == 15
    for i in range(5):
        texts = [c.text for c in first.answers[f"q{i}"] if c is not None]
        assert len(texts) == 3
        assert all(f"\\boxed{{{i}}}" in text for text in texts)
    again = ask(tmp_path, REQUESTS)
    assert again == first


def test_more_rollouts_and_a_second_stage_extend_the_folder(tmp_path: Path) -> None:
    async def stages() -> tuple[Generated, Generated]:
        async with Generator(tmp_path, (FAKE,), sampling=SAMPLING) as generator:
            one = await generator.ask(REQUESTS)
            more = [Request(r.key, r.text, n=5) for r in REQUESTS]
            return one, await generator.ask([*more, Request("new", "And? [[answer: 9]]")])

    one, two = asyncio.run(stages())
    assert set(two.answers) == {*one.answers, "new"}
    for key, answers in one.answers.items():
        assert two.answers[key][:3] == answers
    assert len((tmp_path / "index.jsonl").read_text().splitlines()) == 26


def test_two_models_answer_for_themselves(tmp_path: Path) -> None:
    requests = [Request(f"m{i}", "Which? [[answer: 4]]", model=i) for i in (0, 1)]
    got = ask(tmp_path, requests, "fake/rate=1", "fake/rate=0")
    right, wrong = (got.answers[f"m{i}"][0] for i in (0, 1))
    assert right is not None
    assert wrong is not None
    assert "\\boxed{4}" in right.text
    assert "\\boxed{4}" not in wrong.text


def test_a_budget_stops_with_3_and_raising_it_goes_on(tmp_path: Path) -> None:
    with serving() as url:
        spec = "openai/test-model"
        stopped = ask(tmp_path, REQUESTS, spec, base_url=url, budget=Budget(requests=2), concurrency=1)
        assert stopped.exit_code == 3
        assert "--max-requests 2" in (stopped.stopped or "")
        assert any(None in answers for answers in stopped.answers.values())
        whole = ask(tmp_path, REQUESTS, spec, base_url=url)
    assert whole.exit_code == 0
    assert not any(None in answers for answers in whole.answers.values())


def test_faults_of_a_server_are_asked_again(tmp_path: Path) -> None:
    with serving(limited=0.1, error=0.1, cut=0.05) as url:
        got = ask(tmp_path, REQUESTS, "openai/test-model", base_url=url)
    assert got.exit_code == 0
    assert all(len(answers) == 3 and None not in answers for answers in got.answers.values())


def test_a_server_that_is_down_ends_the_job_with_a_reason(tmp_path: Path) -> None:
    got = ask(tmp_path, REQUESTS, "openai/test-model", base_url=closed_port())
    assert got.exit_code == 1
    assert got.stopped


def test_a_model_twice_or_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        Generator(tmp_path, (), sampling=SAMPLING)
    with pytest.raises(ConfigError):
        Generator(tmp_path, (FAKE, FAKE), sampling=SAMPLING)
