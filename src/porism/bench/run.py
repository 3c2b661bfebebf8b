"""`porism run`: a benchmark as one resumable run, from its configuration to metrics.

The order of things is that of `rank`: whatever can be wrong is found before the first token is spent. run.json holds
the methods with every setting resolved, so `porism score` needs neither the configuration nor a model.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from porism import __version__
from porism.bench.build import COUNTS, build, cost, kind
from porism.bench.config import BenchConfig
from porism.bench.cost import cost as cost_of
from porism.bench.cost import works
from porism.bench.evaluate import Evaluated, check_labels, evaluated, scores
from porism.bench.problems import read_problems
from porism.budget import Budget
from porism.config import NO_ALLOCATION, changed
from porism.data import data_hash
from porism.engine import Engine, Watch, replay
from porism.errors import ConfigError
from porism.interrupt import interruptible
from porism.models import open_reward
from porism.prepare import enter, opener, refuse_code
from porism.store import Store
from porism.stored import is_benchmark, stored_benchmark
from porism.types import Generate, Method, Model, Observation, Problem, Usage

if TYPE_CHECKING:
    import polars as pl

    from porism.frames import What
    from porism.run import RankWatch

STATUS_EVERY = 1.0  # seconds between two writings of status.txt, at least
_MAY_GROW = {
    *COUNTS,
    "target_samples",
    "others",
    "allocation",
}  # settings that change what is asked, but no answer


class Benchmark(Struct, frozen=True, kw_only=True):
    """The result of a run: the run folder, every method's metrics, the comparisons, and what it cost.

    stopped says why the run ended before its plan, and is None at its end; then figures stand on completed rounds.
    exit_code: 0 done, 1 finished with failures, 3 budget reached, 130 interrupted.
    """

    run: str
    problems: int
    groups: int
    evaluated: Evaluated
    usage: Usage
    warnings: tuple[str, ...] = ()
    missing: dict[str, int] = {}
    stopped: str | None = None
    exit_code: int = 0

    def frame(self, what: What = "observations") -> pl.DataFrame:
        """The run's observations, or its `scores`, as a polars frame (docs/analyses.md lists the columns)."""
        from porism.frames import frame

        return frame(Path(self.run), what)


class Planned(Struct, frozen=True, kw_only=True):
    """What one method would ask at first: rollouts, those stored, and tokens at most. Shared work counts for each."""

    rollouts: int
    stored: int
    tokens: int


def run_folder(config: BenchConfig, problems: Sequence[Problem], file: Path) -> Path:
    """Where the run lies: as told, or found again by the name of the configuration and the questions."""
    return config.output or Path("runs") / f"{file.stem}-{data_hash(problems)}"


def plan(config: BenchConfig, file: Path, *, allow_code: bool = False) -> dict[str, Planned]:
    """What each method would ask, by name. Sends nothing, starts nothing."""
    problems, _ = read_problems(config, allow_code=allow_code)
    check_labels(config, problems)
    _check_names(config)
    path = run_folder(config, problems, file)
    known: dict[str, str] = {}
    rows: set[str] = set()
    if path.is_dir():
        with Store(path, write=False) as store:
            known = (store.read_json("run.json") or {}).get("models", {})
            rows = {id for id, row in store.rows.items() if not row.again}
    methods = build(config, problems, lambda table: known.get(table.model, table.model), file.parent)
    return {
        m.name: Planned(
            rollouts=cost(m, problems, "calls"),
            stored=len(works(m, problems) & rows),
            tokens=cost(m, problems, "tokens"),
        )
        for m in methods
    }


async def arun(
    config: BenchConfig,
    file: Path,
    *,
    watch: RankWatch,
    confirm: Callable[[Sequence[str]], bool] | None = None,
    allow_code: bool = False,
) -> Benchmark:
    """Run or resume a benchmark. file: the configuration's, for its name and the paths in it.

    confirm: asked with the differences when the folder holds methods of the same names under other settings.
    allow_code: answer types and families may name code of the user's own.
    Raises InputError for what the caller can mend, ModelError for a model that cannot serve.
    """
    from porism.verify.pool import Verifier

    problems, warnings = read_problems(config, allow_code=allow_code)
    check_labels(config, problems)
    _check_names(config)
    drafts = build(
        config, problems, lambda table: table.model, file.parent
    )  # every fault of a setting shows here
    for warning in warnings:
        watch.note(warning)
    async with AsyncExitStack() as stack:
        store = stack.enter_context(Store(run_folder(config, problems, file)))
        opened = await _open_models(stack, config, _longest(drafts, problems), watch, warnings)
        identities = {spec: model.identity for spec, model in opened.items()}
        methods = build(config, problems, lambda table: identities[table.model], file.parent)
        _open_run(store, config, problems, methods, identities, warnings, confirm)
        if (late := _late_primary(store, config)) is not None:
            warnings.append(late)
            watch.note(late)
        checker = await stack.enter_async_context(Verifier(allow_code=allow_code))
        engine = Engine(
            {model.identity: model for model in opened.values()},
            store,
            checker,
            watch,
            budget=Budget(**config.budget.model_dump()),
            on_round=_Status(store, watch),
        )
        with interruptible(engine):
            outcome = await engine.run(problems, methods)
        missing = {f"{where}: {why}": count for (where, why), count in outcome.missing.items()}
        result = Benchmark(
            run=str(store.path),
            problems=len(problems),
            groups=len({p.group or p.id for p in problems}),
            evaluated=_evaluate(config, problems, methods, outcome.seen, store),
            usage=store.usage,
            warnings=tuple(warnings),
            missing=missing,
            stopped=str(outcome.stopped) if outcome.stopped is not None else None,
            exit_code=outcome.stopped.exit_code if outcome.stopped is not None else int(bool(missing)),
        )
        store.write_json("metrics.json", result)
        store.write("status.txt", watch.status().encode())
        store.update_settings(lambda settings: _ended(settings, result))
    return result


class _Status:
    """Writes status.txt after a round, once a second at most."""

    def __init__(self, store: Store, watch: RankWatch) -> None:
        self._store, self._watch, self._next = store, watch, 0.0

    def __call__(self, *_: object) -> None:
        if (now := time.monotonic()) >= self._next:
            self._store.write("status.txt", self._watch.status().encode())
            self._next = now + STATUS_EVERY


async def score(path: Path, *, allow_code: bool = False) -> Benchmark:
    """The metrics of a benchmark from what its folder holds. Costs no token; needs no model."""
    from porism.verify.pool import Verifier

    with Store(path, write=False) as store:
        config, problems, methods = stored_benchmark(store)
        refuse_code(problems, allow_code=allow_code)
        async with Verifier(allow_code=allow_code) as checker:
            seen = await replay(store, checker, problems, methods)
        return Benchmark(
            run=str(path),
            problems=len(problems),
            groups=len({p.group or p.id for p in problems}),
            evaluated=_evaluate(config, problems, methods, seen, store),
            usage=store.usage,
        )


def _check_names(config: BenchConfig) -> None:
    """InputError for settings that cannot be, and for a comparison of a method or metric that is not there."""
    from porism.metrics.formulas import check

    shared = [name for name, table in config.methods.items() if "allocation" in table]
    if shared and config.placement is not None and config.placement.batches:
        raise ConfigError(f"methods.{shared[0]}: {NO_ALLOCATION}")
    if not config.methods:
        raise ConfigError("there are no methods: write a table [methods.utility]")
    for name in config.primary.methods if config.primary else ():
        if name not in config.methods:
            raise ConfigError(f"primary.methods: there is no [methods.{name}]: {', '.join(config.methods)}")
    metrics = [*(config.metrics or ()), *([config.primary.metric] if config.primary else [])]
    for metric in metrics:
        check(metric)


async def _open_models(
    stack: AsyncExitStack, config: BenchConfig, longest: int, watch: Watch, warnings: list[str]
) -> dict[str, Model]:
    """The models that some method uses, by model string, each opened once."""
    used = _used(config)
    opened: dict[str, Model] = {}
    open_one = await opener(stack, config.placement, watch)
    for name in used:
        table = config.models[name]
        if table.model in opened:
            continue
        limit = max(t.sampling.max_tokens for t in config.models.values() if t.model == table.model)
        # As for `rank`: two characters a token is on the safe side. A second asking may be twice as long.
        context = longest // 2 + 2 * limit + 64 if table.embedded else None
        where: dict[str, Any] = {"base_url": table.base_url, "concurrency": table.concurrency}
        model = (
            open_reward(table.model, shape=table.reward, **where)
            if table.reward
            else open_one(table.model, context=context, **where)
        )
        opened[table.model] = await enter(stack, model, watch, warnings)
    return opened


def _used(config: BenchConfig) -> list[str]:
    names: list[str] = []
    for table in config.methods.values():
        given = table.get("model", [])
        names += [given] if isinstance(given, str) else given
    return list(dict.fromkeys(names))


def _longest(methods: Sequence[Method], problems: Sequence[Problem]) -> int:
    return max(
        (
            sum(len(m.content) for m in ask.work.prompt.messages)
            for method in methods
            for problem in problems
            for ask in method.plan(problem, [])
            if isinstance(ask.work, Generate)
        ),
        default=0,
    )


def _open_run(
    store: Store,
    config: BenchConfig,
    problems: Sequence[Problem],
    methods: Sequence[Method],
    identities: dict[str, str],
    warnings: Sequence[str],
    confirm: Callable[[Sequence[str]], bool] | None,
) -> None:
    found = store.read_json("run.json") or {}
    if found and not is_benchmark(found):
        raise ConfigError(f"{store.path} holds a run of another command; give -o another folder")
    entries = [
        {
            "method": kind(m.name, config.methods[m.name]),
            "settings": msgspec.json.decode(msgspec.json.encode(m)),  # as it will be read: lists, not tuples
        }
        for m in methods
    ]
    before = {entry["settings"]["name"]: entry["settings"] for entry in found.get("methods", [])}
    differences = [
        f"methods.{name}: {line}"
        for entry in entries
        if (name := entry["settings"]["name"]) in before
        for line in changed(_answers(before[name]), _answers(entry["settings"]))
    ]
    if differences and not (confirm and confirm(differences)):
        shown = "\n".join(f"  {line[:300]}" for line in differences)
        raise ConfigError(
            f"{store.path} was made with other settings:\n{shown}\nGive -o another folder, or --accept-changes to go "
            "on in this one (answers under both settings are kept, and only those under the new ones count)"
        )

    def change(settings: dict[str, Any]) -> dict[str, Any]:
        return {
            **settings,
            "porism": __version__,
            "python": sys.version.split()[0],
            "data_hash": data_hash(problems),
            "models": {**settings.get("models", {}), **identities},
            "benchmark": config.model_dump(mode="json"),
            "methods": entries,
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


def _ended(settings: dict[str, Any], result: Benchmark) -> dict[str, Any]:
    settings["sessions"][-1] |= {
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "stopped": result.stopped,
        "usage": msgspec.to_builtins(result.usage),
    }
    return settings


def _late_primary(store: Store, config: BenchConfig) -> str | None:
    """A warning where the primary comparison is not the one named before the first answer came in."""
    now = config.primary.model_dump(mode="json") if config.primary else None
    first = (store.read_json("run.json") or {}).get("primary_at_start", ...)
    if first is ... or not store.rows:
        store.update_settings(lambda settings: {**settings, "primary_at_start": now})
        return None
    if first != now:
        return f"the primary comparison was changed after answers came in: it was {first or 'none'}, which counts"
    return None


def _answers(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in _MAY_GROW}


def _evaluate(
    config: BenchConfig,
    problems: Sequence[Problem],
    methods: Sequence[Method],
    seen: dict[tuple[str, str], list[Observation]],
    store: Store,
) -> Evaluated:
    kinds = {m.name: kind(m.name, config.methods[m.name]) for m in methods}
    found = evaluated(config, problems, methods, kinds, {m.name: scores(problems, m, seen) for m in methods})
    costs = {m.name: cost_of(m, problems, seen, store) for m in methods}
    return msgspec.structs.replace(
        found,
        methods={
            name: msgspec.structs.replace(
                result,
                rollouts=costs[name][0],
                prompt_tokens=costs[name][1].prompt,
                completion_tokens=costs[name][1].completion,
            )
            for name, result in found.methods.items()
        },
    )


__all__ = [
    "Benchmark",
    "Planned",
    "arun",
    "plan",
    "run_folder",
    "score",
]
