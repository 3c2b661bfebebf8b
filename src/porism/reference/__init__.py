"""The published numbers of the method's paper, as data, to stand beside one's own.

Son, Yang, Patel, Ko, Agarwal, Ahn, Lee, Yu: Judging What We Cannot Solve, 2026, arXiv 2602.06291. Methods and
metrics have porism's names: utility, judge, genrm, reward; acc@1, auc, ... The models are far larger and the
problems far harder than most that these rows will stand beside: same definition, not the same conditions.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
from msgspec import Struct

SOURCE = "arXiv 2602.06291"
Unit = Literal["percent", "points", "share", "correlation", "candidates", "tokens"]


class Published(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One number, or the range low .. high where the paper gives one over models.

    table: ranking (the main one), calibration, above-mean, errors, tokens, easy-targets, realmath, judge-prompts,
    stability. model: empty where none is named, and for ranges over models; "all four" where each was meant.
    """

    table: str
    model: str
    method: str
    metric: str
    unit: Unit
    value: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""


@cache
def published(table: str | None = None) -> tuple[Published, ...]:
    """All rows, or those of one table, in the paper's order."""
    text = files("porism").joinpath("reference", "published.json").read_bytes()
    rows = msgspec.json.decode(text, type=tuple[Published, ...])
    return tuple(row for row in rows if table is None or row.table == table)


__all__ = ["SOURCE", "Published", "Unit", "published"]
