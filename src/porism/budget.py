"""Limits of a run, as the user set them: requests, tokens, dollars.

Requests are counted exactly. What a call in flight will cost is not known before it lands; it is taken to cost what
rollouts cost so far, so that a limit is overrun by little.
"""

from __future__ import annotations

from msgspec import Struct

from porism.types import Usage


def dollars(spent: Usage, price: tuple[float, float]) -> float:
    """What so many tokens cost. price: dollars per million tokens in, out."""
    return (spent.prompt * price[0] + spent.completion * price[1]) / 1e6


class Budget(Struct, frozen=True, kw_only=True):
    """Limits of a run, earlier sessions counted; None is no limit. price: dollars per million tokens in, out."""

    requests: int | None = None
    tokens: int | None = None
    cost: float | None = None
    price: tuple[float, float] | None = None

    def reached(self, spent: Usage, *, requests: int, in_flight: float) -> str | None:
        """The limit that leaves no room for another call, as the flag that set it; None where there is room.

        requests: all that were sent. in_flight: rollouts that have not landed, as a share of those that have.
        """
        if self.requests is not None and requests >= self.requests:
            return f"--max-requests {self.requests}"
        if self.tokens is not None and (spent.prompt + spent.completion) * (1 + in_flight) >= self.tokens:
            return f"--max-tokens-total {self.tokens}"
        if self.cost is not None and self.price is not None:
            spent_now = dollars(spent, self.price) * (1 + in_flight)
            if spent_now >= self.cost:
                return f"--max-cost {self.cost}"
        return None
