"""Candidates written by models: several full solutions of every target, added to what a problem file holds.

Asked through the generator, so everything that was answered is kept in a run folder and never paid for twice. The
problem file is written once, at the end, from the file as it then is: what stands in it is not touched, and a stop
before the end leaves it alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from porism.budget import Budget
from porism.candidates import Added, extend
from porism.config import RankConfig
from porism.data import data_hash, load, write_problems
from porism.data.rewrite import check_goal, rewrite
from porism.data.write import save
from porism.engine import Watch
from porism.errors import ConfigError
from porism.generate import Generated, Generator, Request
from porism.methods.prompt import SOLVE_FIELDS, check_template, load_template, render
from porism.prepare import Plan, resolve
from porism.store import MISSING, Store
from porism.types import Generate, Message, Problem, Prompt, Usage

# A solution is longer than the imitation of an example, and a pool needs variety: warmer and longer than for ranking.
EMBEDDED_SAMPLING: dict[str, Any] = {"temperature": 0.8, "max_tokens": 1024}
PROVENANCE = (
    "sample.json"  # in the run folder: what each model string is known by, and hashes of the questions
)


class Sampled(Struct, frozen=True, kw_only=True):
    """The result: where it was written (empty after a stop), what each problem got, and what it cost."""

    run: str
    written: tuple[str, ...]
    problems: tuple[Added, ...]
    solutions: int
    usage: Usage
    missing: dict[str, int] = {}
    stopped: str | None = None
    exit_code: int = 0


def configure(settings: dict[str, Any]) -> RankConfig:
    """The settings in one record, with what sampling solutions needs where the user said nothing."""
    config = resolve(settings)
    if config.embedded:
        config = replace(
            config, **{key: value for key, value in EMBEDDED_SAMPLING.items() if getattr(config, key) is None}
        )
    return config


def run_folder(path: Path, problems: Sequence[Problem], config: RankConfig) -> Path:
    """Where answers are kept: found again by the name of the file and the questions in it."""
    name = re.sub(r"[^\w.-]", "-", path.resolve().stem)[:60]
    return config.output or Path("runs") / f"{name}-{data_hash(problems)}-sample"


def requests(problems: Sequence[Problem], config: RankConfig) -> dict[tuple[str, int], Request]:
    """What to ask, by problem id and index of the model. ConfigError for a template that cannot be used."""
    template = load_template(config.template, "sample")
    check_template(template, SOLVE_FIELDS)
    return {
        (problem.id, i): Request(
            _key(problem.id, spec), render(template, question=problem.question), config.rollouts, i
        )
        for problem in problems
        for i, spec in enumerate(config.models)
    }


def plan(path: Path, **settings: Any) -> Plan:
    """What `asample` with these settings would ask and is not stored yet. Sends nothing, starts nothing."""
    config = configure(settings)
    problems = load(path).problems
    folder = run_folder(path, problems, config)
    asked = requests(problems[: config.limit], config)
    total, stored = len(asked) * config.rollouts, 0
    if folder.is_dir():
        with Store(folder, write=False) as store:
            known = (store.read_json(PROVENANCE) or {}).get("models", {})
            for request in asked.values():
                spec = config.models[request.model]
                prompt = Prompt(known.get(spec, spec), (Message("user", request.text),), config.sampling)
                rows = [store.rows.get(Generate(prompt, k).id) for k in range(request.n)]
                stored += sum(row is not None and not row.again for row in rows)
    owed = total - stored
    once = sum(len(request.text) for request in asked.values()) // 3
    tokens = once * owed // max(1, len(asked))
    return Plan(
        run=str(folder),
        rollouts=total,
        stored=stored,
        requests=owed,
        prompt_tokens=tokens,
        shared_tokens=max(0, tokens - once),
        completion_tokens=owed * config.sampling.max_tokens,
    )


async def asample(
    path: Path,
    *,
    goal: Path | None = None,
    force: bool = False,
    one_per_answer: bool = False,
    watch: Watch | None = None,
    **settings: Any,
) -> Sampled:
    """Ask for solutions and write the problems with them to `goal`, or back to `path` (the old one kept as .bak).

    settings: the fields of RankConfig; `models` are the generators, `rollouts` the solutions asked of each for a
    problem, `output` the run folder. Raises InputError for what the caller can mend, before anything is asked.
    """
    config = configure(settings)
    problems = load(path).problems
    check_goal(path, goal, force=force)
    folder = run_folder(path, problems, config)
    asked = requests(problems[: config.limit], config)
    budget = Budget(
        requests=config.max_requests,
        tokens=config.max_tokens_total,
        cost=config.max_cost,
        price=config.price,
    )
    async with Generator(
        folder,
        config.models,
        sampling=config.sampling,
        base_url=config.base_url,
        concurrency=config.concurrency,
        budget=budget,
        watch=watch,
    ) as generator:
        known = dict(zip(config.models, generator.identities, strict=True))
        _keep(folder, known, problems, whole=False)
        generated = await generator.ask(list(asked.values()))
        if generated.stopped is None:
            _keep(folder, known, problems, whole=True)
    landed = sum(c is not None for answers in generated.answers.values() for c in answers)
    added: list[Added] = []
    written: list[Path] = []
    if generated.stopped is None:
        added, written = _write(path, goal, force, problems, asked, generated, config, one_per_answer)
    return Sampled(
        run=str(folder),
        written=tuple(map(str, written)),
        problems=tuple(added),
        solutions=landed,
        usage=generated.usage,
        missing=generated.missing,
        stopped=generated.stopped,
        exit_code=generated.exit_code,
    )


def own_attempts(store: Store) -> Iterator[tuple[str, str, str | None]] | None:
    """The solutions a sample run holds: problem id, hash of its question, final answer if it has one.

    None where the run is of another kind. ConfigError where it was stopped: short answers come first, and a part of
    them would not be a fair sample.
    """
    found = store.read_json(PROVENANCE)
    if found is None:
        return None
    if not found["whole"]:
        raise ConfigError(
            f"{store.path}: this run stopped before its end; finish it with the command that made it"
        )
    keys = {_key(id, spec): id for id in found["questions"] for spec in found["models"]}
    return (
        (id, found["questions"][id], row.answer)
        for row in store.rows.values()
        if row.finish != MISSING and (id := keys.get(row.cell.problem)) is not None
    )


def question_hash(question: str) -> str:
    """16 hex digits that stand for a question."""
    return blake2b(question.encode(), digest_size=8).hexdigest()


def _keep(folder: Path, models: dict[str, str], problems: Sequence[Problem], *, whole: bool) -> None:
    """Add to the provenance of a run folder. whole: whether all that was asked has ended."""
    file = folder / PROVENANCE
    found = msgspec.json.decode(file.read_bytes()) if file.is_file() else {"models": {}, "questions": {}}
    found["models"] |= models
    found["questions"] |= {problem.id: question_hash(problem.question) for problem in problems}
    save(file, msgspec.json.encode(found | {"whole": whole}), force=True)


def _key(id: str, spec: str) -> str:
    return f"{id} by {spec}"


def _write(
    path: Path,
    goal: Path | None,
    force: bool,
    before: Sequence[Problem],
    asked: dict[tuple[str, int], Request],
    generated: Generated,
    config: RankConfig,
    one_per_answer: bool,
) -> tuple[list[Added], list[Path]]:
    """Add to the file as it is now: it may have been worked on in the meantime."""
    questions = {problem.id: problem.question for problem in before}
    added, result = [], []
    now = load(path).problems
    for problem in now:
        if problem.question == questions.get(problem.id) and (problem.id, 0) in asked:
            solutions = [
                (spec, generated.answers[asked[problem.id, i].key]) for i, spec in enumerate(config.models)
            ]
            problem, got = extend(problem, solutions, one_per_answer=one_per_answer)
            added.append(got)
        result.append(problem)
    if goal is not None:
        write_problems(result, goal, force=force)
        return added, [goal]
    return added, rewrite(path, result) if result != list(now) else []


__all__ = [
    "Sampled",
    "asample",
    "configure",
    "own_attempts",
    "plan",
    "question_hash",
    "requests",
    "run_folder",
]
