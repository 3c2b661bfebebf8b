"""What a server is, from what it tells without being asked for an answer.

Each program has an address of its own beside the common protocol: /version (vLLM), /get_server_info (SGLang), /props
(llama.cpp), /api/version (Ollama). They also tell the context that a request may have, how many requests run at
once, and what the weights are, as far as they say. Nothing here is an error: what cannot be learned stays unknown,
and every value is read with doubt.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from porism.models.openai import OpenAIModel

Program = Literal["vLLM", "SGLang", "llama.cpp", "Ollama", "hosted", "unknown"]
_PATHS = ("version", "props", "get_model_info", "get_server_info", "api/version", "api/ps", "api/tags")


class Server(Struct, frozen=True, kw_only=True):
    """A server as it describes itself.

    answers: whether it told anything. context: tokens of a prompt and its answer. at_once: requests that run side by
    side. weights: facts that are equal wherever the same weights are served. report: whether it is started so that
    cached tokens are counted in every answer, where it says.
    """

    program: Program
    answers: bool
    version: str | None = None
    context: int | None = None
    at_once: int | None = None
    report: bool | None = None
    weights: dict[str, str] = {}


async def recognize(model: OpenAIModel) -> Server:
    """The server behind a model that has been entered. Takes a few seconds at most; raises nothing."""
    root = model.base_url.removesuffix("/v1")
    rows, *told = await asyncio.gather(model.served(), *(model.get_json(f"{root}/{path}") for path in _PATHS))
    version, props, info, settings, ollama, loaded, files = map(_table, told)
    own = [r for r in rows if r["id"] == model.served_name] or (rows if len(rows) == 1 else [])
    row = own[0] if own else {}
    answers = bool(rows or any((version, props, info, settings, ollama)))
    owner = str(row.get("owned_by", ""))
    if "default_generation_settings" in props or owner == "llamacpp":
        return _llama(row, props)
    if info or settings or owner == "sglang":
        return Server(
            program="SGLang",
            answers=True,
            version=_text(settings.get("version")),
            context=_count(settings.get("context_length")) or _count(row.get("max_model_len")),
            at_once=_count(settings.get("max_running_requests")),
            report=_flag(settings.get("enable_cache_report")),
            weights=_facts(model=_last(info.get("model_path")), version=_text(info.get("weight_version"))),
        )
    if ollama or owner == "library":
        return _ollama(model.served_name, ollama, loaded, files)
    if "version" in version or owner == "vllm":
        return Server(
            program="vLLM",
            answers=True,
            version=_text(version.get("version")),
            context=_count(row.get("max_model_len")),
            weights=_facts(model=_last(row.get("root"))),
        )
    return Server(
        program="hosted" if answers and model.host is not None else "unknown",
        answers=answers,
        context=_count(row.get("max_model_len")) or _count(row.get("context_length")),
        weights=_facts(model=_last(row.get("root"))),
    )


def _llama(row: dict[str, Any], props: dict[str, Any]) -> Server:
    meta = _table(row.get("meta"))
    return Server(
        program="llama.cpp",
        answers=True,
        version=_text(props.get("build_info")),
        context=_count(_table(props.get("default_generation_settings")).get("n_ctx")),
        at_once=_count(props.get("total_slots")),
        report=True,
        weights=_facts(parameters=_count(meta.get("n_params")), bytes=_count(meta.get("size"))),
    )


def _ollama(name: str, version: dict[str, Any], loaded: dict[str, Any], files: dict[str, Any]) -> Server:
    names = {name, f"{name}:latest"}
    running, file = (_named(table.get("models"), names) for table in (loaded, files))
    return Server(
        program="Ollama",
        answers=True,
        version=_text(version.get("version")),
        context=_count(running.get("context_length")),
        weights=_facts(digest=_text(file.get("digest"))),
    )


def _named(rows: Any, names: set[str]) -> dict[str, Any]:
    found = (
        [r for r in rows if isinstance(r, dict) and r.get("name") in names] if isinstance(rows, list) else []
    )
    return found[0] if found else {}


def _facts(**found: str | int | None) -> dict[str, str]:
    return {name: str(value) for name, value in found.items() if value is not None}


def _last(path: Any) -> str | None:
    """The end of a model's path, which is its name wherever it lies; in a hub's cache that is a folder further up."""
    text = _text(path)
    if text is None:
        return None
    cached = re.search(r"models--([^/]+)/snapshots", text)
    return (cached[1].rpartition("--")[2] if cached else text.rstrip("/").rpartition("/")[2]) or None


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    """What a server says is untrusted: printable and short."""
    kept = "".join(c for c in value if c.isprintable())[:100] if isinstance(value, str) else ""
    return kept or None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53 else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


__all__ = ["Program", "Server", "recognize"]
