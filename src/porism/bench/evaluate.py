"""From what methods saw to metrics, paired comparisons and what each control leaves of the utility. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

from msgspec import Struct

from porism.bench.config import BenchConfig
from porism.errors import ConfigError
from porism.inference import t_interval
from porism.methods.utility import STARVED, Utility
from porism.metrics import (
    METRICS,
    Comparison,
    Estimate,
    Pool,
    by_neighbor,
    compare,
    evaluate,
    exact,
    pool,
)
from porism.types import Method, Observation, Problem, Score

Seen = Mapping[tuple[str, str], list[Observation]]  # by problem id and method name
Scores = dict[str, dict[str, Score]]  # by problem id, then candidate id
COMPARED = ("auc", "acc@1")  # what methods are compared in besides the primary comparison
BALANCED = "pool balanced by design: not comparable"


class Level(Struct, frozen=True):
    """A mean score over groups with its 95 % interval, and how many candidates are in it."""

    value: float | None
    ci95: tuple[float, float] | None
    n: int


class MethodResult(Struct, frozen=True, kw_only=True):
    """What one method is worth. metrics by name; by_kind: AUC of the right ones against one kind of wrong ones.

    right, wrong: mean scores. rollouts, prompt_tokens, completion_tokens: what the method alone would cost; work that
    several methods share counts for each. notes: what a reader must know before comparing.
    """

    kind: str
    metrics: dict[str, Estimate]
    by_kind: dict[str, Estimate]
    right: Level
    wrong: Level
    unscored: int
    unlabelled: int
    rollouts: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    notes: tuple[str, ...] = ()


class Control(Struct, frozen=True, kw_only=True):
    """What is left of the utility when something else than the candidate is shown.

    full: the method with the whole candidate. lost: its score minus the control's, of the same candidates. left: the
    control's mean score as a share of the full one's.
    """

    full: str
    exemplar: str
    lost: Level
    left: float | None


class Evaluated(Struct, frozen=True, kw_only=True):
    """All methods, the comparison named beforehand, and all others with the first method as one family.

    Methods with a note that they are not comparable are left out of the family.
    """

    methods: dict[str, MethodResult]
    controls: dict[str, Control]
    primary: Comparison | None
    paired: list[Comparison]


def scores(problems: Sequence[Problem], method: Method, seen: Seen) -> Scores:
    """The method's scores of every candidate, by problem id."""
    return {p.id: method.score(p, seen.get((p.id, method.name), [])) for p in problems}


def pools(problems: Sequence[Problem], found: Scores, config: BenchConfig) -> list[Pool]:
    """Pools for the metrics: copies in another style stand outside, and variants are taken as configured.

    A pool in which an adaptive run starved candidates is not even, and no metric of the whole order takes it.
    """
    made: list[Pool] = []
    for problem in problems:
        own = replace(problem, candidates=tuple(c for c in problem.candidates if c.derived_from is None))
        by = {c.id: found[problem.id][c.id] for c in own.candidates if c.id in found[problem.id]}
        even = not any(STARVED in score.flags for score in by.values())
        if config.estimand == "rank-then-average":
            made += by_neighbor(own, by, even=even)
        else:
            made.append(pool(own, {id: exact(score) for id, score in by.items()}, even=even))
    return made


def evaluated(
    config: BenchConfig,
    problems: Sequence[Problem],
    methods: Sequence[Method],
    kinds: Mapping[str, str],
    found: Mapping[str, Scores],
) -> Evaluated:
    """Metrics of every method, and comparisons. kinds: method kinds by method name; found: scores by method name."""
    metrics = METRICS if config.metrics is None else config.metrics
    ready = {m.name: pools(problems, found[m.name], config) for m in methods}
    settings: dict[str, Any] = {"estimand": config.estimand, "human": config.human}
    results = {}
    for method in methods:
        whole = evaluate(ready[method.name], metrics=metrics, **settings)
        results[method.name] = MethodResult(
            kind=kinds[method.name],
            metrics=whole.metrics,
            by_kind=_by_kind(problems, ready[method.name], settings) if metrics else {},
            right=_level(problems, found[method.name], correct=True),
            wrong=_level(problems, found[method.name], correct=False),
            unscored=whole.unscored,
            unlabelled=whole.unlabelled,
            notes=_notes(config, method, kinds[method.name]),
        )
    controls = _controls(problems, methods, found)
    if not metrics:
        return Evaluated(methods=results, controls=controls, primary=None, paired=[])
    primary, apart = None, None
    if config.primary is not None:
        apart = config.primary.metric, frozenset(config.primary.methods)
        (primary,) = compare(ready, [config.primary.methods], metrics=(config.primary.metric,), **settings)
    first, *others = [m.name for m in methods if BALANCED not in results[m.name].notes] or [""]
    paired = (
        compare(ready, [(first, other) for other in others], metrics=COMPARED, apart=apart, **settings)
        if others
        else []
    )
    return Evaluated(methods=results, controls=controls, primary=primary, paired=paired)


def check_labels(config: BenchConfig, problems: Sequence[Problem]) -> None:
    """ConfigError where metrics are wanted and no problem has both a right and a wrong candidate."""
    if config.metrics is not None and not config.metrics:
        return
    for problem in problems:
        labels = {c.correct if not c.human or c.correct is not None else True for c in problem.candidates}
        if {True, False} <= labels:
            return
    raise ConfigError(
        "no problem here has both right and wrong candidates (`correct: true` and `false`), so no metric is defined: "
        "label some (porism label), or ask for scores alone (metrics = [])"
    )


def _by_kind(
    problems: Sequence[Problem], ready: Sequence[Pool], settings: Mapping[str, Any]
) -> dict[str, Estimate]:
    """AUC of the right candidates against the wrong ones of each kind."""
    kind_of = {(p.id, c.id): c.kind for p in problems for c in p.candidates}
    wrong_kinds: list[str] = sorted(
        {k for p in problems for c in p.candidates if c.correct is False and (k := c.kind)}
    )
    found = {}
    for kind in wrong_kinds:
        cut = [
            Pool(
                problem=p.problem,
                group=p.group,
                variant=p.variant,
                even=p.even,
                candidates=tuple(
                    c for c in p.candidates if c.correct or c.human or kind_of[p.problem, c.id] == kind
                ),
            )
            for p in ready
        ]
        found[kind] = evaluate(cut, metrics=("auc",), **settings).metrics["auc"]
    return found


def _controls(
    problems: Sequence[Problem], methods: Sequence[Method], found: Mapping[str, Scores]
) -> dict[str, Control]:
    full = next((m for m in methods if isinstance(m, Utility) and m.exemplar == "full"), None)
    made: dict[str, Control] = {}
    if full is None:
        return made
    for method in methods:
        if not isinstance(method, Utility) or method.exemplar == "full":
            continue
        groups: dict[str, list[tuple[float, float]]] = {}
        for problem in problems:
            for id, score in found[full.name][problem.id].items():
                other = found[method.name][problem.id].get(id)
                if score.value is not None and other is not None and other.value is not None:
                    groups.setdefault(problem.group or problem.id, []).append((score.value, other.value))
        pairs = [(mean(a for a, _ in own), mean(b for _, b in own)) for own in groups.values()]
        whole = mean(a for a, _ in pairs) if pairs else 0.0
        made[method.name] = Control(
            full=full.name,
            exemplar=method.exemplar,
            lost=Level(
                mean(a - b for a, b in pairs) if pairs else None,
                t_interval([a - b for a, b in pairs]),
                sum(len(own) for own in groups.values()),
            ),
            left=mean(b for _, b in pairs) / whole if whole else None,
        )
    return made


def _level(problems: Sequence[Problem], found: Scores, *, correct: bool) -> Level:
    groups: dict[str, list[float]] = {}
    for problem in problems:
        for c in problem.candidates:
            value = found[problem.id][c.id].value if c.id in found[problem.id] else None
            if c.correct is correct and c.derived_from is None and value is not None:
                groups.setdefault(problem.group or problem.id, []).append(value)
    means = [mean(own) for own in groups.values()]
    return Level(mean(means) if means else None, t_interval(means), sum(len(own) for own in groups.values()))


def _notes(config: BenchConfig, method: Method, kind: str) -> tuple[str, ...]:
    if kind == "vote" and getattr(method, "pool", False) and config.pools == "balanced":
        return (BALANCED,)
    return ()


__all__ = [
    "BALANCED",
    "Control",
    "Evaluated",
    "Level",
    "MethodResult",
    "Scores",
    "Seen",
    "check_labels",
    "evaluated",
    "pools",
    "scores",
]
