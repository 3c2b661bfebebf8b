"""Models: what answers Calls. `open_model` turns the user's `provider/model-id` into one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from porism.errors import ConfigError

if TYPE_CHECKING:
    from porism.models.reward import Shape
    from porism.types import Model


def open_model(
    spec: str, *, base_url: str | None = None, context: int | None = None, concurrency: int | None = None
) -> Model:
    """The model that `provider/model-id` names, to be entered before use. Nothing is sent yet.

    context is in tokens, concurrency in calls in flight; where not given, the model or its server says.
    Raises ConfigError for an unknown provider, a missing key or address, or a spec without a slash.
    """
    from porism.models.endpoint import PROVIDERS, resolve

    provider, slash, model_id = spec.strip().partition("/")
    if not slash or not provider or not model_id:
        raise ConfigError(
            f"a model is written provider/model-id, not {spec!r}: providers are {', '.join(PROVIDERS)}"
        )
    if provider == "fake":
        from porism.models.fake import FakeModel

        return FakeModel(spec, context=context, concurrency=concurrency)
    if provider == "local":
        from porism.models.local import LocalModel

        return LocalModel(model_id, context=context, parallel=concurrency)
    where = resolve(provider, base_url)
    from porism.models.openai import OpenAIModel

    return OpenAIModel(
        model_id,
        name=spec.strip(),
        base_url=where.base_url,
        key=where.key,
        key_variable=where.key_variable,
        concurrency=concurrency or where.concurrency,
        context=context,
    )


def open_reward(
    spec: str, *, shape: Shape = "pooling", base_url: str | None = None, concurrency: int | None = None
) -> Model:
    """The scalar reward model that `provider/model-id` names, to be entered before use. Nothing is sent yet.

    shape: which of a server's services gives the number (see reward.py). Raises ConfigError as open_model does.
    """
    from porism.models.endpoint import resolve
    from porism.models.reward import RewardModel

    provider, slash, model_id = spec.strip().partition("/")
    if not slash or not model_id or provider in ("local", "fake"):
        raise ConfigError(f"a reward model is served: write it as vllm/MODEL, not {spec!r}")
    where = resolve(provider, base_url)
    return RewardModel(
        model_id,
        shape=shape,
        name=spec.strip(),
        base_url=where.base_url,
        key=where.key,
        key_variable=where.key_variable,
        concurrency=concurrency or where.concurrency,
    )


__all__ = ["open_model", "open_reward"]
