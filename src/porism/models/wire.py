"""The chat completions protocol, pure: from a Call to a body, from a body to a Reply or to an error.

Servers agree on the core and differ at the edges, so everything outside the core is read with doubt: a
strange usage block costs the count, not the answer. A failure becomes a ModelError whose fields say what
the engine may do about it; nothing here waits or sends. Whatever a server wrote is untrusted: before it
is quoted it loses its control characters and the key, and is cut short.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from porism.errors import ModelError
from porism.types import Call, Completion, Reply, Token, Usage

ENDING = 24  # tokens at the end of an answer whose alternatives are kept
MAX_N = 16  # rollouts of one call, where the server gives more than one
Quirk = Literal["completion_cap", "no_seed", "no_n"]
QUOTED = 300  # characters of a server's own words that a message may hold

_LENGTH = {"length", "max_tokens", "max_output_tokens", "model_length"}
_CONTEXT = re.compile(
    r"context[ _-]?(length|size|window)|maximum context|max_model_len|(prompt|input) is too long"
    r"|too many (input )?tokens|exceeds? the (model'?s )?(maximum|available) (length|number of tokens)",
    re.I,
)
_NO_MODEL = re.compile(
    r"model_not_found|(unknown|no such|invalid) model"
    r"|\bmodel\b.{0,200}?(not found|does not exist|not a valid model|is not available)",
    re.I | re.S,
)
_UNSUPPORTED = re.compile(r"unsupported|not supported|use ['\"`]?max_completion_tokens", re.I)
_NO_N = re.compile(r"['\"`]n['\"`]|\bn (must|should|has to|is not|>|=|cannot)|one completion choice", re.I)


# Out


def payload(call: Call, model_id: str, quirks: frozenset[Quirk] = frozenset()) -> bytes:
    """The JSON body that asks for `call`. What sampling leaves open is not sent."""
    sampling = call.prompt.sampling
    body: dict[str, Any] = {
        "model": model_id,
        "messages": [{"role": m.role, "content": m.content} for m in call.prompt.messages],
        "temperature": sampling.temperature,
        "max_completion_tokens" if "completion_cap" in quirks else "max_tokens": sampling.max_tokens,
    }
    for name in ("top_p", "top_k", "min_p"):
        if (value := getattr(sampling, name)) is not None:
            body[name] = value
    if sampling.top_logprobs is not None:
        body["logprobs"], body["top_logprobs"] = True, sampling.top_logprobs
    if sampling.stop:
        body["stop"] = sampling.stop
    if "no_seed" not in quirks:
        body["seed"] = call.seed
    if call.n > 1:
        body["n"] = call.n
    return msgspec.json.encode(body)


# In


class _Message(Struct):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: Any = None


class _Choice(Struct):
    message: _Message | None = None
    index: Any = None
    finish_reason: Any = None
    logprobs: Any = None


class _Body(Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    timings: Any = None
    tokens_cached: Any = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Body)


def parse(body: bytes, call: Call, key: str | None = None) -> Reply:
    """The completions of `call`, in rollout order; only the first where the server gave one of n.

    Raises ModelError: transient for what cannot be read or is incomplete, by its code for an error sent
    with status 200.
    """
    try:
        answer = _decoder.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise ModelError(
            f"the server sent no readable answer: {_words(body, key)}", retry="transient"
        ) from None
    if answer.error is not None and not answer.choices:
        code = answer.error.get("code") if isinstance(answer.error, dict) else None
        raise failure(code if isinstance(code, int) and code >= 400 else 500, {}, body, key)
    choices = [c for c in answer.choices or () if c.message is not None and c.finish_reason != "error"]
    if {c.index for c in choices if isinstance(c.index, int)} >= set(range(call.n)):
        choices = sorted((c for c in choices if c.index in range(call.n)), key=lambda c: int(c.index))
    alone = len(answer.choices or ()) == 1 and len(choices) == 1 and choices[0].index in (0, None)
    if len(choices) != call.n and not alone:
        raise ModelError(f"the server sent {len(choices)} answers of {call.n}", retry="transient")
    completions = tuple(_completion(call.first + i, choice) for i, choice in enumerate(choices))
    return Reply(completions, _usage(answer, call, completions))


def _completion(rollout: int, choice: _Choice) -> Completion:
    message = choice.message or _Message()
    reason = choice.finish_reason if isinstance(choice.finish_reason, str) else "unknown"
    return Completion(
        rollout,
        _text(message.content) or _text(message.refusal),
        "length" if reason.lower() in _LENGTH else reason,
        _text(message.reasoning_content) or _text(message.reasoning),
        _ending(choice.logprobs) if choice.logprobs is not None else (),
    )


def _ending(logprobs: Any) -> tuple[Token, ...]:
    """The last tokens with their alternatives; nothing where a server tells them in some other way."""
    try:
        return tuple(
            Token(
                str(token["token"]),
                {str(other["token"]): float(other["logprob"]) for other in token["top_logprobs"]},
            )
            for token in logprobs["content"][-ENDING:]
        )
    except (TypeError, KeyError, ValueError, AttributeError):
        return ()


def _text(content: Any) -> str:
    """Content is a string, null, or (on some servers) a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(p["text"] for p in content if isinstance(p, dict) and isinstance(p.get("text"), str))
    return ""


def _usage(answer: _Body, call: Call, completions: tuple[Completion, ...]) -> Usage:
    prompt, completion = _count(answer.usage, "prompt_tokens"), _count(answer.usage, "completion_tokens")
    if prompt is None or completion is None:
        asked = sum(len(m.content) for m in call.prompt.messages)
        told = sum(len(c.text) + len(c.reasoning) for c in completions)
        return Usage(math.ceil(asked / 4), math.ceil(told / 4), requests=1, counted=False)
    details = answer.usage.get("prompt_tokens_details")
    found = (
        _count(details, "cached_tokens"),
        _count(answer.usage, "prompt_cache_hit_tokens"),
        _count(answer.timings, "cache_n"),
        _count({"tokens_cached": answer.tokens_cached}, "tokens_cached"),
    )
    cached = min(next((n for n in found if n is not None), 0), prompt)
    if answer.timings is None or len(completions) == 1:
        return Usage(prompt, completion, cached, 1)
    # llama.cpp counts the tokens of the completion it lists first alone: the others go by their length.
    lengths = [len(c.text) + len(c.reasoning) for c in completions]
    first = next((c.index for c in answer.choices or () if c.index in range(call.n)), 0)
    share = sum(lengths) / lengths[first] if lengths[first] else len(lengths)
    return Usage(prompt, round(completion * share), cached, 1, counted=False)


def _count(block: Any, name: str) -> int | None:
    value = block.get(name) if isinstance(block, dict) else None
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**53 else None


# Failures


def failure(status: int, headers: Mapping[str, str], body: bytes, key: str | None = None) -> ModelError:
    """What an answer with this status means; its kind is one of the words below.

    rate_limit, server (both worth another try), key, quota, unknown_model (fatal all three), redirect
    (fatal), context, refused (this call alone is lost).
    """
    said, wait = _words(body, key), _wait(headers)
    if status == 402 or (status == 429 and "insufficient_quota" in said):
        return ModelError(f"the account has no credit left: {said}", fatal=True, kind="quota")
    if status == 429:
        return ModelError(
            f"too many requests: {said}", retry="rate_limit", retry_after=wait, kind="rate_limit"
        )
    if status in (401, 403):
        return ModelError(said, fatal=True, kind="key")
    if (status < 500 and status != 404 and _CONTEXT.search(said)) or "exceed_context_size" in said:
        return ModelError(f"longer than the context of the model: {said}", kind="context")
    if status >= 500 or status in (408, 409, 425):
        return ModelError(f"HTTP {status}: {said}", retry="transient", retry_after=wait, kind="server")
    if status == 404 or (status in (400, 422) and _NO_MODEL.search(said)):
        return ModelError(f"HTTP {status}: {said}", fatal=True, kind="unknown_model")
    if 300 <= status < 400:
        target = _clean(headers.get("Location", "elsewhere"), key)
        return ModelError(f"redirected to {target}, which is not followed", fatal=True, kind="redirect")
    return ModelError(f"HTTP {status}: {said}", kind="refused")


def remedy(error: ModelError, call: Call, quirks: frozenset[Quirk]) -> Quirk | None:
    """The peculiarity of the server that would explain why it refused `call`, if it is not known yet."""
    said = str(error)
    if error.kind != "refused":
        return None
    if "completion_cap" not in quirks and "max_completion_tokens" in said and _UNSUPPORTED.search(said):
        return "completion_cap"
    if call.n > 1 and "no_n" not in quirks and _NO_N.search(said):
        return "no_n"
    if "no_seed" not in quirks and re.search(r"\bseed\b", said):
        return "no_seed"
    return None


def _wait(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks to wait: Retry-After-Ms, or Retry-After as seconds or as a date."""
    for name, unit in (("Retry-After-Ms", 1e-3), ("Retry-After", 1.0)):
        stated = headers.get(name, "").strip()
        try:
            seconds = float(stated) * unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(stated).timestamp() - time.time()
            except (ValueError, OverflowError, OSError):
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def _words(body: bytes, key: str | None) -> str:
    """What the server said, fit to be quoted: its error message, the title of a page, or the bare text."""
    text = body[: 64 * 1024].decode("utf-8", "replace")
    try:
        document = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        title = re.search(r"<title[^>]*>(.*?)</title", text, re.I | re.S)
        page = re.match(r"\s*<(!doctype|html)", text, re.I)
        text = (f"a web page ({title[1].strip()})" if title else "a web page") if page else text
    else:
        text = _message(document) or text
    return _clean(text, key) or "(nothing)"


def _message(document: Any) -> str:
    """The error text of the usual shapes, with its code and parameter, or nothing."""
    if not isinstance(document, dict):
        return ""
    error = document.get("error", document)
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        return ""
    text = error.get("message") or error.get("detail") or error.get("error") or ""
    text = text if isinstance(text, str) else msgspec.json.encode(text).decode()
    for name in ("code", "type", "param"):
        value = error.get(name)
        if isinstance(value, str) and value and not re.search(rf"\b{re.escape(value)}\b", text):
            text += f" ({name} {value!r})"
    return text


def _clean(text: str, key: str | None) -> str:
    """Printable, on one line, without the key, and at most QUOTED characters: in this order."""
    text = " ".join("".join(c if c.isprintable() else " " if c.isspace() else "" for c in text).split())
    if key:
        text = text.replace(key, "[key]")
    text = re.sub(r"\bBearer\s+\S+|\bsk-[\w*.-]{6,}", "[key]", text)
    return text if len(text) <= QUOTED else text[: QUOTED - 1] + "…"


__all__ = ["MAX_N", "QUOTED", "Quirk", "failure", "parse", "payload", "remedy"]
