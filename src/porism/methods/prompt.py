"""Prompt templates: loaded from a file, checked before anything is asked, rendered verbatim.

Templates are jinja2 in a sandbox: a template may come from anywhere, and it must not be able to do more
than lay out text. What is inserted is never itself read as a template, so a candidate may contain braces.
An undefined name is an error here, not an empty string in ten thousand requests.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from porism.errors import ConfigError

if TYPE_CHECKING:
    from jinja2 import Environment, Template

UTILITY_FIELDS = ("question", "candidate", "neighbor")
SOLVE_FIELDS = ("question",)
QUESTION_FIELDS = ("question", "neighbor")
JUDGE_FIELDS = ("question", "candidate")
PAIR_FIELDS = ("question", "first", "second")


def load_template(path: Path | None, default: str) -> str:
    """The text of the user's template file, or of the built-in template `default` where there is none."""
    if path is None:
        return files("porism").joinpath("prompts", f"{default}.j2").read_text(encoding="utf-8")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: the template cannot be read: {error}") from None


def render(template: str, /, **fields: str) -> str:
    """The template with its fields put in, verbatim. Raises ConfigError where it cannot be rendered."""
    from jinja2 import TemplateError

    try:
        return _compiled(template).render(fields)
    except TemplateError as error:
        raise ConfigError(f"the prompt template cannot be rendered: {error}") from None
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise ConfigError(f"the prompt template fails: {type(error).__name__}: {error}") from None


def check_template(template: str, fields: Collection[str]) -> list[str]:
    """Warnings about a template that must show each of `fields`; ConfigError where it does not.

    With a neighbor among the fields, everything else has to stand before it: what opens the prompt is
    then the same for all neighbors of a candidate, and a server computes it once.
    """
    from jinja2 import TemplateSyntaxError
    from jinja2.meta import find_undeclared_variables

    try:
        used = find_undeclared_variables(_environment().parse(template))
    except TemplateSyntaxError as error:
        raise ConfigError(f"prompt template, line {error.lineno}: {error.message}") from None
    for name in sorted(used - set(fields)):
        near = get_close_matches(name, fields, n=1)
        hint = f"did you mean {{{{ {near[0]} }}}}?" if near else f"a template may use {', '.join(fields)}."
        raise ConfigError(f"prompt template: {{{{ {name} }}}} is not known; {hint}")
    # Odd text on purpose: braces, quotes and angle brackets must come through untouched.
    marks = {name: f"<{name} {{{{ 1 }}}} & \"x\" 'y'>" for name in fields}
    text = render(template, **marks)
    for name in fields:
        if marks[name] not in text:
            raise ConfigError(
                f"prompt template: add {{{{ {name} }}}}; its text does not appear in the prompt."
            )
    if "neighbor" not in marks:
        return []
    shared = text[: text.index(marks["neighbor"])]
    if render(template, **{**marks, "neighbor": "another"}).startswith(shared) and all(
        mark in shared for name, mark in marks.items() if name != "neighbor"
    ):
        return []
    return [
        "prompt template: the neighbor question does not come last, so nothing is shared between the "
        "neighbors of a candidate and every prompt is computed in full."
    ]


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)


@lru_cache(maxsize=64)
def _compiled(template: str) -> Template:
    return _environment().from_string(template)


__all__ = [
    "JUDGE_FIELDS",
    "PAIR_FIELDS",
    "QUESTION_FIELDS",
    "SOLVE_FIELDS",
    "UTILITY_FIELDS",
    "check_template",
    "load_template",
    "render",
]
