"""The problems of a benchmark: of all its files those that are asked for, with what their families draw."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from porism.bench.build import kind
from porism.bench.config import BenchConfig
from porism.data import load
from porism.errors import DataError
from porism.prepare import refuse_code
from porism.types import Problem


def read_problems(config: BenchConfig, *, allow_code: bool = False) -> tuple[list[Problem], list[str]]:
    """The problems of a configuration, and warnings. Neighbors of a family are drawn here, as for `rank`.

    DataError for ids that two files share, nothing left, or a family that cannot be drawn from; ConfigError for code
    that is not allowed.
    """
    found: list[Problem] = []
    warnings: list[str] = []
    for path in config.data:
        report = load(path)
        warnings += map(str, report.warnings)
        found += report.problems
    chosen = [
        p for p in found if all((p.metadata or {}).get(key) == value for key, value in config.where.items())
    ]
    chosen = chosen[: config.limit]
    files = ", ".join(map(str, config.data))
    if not chosen:
        left = f": none of the {len(found)} has {config.where}" if config.where and found else ""
        raise DataError([f"{files}: there is no problem here{left}"])
    twice = [id for id, times in Counter(p.id for p in chosen).items() if times > 1]
    if twice:
        raise DataError([f"{files}: id {id!r} is used more than once" for id in sorted(twice)])
    if any(problem.family is not None for problem in chosen):
        from porism.neighbors.code import run_code
        from porism.neighbors.expand import expanded

        chosen = [expanded(problem, run=run_code if allow_code else None) for problem in chosen]
    refuse_code(chosen, allow_code=allow_code)
    chosen = [replace(problem, neighbors=problem.neighbors[: config.neighbors]) for problem in chosen]
    utility = [name for name, table in config.methods.items() if kind(name, table) == "utility"]
    bare = [problem.id for problem in chosen if not problem.neighbors]
    if utility and bare:
        raise DataError(
            [f"{files}: problem {id!r} has no neighbors, and methods.{utility[0]} needs some" for id in bare]
        )
    return chosen, warnings


__all__ = ["read_problems"]
