"""Where a model is served, and with which key: the provider table, base URLs, loopback.

Every provider speaks the same protocol; a row only says which environment variables name its address
and key, which address to assume, and how many calls are worth having in flight before the server says
so itself. A key is asked for where the service cannot work without one, and never stands in a message.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from difflib import get_close_matches
from ipaddress import ip_address
from urllib.parse import urlsplit

from porism.errors import ConfigError


@dataclass(frozen=True, slots=True)
class _Provider:
    default_url: str | None
    concurrency: int
    key_needed_at: str | None = None  # the host that answers nobody without a key


_PROVIDERS = {
    "openai": _Provider("https://api.openai.com/v1", 64, "api.openai.com"),
    "vllm": _Provider("http://127.0.0.1:8000/v1", 256),
    "sglang": _Provider("http://127.0.0.1:30000/v1", 256),
    "ollama": _Provider("http://127.0.0.1:11434/v1", 4),
    "openrouter": _Provider("https://openrouter.ai/api/v1", 32, "openrouter.ai"),
    "generic": _Provider(None, 32),
}
PROVIDERS = (*_PROVIDERS, "local", "fake")
_ENDINGS = ("/chat/completions", "/completions", "/models")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address with the key that opens it. key_variable is where the user sets that key."""

    base_url: str  # ends in a path such as /v1, without a slash
    key_variable: str
    concurrency: int
    key: str | None = field(default=None, repr=False)


def normal_url(url: str) -> str:
    """`url` as a base without a trailing slash: any of `…`, `…/v1`, `…/v1/`, `…/v1/chat/completions`.

    An address without a path gets `/v1`; one with a path of its own keeps it. Raises ConfigError where
    it is no http address, or carries a user name, a query or a fragment.
    """
    text = url.strip()
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"the base URL {text!r} is not an address: {error}") from None
    if parts.username or parts.password:
        raise ConfigError("a base URL must not carry a user name or password: give the key by its variable")
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"the base URL {text!r} is not an address: write it as http://HOST:PORT/v1")
    if parts.query or parts.fragment:
        raise ConfigError(
            "a base URL ends with its path (as in http://HOST:PORT/v1): remove what follows ? or #"
        )
    path = parts.path.rstrip("/")
    for ending in _ENDINGS:
        path = path.removesuffix(ending).rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def is_loopback(url: str) -> bool:
    """Whether text sent to `url` stays on this machine, judged by the address alone."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback or (mapped or address).is_unspecified


def host_of(url: str) -> str:
    """The host, with its port where that is not the usual one."""
    return urlsplit(url).netloc


def proxy(url: str) -> str | None:
    """The proxy that the environment names for `url`, credentials and all; never one for loopback.

    Read here rather than by the HTTP library, which would take keys out of ~/.netrc along with it. Raises
    ConfigError for a proxy that is none of http.
    """
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    found = getproxies().get(parts.scheme)
    if not found or is_loopback(url) or proxy_bypass(parts.netloc):
        return None
    found = found if "://" in found else f"http://{found}"
    scheme = urlsplit(found).scheme
    if scheme not in ("http", "https"):
        name = f"{parts.scheme}_proxy"
        raise ConfigError(
            f"{name} names a {scheme} proxy, which is not supported: unset {name}, or give an http one"
        )
    return found


def resolve(provider: str, base_url: str | None = None) -> Endpoint:
    """The endpoint of a provider: the address given, else its variable, else its default.

    Raises ConfigError for an unknown provider, a missing address, or a key the service insists on.
    """
    row = _PROVIDERS.get(provider)
    if row is None:
        near = get_close_matches(provider, PROVIDERS, n=1)
        hint = f" Did you mean {near[0]}/...?" if near else ""
        raise ConfigError(f"unknown provider {provider!r}: known are {', '.join(PROVIDERS)}.{hint}")
    url_variable, key_variable = f"{provider.upper()}_BASE_URL", f"{provider.upper()}_API_KEY"
    where = base_url or os.environ.get(url_variable, "").strip() or row.default_url
    if where is None:
        raise ConfigError(f"{provider}/... needs an address: set {url_variable}=http://HOST:PORT/v1")
    url = normal_url(where)
    key = os.environ.get(key_variable, "").strip() or None
    if key is None and row.key_needed_at == urlsplit(url).hostname:
        raise ConfigError(f"{row.key_needed_at} needs a key: set {key_variable}")
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigError(f"{key_variable} holds characters that no key has: copy it again, on one line")
    return Endpoint(url, key_variable, row.concurrency, key)


__all__ = ["PROVIDERS", "Endpoint", "host_of", "is_loopback", "normal_url", "proxy", "resolve"]
