"""Models: what answers Calls. `open_model` turns the user's `provider/model-id` into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from porism.errors import ConfigError

if TYPE_CHECKING:
    from porism.models.reward import Shape
    from porism.types import Model


def open_model(
    spec: str,
    *,
    base_url: str | Sequence[str] | None = None,
    context: int | None = None,
    concurrency: int | None = None,
) -> Model:
    """The model that `provider/model-id` names, to be entered before use. Nothing is sent yet.

    base_url: where it is served; several addresses are one model (see fleet.py). context is in tokens, concurrency in
    calls in flight at one address; where not given, the model or its server says. Raises ConfigError for an unknown
    provider, a missing key or address, an address given twice, or a spec without a slash.
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
    from porism.models.fleet import Fleet
    from porism.models.openai import OpenAIModel

    urls: list[str | None] = [base_url] if isinstance(base_url, str) else [*(base_url or (None,))]
    places = [resolve(provider, url) for url in urls]
    for i, where in enumerate(places):
        if where.base_url in (other.base_url for other in places[:i]):
            raise ConfigError(f"the base URL {where.base_url} is given twice")
    models = [
        OpenAIModel(
            model_id,
            name=spec.strip(),
            base_url=where.base_url,
            key=where.key,
            key_variable=where.key_variable,
            concurrency=concurrency or where.concurrency,
            context=context,
        )
        for where in places
    ]
    return models[0] if len(models) == 1 else Fleet(models)


def open_reward(
    spec: str,
    *,
    shape: Shape = "pooling",
    base_url: str | Sequence[str] | None = None,
    concurrency: int | None = None,
) -> Model:
    """The scalar reward model that `provider/model-id` names, to be entered before use. Nothing is sent yet.

    shape: which of a server's services gives the number (see reward.py). Raises ConfigError as open_model does, and
    for more than one address.
    """
    from porism.models.endpoint import resolve
    from porism.models.reward import RewardModel

    provider, slash, model_id = spec.strip().partition("/")
    if not slash or not model_id or provider in ("local", "fake"):
        raise ConfigError(f"a reward model is served: write it as vllm/MODEL, not {spec!r}")
    urls = [base_url] if isinstance(base_url, str) else list(base_url or ())
    if len(urls) > 1:
        raise ConfigError(f"{spec}: a reward model is asked at one address: give one base URL")
    where = resolve(provider, urls[0] if urls else None)
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
