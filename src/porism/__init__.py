"""porism ranks candidate solutions of a question by what their methods let a solver do on neighbor questions.

`porism.rank("problem.yaml")` is the main job; `await porism.arank(...)` is the same in a loop of your own.
Everything is imported on first use, so that `import porism` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from porism.data import read_problems, write_problems
    from porism.errors import PorismError
    from porism.run import Ranked, arank, plan, rank
    from porism.types import Candidate, Neighbor, Problem

_HOME = {
    "Candidate": "porism.types",
    "Neighbor": "porism.types",
    "PorismError": "porism.errors",
    "Problem": "porism.types",
    "Ranked": "porism.run",
    "arank": "porism.run",
    "plan": "porism.run",
    "rank": "porism.run",
    "read_problems": "porism.data",
    "write_problems": "porism.data",
}

__all__ = [
    "Candidate",
    "Neighbor",
    "PorismError",
    "Problem",
    "Ranked",
    "arank",
    "plan",
    "rank",
    "read_problems",
    "write_problems",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'porism' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
