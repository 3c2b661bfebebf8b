"""A whole run, put together: files, models, run folder, verifier, engine, and the ranking at the end.

`rank` is the main job as a Python function; the command line calls `arank`. The order of things is chosen so that
whatever can be wrong is found before the first token is spent: files, settings, the folder, then the models.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct

from porism import __version__
from porism.blocking import blocking
from porism.budget import Budget
from porism.config import RankConfig, changed
from porism.engine import Engine, Watch, replay
from porism.errors import ConfigError
from porism.interrupt import interruptible
from porism.methods.ranking import Ranking
from porism.methods.ranking import rank as ranking_of
from porism.methods.utility import Utility
from porism.prepare import (
    Problems,
    make_method,
    open_models,
    plan,
    read,
    refuse_code,
    resolve,
    run_folder,
)
from porism.right import Right
from porism.store import Store
from porism.stored import Seen, stored_methods, stored_plan
from porism.types import Method, Observation, Problem, Usage
from porism.verify import VERSION

if TYPE_CHECKING:
    import polars as pl

    from porism.frames import What


class RankWatch(Watch, Protocol):
    """A watch that also shows rankings as they form, and can say how things stand."""

    def ranked(self, problem_id: str, ranking: Ranking) -> None: ...

    def status(self) -> str: ...


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

    def frame(self, what: What = "observations") -> pl.DataFrame:
        """The run's observations, or its `scores`, as a polars frame (docs/analyses.md lists the columns)."""
        from porism.frames import frame

        return frame(Path(self.run), what)


def rank(problems: Problems, **settings: Any) -> Ranked:
    """Rank the candidates of each problem; blocks until done. Works in a notebook as well.

    problems: a problem file, a folder problem, or Problem records. settings: the fields of RankConfig, and `model`
    for a single one. Raises InputError for what the caller can mend, ModelError for a model that cannot serve.
    A run that a budget or a failing server stops returns with `stopped` set.
    """
    return blocking(lambda: arank(problems, **settings))


async def arank(
    problems: Problems,
    *,
    watch: RankWatch | None = None,
    confirm: Callable[[Sequence[str]], bool] | None = None,
    **settings: Any,
) -> Ranked:
    """The same for callers with a loop of their own.

    watch: who looks on. confirm: asked with the differences when the run folder was made with other settings.
    """
    config = resolve(settings)
    chosen, name, warnings = read(problems, config.limit, allow_code=config.allow_code)
    return await run_problems(chosen, name, config, warnings=warnings, watch=watch, confirm=confirm)


async def run_problems(
    chosen: Sequence[Problem],
    name: str,
    config: RankConfig,
    *,
    warnings: list[str],
    watch: RankWatch | None = None,
    confirm: Callable[[Sequence[str]], bool] | None = None,
) -> Ranked:
    """The same for problems that `prepare.read` has read. A problem without candidates has its no-example row only."""
    from porism.progress import SilentWatch
    from porism.verify.pool import Verifier

    refuse_code(chosen, allow_code=config.allow_code)
    look = watch or SilentWatch()
    for warning in warnings:
        look.note(warning)
    async with AsyncExitStack() as stack:
        stack.callback(look.finished)
        store = stack.enter_context(Store(run_folder(chosen, name, config)))
        store.check_version(VERSION)
        models = await open_models(stack, chosen, config, look, warnings)
        method = make_method(config, tuple(model.identity for model in models))
        warnings += method.warnings()
        right = Right.of(config, chosen, method)
        _open_run(store, chosen, name, method, right, config, warnings, confirm)
        checker = await stack.enter_async_context(Verifier(allow_code=config.allow_code))
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
            on_round=_Live(store, method, look).on_round,
        )
        with interruptible(engine):
            outcome = await engine.run(chosen, [method])
        missing = {f"{where}: {why}": count for (where, why), count in outcome.missing.items()}
        result = Ranked(
            run=str(store.path),
            problems=_rankings(chosen, method, outcome.seen, right),
            usage=store.usage,
            warnings=tuple(warnings),
            missing=missing,
            stopped=str(outcome.stopped) if outcome.stopped is not None else None,
            exit_code=outcome.stopped.exit_code if outcome.stopped is not None else int(bool(missing)),
        )
        _close_run(store, result, look)
    return result


class _Live:
    """Rankings while the run goes on, no oftener than they are cheap: about a twentieth of the time goes into them."""

    def __init__(self, store: Store, method: Utility, watch: RankWatch) -> None:
        self._store, self._method, self._watch = store, method, watch
        self._next = 0.0

    def on_round(self, problem: Problem, _: Method, seen: list[Observation]) -> None:
        started = time.monotonic()
        if started < self._next:
            return
        self._watch.ranked(problem.id, ranking_of(problem, self._method, seen))
        self._store.write("status.txt", self._watch.status().encode())
        now = time.monotonic()
        self._next = now + 20 * (now - started)


async def score(path: Path, *, allow_code: bool = False) -> Ranked:
    """The ranking of a run from what its folder holds. Costs no token; needs no model.

    Raises ConfigError where its answers were checked by another version of the verifier.
    """
    from porism.verify.pool import Verifier

    with Store(path, write=False) as store:
        chosen, method = stored_plan(store)
        refuse_code(chosen, allow_code=allow_code)
        right = Right.stored(store.read_json("run.json"))
        store.check_version(VERSION)
        async with Verifier(allow_code=allow_code) as checker:
            seen = await replay(store, checker, chosen, [method])
        return Ranked(run=str(path), problems=_rankings(chosen, method, seen, right), usage=store.usage)


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
    right: Right | None,
    config: RankConfig,
    warnings: Sequence[str],
    confirm: Callable[[Sequence[str]], bool] | None,
) -> None:
    """Write run.json and problems.jsonl.

    ConfigError where the folder holds a run under other settings, or verdicts of another verifier version.
    """
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
    store.check_version(VERSION, (ask for problem in problems for ask in method.plan(problem, [])))

    def change(settings: dict[str, Any]) -> dict[str, Any]:
        return {
            **settings,
            "name": name,
            "porism": __version__,
            "python": sys.version.split()[0],
            "verifier": VERSION,
            "data_hash": data_hash(problems),
            "models": dict(zip(config.models, method.solvers, strict=True)),
            "method": msgspec.to_builtins(method),
            "right": msgspec.to_builtins(right),
            "price": config.price,
            "sessions": [
                *settings.get("sessions", []),
                {
                    "started": datetime.now(UTC).isoformat(timespec="seconds"),
                    "warnings": list(warnings),
                },
            ],
        }

    store.update_settings(change)
    store.write("problems.jsonl", b"".join(msgspec.json.encode(p) + b"\n" for p in problems))


def _close_run(store: Store, result: Ranked, watch: RankWatch) -> None:
    def change(settings: dict[str, Any]) -> dict[str, Any]:
        settings["sessions"][-1] |= {
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "stopped": result.stopped,
            "usage": msgspec.to_builtins(result.usage),
        }
        return settings

    store.update_settings(change)
    store.write_json("ranking.json", result)
    if result.problems:
        watch.ranked(result.problems[-1].id, result.problems[-1])
    store.write("status.txt", watch.status().encode())


def _rankings(
    problems: Sequence[Problem], method: Utility, seen: Seen, right: Right | None
) -> tuple[Ranking, ...]:
    found = []
    for p in problems:
        own = seen.get((p.id, method.name), [])
        ranking = ranking_of(p, method, own)
        found.append(ranking if right is None else right.give(ranking, p, method, own))
    return tuple(found)


__all__ = [
    "RankWatch",
    "Ranked",
    "arank",
    "plan",
    "rank",
    "run_problems",
    "score",
    "stored_methods",
    "stored_plan",
]
