"""Methods by name, for configuration files and command lines.

A plain table and no registration: a method of your own is an object with plan, read and score, and needs no name here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from difflib import get_close_matches
from typing import Any, get_type_hints

from porism.errors import ConfigError
from porism.methods.genrm import GenRM
from porism.methods.judge import Judge
from porism.methods.pairwise import Pairwise
from porism.methods.reward import Reward
from porism.methods.trivial import Length, Random
from porism.methods.utility import Utility
from porism.methods.vote import Vote
from porism.types import Method

METHODS: dict[str, Callable[..., Method]] = {
    "utility": Utility,
    "judge": Judge,
    "pairwise": Pairwise,
    "genrm": GenRM,
    "reward": Reward,
    "vote": Vote,
    "length": Length,
    "random": Random,
}

_PLAIN: dict[Any, str] = {int: "a whole number", bool: "true or false", str: "a text"}


def make(method: str, **settings: Any) -> Method:
    """The method of this name (a key of METHODS) with these settings, which are the fields of its class.

    `name` among them is what its observations and scores are filed under, by default the method's own. Raises
    ConfigError for an unknown method or setting, with the nearest right one, and for one that is missing or of the
    wrong type.
    """
    constructor = METHODS.get(method)
    if constructor is None:
        raise ConfigError(f"there is no method {method!r}{_near(method, METHODS)}: {', '.join(METHODS)}")
    known = {f.name: f for f in fields(constructor)}  # type: ignore[arg-type]
    for key in settings:
        if key not in known:
            raise ConfigError(f"{method}: unknown setting {key!r}{_near(key, known)}: {', '.join(known)}")
    missing = [
        name
        for name, f in known.items()
        if name not in settings and f.default is MISSING and f.default_factory is MISSING
    ]
    if missing:
        raise ConfigError(f"{method}: say {' and '.join(missing)}")
    hints = get_type_hints(constructor)
    for key, value in settings.items():
        if (
            hints[key] in _PLAIN and type(value) is not hints[key]
        ):  # True is no number here, nor 2.5 a whole one
            raise ConfigError(f"{method}: {key} is {value!r}: it must be {_PLAIN[hints[key]]}")
    return constructor(**settings)


def _near(word: str, known: dict[str, Any]) -> str:
    near = get_close_matches(word, known, n=1)
    return f", did you mean {near[0]!r}?" if near else ""


__all__ = ["METHODS", "make"]
