"""Two methods compared in a metric, on the same problems and candidates.

The difference is taken within each problem, averaged over the problems of a group, and tested by turning whole
groups round. Comparisons made together are one family and share their 5 % (Holm). Each comes with the
difference that it could have found, so that "not distinguishable" is never read as "equal".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from porism.errors import InputError
from porism.metrics.evaluate import Estimand, Span, Values, mean, prepared, values
from porism.metrics.pools import Human, Pool, Scored, by_problem

LEVEL = 0.05
SAME = "not distinguishable"


class Comparison(Struct, frozen=True, kw_only=True):
    """Method a minus method b in one metric, on the problems and candidates that both scored.

    ci95: interval of this one difference. p: sign-flip test over groups; p_holm: adjusted for all comparisons made
    together, and the one that decides. detectable: the true difference that so many groups with this spread find
    4 times in 5, whatever the other comparisons show; None where the groups are too few to find any, or show no
    spread. left_out: candidates that only one of the two scored. verdict: who is higher, or "not
    distinguishable".
    """

    a: str
    b: str
    metric: str
    difference: float | None
    ci95: Span | None
    p: float
    p_holm: float
    n: int
    groups: int
    dropped: int
    uneven: int
    left_out: int
    detectable: float | None
    verdict: str

    def sentence(self) -> str:
        """The comparison in words, with its size, its test and what it could have shown."""
        if self.difference is None:
            return f"{self.metric}: {self.a} and {self.b} cannot be compared: no problem counts for both"
        span = f" [{self.ci95[0]:+.3f}, {self.ci95[1]:+.3f}]" if self.ci95 else ""
        adjusted = f", {self.p_holm:.2g} after Holm" if self.p_holm != self.p else ""
        found = f"{self.metric}: {self.a} minus {self.b} = {self.difference:+.3f}{span}, p = {self.p:.2g}{adjusted}"
        groups = f"{self.groups} group{'' if self.groups == 1 else 's'}"
        size = (
            f"{groups} like these would find a difference of {self.detectable:.3f} 4 times in 5"
            if self.detectable is not None
            else f"what {groups} like these could find cannot be told"
        )
        return f"{found}: {self.verdict}; {size}"


def compare(
    methods: Mapping[str, Sequence[Pool]],
    pairs: Sequence[tuple[str, str]],
    *,
    metrics: Sequence[str] = ("auc",),
    apart: tuple[str, frozenset[str]] | None = None,
    estimand: Estimand = "rank-then-average",
    human: Human = "right",
    seed: int = 0,
) -> list[Comparison]:
    """Every pair of methods in every metric, as one family for Holm's correction.

    A comparison named before the data were seen deserves a call of its own; `apart` are the metric and the methods
    of one that had it, and is no member of this family. Two methods are compared on the
    problems that both have and the candidates that both scored in all their variants.
    """
    found: list[Comparison] = []
    family = {(a, b): [m for m in metrics if apart != (m, frozenset((a, b)))] for a, b in pairs}
    level = LEVEL / max(1, sum(map(len, family.values())))
    for (a, b), wanted in family.items():
        for name in (a, b):
            if name not in methods:
                raise InputError(f"unknown method {name!r}: there are {', '.join(methods)}")
        first, second, left_out = shared(methods[a], methods[b])
        ready_a = prepared(first, estimand=estimand, human=human)
        ready_b = prepared(second, estimand=estimand, human=human)
        for metric in wanted:
            of_a, of_b = values(ready_a, metric), values(ready_b, metric)
            found.append(_difference((a, b, metric), of_a, of_b, left_out=left_out, level=level, seed=seed))
    return _with_holm(found)


def shared(a: Sequence[Pool], b: Sequence[Pool]) -> tuple[list[Pool], list[Pool], int]:
    """Both methods' pools cut down to common problems and commonly scored candidates, and how many went.

    The number counts candidates of common problems that one of the two scored and the other did not.
    InputError where the two disagree on a group or a label.
    """
    of_a, of_b = by_problem(a), by_problem(b)
    kept_a: list[Pool] = []
    kept_b: list[Pool] = []
    left_out = 0
    for problem in (p for p in of_a if p in of_b):
        if not _agree([*of_a[problem], *of_b[problem]]):
            raise InputError(
                f"problem {problem!r} has another group or other labels in one method than in the other"
            )
        ids_a, ids_b = _scored(of_a[problem]), _scored(of_b[problem])
        left_out += len(ids_a ^ ids_b)
        kept_a += [_cut(p, ids_a & ids_b) for p in of_a[problem]]
        kept_b += [_cut(p, ids_a & ids_b) for p in of_b[problem]]
    return kept_a, kept_b, left_out


def _difference(
    names: tuple[str, str, str], a: Values, b: Values, *, left_out: int, level: float, seed: int
) -> Comparison:
    from numpy import std

    from porism.inference import detectable, mean_interval, sign_flip

    gaps = {
        group: [own[p] - b.by_group[group][p] for p in own if p in b.by_group.get(group, {})]
        for group, own in a.by_group.items()
    }
    means = [float(mean(own)) for own in gaps.values() if own]
    p = sign_flip(means, seed=seed)
    return Comparison(
        a=names[0],
        b=names[1],
        metric=names[2],
        difference=sum(means) / len(means) if means else None,
        ci95=mean_interval(means, low=-1.0),
        p=p,
        p_holm=p,
        n=sum(len(own) for own in gaps.values()),
        groups=len(means),
        dropped=max(a.dropped, b.dropped),
        uneven=max(a.uneven, b.uneven),
        left_out=left_out,
        detectable=detectable(float(std(means, ddof=1)), len(means), level=level) if len(means) > 1 else None,
        verdict="",
    )


def _with_holm(found: Sequence[Comparison]) -> list[Comparison]:
    from msgspec.structs import replace

    from porism.inference import holm

    decided = []
    for c, p in zip(found, holm([c.p for c in found]), strict=True):
        apart = p <= LEVEL and c.difference
        verdict = f"{c.a if (c.difference or 0) > 0 else c.b} is higher" if apart else SAME
        decided.append(replace(c, p_holm=p, verdict=verdict))
    return decided


def _agree(pools: Sequence[Pool]) -> bool:
    """Whether all pools of a problem say the same of its group and of each candidate."""
    said: dict[str, tuple[bool | None, bool]] = {}
    labels = all(
        said.setdefault(c.id, (c.correct, c.human)) == (c.correct, c.human)
        for p in pools
        for c in p.candidates
    )
    return labels and len({p.group for p in pools}) == 1


def _scored(pools: Sequence[Pool]) -> set[str]:
    return set.intersection(*({c.id for c in p.candidates if c.score is not None} for p in pools))


def _cut(pool: Pool, ids: set[str]) -> Pool:
    kept: tuple[Scored, ...] = tuple(c for c in pool.candidates if c.id in ids)
    return Pool(problem=pool.problem, group=pool.group, candidates=kept, variant=pool.variant, even=pool.even)


__all__ = ["LEVEL", "SAME", "Comparison", "compare", "shared"]
