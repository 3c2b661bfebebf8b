"""A model that needs no machine: answers fixed by identity, with delays, lengths and faults to order.

For tests, for the documentation and for trying out a plan. Rollout k of a prompt is the same text in
every run and on every machine, whatever went wrong on the way. A fake cannot solve anything, so a question
carries its answer as a mark, `[[answer: X]]`, and a candidate that would help carries `[[helps]]`: the last
mark in the prompt is answered rightly at rate_right where a `[[helps]]` stands before it, else at rate_wrong.
A prompt that ends in the form of a judge's mark gets one: a good one at the same rates.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from hashlib import blake2b
from math import ceil
from random import Random

from porism.errors import ConfigError, ModelError
from porism.types import Call, Completion, Prompt, Reply, Usage

_MARK = re.compile(r"\[\[answer:\s*(.*?)\s*\]\]")
_FORM = re.compile(
    r"(?:^(?P<label>Score|Better|Verdict|Correct): <(?P<yes>\w+)(?: or (?P<no>\w+)|[^<>]*)>"
    r"|\\boxed\{<rating 1>, <rating 2>\})\s*\Z",
    re.MULTILINE,
)
_RANGE = re.compile(r"whole number from (\d+) to (\d+)")
_OF_THE_ANSWER = ("rate_right", "rate_wrong", "tokens", "truncate", "blank", "seed")
_WORDS = [
    "we",
    "let",
    "then",
    "so",
    "count",
    "since",
    "each",
    "case",
    "gives",
    "sum",
    "term",
    "hence",
    "prime",
    "factor",
    "even",
    "odd",
    "bound",
    "by",
    "step",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeSpec:
    """What `fake/key=value,...` may set; `rate` sets rate_right and rate_wrong at once.

    Rates are shares from 0 to 1. fail and busy are shares of attempts that end in a transient error or
    in a rate limit, drawn anew at every attempt; truncate and blank are shares of rollouts that are cut
    off or end without an answer. tokens is the mean length; delay is in seconds, give or take a half.
    """

    rate_right: float = 0.8
    rate_wrong: float = 0.1
    tokens: int = 40
    truncate: float = 0.0
    blank: float = 0.0
    seed: int = 0
    delay: float = 0.0
    fail: float = 0.0
    busy: float = 0.0
    concurrency: int = 8
    max_n: int = 16
    context: int | None = None

    @classmethod
    def parse(cls, spec: str) -> FakeSpec:
        """The settings in `fake/...`, or in what follows the slash. Raises ConfigError."""
        text = spec.removeprefix("fake/")
        settings: dict[str, float | int] = {}
        known = {f.name: float if f.type == "float" else int for f in fields(cls)}
        for part in filter(None, (p.strip() for p in text.split(","))):
            name, equals, value = (p.strip() for p in part.partition("="))
            if part == "default":
                continue
            if not equals or (name not in known and name != "rate"):
                near = get_close_matches(name, [*known, "rate"], n=1)
                hint = f" Did you mean {near[0]}=...?" if near else ""
                raise ConfigError(
                    f"{spec!r}: {part!r} is not a setting of fake models: rate, {', '.join(known)}.{hint}"
                )
            for each in ("rate_right", "rate_wrong") if name == "rate" else (name,):
                settings[each] = _number(spec, part, value, known[each])
        for name in ("rate_right", "rate_wrong", "truncate", "blank", "fail", "busy"):
            if settings.get(name, 0) > 1:
                raise ConfigError(f"{spec!r}: {name} is a share from 0 to 1")
        return cls(**settings)  # type: ignore[arg-type]

    @property
    def identity(self) -> str:
        """Names what shapes the answers, and nothing else: a delay does not make another model."""
        return "fake/" + ",".join(f"{name}={getattr(self, name):g}" for name in _OF_THE_ANSWER)


def _number(spec: str, part: str, value: str, kind: type[float] | type[int]) -> float | int:
    try:
        number = kind(value)
        if not 0 <= number < 10**9:
            raise ValueError
    except ValueError:
        what = "a number" if kind is float else "a whole number"
        raise ConfigError(f"{spec!r}: {part!r} should be {what}, at least 0") from None
    return number


def solve(text: str, spec: FakeSpec, rng: Random) -> tuple[str, str]:
    """An answer to the marked question in `text`, and its finish reason; equal for equal rng states."""
    luck, slip, cut, blank = rng.random(), rng.randrange(7), rng.random(), rng.random()
    length = max(1, round(spec.tokens * rng.uniform(0.5, 1.5)))
    filler = " ".join(rng.choices(_WORDS, k=length))
    if cut < spec.truncate:
        return filler, "length"
    if blank < spec.blank:
        return f"{filler}.", "stop"
    if judged := _judged(text, luck, slip, spec):
        return f"{filler}.\n{judged}", "stop"
    marks = list(_MARK.finditer(text))
    if not marks:
        return f"{filler}. \\boxed{{{slip}}}", "stop"
    rate = spec.rate_right if "[[helps]]" in text[: marks[-1].start()] else spec.rate_wrong
    gold = marks[-1][1]
    return f"{filler}. \\boxed{{{gold if luck < rate else _wrong(gold, slip)}}}", "stop"


def _judged(text: str, luck: float, slip: int, spec: FakeSpec) -> str | None:
    """The last line of a judge's answer, where the prompt asks for one: what helps is found good at rate_right."""
    asked = _FORM.search(text)
    if asked is None:
        return None
    good = luck < (spec.rate_right if "[[helps]]" in text else spec.rate_wrong)
    if asked["label"] is None:
        return f"\\boxed{{{5 - slip % 2 if good else 1 + slip % 2}, 1}}"
    if asked["label"] == "Score":
        ranges = _RANGE.findall(text)
        least, most = map(int, ranges[-1]) if ranges else (1, 10)
        return f"Score: {most - slip % 3 if good else least + slip % 3}"
    if asked["label"] == "Better":
        first, _, second = text.rpartition("Attempt B:")
        helps = "[[helps]]" in first, "[[helps]]" in second
        if helps[0] == helps[1]:
            return f"Better: {('A', 'B', 'tie')[slip % 3]}"
        return f"Better: {'A' if helps[0] == good else 'B'}"
    return f"{asked['label']}: {(asked['no'], asked['yes'])[good]}"


def _wrong(gold: str, slip: int) -> str:
    try:
        return str(int(gold) + 1 + slip)
    except ValueError:
        return str(10_000_019 + slip)


def draw(*identity: object) -> Random:
    """A generator that depends on these values alone."""
    return Random(blake2b("\0".join(map(str, identity)).encode(), digest_size=16).digest())  # noqa: S311


class FakeModel:
    """The Model that `fake/rate=0.4,delay=0.01,...` names; FakeSpec lists the settings.

    answer, where given, writes the text of a rollout instead (delays and faults stay). Raises ConfigError.
    """

    def __init__(
        self,
        spec: str = "fake/default",
        *,
        answer: Callable[[Prompt, int], str] | None = None,
        context: int | None = None,
        concurrency: int | None = None,
    ) -> None:
        self.spec = FakeSpec.parse(spec)
        self.name = spec
        self.identity = self.spec.identity
        self.concurrency = concurrency or self.spec.concurrency or 1
        self.max_n = self.spec.max_n or 1
        self.context = context or self.spec.context
        self.chain = False
        self.host: str | None = None
        self.answered: Counter[str] = Counter()  # rollout id -> how often it was given out
        self._answer = answer
        self._attempts: Counter[str] = Counter()

    async def __aenter__(self) -> FakeModel:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    async def probe(self) -> list[str]:
        return []

    async def generate(self, call: Call) -> Reply:
        """The completions of `call`; a faulty attempt raises ModelError, and the next may succeed."""
        work = f"{call.prompt.key}-{call.first}"
        rng = draw("fault", self.spec.seed, work, self._attempts[work])
        self._attempts[work] += 1
        if self.spec.delay:
            await asyncio.sleep(self.spec.delay * rng.uniform(0.5, 1.5))
        fault = rng.random()
        if fault < self.spec.busy:
            raise ModelError("the fake is busy, as ordered", retry="rate_limit", kind="rate_limit")
        if fault < self.spec.busy + self.spec.fail:
            raise ModelError("the fake failed, as ordered", retry="transient", kind="server")
        asked = ceil(sum(len(m.content) for m in call.prompt.messages) / 4)
        if self.context is not None and asked + call.prompt.sampling.max_tokens > self.context:
            raise ModelError(
                f"longer than the context of {self.context} tokens: about {asked}", kind="context"
            )
        completions = tuple(self._complete(call.prompt, call.first + i) for i in range(call.n))
        self.answered.update(f"{call.prompt.key}-{c.rollout}" for c in completions)
        return Reply(completions, Usage(asked, sum(len(c.text.split()) for c in completions), 0, 1))

    def _complete(self, prompt: Prompt, rollout: int) -> Completion:
        if self._answer is not None:
            return Completion(rollout, self._answer(prompt, rollout))
        text = "\n".join(m.content for m in prompt.messages)
        if (
            prompt.messages[-1].role == "response_2"
        ):  # as the chat template of a generative reward model would
            text += "\n\\boxed{<rating 1>, <rating 2>}"
        said, reason = solve(text, self.spec, draw("answer", prompt.key, rollout))
        words = said.split(" ")
        if len(words) > prompt.sampling.max_tokens:
            said, reason = " ".join(words[: prompt.sampling.max_tokens]), "length"
        return Completion(rollout, said, reason)


__all__ = ["FakeModel", "FakeSpec", "draw", "solve"]
