"""A short trial of a server before the run: does it honor n, the seed, and draw anew each time?

Rollouts that repeat each other word for word are worth one rollout, and nothing in a reply says so. So
the same question, whose answers could hardly coincide, is asked a few times with seeds in mind. It costs
three or four short calls. What goes wrong here goes wrong again in the run, where it is retried and
counted: only an error that no call can survive is raised.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from porism.errors import ModelError
from porism.models.wire import MAX_N
from porism.types import Call, Completion, Message, Prompt, Sampling

if TYPE_CHECKING:
    from porism.models.openai import OpenAIModel

PATIENCE = 60.0  # seconds for the whole trial
_WORDS = "List ten random, unrelated English nouns, separated by commas. Begin at once, with an unusual one."
_SAMPLING = Sampling(temperature=1.0, max_tokens=24)


class Trial(Struct, frozen=True):
    """Warnings for the user; whether several answers a call, and the seed, are honored (None: not found out)."""

    warnings: list[str]
    n: bool | None = None
    seed: bool | None = None


async def probe(model: OpenAIModel) -> Trial:
    """What the trial found, and model.max_n raised where the server gives several answers a call.

    Raises ModelError only when it is fatal.
    """
    try:
        async with asyncio.timeout(PATIENCE):
            return await _trial(model)
    except ModelError as error:
        if error.fatal:
            raise
        return Trial(
            [f"the trial of {model.name} failed, so seeds and n are unknown (asking one by one): {error}"]
        )
    except TimeoutError:
        return Trial(
            [f"{model.name} is slow (over {PATIENCE:g} s), so seeds and n are unknown (asking one by one)"]
        )


async def _trial(model: OpenAIModel) -> Trial:
    prompt = Prompt(model.identity, (Message("user", _WORDS),), _SAMPLING)
    warnings, seed = [], True
    model.max_n = 2
    try:
        pair = await model.generate(Call(prompt, 0, 2))
    finally:
        honored, model.max_n = model.max_n > 1, 1
    # Rollout 2 has another seed than both of the pair; rollout 0 has been asked before.
    other, again = await asyncio.gather(*(model.generate(Call(prompt, rollout)) for rollout in (2, 0)))
    first, second = (_said(c) for c in pair.completions)
    if not honored:
        warnings.append("server ignores n (asking one by one)")
    elif first == second and first:
        warnings.append("server returns identical rollouts for n > 1 (asking one by one)")
    else:
        model.max_n = MAX_N
    if "no_seed" in model.quirks:
        seed = False
        warnings.append("server refuses a seed: a repeated run gets other answers")
    elif _said(other.completions[0]) == _said(again.completions[0]) != "":
        seed = False
        warnings.append("server returns identical rollouts: two seeds gave the same answer word for word")
    elif _said(again.completions[0]) != first:
        # Child 0 of a pair may draw otherwise than a single call: only two single calls can tell.
        third = await model.generate(Call(prompt, 0))
        if _said(third.completions[0]) != _said(again.completions[0]):
            seed = False
            warnings.append("server ignores seed, or cannot repeat itself: a repeated run gets other answers")
    return Trial(warnings, model.max_n > 1, seed)


def _said(completion: Completion) -> str:
    return completion.reasoning + completion.text


__all__ = ["Trial", "probe"]
