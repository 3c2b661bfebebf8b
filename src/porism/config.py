"""The settings of a run, typed and resolved: what the command line, a file or a caller says, in one record.

`Settings` holds what changes the answers themselves (models, prompts, sampling); a run refuses to go on under other
ones unless told. Everything else (how many rollouts, budgets, where to store) may grow from session to session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, cast

from porism.errors import ConfigError
from porism.methods.allocate.settings import Allocation, Policy
from porism.types import Sampling

DEFAULT_MODEL = "local/qwen2.5-coder-0.5b"
ROLLOUTS = 8
MOST_ROLLOUTS = 100_000  # of a cell: a slip of the finger should not fill the memory with a plan

# A reasoning model writes thousands of tokens at the temperature it was trained at; the embedded ones imitate a
# short example or ramble, the oftener the warmer, and have to be told to imitate (docs/embedded-model.md). llama.cpp
# would fill in top_p and top_k of its own, so they are stated.
SERVED: dict[str, Any] = {
    "temperature": 1.0,
    "top_p": None,
    "top_k": None,
    "min_p": None,
    "max_tokens": 16384,
}
EMBEDDED: dict[str, Any] = {"temperature": 0.5, "top_p": 0.95, "top_k": 40, "min_p": 0.0, "max_tokens": 256}


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Replicas of each model on a Ray cluster, and what each of them gets; as text, the same in words.

    batches: whether Ray Data asks, in large batches, in place of actors of porism's.

    address: "auto" for the cluster that this machine belongs to, HOST:PORT of its head, or "local" for a cluster of
    this machine alone. cpus and gpus are those of one replica. gpus (1 where not given) and engine_args, options of
    `vllm serve`, are for vLLM that runs in the replicas. Raises ConfigError.
    """

    address: str = "auto"
    replicas: int = 1
    cpus: int = 1
    gpus: int | None = None
    engine_args: str = ""
    batches: bool = False

    def __post_init__(self) -> None:
        for name, low in (("replicas", 1), ("cpus", 0), ("gpus", 0)):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and low <= value <= 10_000):
                raise ConfigError(f"{name} is {value!r}: it must be a whole number from {low} to 10,000")

    def __str__(self) -> str:
        number = f"{self.replicas} replica" + ("" if self.replicas == 1 else "s")
        where = "this machine" if self.address == "local" else f"the cluster at {self.address}"
        return f"{number} with Ray{' Data' if self.batches else ''} on {where}"


EXECUTORS = ("local", "ray", "ray-data")
NO_ALLOCATION = (
    "--executor ray-data asks all rollouts in large batches, and an allocation decides after every round where the "
    "next ones go: leave the allocation out, or take --executor ray"
)


def placement(executor: str, settings: Mapping[str, Any]) -> Placement | None:
    """Where replicas go as an executor and the settings of Placement say (None: not given); None: no Ray.

    Raises ConfigError for an unknown executor, and for settings that only Ray has a use for.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if executor in ("ray", "ray-data"):
        return Placement(batches=executor == "ray-data", **given)
    if executor != "local":
        raise ConfigError(f"executor {executor!r}: {', '.join(EXECUTORS[:-1])} or {EXECUTORS[-1]}")
    if given:
        raise ConfigError(f"{', '.join(given)}: only with Ray, as in --executor ray")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankConfig:
    """All that `porism rank` can be told; None means the default that the docs state.

    models: one or several solvers. base_url: where they are served, at one address or at several that share the work.
    temperature .. max_tokens: sampling, by default SERVED, or EMBEDDED where every model is an embedded one; see
    `sampling`. concurrency: calls in flight at one address. template, solve_template: files that replace our prompts.
    price: dollars per million prompt and completion tokens. accept_changes: go on in a run folder although models,
    prompts or sampling differ from what it was made with. allow_code: answer types may name checkers of the user's
    own, which are then imported and called. calibration: a file of `porism calibrate`, for P(right); prior: the share
    of right candidates in these pools. allocation: a policy that shares the rollouts out among candidates, with
    its goal, the `top` of goal top-k, epsilon and confidence; see `sharing`. executor: "local" asks from this process,
    "ray" from replicas on a cluster, with address, replicas, cpus, gpus and engine_args, "ray-data" in batches of Ray
    Data there; see `placement`.
    """

    models: tuple[str, ...] = (DEFAULT_MODEL,)
    base_url: str | tuple[str, ...] | None = None
    rollouts: int = ROLLOUTS
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    max_tokens: int | None = None
    template: Path | None = None
    solve_template: Path | None = None
    no_example: bool = True
    target_samples: int = 4
    limit: int | None = None
    output: Path | None = None
    concurrency: int | None = None
    max_requests: int | None = None
    max_tokens_total: int | None = None
    max_cost: float | None = None
    price: tuple[float, float] | None = None
    accept_changes: bool = False
    allow_code: bool = False
    calibration: Path | None = None
    prior: float | None = None
    allocation: str | None = None
    goal: str | None = None
    top: int | None = None
    epsilon: float | None = None
    confidence: float | None = None
    executor: str = "local"
    address: str | None = None
    replicas: int | None = None
    cpus: int | None = None
    gpus: int | None = None
    engine_args: str | None = None

    def __post_init__(self) -> None:
        """Raises ConfigError for values no run can have, before anything is opened."""
        least = {
            "rollouts": 1,
            "limit": 1,
            "max_tokens": 1,
            "concurrency": 1,
            "max_requests": 1,
            "max_tokens_total": 1,
            "top_k": 1,
            "target_samples": 0,
            "temperature": 0,
            "max_cost": 0,
        }
        for name, low in least.items():
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and low <= value < inf):
                raise ConfigError(f"{name} is {value!r}: it must be a number of at least {low}")
        if self.rollouts > MOST_ROLLOUTS:
            raise ConfigError(
                f"rollouts is {self.rollouts}: at most {MOST_ROLLOUTS:,} of a neighbor can be asked for"
            )
        for name in ("top_p", "min_p"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 <= value <= 1):
                raise ConfigError(f"{name} is {value!r}: it lies between 0 and 1")
        if self.prior is not None and not (isinstance(self.prior, int | float) and 0 < self.prior < 1):
            raise ConfigError(f"prior is {self.prior!r}: it lies between 0 and 1, neither of them included")
        if self.prior is not None and self.calibration is None:
            raise ConfigError("a prior says nothing without a calibration: give --calibration FILE as well")
        if not self.models:
            raise ConfigError("no model: name one as provider/model-id")
        if len(set(self.models)) < len(self.models):
            raise ConfigError("the same model is given twice")
        if self.price is not None and not (len(self.price) == 2 and all(0 <= p < inf for p in self.price)):
            raise ConfigError(f"price is {self.price}: two numbers, neither of them below 0")
        if self.max_cost is not None and self.price is None:
            raise ConfigError(
                "the price of a token is unknown: say --price IN,OUT (dollars per million tokens) with --max-cost"
            )
        sharing, placement = self.sharing, self.placement
        if sharing is not None and placement is not None and placement.batches:
            raise ConfigError(NO_ALLOCATION)

    @property
    def placement(self) -> Placement | None:
        """Where replicas go; None: models are asked from this process."""
        names = ("address", "replicas", "cpus", "gpus", "engine_args")
        return placement(self.executor, {name: getattr(self, name) for name in names})

    @property
    def sharing(self) -> Allocation | None:
        """How rollouts are shared out among candidates; None: evenly. ConfigError for what cannot be."""
        given = {name: getattr(self, name) for name in ("goal", "top", "epsilon", "confidence")}
        given = {name: value for name, value in given.items() if value is not None}
        if self.allocation is not None:
            return Allocation(policy=cast("Policy", self.allocation), **given)
        if given:
            raise ConfigError(f"{', '.join(given)}: only with an allocation, as in --allocation toptwo")
        return None

    @property
    def embedded(self) -> bool:
        """Whether every solver runs on this machine, in llama.cpp of ours."""
        return all(model.startswith("local/") for model in self.models)

    @property
    def sampling(self) -> Sampling:
        """How answers are drawn: as given, and by where the models run for what was not."""
        defaults = EMBEDDED if self.embedded else SERVED
        given = {name: getattr(self, name) for name in defaults}
        return Sampling(**{name: defaults[name] if value is None else value for name, value in given.items()})


def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """One line for each setting that differs: its name, what it was, what it is now."""
    return [
        f"{key}: was {_brief(old.get(key))}, now {_brief(new.get(key))}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]


def _brief(value: object) -> str:
    """The value on one line; of a long text, such as a template, only that it is another one."""
    shown = repr(value)
    return shown if len(shown) <= 120 else f"{shown[:60]}... ({len(shown)} characters)"
