"""A whole run, put together: files, models, run folder, verifier, engine, and the ranking at the end.

`rank` is the main job as a Python function; the command line calls `arank`. The order of things is chosen so that
whatever can be wrong is found before the first token is spent: files, settings, the folder, then the models.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct

from porism import __version__
from porism.config import RankConfig, changed
from porism.engine import Budget, Engine, Watch, replay
from porism.errors import ConfigError, DataError, Interrupted, ModelError, PorismError
from porism.methods.prompt import load_template
from porism.methods.ranking import Ranking
from porism.methods.ranking import rank as ranking_of
from porism.methods.utility import Utility
from porism.store import Store
from porism.types import Method, Model, Observation, Problem, Sampling, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator


class RankWatch(Watch, Protocol):
    """A watch that also shows rankings as they form."""

    def ranked(self, problem_id: str, ranking: Ranking) -> None: ...


class Ranked(Struct, frozen=True, kw_only=True):
    """The result of a run: a ranking for each problem, the run folder, and what it cost.

    stopped says why the run ended before its plan, and is None at its full end. missing: rollouts never answered,
    with the reason. exit_code: 0 done, 1 finished with failures, 3 budget reached, 130 interrupted.
    """

    run: str
    problems: tuple[Ranking, ...]
    usage: Usage
    warnings: tuple[str, ...] = ()
    missing: dict[str, int] = {}
    stopped: str | None = None
    exit_code: int = 0

    def __str__(self) -> str:
        from porism.table import plain_text

        return plain_text(self)


class Plan(Struct, frozen=True, kw_only=True):
    """What a run would ask: exact rollouts and requests, and an estimate of tokens.

    prompt_tokens counts every rollout's prompt in full; shared_tokens is the part of it that a server with a prefix
    cache computes once. completion_tokens is the most that the limit of an answer allows.
    """

    run: str
    rollouts: int
    stored: int
    requests: int
    prompt_tokens: int
    shared_tokens: int
    completion_tokens: int


def rank(problems: Path | str | Problem | Sequence[Problem], **settings: Any) -> Ranked:
    """Rank the candidates of each problem; blocks until done. Works in a notebook as well.

    problems: a problem file, a folder problem, or Problem records. settings: the fields of RankConfig, and `model`
    for a single one. Raises InputError for what the caller can mend, ModelError for a model that cannot serve.
    A run that a budget or a failing server stops returns with `stopped` set.
    """
    from threading import Thread

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(arank(problems, **settings))
    # A loop runs in this thread already, as in a notebook: ours gets a thread of its own.
    result: list[Ranked] = []
    fault: list[BaseException] = []

    def work() -> None:
        try:
            result.append(asyncio.run(arank(problems, **settings)))
        except BaseException as error:  # noqa: BLE001  raised again in the caller's thread
            fault.append(error)

    thread = Thread(target=work, name="porism")
    thread.start()
    thread.join()
    if fault:
        raise fault[0]
    return result[0]


async def arank(
    problems: Path | str | Problem | Sequence[Problem],
    *,
    watch: RankWatch | None = None,
    confirm: Callable[[Sequence[str]], bool] | None = None,
    **settings: Any,
) -> Ranked:
    """The same for callers with a loop of their own.

    watch: who looks on. confirm: asked with the differences when the run folder was made with other settings.
    """
    from porism.progress import SilentWatch
    from porism.verify.pool import Verifier

    config = _config(settings)
    chosen, name, warnings = _problems(problems, config.limit)
    look = watch or SilentWatch()
    for warning in warnings:
        look.note(warning)
    path = run_folder(chosen, name, config)
    async with AsyncExitStack() as stack:
        store = stack.enter_context(Store(path))
        models = await _open_models(stack, chosen, config, look, warnings)
        method = _method(config, tuple(model.identity for model in models))
        warnings += method.warnings()
        _open_run(store, chosen, name, method, config, confirm)
        checker = await stack.enter_async_context(Verifier())
        engine = Engine(
            {model.identity: model for model in models},
            store,
            checker,
            look,
            budget=Budget(
                requests=config.max_requests,
                tokens=config.max_tokens_total,
                cost=config.max_cost,
                price=config.price,
            ),
            on_round=lambda problem, _, seen: look.ranked(problem.id, ranking_of(problem, method, seen)),
        )
        with _signals(engine):
            outcome = await engine.run(chosen, [method])
        missing = {f"{where}: {why}": count for (where, why), count in outcome.missing.items()}
        result = Ranked(
            run=str(path),
            problems=_rankings(chosen, method, outcome.seen),
            usage=store.usage,
            warnings=tuple(warnings),
            missing=missing,
            stopped=str(outcome.stopped) if outcome.stopped is not None else None,
            exit_code=outcome.stopped.exit_code if outcome.stopped is not None else int(bool(missing)),
        )
        _close_run(store, result)
    return result


async def score(path: Path) -> Ranked:
    """The ranking of a run from what its folder holds. Costs no token; needs no model."""
    from porism.verify.pool import Verifier

    with Store(path, write=False) as store:
        settings = store.read_json("run.json")
        if settings is None:
            raise ConfigError(f"{path}: no run.json here, so this is no run folder")
        chosen = [
            msgspec.json.decode(line, type=Problem)
            for line in (path / "problems.jsonl").read_bytes().splitlines()
        ]
        method = msgspec.convert(settings["method"], type=Utility)
        async with Verifier() as checker:
            seen = await replay(store, checker, chosen, [method])
        return Ranked(run=str(path), problems=_rankings(chosen, method, seen), usage=store.usage)


def plan(problems: Path | str | Problem | Sequence[Problem], **settings: Any) -> Plan:
    """What `rank` with these settings would ask and is not stored yet. Sends nothing, starts nothing."""
    config = _config(settings)
    chosen, name, _ = _problems(problems, config.limit)
    path = run_folder(chosen, name, config)
    method = _method(config, config.models)
    asks = {
        (ask.work.prompt.key, ask.work.rollout): ask for problem in chosen for ask in method.plan(problem, [])
    }
    stored = 0
    if path.is_dir():
        with Store(path, write=False) as store:
            # Models are named by what the user writes here and by their identity there: rename, then compare.
            known = (store.read_json("run.json") or {}).get("models", {})
            identities = tuple(known.get(spec, spec) for spec in config.models)
            same = _method(config, identities)
            ids = {ask.work.id for problem in chosen for ask in same.plan(problem, [])}
            stored = sum(id in store.rows for id in ids)
    texts = {key: sum(len(m.content) for m in ask.work.prompt.messages) for (key, _), ask in asks.items()}
    prompts = sum(texts[key] for key, _ in asks) // 3
    once = sum(texts.values()) // 3
    owed = len(asks) - stored
    return Plan(
        run=str(path),
        rollouts=len(asks),
        stored=stored,
        requests=owed,
        prompt_tokens=prompts * owed // max(1, len(asks)),
        shared_tokens=(prompts - once) * owed // max(1, len(asks)),
        completion_tokens=owed * config.tokens,
    )


def run_folder(problems: Sequence[Problem], name: str, config: RankConfig) -> Path:
    """Where the run lies: as told, or found again by the name of the file and the questions in it."""
    from porism.data import data_hash

    return config.output or Path("runs") / f"{name}-{data_hash(problems)}"


def _config(settings: dict[str, Any]) -> RankConfig:
    if "model" in settings:
        model = settings.pop("model")
        settings["models"] = (model,) if isinstance(model, str) else tuple(model)
    fields = RankConfig.__dataclass_fields__
    for key in settings:
        if key not in fields:
            from difflib import get_close_matches

            near = get_close_matches(key, fields, n=1)
            raise ConfigError(f"unknown setting {key!r}" + (f": did you mean {near[0]!r}?" if near else ""))
    return RankConfig(**settings)


def _problems(
    problems: Path | str | Problem | Sequence[Problem], limit: int | None
) -> tuple[list[Problem], str, list[str]]:
    """The problems to rank, the run's name, and warnings. DataError where one cannot be ranked."""
    if isinstance(problems, str | Path):
        from porism.data import load

        path = Path(problems)
        report = load(path, limit=limit)
        chosen, warnings = list(report.problems), [str(finding) for finding in report.warnings]
        name, where = path.resolve().stem, str(path)
    else:
        chosen = [problems] if isinstance(problems, Problem) else list(problems)[:limit]
        warnings, where = [], "the problems given"
        name = chosen[0].id if len(chosen) == 1 else "problems"
    faults = [] if chosen else [f"{where}: there is no problem here"]
    for problem in chosen:
        if not problem.neighbors:
            faults.append(
                f"{where}: problem {problem.id!r} has no neighbors, and a candidate is judged by nothing else: add "
                "questions near it whose answers you know, under the key 'neighbors'"
            )
        if not problem.candidates:
            faults.append(
                f"{where}: problem {problem.id!r} has no candidates to rank: add them under 'candidates'"
            )
    if faults:
        raise DataError(faults)
    return chosen, "".join(c if c.isalnum() or c in "-_." else "-" for c in name)[:60], warnings


async def _open_models(
    stack: AsyncExitStack, problems: Sequence[Problem], config: RankConfig, watch: Watch, warnings: list[str]
) -> list[Model]:
    from porism.models import open_model

    draft = _method(config, config.models)
    longest = max(
        sum(len(m.content) for m in ask.work.prompt.messages)
        for problem in problems
        for ask in draft.plan(problem, [])
    )
    models = []
    for spec in config.models:
        # Text averages over three characters a token, formulas fewer: two is on the safe side.
        context = longest // 2 + config.tokens + 64 if spec.startswith("local/") else None
        model = open_model(spec, base_url=config.base_url, context=context, concurrency=config.concurrency)
        host = getattr(model, "host", None)
        if host is not None:
            watch.note(f"{spec}: questions and candidates go to {host}")
        models.append(await stack.enter_async_context(model))
        for warning in await model.probe():
            warnings.append(f"{spec}: {warning}")
            watch.note(warnings[-1])
    watch.note(
        f"sampling: temperature {config.temperature:g}, at most {config.tokens} tokens an answer; "
        f"{config.rollouts} rollouts a neighbor"
    )
    return models


def _method(config: RankConfig, solvers: tuple[str, ...]) -> Utility:
    return Utility(
        solvers=solvers,
        sampling=Sampling(
            temperature=config.temperature,
            max_tokens=config.tokens,
            top_p=config.top_p,
            top_k=config.top_k,
            min_p=config.min_p,
        ),
        rollouts=config.rollouts,
        template=load_template(config.template, "utility"),
        solve_template=load_template(config.solve_template, "solve"),
        no_example=config.no_example,
        target_samples=config.target_samples,
    )


def _answers_depend_on(method: Utility) -> dict[str, Any]:
    return {
        "solvers": list(method.solvers),
        "sampling": msgspec.to_builtins(method.sampling),
        "template": method.template,
        "solve_template": method.solve_template,
    }


def _open_run(
    store: Store,
    problems: Sequence[Problem],
    name: str,
    method: Utility,
    config: RankConfig,
    confirm: Callable[[Sequence[str]], bool] | None,
) -> None:
    """Write run.json and problems.jsonl; ConfigError where the folder holds a run under other settings."""
    from porism.data import data_hash

    found = store.read_json("run.json")
    if found is not None and "method" in found:
        new = _answers_depend_on(method)
        differences = changed({key: found["method"].get(key) for key in new}, new)
        if found.get("data_hash") != data_hash(problems):
            differences.insert(0, "data: this folder holds a run of other questions")
        if differences and not config.accept_changes and not (confirm and confirm(differences)):
            shown = "\n".join(f"  {line[:300]}" for line in differences)
            raise ConfigError(
                f"{store.path} was made with other settings:\n{shown}\nGive -o another folder, or --accept-changes to "
                "go on in this one (answers under both settings are kept, and only those under the new ones count)"
            )

    def change(settings: dict[str, Any]) -> dict[str, Any]:
        return {
            **settings,
            "name": name,
            "porism": __version__,
            "python": sys.version.split()[0],
            "data_hash": data_hash(problems),
            "models": dict(zip(config.models, method.solvers, strict=True)),
            "method": msgspec.to_builtins(method),
            "sessions": [
                *settings.get("sessions", []),
                {"started": datetime.now(UTC).isoformat(timespec="seconds")},
            ],
        }

    store.update_settings(change)
    store.write("problems.jsonl", b"".join(msgspec.json.encode(p) + b"\n" for p in problems))


def _close_run(store: Store, result: Ranked) -> None:
    def change(settings: dict[str, Any]) -> dict[str, Any]:
        settings["sessions"][-1] |= {
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "stopped": result.stopped,
            "usage": msgspec.to_builtins(result.usage),
        }
        return settings

    store.update_settings(change)
    store.write_json("ranking.json", result)


def _rankings(
    problems: Sequence[Problem], method: Utility, seen: dict[tuple[str, str], list[Observation]]
) -> tuple[Ranking, ...]:
    return tuple(ranking_of(p, method, seen.get((p.id, method.name), [])) for p in problems)


@contextmanager
def _signals(engine: Engine) -> Iterator[None]:
    """Ctrl-C ends the run gently, a second one at once; so does the polite kill. In the main thread only."""
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    asked = False
    aborting: set[asyncio.Task[None]] = set()

    def interrupt() -> None:
        nonlocal asked
        if asked:
            aborting.add(loop.create_task(engine.abort()))
        asked = True
        engine.stop(Interrupted("interrupted: what was in flight has landed and is stored"))

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


__all__ = [
    "Method",
    "ModelError",
    "Plan",
    "PorismError",
    "RankWatch",
    "Ranked",
    "arank",
    "plan",
    "rank",
    "run_folder",
    "score",
]
