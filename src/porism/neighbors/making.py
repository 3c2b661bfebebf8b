"""What `porism neighbors make` can be told, what it would ask, and the records of what it made."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from pathlib import Path

from msgspec import Struct

from porism.budget import Budget
from porism.config import RankConfig
from porism.data import data_hash, load
from porism.data.finding import FileFaultError
from porism.data.rewrite import check_goal
from porism.data.texts import read_text
from porism.errors import ConfigError, DataError
from porism.methods.prompt import load_template, render
from porism.neighbors.consensus import Rule, Votes, samples_each
from porism.neighbors.program import ProgramCheck
from porism.neighbors.proposals import Proposal
from porism.prepare import Plan
from porism.types import Neighbor, Problem, Sampling, Usage

FROM_TEXT = "related-theorem"
STRATEGIES = ("perturb", "special-case", "sub-skill", FROM_TEXT)
EMBEDDED_TOKENS = 1024  # of an embedded model's answer: several questions, or a solution without example
MOST_TEXT = 40_000  # characters of the text that statements are taken from


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeConfig:
    """How to make neighbors; None means the default that the docs state.

    strategies: of STRATEGIES; by default all, and related-theorem where there is a text. n: proposals wanted of each
    strategy for each problem. solvers: who solves them; the generator where empty. samples: of each solver. output: a
    file to write instead of the one read; force: also where it exists.
    """

    generator: str
    strategies: tuple[str, ...] = ()
    n: int = 5
    text: Path | None = None
    solvers: tuple[str, ...] = ()
    samples: int | None = None
    agreement: float = 0.8
    program_check: bool = False
    output: Path | None = None
    force: bool = False
    limit: int | None = None
    base_url: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    concurrency: int | None = None
    max_requests: int | None = None
    max_tokens_total: int | None = None
    max_cost: float | None = None
    price: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Raises ConfigError for values no run can have, before anything is opened."""
        for name in ("n", "samples"):
            value = getattr(self, name)
            if value is not None and not 1 <= value < inf:
                raise ConfigError(f"{name} is {value}: it must be at least 1")
        for strategy in self.strategies:
            if strategy not in STRATEGIES:
                raise ConfigError(f"--strategy {strategy}: the strategies are {', '.join(STRATEGIES)}")
        if FROM_TEXT in self.strategies and self.text is None:
            raise ConfigError(
                f"--strategy {FROM_TEXT} takes statements from a text: give its file with --text"
            )
        if len(set(self.solvers)) < len(self.solvers):
            raise ConfigError("the same solver is given twice")
        _ = self.rule, self.sampling

    @property
    def used(self) -> tuple[str, ...]:
        """The strategies, each once."""
        every = STRATEGIES if self.text is not None else STRATEGIES[:-1]
        return tuple(dict.fromkeys(self.strategies)) or every

    @property
    def voters(self) -> tuple[str, ...]:
        """The models that solve."""
        return self.solvers or (self.generator,)

    @property
    def models(self) -> tuple[str, ...]:
        """All models, the generator first."""
        return tuple(dict.fromkeys((self.generator, *self.solvers)))

    @property
    def samples_each(self) -> int:
        """Samples of each solver for each proposal."""
        return self.samples or samples_each(len(self.voters))

    @property
    def rule(self) -> Rule:
        """When an answer is agreed on."""
        return Rule(agreement=self.agreement)

    @property
    def sampling(self) -> tuple[Sampling, ...]:
        """How each model draws: as given, and by where it runs for what was not."""
        return tuple(
            RankConfig(
                models=(model,),
                temperature=self.temperature,
                max_tokens=self.max_tokens or (EMBEDDED_TOKENS if model.startswith("local/") else None),
                limit=self.limit,
                concurrency=self.concurrency,
                max_requests=self.max_requests,
                max_tokens_total=self.max_tokens_total,
                max_cost=self.max_cost,
                price=self.price,
            ).sampling
            for model in self.models
        )

    @property
    def budget(self) -> Budget:
        """The limits of the run."""
        return Budget(
            requests=self.max_requests, tokens=self.max_tokens_total, cost=self.max_cost, price=self.price
        )


class Decided(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A proposal, how its solves voted, and why it was set aside, if it was.

    claim: the verdict on the answer that its own model claimed, against the agreed one.
    """

    proposal: Proposal
    votes: Votes
    reason: str | None = None
    claim: str | None = None
    program: ProgramCheck | None = None


class Strategy(Struct, frozen=True, kw_only=True):
    """What became of one strategy's proposals for one problem.

    proposed: all that the replies held, whole or not. malformed, dropped, aside: by reason. known: in the file
    already, so that nothing was asked. open: a stop came before they were decided.
    """

    name: str
    proposed: int
    malformed: dict[str, int]
    dropped: dict[str, int]
    aside: dict[str, int]
    known: int
    kept: int
    open: int


class MadeProblem(Struct, frozen=True, kw_only=True):
    """The new neighbors of one problem, and what was set aside."""

    id: str
    neighbors: tuple[Neighbor, ...]
    aside: tuple[Decided, ...]
    strategies: tuple[Strategy, ...]


class Made(Struct, frozen=True, kw_only=True):
    """All that a run made. file: what now holds the neighbors; aside_file: what was set aside; None: not written."""

    run: str
    file: str | None
    aside_file: str | None
    problems: tuple[MadeProblem, ...]
    usage: Usage
    protections: tuple[str, ...] = ()
    missing: dict[str, int] = {}
    stopped: str | None = None
    exit_code: int = 0


def read(file: Path, config: MakeConfig) -> tuple[list[Problem], Path, dict[tuple[str, str], str]]:
    """The problems, the run folder, and the prompt by problem and strategy. InputError where that cannot be."""
    problems = list(load(file).problems)[: config.limit]
    if not problems:
        raise DataError([f"{file}: there is no problem here"])
    check_goal(file, config.output, force=config.force)
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in file.resolve().stem)[:60]
    statements = _statements(config.text)
    prompts = {}
    for strategy in config.used:
        task = render(load_template(None, f"neighbors-{strategy}"), n=str(config.n)).strip()
        text = statements if strategy == FROM_TEXT else ""
        for problem in problems:
            prompts[problem.id, strategy] = render(
                load_template(None, "neighbors-ask"), question=problem.question, task=task, text=text
            )
    return problems, Path("runs") / f"{name}-{data_hash(problems)}-neighbors", prompts


def _statements(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        text = read_text(file).strip()
    except (FileFaultError, OSError) as error:
        raise ConfigError(f"--text {file}: cannot be read: {error}") from None
    if len(text) > MOST_TEXT:
        raise ConfigError(
            f"--text {file}: {len(text):,} characters; keep the statements, at most {MOST_TEXT:,}"
        )
    return text


def plan(file: Path, config: MakeConfig) -> Plan:
    """What making neighbors would ask at most, if every proposal is new. Sends nothing, starts nothing.

    A strategy whose reply holds too few proposals is asked again, which is not foreseen here.
    """
    from porism.store import Store

    problems, folder, prompts = read(file, config)
    solve = load_template(None, "solve")
    each = config.n * len(config.used) * len(config.voters) * config.samples_each
    programs = config.n * len(config.used) if config.program_check else 0
    stored = 0
    if folder.is_dir():
        with Store(folder, write=False) as store:
            stored = len(store.rows)
    letters = sum(len(text) for text in prompts.values())
    letters += sum((each + programs) * len(render(solve, question=p.question)) for p in problems)
    rollouts = len(prompts) + len(problems) * (each + programs)
    owed = max(0, rollouts - stored)
    return Plan(
        run=str(folder),
        rollouts=rollouts,
        stored=min(stored, rollouts),
        requests=owed,
        prompt_tokens=letters // 3 * owed // rollouts,
        shared_tokens=0,
        completion_tokens=owed * max(s.max_tokens for s in config.sampling),
    )


__all__ = ["STRATEGIES", "Decided", "Made", "MadeProblem", "MakeConfig", "Strategy", "plan", "read"]
