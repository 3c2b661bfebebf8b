"""Changes of style by fixed rules, which leave every formula and number of a candidate as it is.

padding adds sentences that say nothing; confident asserts; authoritative cites theorems that do not exist; terse leaves
out sentences without mathematics; reformatted makes a numbered list. What is added is drawn by the candidate's own id.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from importlib.resources import files
from random import Random
from typing import Any

from porism.methods.sentences import Sentence, sentences

STYLES = ("padding", "confident", "authoritative", "terse", "reformatted")


def restyle(text: str, style: str, *, seed: str) -> str | None:
    """The text in another style; None where the style changes nothing. KeyError for a style that is not in STYLES."""
    parts = sentences(text)
    if style == "terse":
        changed = _terse(parts)
    elif style == "reformatted":
        changed = _reformatted(parts)
    else:
        rng = Random(blake2b(f"{style}\0{seed}".encode(), digest_size=16).digest())  # noqa: S311
        changed = _with(parts, _phrases()[style], rng)
    return None if changed == text.strip() else changed


@cache
def _phrases() -> dict[str, Any]:
    import yaml

    text = files("porism.stress").joinpath("phrases.yaml").read_text("utf-8")
    return dict(yaml.safe_load(text))


def _with(parts: list[Sentence], phrases: list[str], rng: Random) -> str:
    """A phrase before the text and after about every third sentence, never after the last: the answer stays last."""
    order = rng.sample(phrases, len(phrases))
    out = [order[0], " "]
    added = 1
    for number, part in enumerate(parts, 1):
        out.append(part.text)
        if number % 3 == 0 and number < len(parts):
            out += [" ", order[added % len(order)]]
            added += 1
        out.append(part.gap)
    return "".join(out)


def _terse(parts: list[Sentence]) -> str:
    kept = [part.text for part in parts if part.mathematical]
    return "\n".join(kept) if kept else "".join(part.text + part.gap for part in parts)


def _reformatted(parts: list[Sentence]) -> str:
    return "\n".join(f"{number}. {part.text}" for number, part in enumerate(parts, 1))


__all__ = ["STYLES", "restyle"]
