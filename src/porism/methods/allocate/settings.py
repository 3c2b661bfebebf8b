"""What a user chooses about allocation, checked once, and the claim that comes of it. Light: no arrays here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from msgspec import Struct

from porism.errors import ConfigError

Policy = Literal["uniform", "halving", "toptwo", "lucb"]
Goal = Literal["best", "top-k", "ranking"]
Kind = Literal["none", "best", "top-k", "ranking", "cannot decide"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """How rollouts are shared out among candidates, and what is to be found with them.

    policy: uniform (every candidate the same, but stopping at a claim), halving (batched sequential halving), toptwo
    (top-two Thompson sampling), lucb (lower and upper KL bounds). goal: the best candidate, the `top` best ones, or
    the whole order, each up to `epsilon` in utility. confidence: of all claims of one problem together, whenever the
    run stops. batch: the fewest rollouts of a round. Raises ConfigError for values that cannot be used.
    """

    policy: Policy = "toptwo"
    goal: Goal = "best"
    top: int = 3
    epsilon: float = 0.05
    confidence: float = 0.95
    batch: int = 64

    def __post_init__(self) -> None:
        for name, value, known in (
            ("allocation", self.policy, get_args(Policy)),
            ("goal", self.goal, get_args(Goal)),
        ):
            if value not in known:
                raise ConfigError(f"{name} is {value!r}: it is one of {', '.join(known)}")
        for name, number in (("epsilon", self.epsilon), ("confidence", self.confidence)):
            if not 0 < number < 1:
                raise ConfigError(f"{name} is {number!r}: it lies between 0 and 1")
        if self.top < 1 or self.batch < 1:
            raise ConfigError("top and batch must be at least 1")


class Claim(Struct, frozen=True, kw_only=True):
    """What holds of a problem's candidates with probability `confidence`, given these neighbors, all parts together.

    kind: best (the one in `candidates` is within epsilon of the best), top-k (`candidates` are, up to epsilon, the top
    ones), ranking (the order is right but for pairs within epsilon), cannot decide (all are within epsilon of each
    other) or none (yet). ahead: the smallest set known to beat every other candidate; empty where none is.
    """

    kind: Kind
    candidates: tuple[str, ...]
    ahead: tuple[str, ...]
    epsilon: float
    confidence: float
    message: str


__all__ = ["Allocation", "Claim", "Goal", "Kind", "Policy"]
