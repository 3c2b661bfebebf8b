"""What a run folder was last run with, and what it holds: problems, methods, observations.

For everything that looks at runs afterwards: score, status, audits, analyses, frames, calibrations. Costs no token and
needs no model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from porism.engine import replay
from porism.errors import ConfigError
from porism.methods.make import METHODS
from porism.methods.utility import Utility
from porism.prepare import refuse_code
from porism.store import Store
from porism.types import Method, Observation, Problem
from porism.verify import VERSION

if TYPE_CHECKING:
    from porism.bench.config import BenchConfig

Seen = dict[tuple[str, str], list[Observation]]  # by problem id and method name


def is_benchmark(settings: Any) -> bool:
    """Whether run.json is that of a benchmark."""
    return isinstance(settings, dict) and "benchmark" in settings


def stored_benchmark(store: Store) -> tuple[BenchConfig, list[Problem], list[Method]]:
    """Configuration, problems and methods that a run folder was last run with. ConfigError where it does not say."""
    from porism.bench.config import BenchConfig

    settings = store.read_json("run.json")
    try:
        config = BenchConfig.model_validate(settings["benchmark"])
        lines = (store.path / "problems.jsonl").read_bytes().splitlines()
        problems = [msgspec.json.decode(line, type=Problem) for line in lines]
        methods: list[Method] = [
            msgspec.convert(entry["settings"], type=METHODS[entry["method"]]) for entry in settings["methods"]
        ]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{store.path}: this benchmark cannot be scored, its settings or problems are not whole ({error}); the "
            "command that made it writes them anew"
        ) from error
    return config, problems, methods


def stored_plan(store: Store) -> tuple[list[Problem], Utility]:
    """The problems and the method that a run folder was last run with. ConfigError where it does not say."""
    settings = store.read_json("run.json")
    if settings is None:
        raise ConfigError(f"{store.path}: no run.json here, so this is no run folder")
    if is_benchmark(settings):
        raise ConfigError(
            f"{store.path}: this is a benchmark of several methods, and this command needs a run of `rank`"
        )
    try:
        lines = (store.path / "problems.jsonl").read_bytes().splitlines()
        problems = [msgspec.json.decode(line, type=Problem) for line in lines]
        return problems, msgspec.convert(settings["method"], type=Utility)
    except (OSError, KeyError, TypeError, msgspec.MsgspecError) as error:
        raise ConfigError(
            f"{store.path}: this run cannot be scored, its settings or problems are not whole ({error}); the "
            "command that made it writes them anew"
        ) from error


def stored_methods(store: Store) -> tuple[list[Problem], list[Method]]:
    """The problems and all methods of a run folder, of `rank` or of `run`. ConfigError where it does not say."""
    if is_benchmark(store.read_json("run.json")):
        _, problems, methods = stored_benchmark(store)
        return problems, methods
    problems, method = stored_plan(store)
    return problems, [method]


async def observed(path: Path, *, allow_code: bool = False) -> tuple[list[Problem], list[Method], Seen]:
    """Problems, methods and the observations of completed rounds of any run folder. Costs no token; needs no model.

    Raises ConfigError where its answers were checked by another version of the verifier.
    """
    from porism.verify.pool import Verifier

    with Store(path, write=False) as store:
        problems, methods = stored_methods(store)
        refuse_code(problems, allow_code=allow_code)
        store.check_version(VERSION)
        async with Verifier(allow_code=allow_code) as checker:
            return problems, methods, await replay(store, checker, problems, methods)


__all__ = ["Seen", "is_benchmark", "observed", "stored_benchmark", "stored_methods", "stored_plan"]
