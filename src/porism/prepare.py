"""What a run is made of, before it runs: settings, problems, folder, method, models; and what it would cost.

Whatever can be wrong is found here, in this order, before the first token is spent. `plan` stops short of the models,
so a dry run starts nothing and sends nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from porism.config import Placement, RankConfig
from porism.engine import Watch
from porism.errors import ConfigError, DataError
from porism.methods.prompt import load_template
from porism.methods.utility import Utility
from porism.router import Several
from porism.store import Store
from porism.types import Generate, Model, Problem

Problems = Path | str | Problem | Sequence[Problem]


class Plan(Struct, frozen=True, kw_only=True):
    """What a run would ask: exact rollouts and requests (at most, with an allocation), and an estimate of tokens.

    prompt_tokens counts every rollout's prompt in full; shared_tokens is the part of it that a server with a prefix
    cache computes once. completion_tokens is the most that the limit of an answer allows. executor: who would ask.
    """

    run: str
    rollouts: int
    stored: int
    requests: int
    prompt_tokens: int
    shared_tokens: int
    completion_tokens: int
    executor: str = "local"


def resolve(settings: dict[str, Any]) -> RankConfig:
    """The settings in one record. ConfigError for an unknown key, with the nearest right one."""
    if "model" in settings:
        model = settings.pop("model")
        settings["models"] = (model,) if isinstance(model, str) else tuple(model)
    if isinstance(models := settings.get("models"), str):
        settings["models"] = (models,)
    if isinstance(urls := settings.get("base_url"), list):
        settings["base_url"] = tuple(urls)
    for key in ("output", "template", "solve_template", "calibration"):
        if isinstance(path := settings.get(key), str):
            settings[key] = Path(path)
    fields = RankConfig.__dataclass_fields__
    for key in settings:
        if key not in fields:
            near = get_close_matches(key, fields, n=1)
            raise ConfigError(f"unknown setting {key!r}" + (f": did you mean {near[0]!r}?" if near else ""))
    return RankConfig(**settings)


def read(
    problems: Problems, limit: int | None, *, candidates: bool = True, allow_code: bool = False
) -> tuple[list[Problem], str, list[str]]:
    """The problems to rank, the run's name, and warnings. DataError where one cannot be ranked.

    Neighbors of a family are drawn here. candidates: whether a problem needs some; its neighbors alone can be looked
    at without. allow_code: whether a family's answer rule may be code.
    """
    if isinstance(problems, str | Path):
        from porism.data import load

        path = Path(problems)
        report = load(path, limit=limit)
        chosen, warnings = list(report.problems), [str(finding) for finding in report.warnings]
        name, where = path.resolve().stem, str(path)
    else:
        chosen = [problems] if isinstance(problems, Problem) else list(problems)[:limit]
        warnings, where = _doubts(chosen), "the problems given"
        name = chosen[0].id if len(chosen) == 1 else "problems"
    if any(problem.family is not None for problem in chosen):
        from porism.neighbors.code import run_code
        from porism.neighbors.expand import expanded

        chosen = [expanded(problem, run=run_code if allow_code else None) for problem in chosen]
    faults = [] if chosen else [f"{where}: there is no problem here"]
    for problem in chosen:
        if not problem.neighbors:
            faults.append(
                f"{where}: problem {problem.id!r} has no neighbors, and a candidate is judged by nothing else: add "
                "questions near it whose answers you know, under the key 'neighbors'"
            )
        if candidates and not problem.candidates:
            faults.append(
                f"{where}: problem {problem.id!r} has no candidates to rank: add them under 'candidates'"
            )
    if faults:
        raise DataError(faults)
    return chosen, "".join(c if c.isalnum() or c in "-_." else "-" for c in name)[:60], warnings


def _doubts(problems: Sequence[Problem]) -> list[str]:
    """Warnings about records that no file was checked for. DataError for what a file would be refused for."""
    from porism.data.finding import key_text
    from porism.data.meaning import doubts

    found: dict[str, list[str]] = {"error": [], "warning": []}
    ids: set[str] = set()
    for i, problem in enumerate(problems):
        if not isinstance(problem, Problem):
            raise DataError(
                [f"problem {i} is a {type(problem).__name__}: give a path, or porism.Problem records"]
            )
        if problem.id in ids:
            found["error"].append(f"problem {i}: id {problem.id!r} is used already")
        ids.add(problem.id)
        value = asdict(problem)
        lists = {key: list(value[key]) for key in ("candidates", "neighbors")}
        for severity, path, message in doubts(value | lists):
            found[severity].append(f"problem {problem.id!r}: {key_text(path)}: {message}")
    if found["error"]:
        raise DataError(found["error"])
    return found["warning"]


def refuse_code(problems: Sequence[Problem], *, allow_code: bool) -> None:
    """ConfigError where a neighbor names a checker of the user's own and code is not allowed."""
    from porism.verify.custom import is_custom

    for problem in () if allow_code else problems:
        for neighbor in problem.neighbors:
            if is_custom(neighbor.answer_type):
                raise ConfigError(
                    f"problem {problem.id!r}, neighbor {neighbor.id!r}: answer_type {neighbor.answer_type!r} names "
                    "code, which is only run with --allow-code"
                )


def run_folder(problems: Sequence[Problem], name: str, config: RankConfig) -> Path:
    """Where the run lies: as told, or found again by the name of the file and the questions in it."""
    from porism.data import data_hash

    return config.output or Path("runs") / f"{name}-{data_hash(problems)}"


def make_method(config: RankConfig, solvers: tuple[str, ...]) -> Utility:
    """The method as configured, for solvers by identity. ConfigError for a template that cannot be used."""
    return Utility(
        solvers=solvers,
        sampling=config.sampling,
        rollouts=config.rollouts,
        template=load_template(config.template, "utility-embedded" if config.embedded else "utility"),
        solve_template=load_template(config.solve_template, "solve"),
        question_template=load_template(
            None, "utility-question-embedded" if config.embedded else "utility-question"
        ),
        no_example=config.no_example,
        target_samples=config.target_samples,
        allocation=config.sharing,
    )


async def open_models(
    stack: AsyncExitStack, problems: Sequence[Problem], config: RankConfig, watch: Watch, warnings: list[str]
) -> list[Model]:
    """The solvers, entered on `stack` and tried; what the trial found is told and added to `warnings`.

    Raises ConfigError for a model string that means nothing and ModelError for a model that cannot serve.
    """
    draft = make_method(config, config.models)
    longest = max(
        sum(len(m.content) for m in ask.work.prompt.messages)
        for problem in problems
        for ask in draft.plan(problem, [])
        if isinstance(ask.work, Generate)
    )
    models = []
    open_one = await opener(stack, config.placement, watch)
    for spec in config.models:
        # Text averages over three characters a token, formulas fewer: two is on the safe side.
        context = longest // 2 + config.sampling.max_tokens + 64 if spec.startswith("local/") else None
        models.append(
            await enter(
                stack,
                open_one(spec, base_url=config.base_url, context=context, concurrency=config.concurrency),
                watch,
                warnings,
            )
        )
    drawn = ", ".join(f"{key} {value}" for key, value in msgspec.to_builtins(config.sampling).items())
    watch.note(f"sampling: {drawn}; {config.rollouts} rollouts a neighbor")
    return models


async def opener(stack: AsyncExitStack, placement: Placement | None, watch: Watch) -> Callable[..., Model]:
    """`open_model`, or with a placement the same on a Ray cluster, connected on `stack`."""
    if placement is None:
        from porism.models import open_model

        return open_model
    from porism.scale import Cluster, open_batches, open_replicas

    cluster = await stack.enter_async_context(Cluster(placement, watch.note))
    if placement.batches:
        return partial(open_batches, cluster, asyncio.Lock())
    return partial(open_replicas, cluster)


async def enter(stack: AsyncExitStack, model: Model, watch: Watch, warnings: list[str]) -> Model:
    """The model, entered on `stack` and tried. Where texts will go is told before the first one leaves."""
    entered = await stack.enter_async_context(model)
    for host in model.hosts if isinstance(model, Several) else filter(None, [getattr(model, "host", None)]):
        watch.note(f"{model.name}: questions and candidates go to {host}")
    for warning in await entered.probe():
        warnings.append(f"{model.name}: {warning}")
        watch.note(warnings[-1])
    return entered


def plan(problems: Problems, *, candidates: bool = True, **settings: Any) -> Plan:
    """What `rank` with these settings would ask and is not stored yet. Sends nothing, starts nothing.

    candidates: whether a problem needs some.
    """
    config = resolve(settings)
    chosen, name, _ = read(problems, config.limit, candidates=candidates, allow_code=config.allow_code)
    path = run_folder(chosen, name, config)
    method = make_method(config, config.models)
    method = replace(method, allocation=None)  # an allocation asks no more than this
    asks = [ask for problem in chosen for ask in method.plan(problem, [])]
    works = {ask.work.id: ask.work for ask in asks if isinstance(ask.work, Generate)}
    stored = 0
    if path.is_dir():
        with Store(path, write=False) as store:
            # Models are named by what the user writes here and by their identity there: rename, then compare.
            known = (store.read_json("run.json") or {}).get("models", {})
            identities = tuple(known.get(spec, spec) for spec in config.models)
            same = replace(method, solvers=identities)
            ids = {ask.work.id for problem in chosen for ask in same.plan(problem, [])}
            stored = sum((row := store.rows.get(id)) is not None and not row.again for id in ids)
    texts = {w.prompt.key: sum(len(m.content) for m in w.prompt.messages) for w in works.values()}
    prompts = sum(texts[w.prompt.key] for w in works.values()) // 3
    once = sum(texts.values()) // 3
    owed = len(works) - stored
    return Plan(
        run=str(path),
        rollouts=len(works),
        stored=stored,
        requests=owed,
        prompt_tokens=prompts * owed // max(1, len(works)),
        shared_tokens=(prompts - once) * owed // max(1, len(works)),
        completion_tokens=owed * config.sampling.max_tokens,
        executor=str(config.placement or "local"),
    )
