"""The draw from a family: which combinations of parameters become neighbors.

Combinations that meet the constraints are looked at without preference, some for each neighbor wanted. In the order
of the family's measure of difficulty they are cut into as many parts, and each part gives one neighbor, so that a
small draw is as mixed as the family. Answers are worked out for those alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import prod
from random import Random
from typing import Any, TypeAlias

from porism.data.answers import plain
from porism.errors import DataError
from porism.neighbors.expression import STEPS, Expression, RuleError
from porism.neighbors.rules import ANSWER, Rules, Values
from porism.neighbors.values import Meter, noun

_SMALL = 5_000  # combinations that are shuffled; of more, random ones are tried
_TRIES = 200_000  # combinations of a large family that a small draw tries at most
_WORK = 20_000_000  # steps of a draw, before it is given up: some seconds
_POOL, _MORE = 2, 100  # admissible combinations looked at: for each neighbor wanted, and besides

_NUMBER = re.compile(r"-?[0-9]{1,3000}(?:[./][0-9]{1,3000})?")

RunCode: TypeAlias = Callable[[str, Sequence[Values]], list[Any]]


@dataclass(slots=True)
class Item:
    """An admissible combination, and what a neighbor is made of."""

    values: Values
    difficulty: Any
    question: str = ""
    answer: str = ""


class Draw:
    """One draw: the work left to it, and what its combinations met so far."""

    def __init__(self, family: Rules, random: Random, run: RunCode | None, n: int) -> None:
        self.family = family
        self.random = random
        self.run = run
        self.meter = Meter(STEPS)
        self.work = _WORK + 1000 * n
        self.tries = _TRIES + 20 * n
        self.size = prod(len(values) for values in family.parameters.values())
        self.tried = 0
        self.constraints = [(f"constraints[{i}]", rule) for i, rule in enumerate(family.constraints)]
        self.met = [0] * len(self.constraints)

    def items(self, n: int, target: Values | None, avoid: Iterable[str]) -> list[Item]:
        """n items that differ from each other, from the target and from what is to be avoided."""
        self._check_examples()
        texts = list(avoid)
        asked: dict[str, str | None] = {_fold(text): None for text in texts}  # questions and their answers
        refused = {_bare(text) for text in texts}
        if target is not None:
            refused.add(_bare(self._answers([dict(target)])[0]))
        admissible = self._admissible(target)
        pool = list(islice(admissible, _POOL * n + _MORE))
        if not pool:
            raise self._unsatisfiable()
        pool.sort(key=lambda item: item.difficulty)
        open_strata = [pool[i * len(pool) // n : (i + 1) * len(pool) // n] for i in range(n)]
        for stratum in open_strata:
            self.random.shuffle(stratum)
        chosen: list[Item] = []
        rest: list[Item] = []  # of strata that have given theirs
        while open_strata:
            batch: list[tuple[list[Item], Item]] = []
            still_open = []
            for stratum in open_strata:
                taken = stratum.pop() if stratum else rest.pop() if rest else next(admissible, None)
                if taken is None:
                    still_open.append(stratum)
                else:
                    batch.append((stratum, taken))
            if not batch:
                raise self._too_few(len(chosen), n)
            open_strata = still_open
            found = self._answers([item.values for _, item in batch])
            for (stratum, item), answer in zip(batch, found, strict=True):
                item.question, item.answer = self._question(item.values), answer
                question = _fold(item.question)
                if (other := asked.get(question)) is not None and other != answer:
                    message = (
                        f"{item.question[:60]!r} has the answers {other} and {answer}: show all that matters"
                    )
                    raise self.family.fault("question", message)
                if question in asked or _bare(answer) in refused:
                    open_strata.append(stratum)
                    continue
                asked[question] = answer
                chosen.append(item)
                rest += stratum
        chosen.sort(key=lambda item: item.difficulty)
        return chosen

    def _admissible(self, target: Values | None) -> Iterator[Item]:
        """Combinations that meet the constraints, each once, in random order."""
        family = self.family
        for index in self._indices():
            self.tried += 1
            values: Values = {}
            for name, domain in family.parameters.items():
                index, at = divmod(index, len(domain))
                values[name] = domain[at]
            meter = self._steps()
            if values != target and self._holds(values, meter):
                yield Item(values, self._difficulty(values, meter))

    def _indices(self) -> Iterator[int]:
        if self.size <= _SMALL:
            yield from self.random.sample(range(self.size), self.size)
            return
        seen: set[int] = set()
        while len(seen) < min(self.size, self.tries):
            # The faster way, and without a noticeable preference below 2^40.
            index = (
                int(self.random.random() * self.size)
                if self.size < 1 << 40
                else self.random.randrange(self.size)
            )
            if index not in seen:
                seen.add(index)
                yield index

    def _holds(self, values: Values, meter: Meter) -> bool:
        for i, (key, constraint) in enumerate(self.constraints):
            holds = self.family.evaluate(constraint, values, key, meter)
            if not isinstance(holds, bool):
                message = f"{constraint.source!r} is {noun(holds)}, not true or false"
                raise self.family.fault(key, message, values)
            if not holds:
                return False
            self.met[i] += 1
        return True

    def _difficulty(self, values: Values, meter: Meter) -> Any:
        rule = self.family.difficulty
        if rule is None:
            return 0
        found = self.family.evaluate(rule, values, "difficulty", meter)
        if not isinstance(found, int | Fraction):
            raise self.family.fault("difficulty", f"is {noun(found)}, not a number", values)
        return found

    def _question(self, values: Values) -> str:
        return self.family.fill(self.family.question, values, "question", self._steps())

    def _answers(self, batch: Sequence[Values]) -> list[str]:
        """The answers of several combinations, written out."""
        family, rule, written = self.family, self.family.answer, []
        if isinstance(rule, Expression):
            for values in batch:
                meter = self._steps()
                found = family.evaluate(rule, values, ANSWER, meter)
                written.append(family.written(found, values, meter))
            return written
        if self.run is None:
            why = "is code, which only runs with --allow-code"
            raise family.fault(ANSWER, f"{why}; porism neighbors draw --allow-code writes the neighbors out")
        try:
            results = self.run(rule, [{name: values[name] for name in family.parameters} for values in batch])
        except RuleError as error:
            raise family.fault(ANSWER, error) from None
        for values, found in zip(batch, results, strict=True):
            as_it_is = isinstance(found, str) and family.format is None
            written.append(found if as_it_is else family.written(found, values, self._steps()))
        return written

    def _check_examples(self) -> None:
        examples = self.family.examples
        found = self._answers([dict(values) for values, _ in examples]) if examples else []
        for i, ((values, known), given) in enumerate(zip(examples, found, strict=True)):
            if _bare(known) != _bare(given):
                message = f"the answer is {known}, and the rule gives {given}"
                raise self.family.fault(f"examples[{i}]", message, values)

    def _steps(self) -> Meter:
        """The steps of one evaluation. DataError once the evaluations so far have used up those of the draw."""
        self.work -= self.meter.limit - self.meter.left
        if self.work < 0:
            raise self.family.fault(ANSWER, "a draw takes too many steps: make the rules simpler")
        self.meter.left = self.meter.limit
        return self.meter

    def _unsatisfiable(self) -> DataError:
        tried = f"{self.tried:,} of {self.size:,}" if self.tried < self.size else f"the {self.size:,}"
        never = next((i for i, count in enumerate(self.met) if not count), None)
        if never is None:
            return self.family.fault("parameters", "there is no combination but the target's own")
        before = " that meet the constraints before it" if never else ""
        key, constraint = self.constraints[never]
        message = f"{constraint.source!r} is met by none of {tried} combinations{before}"
        return self.family.fault(key, message)

    def _too_few(self, found: int, n: int) -> DataError:
        whole = (
            ""
            if self.tried >= self.size
            else f" among the {self.tried:,} of {self.size:,} combinations tried"
        )
        message = (
            f"{n} neighbors were asked for, and there are {found} that differ from each other, from the target and "
            f"from its answer{whole}: ask for fewer, or widen a range"
        )
        return self.family.fault("parameters", message)


def _bare(answer: str) -> str | Fraction:
    """An answer as its value, where it is a number written in any of the usual ways."""
    text = plain(answer)
    try:
        return Fraction(text) if _NUMBER.fullmatch(text) else text
    except ZeroDivisionError:
        return text


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


__all__ = ["Draw", "Item", "RunCode"]
