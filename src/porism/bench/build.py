"""Methods of a configuration: their settings resolved, their models named, their cost made equal where asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from porism.bench.config import BenchConfig, EqualCost, ModelTable
from porism.config import MOST_ROLLOUTS
from porism.errors import ConfigError
from porism.methods.allocate.settings import Allocation
from porism.methods.controls import donors
from porism.methods.make import METHODS, make
from porism.methods.prompt import load_template
from porism.types import Generate, Method, Problem

COUNTS = ("rollouts", "calls", "samples")  # what a method asks of each cell, by the name of its setting
_ROLES = ("solvers", "judges")
_OWN = ("name", "sampling", "others")  # of a method's settings, those that a table does not state
_TEMPLATES = ("template", "solve_template", "question_template")
MOST_CALLS = 4096


class Identify(Protocol):
    """The identity of a model of the configuration, or a stand-in before it is opened."""

    def __call__(self, table: ModelTable) -> str: ...


def kind(name: str, settings: Mapping[str, Any]) -> str:
    """Which method a table stands for: its `method`, or its own name."""
    return str(settings.get("method", name))


def build(config: BenchConfig, problems: Sequence[Problem], identify: Identify, where: Path) -> list[Method]:
    """The methods in the order of the file. where: the folder that template paths are relative to.

    Raises ConfigError for an unknown method or setting, a method without its model, a template that cannot be used.
    """
    methods = [
        _one(config, name, dict(table), problems, identify, where) for name, table in config.methods.items()
    ]
    return _equal(config.equal_cost, methods, problems) if config.equal_cost else methods


def _one(
    config: BenchConfig,
    name: str,
    settings: dict[str, Any],
    problems: Sequence[Problem],
    identify: Identify,
    where: Path,
) -> Method:
    method = kind(name, settings)
    settings.pop("method", None)
    if method not in METHODS:
        return make(method)  # which knows how to refuse it
    known = {f.name for f in dataclasses.fields(METHODS[method])}  # type: ignore[arg-type]
    tables = _models(config, name, settings.pop("model", None))
    role = next((role for role in _ROLES if role in known), None)
    for key in (*_ROLES, *_OWN):
        if key in settings:
            raise ConfigError(
                f"methods.{name}: {key} is no key of a method's table; models and sampling are in [models]"
            )
    for key in COUNTS:
        if isinstance(count := settings.get(key), int) and count > MOST_ROLLOUTS:
            raise ConfigError(f"methods.{name}: {key} is {count}: it is at most {MOST_ROLLOUTS:,}")
    if method == "reward":
        settings["model"] = _reward(name, tables, identify)
    elif tables and role is None:
        raise ConfigError(f"methods.{name}: {method} asks no model; take `model` out")
    elif any(table.reward for table in tables):
        raise ConfigError(f"methods.{name}: a reward model writes no text; {method} needs a model that does")
    if (not tables and role == "judges") or (not tables and method == "utility"):
        raise ConfigError(f'methods.{name}: {method} needs a model: model = "NAME" of a table [models.NAME]')
    if tables and role:
        settings[role] = tuple(identify(table) for table in tables)
        settings["sampling"] = _sampling(name, tables)
    for key in _TEMPLATES:
        if key in settings:
            settings[key] = load_template(where / str(settings[key]), "")
    if method == "utility":
        embedded = "-embedded" if all(table.embedded for table in tables) else ""
        settings.setdefault("template", load_template(None, f"utility{embedded}"))
        settings.setdefault("question_template", load_template(None, f"utility-question{embedded}"))
        if "allocation" in settings:
            settings["allocation"] = _allocation(name, settings["allocation"])
        if settings.get("exemplar") == "other-question":
            settings["others"] = donors(problems)
    try:
        return make(method, name=name, **settings)
    except ConfigError as error:
        raise ConfigError(f"methods.{name}: {error}") from error
    except TypeError as error:
        raise ConfigError(f"methods.{name}: a setting has the wrong type: {error}") from error


def _allocation(name: str, given: object) -> Allocation:
    try:
        return msgspec.convert(given, type=Allocation)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f'methods.{name}.allocation: {error}; write a table, as in allocation = {{ policy = "toptwo" }}'
        ) from error


def _models(config: BenchConfig, name: str, given: object) -> list[ModelTable]:
    names = [] if given is None else [given] if isinstance(given, str) else given
    if not isinstance(names, list):
        raise ConfigError(f"methods.{name}.model: write a name of [models], or a list of them")
    for one in names:
        if one not in config.models:
            raise ConfigError(
                f"methods.{name}.model: there is no [models.{one}]: {', '.join(config.models) or 'none'}"
            )
    return [config.models[one] for one in names]


def _reward(name: str, tables: Sequence[ModelTable], identify: Identify) -> str:
    if len(tables) != 1 or tables[0].reward is None:
        raise ConfigError(
            f'methods.{name}: reward needs one reward model: model = "NAME" of a table [models.NAME] that says '
            'reward = "pooling", "classify" or "score"'
        )
    return identify(tables[0])


def _sampling(name: str, tables: Sequence[ModelTable]) -> Any:
    found = {table.sampling for table in tables}
    if len(found) > 1:
        raise ConfigError(f"methods.{name}: its models have different sampling; give them the same")
    return found.pop()


# Equal cost


def _equal(wanted: EqualCost, methods: Sequence[Method], problems: Sequence[Problem]) -> list[Method]:
    like = next((m for m in methods if m.name == wanted.like), None)
    if like is None:
        raise ConfigError(f"equal_cost.like: there is no [methods.{wanted.like}]")
    target = cost(like, problems, wanted.unit)
    return [m if m is like else _scaled(m, problems, target, wanted.unit) for m in methods]


def _scaled(method: Method, problems: Sequence[Problem], target: int, unit: str) -> Method:
    """The method with the largest count whose cost does not go over `target`, or with one where even that does."""
    name = next((key for key in COUNTS if hasattr(method, key)), None)
    if name is None or not cost(method, problems, unit):
        return method

    def at(count: int) -> Method:
        return dataclasses.replace(method, **{name: count})  # type: ignore[type-var]

    low, high = 1, 2
    while high <= MOST_CALLS and cost(at(high), problems, unit) <= target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(at(middle), problems, unit) <= target else (low, middle)
    return at(low)


def cost(method: Method, problems: Sequence[Problem], unit: str) -> int:
    """What the first plan of a method costs: rollouts, or tokens at most (three characters a prompt token)."""
    works = {
        ask.work.id: ask.work
        for problem in problems
        for ask in method.plan(problem, [])
        if isinstance(ask.work, Generate)
    }
    if unit == "calls":
        return len(works)
    return sum(
        sum(len(m.content) for m in work.prompt.messages) // 3 + work.prompt.sampling.max_tokens
        for work in works.values()
    )


__all__ = ["COUNTS", "Identify", "build", "cost", "kind"]
