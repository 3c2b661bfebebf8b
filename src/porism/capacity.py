"""How much machine a run needs: tokens, GPU hours and wall time, before anything is asked.

Arithmetic on what the caller knows, and nothing else. A throughput is the caller's, or one of FIGURES, each with the
place it was reported. Decoding is nearly all of the cost once the prefix is shared; where no prefill throughput is
known, the prompt tokens are counted and their time is left out, which the result says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from porism.errors import ConfigError

Sharing = Literal["none", "calls", "prefix"]

PAPER_TOKENS = (3_200, 12_300)  # completion tokens a generation of the solver, by model (arXiv 2602.06291)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A reported throughput: completion tokens a second of one replica, on so many GPUs, and where it is from."""

    tokens_per_second: float
    gpus: int
    source: str


FIGURES: dict[str, Figure] = {
    "qwen2.5-7b/a10g": Figure(
        tokens_per_second=6_423 / 8,
        gpus=1,
        source="6,423 tokens a second on 8 A10G, Qwen2.5-7B, 512 requests in flight, prefix-aware routing "
        "(reported by andygolubev.com, June 2026; it does not say whether prompt tokens are in it)",
    ),
    "qwen2.5-7b/a10g/round-robin": Figure(
        tokens_per_second=2_742 / 8,
        gpus=1,
        source="2,742 tokens a second on the same 8 A10G with requests dealt out in turn (same report)",
    ),
    "qwen2.5-coder-0.5b/2-cores": Figure(
        tokens_per_second=50.0,
        gpus=0,
        source="50 to 70 completion tokens a second of the embedded model on 2 cores, 8 slots "
        "(measured, docs/embedded-model.md)",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A run: its counts, and tokens of one prompt and one completion.

    prefix_tokens: instructions, question and candidate, which all prompts of a candidate share; neighbor_tokens: what
    follows. no_example: one more row of rollouts without any candidate; target_samples: own attempts a problem.
    Raises ConfigError for counts that are none.
    """

    problems: int
    candidates: int
    neighbors: int
    rollouts: int
    completion_tokens: float
    prefix_tokens: float
    neighbor_tokens: float
    no_example: bool = True
    target_samples: int = 4

    def __post_init__(self) -> None:
        least = {"problems": 1, "candidates": 1, "neighbors": 1, "rollouts": 1, "target_samples": 0}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise ConfigError(f"{name.replace('_', ' ')}: at least {low}, not {getattr(self, name)}")
        for name in ("completion_tokens", "prefix_tokens", "neighbor_tokens"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name.replace('_', ' ')}: a number of tokens, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What serves the run: replicas of the model, GPUs of each, and tokens a second of each.

    prefill: prompt tokens a second of a replica that only reads; None: not known. Raises ConfigError for numbers that
    are none.
    """

    replicas: int
    gpus: int
    throughput: float
    prefill: float | None = None

    def __post_init__(self) -> None:
        if self.replicas < 1 or self.gpus < 0:
            raise ConfigError("replicas: at least 1; GPUs of a replica: at least 0")
        for name, value in (("throughput", self.throughput), ("prefill throughput", self.prefill)):
            if value is not None and not value > 0:
                raise ConfigError(f"{name}: tokens a second above 0, not {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one allocation of rollouts needs at one length of completions.

    prompt_tokens: those computed where nothing is shared, or a call's prompt (n > 1), or a candidate's prefix too.
    replica_hours are of one replica; gpu_hours is 0 where it has no GPU. wall_hours: every replica busy to the end, and
    no failures. Prefill is in the hours where its throughput is known.
    """

    allocation: str
    rollouts: int
    completion_tokens: int
    prompt_tokens: dict[Sharing, int]
    replica_hours: float
    gpu_hours: float
    wall_hours: float


def need(work: Workload, machine: Machine, *, share: float = 1.0, sharing: Sharing = "prefix") -> Need:
    """What a run needs where `share` of the uniform rollouts is spent on candidates and no example.

    Own attempts are always spent in full. Prompt tokens follow P + M * S of a candidate whose prefix P is shared over
    its M neighbors, M * (P + S) where only the rollouts of a call share, M * R * (P + S) where nothing does.
    Raises ConfigError for a share outside 0 .. 1.
    """
    if not 0 < share <= 1:
        raise ConfigError(f"adaptive: a share of the uniform rollouts, above 0 and at most 1, not {share}")
    cells = work.problems * work.neighbors  # of one row
    each = work.rollouts * share
    rows = work.candidates + work.no_example
    own = work.problems * work.target_samples
    rollouts = round(cells * rows * each) + own
    long, short = work.prefix_tokens + work.neighbor_tokens, work.neighbor_tokens
    bare = cells * short * work.no_example  # no candidate stands before these
    attempts = work.problems * min(1, work.target_samples) * work.prefix_tokens
    prompts: dict[Sharing, float] = {
        "none": cells * each * (work.candidates * long + work.no_example * short) + own * work.prefix_tokens,
        "calls": cells * work.candidates * long + bare + attempts,
        "prefix": work.problems * work.candidates * (work.prefix_tokens + work.neighbors * short)
        + bare
        + attempts,
    }
    completion = rollouts * work.completion_tokens
    seconds = completion / machine.throughput
    if machine.prefill is not None:
        seconds += prompts[sharing] / machine.prefill
    return Need(
        allocation="uniform" if share == 1 else f"adaptive ({share:g} of the rollouts)",
        rollouts=rollouts,
        completion_tokens=round(completion),
        prompt_tokens={kind: round(tokens) for kind, tokens in prompts.items()},
        replica_hours=seconds / 3600,
        gpu_hours=seconds / 3600 * machine.gpus,
        wall_hours=seconds / 3600 / machine.replicas,
    )


__all__ = ["FIGURES", "PAPER_TOKENS", "Figure", "Machine", "Need", "Sharing", "Workload", "need"]
