"""Calls of a model that end in a mark: repeated, read strictly, and asked once more where nothing could be read.

What judges and generative reward models share. An answer without a readable mark is never a score. It is counted,
asked once more with a larger limit of tokens (most such answers were cut off), and otherwise left out of the mean,
where the interval shows what it might have been. The second asking is a round of its own, after all the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from msgspec import structs

from porism.errors import ConfigError
from porism.methods.utility import rounds
from porism.types import (
    Ask,
    Cell,
    Generate,
    Observation,
    Problem,
    Prompt,
    Result,
    Sampling,
    Token,
    Verdict,
)
from porism.verify.extract import visible

TOP_LOGPROBS = 20  # the most that the usual servers give
UNREAD: Literal["no_answer"] = "no_answer"  # the kind of verdict that an answer without a readable mark gets
Key = tuple[str | None, str | None, str]  # candidate, against, model


class Question(NamedTuple):
    """One prompt that is asked `calls` times. The cell's round does not matter."""

    cell: Cell
    prompt: Prompt
    prefix: str


@dataclass(frozen=True)
class Calls:
    """How often each prompt is asked, and the limit of tokens when it is asked once more."""

    number: int
    again_tokens: int

    @classmethod
    def of(cls, name: str, number: int, sampling: Sampling, again_tokens: int) -> Calls:
        """The calls of a method as its user states them; 0 again_tokens: twice the first limit.

        Raises ConfigError for numbers that cannot be, in the name of the method.
        """
        again_tokens = again_tokens or 2 * sampling.max_tokens
        if number < 1:
            raise ConfigError(f"{name}: calls must be at least 1.")
        if again_tokens <= sampling.max_tokens:
            raise ConfigError(
                f"{name}: again_tokens must be above max_tokens ({sampling.max_tokens}): an answer that could not "
                "be read is asked once more with a larger limit."
            )
        return cls(number, again_tokens)

    def plan(self, questions: Sequence[Question], seen: Iterable[Observation]) -> list[Ask]:
        """The Asks of every first round that is not wholly seen; after those, one more for each unread answer."""
        first, again = self._sorted(seen)
        asks: list[Ask] = []
        for number, (start, end) in enumerate(rounds(self.number)):
            batch = [_ask(q, q.prompt, rollout, number) for q in questions for rollout in range(start, end)]
            if any((_key(a.cell), a.work.rollout) not in first for a in batch):
                asks.extend(batch)
        if asks:
            return asks
        for question in questions:
            key = _key(question.cell)
            unread = [i for i in range(self.number) if _unread(first[key, i]) and (key, i) not in again]
            if unread:
                old = question.prompt
                sampling = structs.replace(old.sampling, max_tokens=self.again_tokens)
                prompt = Prompt(old.model, old.messages, sampling)
                asks.extend(_ask(question, prompt, rollout, self._last) for rollout in unread)
        return asks

    def readings(self, seen: Iterable[Observation]) -> dict[Key, list[Observation]]:
        """What stands of each call, by question and in the order of rollouts: a second answer where it was readable."""
        first, again = self._sorted(seen)
        found: dict[Key, list[Observation]] = {}
        for key, rollout in sorted({*first, *again}, key=lambda call: (repr(call[0]), call[1])):
            second = again.get((key, rollout))
            reading = second if second is not None and second.score is not None else first.get((key, rollout))
            if reading is not None:
                found.setdefault(key, []).append(reading)
        return found

    @property
    def _last(self) -> int:
        return len(rounds(self.number))

    def _sorted(
        self, seen: Iterable[Observation]
    ) -> tuple[dict[tuple[Key, int], Observation], dict[tuple[Key, int], Observation]]:
        first: dict[tuple[Key, int], Observation] = {}
        again: dict[tuple[Key, int], Observation] = {}
        for o in seen:
            if o.rollout < self.number:
                (again if o.cell.round >= self._last else first)[_key(o.cell), o.rollout] = o
        return first, again


def own(name: str, problem: Problem, seen: Iterable[Observation]) -> list[Observation]:
    """What was seen by the method of this name of this problem's candidates."""
    ids = {None, *(c.id for c in problem.candidates)}
    return [
        o
        for o in seen
        if o.cell.method == name
        and o.cell.problem == problem.id
        and o.cell.candidate in ids
        and o.cell.against in ids
    ]


def read(
    ask: Ask,
    result: Result,
    mark: Callable[[str], float | None],
    weigh: Callable[[Sequence[Token]], float | None] | None = None,
) -> Observation:
    """One answer's mark as `score`; without one the verdict says why. A text that was cut off has none.

    weigh: where given, the score is what it makes of the answer's last tokens; the answer needs its mark all the same.
    """
    completion, verdict, score = result.completion, result.verdict, None
    if completion is not None:
        text = None if completion.truncated else visible(completion.text)
        score = None if text is None else mark(text)
        why = "cut off" if completion.truncated else "no readable mark"
        if score is not None and weigh is not None:
            score, why = weigh(completion.ending), "no token probabilities of the mark"
        verdict = Verdict(UNREAD, why) if score is None else None
    return Observation(
        cell=ask.cell,
        rollout=ask.work.rollout,
        verdict=verdict,
        score=score,
        truncated=completion is not None and completion.truncated,
        text_key=result.text_key,
    )


def _ask(question: Question, prompt: Prompt, rollout: int, number: int) -> Ask:
    cell = structs.replace(question.cell, round=number)
    return Ask(cell, Generate(prompt, rollout), prefix=question.prefix, text=True)


def _key(cell: Cell) -> Key:
    return cell.candidate, cell.against, cell.solver


def _unread(o: Observation) -> bool:
    return o.verdict is not None and o.verdict.kind == UNREAD


__all__ = ["TOP_LOGPROBS", "UNREAD", "Calls", "Question", "own", "read"]
