"""The templates of the report: where they lie, and the filters by which values become text.

Everything is escaped unless it is made here or in text.py. `plain` shows a text as it is, hidden characters by name;
`text` lays out a long one, with its formulas; `value` shows a short one, such as an answer.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from porism import __version__
from porism.methods.message import CAVEAT
from porism.methods.ranking import Ranking
from porism.report import plots
from porism.report.text import LONGEST, clean, inline, to_html

if TYPE_CHECKING:
    from jinja2 import Environment

SIGNS = {"correct": "✓", "wrong": "✗", "no_answer": "∅", "undecided": "?", "missing": "…"}


@lru_cache(maxsize=8)
def asset(name: str) -> str:
    """The text of a template, the style or the script."""
    return files("porism").joinpath("report", "templates", name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The jinja2 environment: escaping everything, and strict about names."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined, pass_context

    @pass_context
    def text(context: Any, value: str) -> Any:
        return markup(to_html(value, context.get("most", LONGEST)))

    env = Environment(autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(asset))
    env.filters |= {
        "text": text,
        "plain": lambda value, most=400: clean(str(value), most),
        "value": lambda value, most=400: markup(inline(value, most)),
        "answer": answer,
        "share": share,
        "number": lambda value: "–" if value is None else f"{value:.3g}".replace("-", "−"),
        "signed": lambda value: "" if value is None else f"{value:+.2f}".replace("-", "−"),
        "shade": plots.shade,
        "sentence": lambda text: (
            text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
        ),
        "duration": duration,
    }
    env.globals |= {
        "interval": lambda *numbers: markup(plots.interval(*numbers)),
        "strip": lambda rates: markup(plots.strip(rates)),
        "signs": SIGNS,
        "caveat": CAVEAT,
        "version": __version__,
    }
    return env


def answer(ranking: Ranking) -> str:
    """The ranking's message without its standing caveat, which the page prints once, smaller."""
    return clean(ranking.message.removesuffix(CAVEAT).strip(), 1000)


def duration(seconds: float | None) -> str:
    """3 s, 4 min 5 s, 2 h 10 min; a question mark for what is not known."""
    if seconds is None:
        return "?"
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours} h {m} min" if hours else f"{m} min {s} s" if m else f"{s} s"


def share(value: float | None) -> str:
    """A share with two digits; a question mark for none."""
    return "?" if value is None else f"{value:.2f}"


def markup(text: str) -> Any:
    """Text that is HTML already: escaped by us, or an asset of ours."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  never a text from elsewhere


__all__ = ["answer", "asset", "duration", "environment", "markup", "share"]
