"""Problems whose marks tell the fake models what a right answer is (see porism.models.fake)."""

from __future__ import annotations

from porism.types import Candidate, Neighbor, Problem


def problem(id: str = "p", *, candidates: int = 3, neighbors: int = 2, helpful: int = 1) -> Problem:
    """A problem whose first `helpful` candidates help."""
    return Problem(
        id=id,
        question=f"How many of {id}?",
        candidates=tuple(
            Candidate(
                id="abcdefghijklmnop"[i],
                text=f"Method {i} of {id}: {'[[helps]]' if i < helpful else 'it does not help'}. The answer is {i}.",
                correct=i < helpful,
            )
            for i in range(candidates)
        ),
        neighbors=tuple(
            Neighbor(id=f"n{j}", question=f"And {j} of {id}? [[answer: {100 + j}]]", answer=str(100 + j))
            for j in range(neighbors)
        ),
    )
