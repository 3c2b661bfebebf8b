"""The nouns of porism, as frozen records.

Two families. What people write and keep (Problem, Candidate, Neighbor) are plain dataclasses: pydantic
checks them when a file is read, and reports every fault at once. What a run makes by the million (Ask,
Call, Completion, Verdict, Observation) are msgspec structs: one allocation each, encoded in one pass.

The path of one rollout:  a method plans an Ask; the engine bundles Asks with the same prompt into a Call;
a model answers with a Reply of Completions; the verifier turns a completion into a Verdict; the method
reads both into an Observation; the method scores all Observations of completed rounds.

A Cell says what an Ask is for. It stands outside the work's identity: many cells may share one result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar, Literal, Protocol

import msgspec
from msgspec import Struct

SCHEMA: Literal[1] = 1

CandidateKind = Literal["right", "right-but-terse", "method-error", "slip", "gap", "wrong-but-helpful"]
VerdictKind = Literal["correct", "wrong", "no_answer", "undecided", "missing"]


# What people write


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One attempt at the question: its full text, and what is known about it."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
    id: str
    text: str
    answer: str | None = None  # its own final answer, if it has one
    correct: bool | None = None
    kind: CandidateKind | None = None
    human: bool = False
    derived_from: str | None = None
    source: str | None = None  # who wrote it; never shown to a method
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbor:
    """A question near the target whose answer is known."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
    id: str
    question: str
    answer: str
    answer_type: str | None = None
    kind: str | None = None
    solution: str | None = None
    provenance: dict[str, Any] | None = None
    flags: tuple[str, ...] = ()
    source: str | None = None
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The target question with its candidates and neighbors.

    group names what must be resampled together in statistics: variants of one original, a family.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
    schema: Literal[1] = SCHEMA
    id: str
    question: str
    candidates: tuple[Candidate, ...]
    neighbors: tuple[Neighbor, ...]
    group: str | None = None
    answer: str | None = None
    solution: str | None = None
    subject: str | None = None
    family: dict[str, Any] | None = None  # as written; porism.neighbors.expand draws neighbors from it
    metadata: dict[str, Any] | None = None


# What a run asks


class Message(Struct, frozen=True):
    role: str
    content: str


class Sampling(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How to draw; None leaves a setting to the server. max_tokens is never left to chance."""

    temperature: float = 1.0
    max_tokens: int
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    top_logprobs: int | None = None  # how many likely tokens to tell of at each place
    stop: tuple[str, ...] = ()


class Prompt(Struct, frozen=True, dict=True):
    """What a model sees. Every rollout of a prompt shares it, and shares one instance of it.

    model is the model's identity: the sha256 of a weights file, or the served name. Never an address.
    """

    model: str
    messages: tuple[Message, ...]
    sampling: Sampling

    @cached_property
    def key(self) -> str:
        """32 hex digits that stand for model, messages and sampling."""
        return blake2b(msgspec.json.encode(self), digest_size=16).hexdigest()

    def seed(self, rollout: int) -> int:
        """The seed of one rollout, in 31 bits.

        Servers give child i of a call the call's seed + i. Here rollout i of a prompt has the prompt's
        base + i, so no two rollouts of a prompt share a seed, however they are bundled into calls.
        """
        return int(self.key[:8], 16) % (2**31 - 2**20) + rollout


class Cell(Struct, frozen=True, omit_defaults=True, gc=False):
    """Which problem, candidate, neighbor, method, solver and round an Ask is for.

    No candidate: the no-example row. No neighbor either: the solver's own attempts at the target.
    """

    problem: str
    candidate: str | None
    neighbor: str | None
    method: str
    solver: str  # the model's identity
    round: int
    against: str | None = None  # another candidate, where two are compared


class Gold(Struct, frozen=True, gc=False):
    """The known answer that a completion is checked against."""

    answer: str
    answer_type: str | None = None


class Generate(Struct, frozen=True, gc=False):
    """One rollout of a prompt. `id` is equal exactly for equal work."""

    prompt: Prompt
    rollout: int

    @property
    def id(self) -> str:
        return f"{self.prompt.key}-{self.rollout}"


class Compare(Struct, frozen=True):
    """An answer that is there already, for the verifier alone: no model is asked. Its Ask has a gold."""

    answer: str

    @property
    def id(self) -> str:
        return f"compare-{blake2b(self.answer.encode(errors='replace'), digest_size=16).hexdigest()}"

    @property
    def rollout(self) -> int:
        return 0


class Ask(Struct, frozen=True, gc=False):
    """One unit of planned work. gold: what to verify the answer against, if anything.

    prefix names the (question, candidate) text that opens the prompt: Asks with equal prefixes are
    issued together, so that a server computes it once. text: whether `read` needs the text itself;
    without it a stored answer is read from the small index alone, and its Completion has empty text.
    """

    cell: Cell
    work: Generate | Compare
    gold: Gold | None = None
    prefix: str = ""
    text: bool = False


class Call(Struct, frozen=True):
    """One request on the wire: rollouts first .. first + n - 1 of a prompt."""

    prompt: Prompt
    first: int
    n: int = 1

    @property
    def seed(self) -> int:
        return self.prompt.seed(self.first)


# What comes back


class Usage(Struct, frozen=True, omit_defaults=True, gc=False):
    """Tokens of one call, as the server counts them. cached: prompt tokens it did not compute again.

    counted is False where the server gave no usage and the numbers are estimates of ours.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    requests: int = 0
    counted: bool = True

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
            self.requests + other.requests,
            self.counted and other.counted,
        )


class Token(Struct, frozen=True):
    """A token that was drawn, and the log-probabilities of the likeliest ones in its place."""

    text: str
    top: dict[str, float]


class Completion(Struct, frozen=True, omit_defaults=True):
    """One answer. finish_reason is the server's own word: stop, length, content_filter, ..."""

    rollout: int
    text: str
    finish_reason: str = "stop"
    reasoning: str = ""
    ending: tuple[Token, ...] = ()  # its last ones, where top_logprobs were asked for

    @property
    def truncated(self) -> bool:
        return self.finish_reason == "length"


class Reply(Struct, frozen=True):
    """All completions of a call, and its usage once."""

    completions: tuple[Completion, ...]
    usage: Usage


class Verdict(Struct, frozen=True, omit_defaults=True, gc=False):
    """Whether an answer equals the gold, the rule that decided, and why a `wrong` may be doubted.

    undecided (a limit, a crash, nothing parsable) and missing (never answered) are not wrong.
    """

    kind: VerdictKind
    rule: str
    suspicious: str | None = None


class Observation(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What one rollout told: a verdict, or a score for methods that give numbers."""

    cell: Cell
    rollout: int
    verdict: Verdict | None = None
    score: float | None = None
    answer: str | None = None  # the final answer found in the text
    truncated: bool = False
    text_key: str = ""  # equal for word-for-word equal completions


class Result(Struct, frozen=True):
    """What the engine hands to Method.read: the completion (None: missing, or a Compare) and its verdict."""

    completion: Completion | None
    answer: str | None
    verdict: Verdict | None
    text_key: str = ""


class Counts(Struct, frozen=True, omit_defaults=True):
    """Exact counts of verdicts. truncated overlaps with the others; the rest add up to the rollouts."""

    correct: int = 0
    wrong: int = 0
    no_answer: int = 0
    undecided: int = 0
    missing: int = 0
    truncated: int = 0

    @property
    def decided(self) -> int:
        """Rollouts in the mean: right, wrong, and those that gave no answer."""
        return self.correct + self.wrong + self.no_answer

    @property
    def total(self) -> int:
        return self.decided + self.undecided + self.missing


class Score(Struct, frozen=True, kw_only=True):
    """A candidate's score under one method; value is None where nothing was decided.

    low, high: 95 % interval, given these neighbors. cells: exact counts, "solver/neighbor" -> Counts.
    """

    value: float | None
    low: float
    high: float
    cells: dict[str, Counts] = {}
    flags: tuple[str, ...] = ()


# The two seams others may fill


class Method(Protocol):
    """Three pure functions. The engine owns every input and output."""

    @property
    def name(self) -> str: ...

    def plan(self, problem: Problem, seen: list[Observation]) -> list[Ask]:
        """The Asks of the next round, or of several rounds when none depends on another's outcome.

        Called again with what was seen until it returns nothing; `seen` holds completed rounds only.
        Inside a round Asks are candidate-major, and every candidate is in every round but those that hang on what was
        seen and have nothing to ask of some. Such a method flags candidates that it starved.
        """
        ...

    def read(self, ask: Ask, result: Result) -> Observation: ...

    def score(self, problem: Problem, seen: list[Observation]) -> dict[str, Score]: ...


class Model(Protocol):
    """Something that answers Calls. Entered once before the first call, left after the last.

    Retries are the engine's: generate makes one attempt and raises ModelError, whose `retry` tells
    whether another may help.
    """

    name: str  # as the user wrote it: provider/model-id
    identity: str  # what rollout ids are made of; known once entered
    concurrency: int  # the most rollouts worth having in flight
    max_n: int  # the largest n of a call; 1 where the server gives one answer a call
    context: int | None  # tokens of prompt and answer together, where known
    chain: bool  # calls of one prefix go one after another: what runs beside them shares nothing

    async def __aenter__(self) -> Model: ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def generate(self, call: Call) -> Reply: ...

    async def probe(self) -> list[str]:
        """Warnings for the user after a short trial: a seed ignored, rollouts all the same."""
        ...


__all__ = [
    "SCHEMA",
    "Ask",
    "Call",
    "Candidate",
    "CandidateKind",
    "Cell",
    "Compare",
    "Completion",
    "Counts",
    "Generate",
    "Gold",
    "Message",
    "Method",
    "Model",
    "Neighbor",
    "Observation",
    "Problem",
    "Prompt",
    "Reply",
    "Result",
    "Sampling",
    "Score",
    "Token",
    "Usage",
    "Verdict",
    "VerdictKind",
]
