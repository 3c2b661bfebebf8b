"""The TOML file of `porism run`, typed: what is measured, by which methods and models, and what is compared.

    data = "set.jsonl"                       [models.small]                     [methods.utility]
    primary.metric = "auc"                   model = "local/qwen2.5-coder-0.5b"   model = "small"
    primary.methods = ["utility", "judge"]   temperature = 0.5                    rollouts = 8

Every key is checked before anything is asked; docs/benchmark.md describes them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from porism.config import EMBEDDED, SERVED, Placement, placement
from porism.errors import ConfigError
from porism.types import Sampling


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ModelTable(_Table):
    """A model and how it is asked. Two tables may name the same model with other sampling: it is opened once.

    reward: for a scalar reward model, the service that gives its number (see models.reward).
    """

    model: str
    base_url: str | tuple[str, ...] | None = None
    reward: Literal["pooling", "classify", "score"] | None = None
    concurrency: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, ge=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    min_p: float | None = Field(default=None, ge=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)

    @property
    def embedded(self) -> bool:
        """Whether it runs on this machine, in llama.cpp of ours."""
        return self.model.startswith("local/")

    @property
    def sampling(self) -> Sampling:
        """As given, and by where the model runs for what was not."""
        defaults = EMBEDDED if self.embedded else SERVED
        given = {name: getattr(self, name) for name in defaults}
        return Sampling(**{name: defaults[name] if value is None else value for name, value in given.items()})


class Primary(_Table):
    """The one comparison named before the data are seen; it pays for no other one."""

    metric: str = "auc"
    methods: tuple[str, str]

    @model_validator(mode="after")
    def _two(self) -> Primary:
        if self.methods[0] == self.methods[1]:
            raise ValueError("a method is not compared with itself: name two")
        return self


class EqualCost(_Table):
    """Give every other method as many calls, or tokens at most, a problem as the method `like` plans."""

    unit: Literal["calls", "tokens"] = "calls"
    like: str


class BudgetTable(_Table):
    """Limits of the whole run; what is reached stops it with exit code 3."""

    requests: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    cost: float | None = Field(default=None, ge=0)
    price: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]] | None = None

    @model_validator(mode="after")
    def _priced(self) -> BudgetTable:
        if self.cost is not None and self.price is None:
            raise ValueError("a cost needs `price = [IN, OUT]`, in dollars per million tokens")
        return self


class ClusterTable(_Table):
    """Replicas of the models on a Ray cluster (see porism.config.Placement). Reward models are asked from here."""

    address: str | None = None
    replicas: int | None = None
    cpus: int | None = None
    gpus: int | None = None
    engine_args: str | None = None


class BenchConfig(_Table):
    """A whole benchmark. data: problem files. where: metadata values that a problem must have, by key. neighbors: only
    the first so many of each problem.

    pools: whether the set's pools were balanced by hand (so many right, so many wrong) or are what some models gave.
    human, estimand: see docs/metrics.md. metrics: an empty list needs no label, and gives scores alone. executor:
    "local", "ray" for replicas as `cluster` says, or "ray-data" for batches of Ray Data there.
    """

    data: Annotated[tuple[Path, ...], Field(min_length=1)]
    output: Path | None = None
    limit: int | None = Field(default=None, ge=1)
    where: dict[str, Any] = {}
    neighbors: int | None = Field(default=None, ge=1)
    pools: Literal["balanced", "natural"] = "balanced"
    human: Literal["right", "apart"] = "right"
    estimand: Literal["average-then-rank", "rank-then-average"] = "average-then-rank"
    metrics: tuple[str, ...] | None = None
    primary: Primary | None = None
    equal_cost: EqualCost | None = None
    models: dict[str, ModelTable] = {}
    methods: dict[str, dict[str, Any]]
    budget: BudgetTable = BudgetTable()
    executor: str = "local"
    cluster: ClusterTable = ClusterTable()

    @property
    def placement(self) -> Placement | None:
        """Where replicas go; None: models are asked from this process. ConfigError for what cannot be."""
        return placement(self.executor, self.cluster.model_dump())

    @model_validator(mode="after")
    def _one_place(self) -> BenchConfig:
        places: dict[str, tuple[str | tuple[str, ...] | None, str | None]] = {}
        for name, table in self.models.items():
            place = table.base_url, table.reward
            if places.setdefault(table.model, place) != place:
                raise ValueError(
                    f"models.{name}: {table.model} stands in another table with another base_url or reward, and a "
                    "model is opened once: give both the same"
                )
        return self


def read_config(path: Path, changes: Sequence[str] = ()) -> BenchConfig:
    """The configuration of a TOML file, with `key=value` changes. Paths in it are relative to the file.

    Raises ConfigError for a file that cannot be read, with every unknown key and bad value in one message.
    """
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}; give a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    for change in changes:
        _set(values, change)
    if isinstance(values.get("data"), str):
        values["data"] = [values["data"]]
    try:
        config = BenchConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError("\n".join(f"{path}: {line}" for line in _told(error))) from error
    where = path.parent
    return config.model_copy(update={"data": tuple(where / file for file in config.data)})


def _set(values: dict[str, Any], change: str) -> None:
    """Put one `a.b.c=value` in; the value as TOML reads it, else as the text it is."""
    key, equals, text = change.partition("=")
    if not equals or not key:
        raise ConfigError(f"--set {change}: write key=value, as in --set methods.utility.rollouts=4")
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        value = text
    *path, last = key.split(".")
    here: Any = values
    for part in path:
        here = here.setdefault(part, {})
        if not isinstance(here, dict):
            raise ConfigError(f"--set {change}: {part!r} is a value and holds no keys")
    here[last] = value


def _told(error: ValidationError) -> list[str]:
    """A line for each fault: the key, what is wrong, and the nearest right key."""
    lines = []
    for fault in error.errors(include_url=False):
        key = ".".join(map(str, fault["loc"]))
        if fault["type"] == "extra_forbidden":
            known = _known(fault["loc"])
            close = get_close_matches(str(fault["loc"][-1]), known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
            lines.append(f"{key}: unknown key; {hint}")
        elif fault["type"] == "missing":
            lines.append(f"{key}: is missing")
        elif fault["type"] == "value_error":
            lines.append(f"{key}: {fault['ctx']['error']}".removeprefix(": "))
        elif fault["type"] == "too_short":
            lines.append(f"{key}: is empty")
        elif fault["type"] == "tuple_type":
            lines.append(f"{key}: must be a list, not {fault['input']!r}"[:300])
        else:
            lines.append(f"{key}: {fault['msg']}, not {fault['input']!r}"[:300])
    return lines


def _known(path: tuple[int | str, ...]) -> list[str]:
    tables: dict[str, type[BaseModel]] = {
        "models": ModelTable,
        "primary": Primary,
        "equal_cost": EqualCost,
        "budget": BudgetTable,
        "cluster": ClusterTable,
    }
    table = tables.get(str(path[0]), BenchConfig) if len(path) > 1 else BenchConfig
    return list(table.model_fields)


__all__ = ["BenchConfig", "BudgetTable", "EqualCost", "ModelTable", "Primary", "read_config"]
