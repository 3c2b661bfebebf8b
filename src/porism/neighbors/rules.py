"""What a family is made of: texts with names in them, the values each parameter may have, and rules.

In texts <n> stands for the value of n: braces, dollars, backslashes and percent signs all mean something in LaTeX,
and a name between < and > without a space does not. Whatever goes wrong for some values is said with the family's
name, the key and the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from porism.errors import DataError
from porism.neighbors.expression import STEPS, Expression, RuleError, expression
from porism.neighbors.values import Meter, noun

CODE = "python:"  # begins an answer rule that is code: python:package.module:function
ANSWER = "answer"  # the name of the answer in `format` and `difficulty`

_LISTED = 1000  # values of a list that may stand in a text

Values: TypeAlias = dict[str, Any]


class Template:
    """A text with <name> in it. `names`: those it needs."""

    __slots__ = ("_parts", "names")

    def __init__(self, text: str) -> None:
        self._parts = re.split(r"<([A-Za-z]\w*)>", text)
        self.names = tuple(dict.fromkeys(self._parts[1::2]))

    def fill(self, values: Values) -> str:
        """The text with values in it; RuleError for one that cannot stand in a text."""
        parts = self._parts.copy()
        parts[1::2] = [_in_text(values[name]) for name in parts[1::2]]
        return "".join(parts)


def _in_text(value: object) -> str:
    """A value as it stands in a question: a fraction in LaTeX, a list with commas."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        raise RuleError('true or false cannot stand in a text: give texts, as in "yes" if x else "no"')
    if isinstance(value, Fraction):
        sign = "-" if value < 0 else ""
        return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"
    if isinstance(value, tuple):
        if len(value) > _LISTED:
            raise RuleError(f"a list of {len(value):,} values is too long for a text")
        return ", ".join(_in_text(x) for x in value)
    return str(value)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rules:
    """What a family is made of, every name in it checked.

    parameters: the values each may have. constraints, derived: in the order they were written. answer: a rule, or
    python:package.module:function. format: how the answer is written, where it is not just a number. target: the
    parameters of the question that neighbors are wanted for. examples: parameters with the answer they have.
    """

    name: str
    question: Template
    parameters: Mapping[str, Sequence[Any]]
    answer: Expression | str
    constraints: tuple[Expression, ...] = ()
    derived: Mapping[str, Expression] = field(default_factory=dict)
    difficulty: Expression | None = None
    format: Template | None = None
    answer_type: str | None = None
    subject: str | None = None
    target: Mapping[str, Any] | None = None
    examples: tuple[tuple[Mapping[str, Any], str], ...] = ()

    def value(self, rule: str, values: Mapping[str, Any]) -> Any:
        """What another rule, which may use derived values too, gives for these parameters. DataError if nothing."""
        found = dict(values)
        return self.evaluate(expression(rule), found, repr(rule), Meter(STEPS))

    def evaluate(self, rule: Expression, values: Values, key: str, meter: Meter) -> Any:
        """The value of a rule; the derived values it needs are added to `values`. DataError names the key."""
        self._derive(rule.names, values, meter)
        try:
            return rule(values, meter)
        except RuleError as error:
            raise self.fault(key, error, values) from None

    def _derive(self, names: Iterable[str], values: Values, meter: Meter) -> None:
        for name in names:
            if name in values:
                continue
            if (rule := self.derived.get(name)) is not None:
                values[name] = self.evaluate(rule, values, f"derived.{name}", meter)
            elif name == ANSWER and isinstance(self.answer, Expression):
                values[name] = self.evaluate(self.answer, values, ANSWER, meter)

    def fill(self, template: Template, values: Values, key: str, meter: Meter) -> str:
        """A text with the values in it. DataError names the key."""
        self._derive(template.names, values, meter)
        try:
            return template.fill(values)
        except RuleError as error:
            raise self.fault(key, error, values) from None
        except RecursionError:
            raise self.fault(key, "a list is nested too deeply for a text", values) from None

    def written(self, answer: Any, values: Values, meter: Meter) -> str:
        """The answer as a neighbor has it. DataError where it is not what the family says it is."""
        if isinstance(answer, Fraction) and self.answer_type == "integer":
            raise self.fault(ANSWER, f"is {answer}, and answer_type says integer", values)
        if self.format is not None:
            return self.fill(self.format, {**values, ANSWER: answer}, "format", meter)
        if isinstance(answer, bool) or not isinstance(answer, int | Fraction):
            message = f"is {noun(answer)}, not a number: say in `format` how to write it"
            raise self.fault(ANSWER, message, values)
        return str(answer)

    def answer_of(self, values: Mapping[str, Any]) -> str:
        """The answer for these parameters as a neighbor would have it. DataError for a rule that is code."""
        if not isinstance(self.answer, Expression):
            raise self.fault(ANSWER, "is code, and code is not run here")
        found, meter = dict(values), Meter(STEPS)
        return self.written(self.evaluate(self.answer, found, ANSWER, meter), found, meter)

    def fault(self, key: str, message: object, values: Mapping[str, Any] | None = None) -> DataError:
        """The error that names the family, the key, and the parameters it arose for."""
        shown = [f"{name} = {values[name]}" for name in self.parameters if name in values] if values else []
        where = f" (for {', '.join(shown)})"[:200] if shown else ""
        return DataError([f"family {self.name!r}: {key}: {message}{where}"])


__all__ = ["ANSWER", "CODE", "Rules", "Template", "Values"]
