"""P(right): calibrations made from a labelled run folder, and given to the candidates of a ranking.

The statistics are in porism.calibrate; here features are taken from runs, with what they depend on. A calibration is
refused for scores made in another way before anything is asked, and where a run stopped too early for it, no
probability is given and a warning says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from porism.calibrate.model import EVEN, Assessment, Calibration, Conditions, apply, features, mismatches
from porism.config import RankConfig
from porism.errors import ConfigError, InputError
from porism.methods.ranking import Place, Ranking
from porism.methods.utility import Utility
from porism.types import Candidate, Method, Observation, Problem, Score

OWN = (
    "utility",
    "lift",
    "margin",
    "spread",
)  # features of the utility method itself; others are named after methods

Seen = Mapping[tuple[str, str], list[Observation]]


class Calibrated(Struct, frozen=True, kw_only=True):
    """A calibration, and how good each set of features is on the same candidates (`sets`, by name).

    left_out: labelled candidates without some score, which are in none of the figures.
    """

    calibration: Calibration
    sets: dict[str, Assessment]
    left_out: int


async def calibrate(
    path: Path,
    *,
    method: str = "utility",
    others: Sequence[str] = (),
    chosen: Sequence[str] = (),
    allow_code: bool = False,
) -> Calibrated:
    """A calibration from the labelled candidates of a run folder. Costs no token.

    method: the utility method; others: methods to measure beside it, alone and together. chosen: the features that the
    calibration is made of, by default utility alone, which is what `porism rank` has. Raises ConfigError for a method
    or feature that is not there, and what calibrate.fit raises.
    """
    from porism.calibrate import Example, assess, fit
    from porism.stored import observed

    problems, methods, seen = await observed(path, allow_code=allow_code)
    by_name = {m.name: m for m in methods}
    for name in (method, *others):
        if name not in by_name:
            raise ConfigError(f"{path}: there is no method {name!r} in this run: {', '.join(by_name)}")
    utility = by_name[method]
    if not isinstance(utility, Utility):
        raise ConfigError(f"--method {method}: a calibration starts from a utility method")
    wanted = tuple(chosen) or ("utility",)
    for name in wanted:
        if name not in (*OWN, *others):
            raise ConfigError(
                f"unknown feature {name!r}: {', '.join((*OWN, *others))} (methods: --with NAME)"
            )
    sets: dict[str, tuple[str, ...]] = {f"{name} alone": (name,) for name in ("utility", *others)}
    if others:
        sets["together"] = ("utility", *others)
    if wanted not in sets.values():
        sets[", ".join(wanted)] = wanted
    needed = {name for names in sets.values() for name in names}
    examples, left_out = [], 0
    for p in problems:
        rows = _features(p, utility, seen, [by_name[o] for o in others])
        for c in _pool(p):
            correct = True if c.human and c.correct is None else c.correct
            if correct is None:
                continue
            if needed <= rows.get(c.id, {}).keys():
                group = p.group or p.id
                examples.append(
                    Example(problem=p.id, candidate=c.id, group=group, features=rows[c.id], correct=correct)
                )
            else:
                left_out += 1
    conditions = replace(
        _conditions(problems, utility, wanted, seen),
        others={o: _made_by(by_name[o]) for o in others if o in wanted},
    )
    return Calibrated(
        calibration=fit(examples, wanted, conditions),
        sets={name: assess(examples, names) for name, names in sets.items()},
        left_out=left_out,
    )


class Right(Struct, frozen=True):
    """A calibration to be applied, and the share of right candidates in the new pools where that is known."""

    calibration: Calibration
    prior: float | None = None

    @classmethod
    def of(cls, config: RankConfig, problems: Sequence[Problem], method: Utility) -> Right | None:
        """What the settings of a run ask for; None where they ask for no P(right).

        Raises ConfigError, naming both sides, where the calibration was made for other scores than this run gives.
        """
        from porism.calibrate import load

        if config.calibration is None:
            return None
        calibration = load(config.calibration)
        if lacking := [name for name in calibration.features if name not in OWN]:
            raise ConfigError(
                f"{config.calibration}: this calibration needs scores of {', '.join(lacking)}, and a ranking has those "
                "of utility: make one without them (porism calibrate RUN --features utility)"
            )
        if "lift" in calibration.features and not method.no_example:
            raise ConfigError(f"{config.calibration}: this calibration needs the row without an example")
        if found := mismatches(calibration.conditions, _conditions(problems, method, calibration.features)):
            raise ConfigError(
                f"{config.calibration}: made for other scores than this run gives: {'; '.join(found)}"
            )
        return cls(calibration, config.prior)

    @classmethod
    def stored(cls, settings: Mapping[str, Any]) -> Right | None:
        """What a run was last made with, from its run.json; None for no P(right). ConfigError where it is not whole."""
        if (found := settings.get("right")) is None:
            return None
        try:
            return msgspec.convert(found, type=cls)
        except msgspec.ValidationError as error:
            raise ConfigError(f"the calibration in run.json is not whole: {error}") from error

    def give(self, ranking: Ranking, problem: Problem, method: Utility, seen: list[Observation]) -> Ranking:
        """The ranking with P(right) of every candidate; with a warning in its place where the run stopped too early."""
        by_name = {(problem.id, method.name): seen}
        conditions = _conditions([problem], method, self.calibration.features, by_name)
        rows = _features(problem, method, by_name)
        try:
            given = apply(self.calibration, rows, conditions, prior=self.prior)
        except ConfigError as error:
            return replace(ranking, warnings=(*ranking.warnings, f"no P(right) yet: {error}"))
        places: list[Place] = [replace(p, p_right=given.get(p.candidate)) for p in ranking.ranking]
        beyond: dict[tuple[str, ...], list[str]] = {}
        for id, probability in given.items():
            if probability.outside:
                beyond.setdefault(probability.outside, []).append(id)
        warnings = [
            f"P(right) of {', '.join(ids)}: {' and '.join(names)} beyond what the calibration has seen"
            for names, ids in beyond.items()
        ]
        return replace(ranking, ranking=tuple(places), warnings=(*ranking.warnings, *warnings))


def _pool(problem: Problem) -> list[Candidate]:
    """The candidates without copies in another style, which belong to no pool."""
    return [c for c in problem.candidates if c.derived_from is None]


def _features(
    problem: Problem, method: Utility, seen: Seen, others: Iterable[Method] = ()
) -> dict[str, dict[str, float]]:
    ids = {c.id for c in _pool(problem)}
    own = seen.get((problem.id, method.name), [])
    scores = {id: score for id, score in method.score(problem, own).items() if id in ids}
    base = method.baseline(problem, own)
    rows = features(scores, no_example=base.value if base else None)
    for other in others:
        for id, score in other.score(problem, seen.get((problem.id, other.name), [])).items():
            if id in rows and score.value is not None:
                rows[id][other.name] = score.value
    return rows


def _conditions(
    problems: Sequence[Problem], method: Utility, names: Sequence[str], seen: Seen | None = None
) -> Conditions:
    """What the scores depend on, as seen; before anything is seen, as planned."""
    totals, even = [method.rollouts], True
    if seen is not None:
        found = [_rollouts(p, method.score(p, seen.get((p.id, method.name), []))) for p in problems]
        totals = [n for own in found for n in own]
        even = all(len(own) < 2 for own in found)
    policy = method.allocation.policy if method.allocation else None
    adaptive = "uniform until a claim" if policy == EVEN else policy
    texts = [method.template, *([method.solve_template] if "lift" in names else [])]
    prompt = blake2b("\0".join(texts).encode(), digest_size=6).hexdigest()
    drawn = msgspec.to_builtins(method.sampling)
    return Conditions(
        solver=", ".join(method.solvers),
        prompt=prompt if method.exemplar == "full" else f"{prompt} with {method.exemplar}",
        sampling=", ".join(f"{name} {value}" for name, value in drawn.items()),
        rollouts=_range(totals),
        neighbors=_range([len(p.neighbors) for p in problems]),
        pool_size=_range([len(_pool(p)) for p in problems]),
        allocation=adaptive or (EVEN if even else "uneven"),
    )


def _rollouts(problem: Problem, scores: Mapping[str, Score]) -> set[int]:
    """The different numbers of rollouts that cells of this pool got."""
    return {c.total for own in _pool(problem) for c in scores[own.id].cells.values()}


def _made_by(method: Method) -> str:
    """Models of a method and a hash of all its settings."""
    settings = msgspec.to_builtins(method)
    models = settings.get("judges") or settings.get("solvers") or ()
    digest = blake2b(msgspec.json.encode(settings, order="sorted"), digest_size=6).hexdigest()
    return f"{', '.join(models) or 'no model'}, settings {digest}"


def _range(found: Sequence[int]) -> tuple[int, int]:
    if not found:
        raise InputError("there is no score here")
    return min(found), max(found)


__all__ = ["OWN", "Calibrated", "Right", "calibrate"]
