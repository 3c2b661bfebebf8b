"""What `porism label --summary` shows: who judged how much, how far raters agree, and what is open."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from porism.cli.label_walk import said
from porism.labels import FEW, Agreement, Standing, agreements
from porism.progress import printable


def show(
    file: Path, log: Path, standing: Sequence[Standing], *, raters: int, stale: int, gone: int, as_json: bool
) -> None:
    """Print the summary on stdout."""
    document = {
        "file": str(file),
        "labels": str(log),
        "stale": stale,
        "gone": gone,
        **_counts(standing, raters),
    }
    pairs = agreements(standing)
    if as_json:
        from porism.table import print_json

        document |= {
            "agreement": pairs,
            "few": FEW,
            "disagreements": [_open(s) for s in standing if s.disputed],
        }
        print_json(document)
        return
    lines = [
        f"{document['candidates']} candidates: {document['right']} right and {document['wrong']} wrong by agreement of "
        f"{raters} or more, {document['disputed']} disputed, {document['undecided']} judged by too few or unsure, "
        f"{document['unjudged']} not judged"
    ]
    lines += [f"{printable(rater, 40)}: {count} judged" for rater, count in document["raters"].items()]
    lines += [_agreement(pair) for pair in pairs] or ["agreement: no candidate was judged by two raters yet"]
    for s in standing:
        if s.disputed:
            lines.append(f"open: {printable(f'{s.item.problem.id}/{s.item.candidate.id}', 120)}")
            lines += [
                f"  {printable(rater, 40)}: {printable(said(j), 300)}"
                for rater, j in sorted(s.judgements.items())
            ]
    sys.stdout.write("\n".join(lines) + "\n")


def _agreement(pair: Agreement) -> str:
    who = printable(" and ".join(pair.raters), 80)
    about = pair.about.replace("_", " ")
    if pair.raw is None:
        return f"{who}, {about}: nothing that both decided"
    coefficient = (
        "kappa not defined, as both always said the same one thing"
        if pair.kappa is None
        else f"kappa {pair.kappa:.2f}"
    )
    few = f"; too few to rely on, {FEW} at least" if pair.few else ""
    return f"{who}, {about}: agree on {pair.agree} of {pair.n} ({pair.raw:.0%}), {coefficient} (n = {pair.n}{few})"


def _counts(standing: Sequence[Standing], least: int) -> dict[str, Any]:
    agreed = [s.agreed(least) for s in standing]
    raters = sorted({rater for s in standing for rater in s.judgements})
    judged = sum(bool(s.judgements) for s in standing)
    right, wrong, disputed = agreed.count(True), agreed.count(False), sum(s.disputed for s in standing)
    return {
        "candidates": len(standing),
        "right": right,
        "wrong": wrong,
        "disputed": disputed,
        "undecided": judged - right - wrong - disputed,
        "unjudged": len(standing) - judged,
        "raters": {rater: sum(rater in s.judgements for s in standing) for rater in raters},
    }


def _open(s: Standing) -> dict[str, Any]:
    return {
        "problem": s.item.problem.id,
        "candidate": s.item.candidate.id,
        "judgements": list(s.judgements.values()),
    }
