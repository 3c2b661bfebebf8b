"""A family: a question with parameters and a rule for its answer, from which any number of neighbors can be drawn.

The answers are right by construction, as far as the rule is. Everything is settled by the seed. definition.py
reads a family from a file; rules.py says what it is made of, draw.py which combinations are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

from porism.neighbors.draw import Draw, RunCode
from porism.neighbors.rules import Rules
from porism.types import Neighbor


@dataclass(frozen=True, kw_only=True, eq=False)
class Family(Rules):
    """A family that neighbors can be drawn from; made by definition.read_family."""

    def draw(
        self,
        n: int,
        seed: int,
        *,
        target: Mapping[str, Any] | None = None,
        avoid: Iterable[str] = (),
        run: RunCode | None = None,
    ) -> list[Neighbor]:
        """n different neighbors, from easy to hard; the same ones for the same seed.

        target: parameters that no neighbor has, and whose answer none has; by default the family's own. avoid: texts
        that are to be neither the question nor the answer of a neighbor. run: runs an answer rule that is code (see
        code.py); without it such a family is refused. DataError where there are fewer than n, where a rule cannot be
        evaluated or takes too long, and where it contradicts one of the family's examples.
        """
        if n < 1:
            raise self.fault("parameters", f"{n} neighbors cannot be drawn")
        target = self.target if target is None else target
        if target is not None and set(target) != set(self.parameters):
            raise self.fault("target", f"must give {', '.join(self.parameters)}, and nothing else")
        random = Random(f"{self.name}/{seed}")  # noqa: S311  (a draw that can be repeated, not a secret)
        items = Draw(self, random, run, n).items(n, None if target is None else dict(target), avoid)
        return [
            Neighbor(
                id=f"family-{i}",
                question=item.question,
                answer=item.answer,
                answer_type=self.answer_type,
                provenance={
                    "strategy": "family",
                    "family": self.name,
                    "parameters": {name: _shown(item.values[name]) for name in self.parameters},
                    "seed": seed,
                }
                | ({} if self.difficulty is None else {"difficulty": _shown(item.difficulty)}),
            )
            for i, item in enumerate(items, 1)
        ]


def _shown(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, tuple):
        return [_shown(x) for x in value]
    return str(value) if isinstance(value, Fraction) else value


__all__ = ["Family", "RunCode"]
