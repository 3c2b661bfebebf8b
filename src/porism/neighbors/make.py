"""Neighbors made by a model: proposed by strategies, solved independently, kept where the solves agree.

Three stages over one run folder: proposals, solves (consensus.py), and on request programs (program.py). Each is made
from the answers of the last and equal requests are never asked twice, so the same command resumes, and at its end
costs nothing. What is kept carries its provenance; what is not is written beside, with its votes and the reason.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace as extended
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from porism.data import load
from porism.data.rewrite import rewrite
from porism.data.write import save, write_problems
from porism.errors import InputError
from porism.generate import Generated, Generator, Request
from porism.methods.prompt import load_template, render
from porism.neighbors import sandbox
from porism.neighbors.consensus import Checker, Votes, count, in_reach, objection, stages
from porism.neighbors.making import Decided, Made, MadeProblem, MakeConfig, Strategy, read
from porism.neighbors.program import check_program
from porism.neighbors.proposals import Proposal, Screened, parse, screen
from porism.progress import SilentWatch, Tally
from porism.types import Completion, Gold, Message, Neighbor, Problem, Prompt
from porism.verify.pool import Verifier

TRIES = 3  # replies asked of a strategy while its proposals are too few
NO_REPLY, THE_TARGETS = "no reply", "the target's answer"

Key: TypeAlias = tuple[str, str]  # problem, strategy
Answers: TypeAlias = dict[str, tuple[Completion | None, ...]]


class _Found(Struct):
    """What the replies of one strategy for one problem came to."""

    screened: Screened
    malformed: dict[str, int]


async def make(file: Path, config: MakeConfig, watch: Tally | None = None) -> Made:
    """Make neighbors for the problems of a file, and write them.

    Raises InputError for what the caller can mend, before anything is asked: files, settings, a program check on a
    machine that cannot confine programs. ModelError for a model that cannot serve.
    """
    look = watch or SilentWatch()
    problems, folder, prompts = read(file, config)
    protections = await sandbox.check() if config.program_check else ()
    async with AsyncExitStack() as stack:
        stack.callback(look.finished)
        generator = Generator(
            folder,
            config.models,
            sampling=config.sampling,
            base_url=config.base_url,
            concurrency=config.concurrency,
            budget=config.budget,
            watch=look,
        )
        asking = _Asking(await stack.enter_async_context(generator))
        checker = await stack.enter_async_context(Verifier())
        found = await _propose(asking, config, problems, prompts)
        proposals = [proposal for one in found.values() for proposal in one.screened.kept]
        decided = await _solve(asking, config, problems, proposals, checker)
        if config.program_check:
            decided = await _check_programs(asking, config, decided, checker)
    made = tuple(_result(problem, config, found, decided) for problem in problems)
    new = {problem.id: problem.neighbors for problem in made if problem.neighbors}
    whole = config.output is None or asking.last.stopped is None
    written = _write(file, config, new) if new and whole else None
    return Made(
        run=str(folder),
        file=written,
        aside_file=_write_aside(config.output or file, made),
        problems=made,
        usage=asking.last.usage,
        protections=protections,
        missing=asking.missing,
        stopped=asking.last.stopped,
        exit_code=asking.last.exit_code or int(bool(asking.missing)),
    )


class _Asking:
    """The generator from stage to stage: after a stop nothing more is asked, and no answer comes."""

    def __init__(self, generator: Generator) -> None:
        self.generator = generator
        self.last: Generated
        self.missing: dict[str, int] = {}

    @property
    def stopped(self) -> bool:
        return hasattr(self, "last") and self.last.stopped is not None

    async def ask(self, requests: Sequence[Request]) -> Answers:
        if self.stopped or not requests:
            return {request.key: (None,) * request.n for request in requests}
        self.last = await self.generator.ask(requests)
        self.missing |= self.last.missing
        return self.last.answers


async def _propose(
    asking: _Asking, config: MakeConfig, problems: Sequence[Problem], prompts: Mapping[Key, str]
) -> dict[Key, _Found]:
    """Ask every strategy for proposals, and those with too few of them again."""
    by_id = {problem.id: problem for problem in problems}
    identity, sampling = asking.generator.identities[0], config.sampling[0]
    found: dict[Key, _Found] = {}
    short = list(prompts)
    for tries in range(1, TRIES + 1):
        requests = {key: Request("/".join((*key, "propose")), prompts[key], n=tries) for key in short}
        answers = await asking.ask(list(requests.values()))
        for key, request in requests.items():
            problem, strategy = key
            prompt = Prompt(identity, (Message("user", request.text),), sampling).key
            malformed: Counter[str] = Counter()
            proposals: list[Proposal] = []
            for reply in answers[request.key]:
                if reply is None:
                    malformed[NO_REPLY] += not asking.stopped
                    continue
                parsed = parse(reply.text, truncated=reply.truncated)
                malformed.update(parsed.faults)
                proposals += (
                    Proposal(
                        problem=problem,
                        question=pair.question,
                        claimed=pair.claimed,
                        strategy=strategy,
                        model=config.generator,
                        prompt=prompt,
                        rollout=reply.rollout,
                    )
                    for pair in parsed.pairs
                )
            taken = [p for k, one in found.items() if k[0] == problem and k != key for p in one.screened.kept]
            found[key] = _Found(screen(by_id[problem], proposals, config.n, taken=taken), dict(+malformed))
        short = [key for key in short if len(found[key].screened.kept) + found[key].screened.known < config.n]
        if not short or asking.stopped:
            break
    return found


async def _solve(
    asking: _Asking,
    config: MakeConfig,
    problems: Sequence[Problem],
    proposals: Sequence[Proposal],
    checker: Checker,
) -> list[Decided]:
    """Every proposal that is decided, with its votes: a few solves first, all where agreement is still in reach."""
    template = load_template(None, "solve")
    whole = config.samples_each * len(config.voters)
    pending = dict(enumerate(proposals))
    votes: dict[int, Votes] = {}
    for samples in stages(config.samples_each):
        requests = {
            (number, solver): Request(
                f"{proposal.problem}/{proposal.strategy}/{number}/{solver}",
                render(template, question=proposal.question),
                n=samples,
                model=config.models.index(solver),
            )
            for number, proposal in pending.items()
            for solver in config.voters
        }
        answers = await asking.ask(list(requests.values()))
        counted = await asyncio.gather(
            *(
                count({solver: answers[requests[number, solver].key] for solver in config.voters}, checker)
                for number in pending
            )
        )
        votes |= dict(zip(pending, counted, strict=True))
        pending = {
            number: pending[number] for number in pending if in_reach(votes[number], config.rule, whole)
        }
    targets = {problem.id: problem.answer for problem in problems}

    async def decide(proposal: Proposal, votes: Votes) -> Decided:
        reason, claim, target = objection(votes, config.rule), None, targets[proposal.problem]
        if votes.answer is not None and proposal.claimed is not None:
            claim = (await checker.verify(proposal.claimed, Gold(votes.answer))).kind
        if reason is None and votes.answer is not None and target is not None:
            same = await checker.verify(votes.answer, Gold(target))
            reason = THE_TARGETS if same.kind == "correct" else None
        return Decided(proposal=proposal, votes=votes, reason=reason, claim=claim)

    return await asyncio.gather(
        *(
            decide(proposal, votes[number])
            for number, proposal in enumerate(proposals)
            if not (votes[number].missing and asking.stopped)
        )
    )


async def _check_programs(
    asking: _Asking, config: MakeConfig, decided: Sequence[Decided], checker: Checker
) -> list[Decided]:
    """The decided with a program run for each that would be kept; without those whose program was not asked for yet."""
    template = load_template(None, "neighbors-program")
    writer = config.models.index(config.voters[0])
    requests = {
        number: Request(f"{number}/program", render(template, question=one.proposal.question), model=writer)
        for number, one in enumerate(decided)
        if one.reason is None
    }
    answers = await asking.ask(list(requests.values()))
    slots = asyncio.Semaphore(os.cpu_count() or 1)

    async def check(number: int, one: Decided) -> Decided | None:
        if number not in requests:
            return one
        reply = answers[requests[number].key][0]
        if reply is None and asking.stopped:
            return None
        async with slots:
            program = await check_program(reply, one.votes.answer or "", checker)
        reason = None if program.outcome == "agrees" else f"program: {program.outcome}"
        return replace(one, program=program, reason=reason)

    checked = await asyncio.gather(*(check(*item) for item in enumerate(decided)))
    return [one for one in checked if one is not None]


def _result(
    problem: Problem, config: MakeConfig, found: Mapping[Key, _Found], decided: Sequence[Decided]
) -> MadeProblem:
    mine = [one for one in decided if one.proposal.problem == problem.id]
    ids = {neighbor.id for neighbor in problem.neighbors}
    neighbors: list[Neighbor] = []
    strategies = []
    for strategy in config.used:
        here = [one for one in mine if one.proposal.strategy == strategy]
        kept = [one for one in here if one.reason is None]
        fresh = (id for number in range(1, 10**9) if (id := f"{strategy}-{number}") not in ids)
        neighbors += (_neighbor(id, one) for one, id in zip(kept, fresh, strict=False))
        one_found = found[problem.id, strategy]
        screened = one_found.screened
        whole = len(screened.kept) + screened.known + sum(screened.dropped.values())
        strategies.append(
            Strategy(
                name=strategy,
                proposed=whole + sum(one_found.malformed.values()),
                malformed=one_found.malformed,
                dropped=screened.dropped,
                aside=dict(Counter(one.reason for one in here if one.reason is not None)),
                known=screened.known,
                kept=len(kept),
                open=len(screened.kept) - len(here),
            )
        )
    aside = tuple(one for one in mine if one.reason is not None)
    return MadeProblem(id=problem.id, neighbors=tuple(neighbors), aside=aside, strategies=tuple(strategies))


def _neighbor(id: str, one: Decided) -> Neighbor:
    proposal = one.proposal
    provenance = {
        "strategy": proposal.strategy,
        "model": proposal.model,
        "prompt": proposal.prompt,
        "rollout": proposal.rollout,
        "claimed": proposal.claimed,
        "claim": one.claim,
        "votes": msgspec.to_builtins(one.votes),
        "program": msgspec.to_builtins(one.program),
    }
    return Neighbor(
        id=id,
        question=proposal.question,
        answer=one.votes.answer or "",
        kind=proposal.strategy,
        provenance={key: value for key, value in provenance.items() if value is not None},
        source="model",
    )


def _write(file: Path, config: MakeConfig, new: Mapping[str, Sequence[Neighbor]]) -> str:
    """Add the new neighbors to the problems as they stand in the file now, and write them; the file that has them."""
    problems = load(file).problems
    there = {problem.id: {neighbor.id for neighbor in problem.neighbors} for problem in problems}
    if any(id not in there or there[id] & {neighbor.id for neighbor in made} for id, made in new.items()):
        raise InputError(f"{file}: has changed meanwhile; give the same command again, which costs nothing")
    whole = [
        extended(problem, neighbors=(*problem.neighbors, *new.get(problem.id, ()))) for problem in problems
    ]
    if config.output is not None:
        write_problems(whole, config.output, force=config.force)
        return str(config.output)
    return ", ".join(map(str, rewrite(file, whole)))


def _write_aside(file: Path, made: Sequence[MadeProblem]) -> str | None:
    """Write what was set aside beside the file; None where nothing was."""
    lines = [msgspec.json.encode(one) + b"\n" for problem in made for one in problem.aside]
    if not lines:
        return None
    path = file.resolve().with_name(f"{file.resolve().name}.aside.jsonl")
    save(path, b"".join(lines), force=True)
    return str(path)


__all__ = ["make"]
