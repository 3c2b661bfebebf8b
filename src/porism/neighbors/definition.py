"""A family as people write it, checked key by key before anything is drawn.

All faults are found in one pass, each with the path of its key, so that a problem file can say the line and a
family file the key. What only a draw can show (an unsatisfiable constraint, a rule without a value) is found by one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, TypeAlias

from porism.errors import DataError
from porism.neighbors.expression import Expression, RuleError, expression
from porism.neighbors.family import Family
from porism.neighbors.functions import FUNCTIONS
from porism.neighbors.rules import ANSWER, CODE, Template
from porism.verify.custom import is_custom
from porism.verify.typed import TYPES

KEYS = (
    "name", "subject", "question", "parameters", "constraints", "derived", "answer", "answer_type", "format",
    "difficulty", "target", "examples", "metadata",
)  # fmt: skip
_TYPES = ("integer", "prime", "choice")
_NAME = re.compile(r"[A-Za-z]\w*\Z", re.ASCII)
_CODE = re.compile(r"python:[A-Za-z_][\w.]*:[A-Za-z_]\w*\Z")
_WORDS = {"and", "or", "not", "if", "else", "for", "in", "is", "lambda", "True", "False", "None", "iterate"}
_LARGEST = 10**15  # of a bound of a range
_MOST_PRIMES = 10**6

Fault: TypeAlias = tuple[tuple[str | int, ...], str]


def read_family(value: Mapping[str, Any]) -> Family:
    """The family that keys and values describe. DataError with every fault, each naming the family and its key."""
    from porism.data.finding import key_text

    family, faults = check_family(value)
    if family is None:
        name = value.get("name")
        raise DataError([f"family {name!r}: {key_text(path) or 'it'}: {message}" for path, message in faults])
    return family


def check_family(value: Mapping[str, Any]) -> tuple[Family | None, list[Fault]]:
    """The family, and every fault with the path of its key; None where there is one."""
    reader = _Reader({key: item for key, item in value.items() if item is not None})
    family = reader.family()
    return (None if reader.faults else family), reader.faults


class _Reader:
    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value
        self.faults: list[Fault] = []
        self.known: list[str] = []  # names an expression may use

    def fault(self, message: str, *path: str | int) -> None:
        self.faults.append((path, message))

    def family(self) -> Family | None:
        for key in self.value:
            if key not in KEYS:
                near = get_close_matches(key, KEYS, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(KEYS)}"
                self.fault(f"unknown key; {hint}", key)
        name, question = self.text("name", need=True), self.text("question", need=True)
        subject, answer_type = self.text("subject"), self.answer_type()
        parameters = {
            name: values
            for name, item in self.mapping("parameters", need=True).items()
            if self.name(name, "parameters") and (values := self.domain(item, name))
        }
        self.known = list(self.mapping("parameters"))
        derived = {}
        for key, item in self.mapping("derived").items():
            if self.name(key, "derived"):
                derived[key] = self.rule(item, "derived", key)
                self.known.append(key)
        constraints = [self.rule(item, "constraints", i) for i, item in enumerate(self.items("constraints"))]
        answer = self.answer()
        if isinstance(answer, Expression):
            self.known.append(ANSWER)
        difficulty = self.rule(self.value["difficulty"], "difficulty") if "difficulty" in self.value else None
        template = Template(question or "")
        format = Template(self.text("format") or "") if "format" in self.value else None
        rules = [*constraints, answer, difficulty]
        if not self.faults:
            self.names(template, format, parameters, derived, rules)
        examples = [self.example(item, i, parameters) for i, item in enumerate(self.items("examples"))]
        target = self.target(parameters)
        if self.faults or name is None or answer is None:
            return None
        return Family(
            name=name,
            question=template,
            parameters=parameters,
            answer=answer,
            constraints=tuple(rule for rule in constraints if rule),
            derived={key: rule for key, rule in derived.items() if rule},
            difficulty=difficulty,
            format=format,
            answer_type=answer_type,
            subject=subject,
            target=target,
            examples=tuple(example for example in examples if example),
        )

    # Shapes

    def text(self, key: str, *, need: bool = False) -> str | None:
        found = self.value.get(key)
        if isinstance(found, str) and found.strip():
            return found.strip()
        if found is not None:
            self.fault("must be text" if not isinstance(found, str) else "is empty", key)
        elif need:
            self.fault("is missing", key)
        return None

    def answer_type(self) -> str | None:
        found = self.text("answer_type")
        if found and not is_custom(found) and (name := found.partition(":")[0]) not in TYPES:
            near = get_close_matches(name, TYPES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(TYPES))}"
            self.fault(f"{name!r} is not a type of answer; {hint}", "answer_type")
        return found

    def mapping(self, key: str, *, need: bool = False) -> dict[str, Any]:
        found = self.value.get(key)
        if isinstance(found, dict) and (found or not need):
            return found
        if found is not None or need:
            self.fault("is missing" if found is None else "must be names and what they stand for", key)
            self.value.pop(key, None)  # said once
        return {}

    def items(self, key: str) -> Sequence[Any]:
        found = self.value.get(key)
        if found is not None and not isinstance(found, list | tuple):
            self.fault("must be a list", key)
            return ()
        return found or ()

    def name(self, name: str, key: str) -> bool:
        """Whether a name can be one."""
        if not _NAME.match(name):
            self.fault("a name has letters, digits and _, and begins with a letter", key, name)
        elif name in FUNCTIONS or name in _WORDS or name == ANSWER:
            self.fault(f"{name!r} means something else in a rule: choose another name", key, name)
        elif name in self.known:
            self.fault("is a parameter already", key, name)
        else:
            return True
        return False

    # Parameters

    def domain(self, item: Any, name: str) -> Sequence[Any] | None:
        """The values of a parameter, in order, or None and a fault."""
        path = ("parameters", name)
        if not isinstance(item, dict):
            self.fault("must be keys and values, such as {type: integer, range: [2, 9]}", *path)
            return None
        kind = item.get("type", "choice" if "values" in item else "integer")
        keys = {"integer": ("range", "step"), "prime": ("range",), "choice": ("values",)}.get(str(kind))
        if keys is None:
            self.fault(f"must be one of {', '.join(_TYPES)}, not {kind!r}", *path, "type")
            return None
        for key in item:
            if key not in ("type", *keys):
                self.fault(f"is not a key of type {kind}, which has {', '.join(keys)}", *path, key)
        return (
            self.choice(item, path) if kind == "choice" else self.interval(item, path, prime=kind == "prime")
        )

    def interval(self, item: dict[str, Any], path: tuple[str, ...], *, prime: bool) -> Sequence[int] | None:
        bounds, step = item.get("range"), item.get("step", 1)
        if not (isinstance(bounds, list | tuple) and len(bounds) == 2 and all(_is_whole(x) for x in bounds)):
            self.fault("must be [lowest, highest], two whole numbers", *path, "range")
            return None
        if not _is_whole(step) or not 1 <= step <= _LARGEST:
            self.fault("must be a positive whole number", *path, "step")
            return None
        low, high = bounds
        if max(abs(low), abs(high)) > _LARGEST or (prime and high > _MOST_PRIMES):
            self.fault(f"goes beyond {_MOST_PRIMES if prime else _LARGEST:,}", *path, "range")
            return None
        found: Sequence[int] = range(low, high + 1, step)
        if prime:
            found = _primes(low, high)
        if not found:
            what = "no prime" if prime else "nothing"
            self.fault(f"is empty: there is {what} from {low} to {high}", *path, "range")
            return None
        return found

    def choice(self, item: dict[str, Any], path: tuple[str, ...]) -> Sequence[Any] | None:
        values = item.get("values")
        if not isinstance(values, list | tuple) or not values:
            self.fault("must be a list of at least one value", *path, "values")
            return None
        found = [self.exact(x, *path, "values", i) for i, x in enumerate(values)]
        if len(set(found)) < len(found):
            self.fault("a value is given twice", *path, "values")
            return None
        return found

    def exact(self, value: Any, *path: str | int) -> Any:
        """A value as rules have it: decimals become fractions, lists tuples."""
        if isinstance(value, list | tuple):
            return tuple(self.exact(x, *path, i) for i, x in enumerate(value))
        if isinstance(value, float):
            return Fraction(str(value))
        if not isinstance(value, int | str):
            self.fault("must be a number, text or a list of such", *path)
            return 0
        return value

    # Rules

    def rule(self, source: Any, *path: str | int) -> Expression | None:
        """An expression whose names are known, or None and a fault."""
        if isinstance(source, bool | int):
            source = str(source)
        if not isinstance(source, str):
            self.fault("must be an expression, such as n * (n + 1) / 2", *path)
            return None
        try:
            found = expression(source)
        except RuleError as error:
            self.fault(str(error), *path)
            return None
        for name in found.names:
            if name not in self.known:
                self.fault(f"{name!r} is not known here{self.nearest(name)}", *path)
        return found

    def nearest(self, name: str) -> str:
        near = get_close_matches(name, self.known, n=1)
        return (
            f": did you mean {near[0]!r}?" if near else f": there are {', '.join(self.known) or 'no names'}"
        )

    def answer(self) -> Expression | str | None:
        if ANSWER not in self.value:
            self.fault("is missing", ANSWER)
            return None
        source = self.value[ANSWER]
        if isinstance(source, str) and source.startswith(CODE):
            if not _CODE.match(source):
                self.fault("code is named python:package.module:function", ANSWER)
            return source
        return self.rule(source, ANSWER)

    def names(
        self,
        question: Template,
        format: Template | None,
        parameters: dict[str, Any],
        derived: dict[str, Expression | None],
        rules: list[Any],
    ) -> None:
        """Every name in a text is known, every parameter is in the question, everything derived is used."""
        if ANSWER in question.names:
            self.fault("gives the answer away", "question")
        for key, template in (("question", question), ("format", format)):
            for name in template.names if template else ():
                if name not in self.known and name != ANSWER:
                    message = f"<{name}> is not known{self.nearest(name)} (elsewhere a space follows a <)"
                    self.fault(message, key)
        shown = _needs(question.names, derived)
        for name in parameters:
            if name not in shown:
                self.fault(
                    f"is not in the question: write <{name}> there, or leave it out", "parameters", name
                )
        used = set(shown)
        for rule in rules:
            if isinstance(rule, Expression):
                used |= _needs(rule.names, derived)
        if format:
            used |= _needs(format.names, derived)
        for name in derived:
            if name not in used:
                self.fault("is used nowhere: leave it out", "derived", name)

    # Given parameters

    def given(self, item: Any, parameters: dict[str, Any], *path: str | int) -> dict[str, Any] | None:
        """Values of all parameters."""
        if not isinstance(item, dict) or set(item) != set(parameters):
            self.fault(f"must give a value to each of {', '.join(parameters) or 'the parameters'}", *path)
            return None
        return {name: self.exact(item[name], *path, name) for name in parameters}

    def target(self, parameters: dict[str, Any]) -> dict[str, Any] | None:
        return self.given(self.value["target"], parameters, "target") if "target" in self.value else None

    def example(self, item: Any, i: int, parameters: dict[str, Any]) -> tuple[dict[str, Any], str] | None:
        if not isinstance(item, dict) or not isinstance(item.get(ANSWER), str | int | float):
            self.fault("must give the parameters and the answer they have", "examples", i)
            return None
        rest = {name: value for name, value in item.items() if name != ANSWER}
        values = self.given(rest, parameters, "examples", i)
        return None if values is None else (values, str(self.exact(item[ANSWER], "examples", i, ANSWER)))


def _needs(names: Sequence[str], derived: Mapping[str, Expression | None]) -> set[str]:
    """The names, and those that the derived ones among them are made of."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            rule = derived.get(name)
            todo += rule.names if rule else ()
    return found


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _primes(low: int, high: int) -> list[int]:
    sieve = bytearray([1]) * max(2, high + 1)
    sieve[:2] = b"\0\0"
    for p in range(2, int(len(sieve) ** 0.5) + 1):
        if sieve[p]:
            sieve[p * p :: p] = bytes(len(sieve[p * p :: p]))
    return [p for p in range(max(low, 2), high + 1) if sieve[p]]


__all__ = ["KEYS", "check_family", "read_family"]
