"""A scalar reward model behind a vLLM server: one number for a question and a candidate.

It is a Model whose only answer is that number, written out, so that store, resume, retries and budgets are those of
every other model. Three shapes of the same service, all outside of chat completions:

    pooling    POST /pooling, messages: the reward is the last token's        (Qwen2.5-Math-RM and its kind)
    classify   POST /classify, messages: the one class of the classifier      (AceMath-RM and its kind)
    score      POST /score, a pair of texts                                   (cross-encoders, rerankers)

Raw numbers are asked for (use_activation false): a sigmoid would round large rewards to ties. Nothing is ever cut to
fit: a candidate that is longer than the server's context is missing, and named.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any, Literal, get_args

import msgspec

from porism.errors import ConfigError, ModelError
from porism.methods.reward import reward_prompt
from porism.models.openai import OpenAIModel
from porism.types import Call, Completion, Prompt, Reply, Usage

Shape = Literal["pooling", "classify", "score"]
SHAPES: tuple[Shape, ...] = get_args(Shape)

_TRIAL = [
    (f"What is {a} plus {b}?", f"{a} plus {b} is {c}. " + "Adding the two gives it at once. " * pad)
    for a, b, c, pad in ((2, 3, 5, 0), (2, 3, 6, 7), (40, 2, 42, 30), (7, 8, 15, 1))
]
CLOSE = 0.02  # of the spread of the trial's rewards


class RewardModel(OpenAIModel):
    """A reward model served at `base_url`. Its identity names the shape too, as another shape is another number.

    Settings are those of OpenAIModel. Raises ConfigError for a shape that is not known.
    """

    def __init__(self, model_id: str, *, shape: Shape = "pooling", **settings: Any) -> None:
        if shape not in SHAPES:
            raise ConfigError(f"a reward model has one of the shapes {', '.join(SHAPES)}, not {shape!r}")
        super().__init__(model_id, **settings)
        self.shape = shape
        self.identity = f"{model_id} ({shape})"

    async def __aenter__(self) -> RewardModel:
        await super().__aenter__()
        return self

    async def generate(self, call: Call) -> Reply:
        """The reward of the prompt's two messages as the text of every completion. Raises ModelError."""
        url = f"{self.base_url.removesuffix('/v1')}/{self.shape}"
        try:
            body = await self.post(url, payload(call.prompt, self.served_name, self.shape))
        except ModelError as error:
            raise await self._explained(error) from None
        value, usage = parse(body, self.shape)
        return Reply(tuple(Completion(call.first + i, repr(value)) for i in range(call.n)), usage)

    async def probe(self) -> list[str]:
        """A few rewards asked one by one and then all at once: a server whose batches change them is told of.

        Says also how much text fits. Raises ModelError only when it is fatal.
        """
        prompts = [reward_prompt(self.identity, question, text) for question, text in _TRIAL]
        try:
            alone = [await self._reward(prompt) for prompt in prompts]
            together = await asyncio.gather(*(self._reward(prompt) for prompt in prompts * 4))
        except ModelError as error:
            if error.fatal:
                raise
            return [f"the trial of {self.name} failed: {error}"]
        gap = max(abs(a - b) for a, b in zip(alone * 4, together, strict=True))
        spread = max(alone) - min(alone)
        found = []
        if spread == 0:
            found.append("the reward model gives right and wrong answers one and the same reward")
        if gap > CLOSE * spread:
            found.append(
                f"rewards change by up to {gap:.3g} when several are asked at once, and the trial's own lie within "
                f"{spread:.3g}: ask one by one (concurrency 1)"
            )
        return found

    async def _reward(self, prompt: Prompt) -> float:
        reply = await self.generate(Call(prompt, 0))
        return float(reply.completions[0].text)


def payload(prompt: Prompt, served_name: str, shape: Shape) -> bytes:
    """The JSON body that asks for a reward."""
    body: dict[str, Any] = {"model": served_name, "use_activation": False}
    if shape == "score":
        body["text_1"], body["text_2"] = (m.content for m in prompt.messages)
    else:
        body["messages"] = [{"role": m.role, "content": m.content} for m in prompt.messages]
    return msgspec.json.encode(body)


def parse(body: bytes, shape: Shape) -> tuple[float, Usage]:
    """The reward in an answer, and the tokens it cost.

    Raises ModelError: transient for an answer that cannot be read, fatal for one that is no scalar.
    """
    try:
        document = msgspec.json.decode(body)
        (row,) = document["data"]
        found = row[{"pooling": "data", "classify": "probs", "score": "score"}[shape]]
    except (msgspec.MsgspecError, ValueError, RecursionError, KeyError, TypeError):
        raise ModelError(f"the server sent no readable reward from /{shape}", retry="transient") from None
    if shape == "pooling" and isinstance(found, list) and found and isinstance(found[-1], list):
        found = found[-1]  # a row of numbers for every token
    if isinstance(found, list):
        if len(found) != 1:
            raise ModelError(
                f"/{shape} gives {len(found)} numbers where a scalar reward model gives one: is this another kind "
                "of model, or another shape of service?",
                fatal=True,
                kind="not_scalar",
            )
        found = found[0]
    if not isinstance(found, int | float) or not math.isfinite(found):
        raise ModelError(f"/{shape} gives {found!r} for a reward", kind="not_scalar")
    usage = document.get("usage")
    counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    if not isinstance(counted, int) or counted < 0:
        return float(found), Usage(requests=1, counted=False)
    return float(found), Usage(counted, requests=1)


__all__ = ["SHAPES", "RewardModel", "Shape", "parse", "payload"]
