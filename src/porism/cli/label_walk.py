"""The walk of one rater: question, candidate, two answers, and the judgement kept at once.

What could sway a rater is not shown: who wrote a candidate, its name, a label it has already. Only a walk over what
raters dispute shows what each of them said.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from porism.labels import Item, Judgement, Standing, in_order
from porism.walk import LEAVE, Log, Move, Terminal, walk


class LabelWalk:
    """One rater's walk over candidates; `shown` are standings to show with everybody's answers."""

    def __init__(
        self,
        terminal: Terminal,
        file: Path,
        log: Log[Judgement],
        rater: str,
        found: Sequence[Item],
        *,
        shown: Sequence[Standing],
    ) -> None:
        self.terminal, self.file, self.log, self.rater = terminal, file, log, rater
        self.items = in_order(found, rater)
        self.others = {s.item.key: s.judgements for s in shown}
        hashes = {item.key: item.text_hash for item in self.items}
        self.mine = {
            (j.problem, j.candidate): j
            for j in log.rows
            if j.rater == rater and hashes.get((j.problem, j.candidate)) == j.text_hash
        }
        self.done = set() if shown else set(self.mine)
        self.last: str | None = None  # the problem on the screen

    def run(self) -> None:
        """Walk until the end or until the rater leaves."""
        import shlex

        self.log.trial()
        if not self.items:
            self.terminal.say("There is nothing to judge.")
            return
        total = len(self.items)
        try:
            walk(total, lambda i: self.items[i].key in self.done, self.visit)
        except KeyboardInterrupt:
            self.terminal.say()
            raise
        finally:
            done = sum(item.key in self.done for item in self.items)
            self.terminal.say(f"{done} of {total} judged by {self.rater}, in {self.log.path}")
            if done < total:
                rest = " --disputed" if self.others else ""
                again = f"porism label {shlex.quote(str(self.file))} --rater {shlex.quote(self.rater)}{rest}"
                self.terminal.say(f"To go on: {again}")

    def visit(self, at: int) -> Move:
        """Show one candidate and take the two answers."""
        item = self.items[at]
        self.show(item, at)
        opinions = ("yes", "no", "unsure", *LEAVE)
        while True:
            matches, notes = None, []
            if item.problem.answer is not None:
                answer = self.terminal.ask("Does the final answer match?", opinions)
                if answer.choice in LEAVE:
                    return _move(answer.choice)
                matches, notes = answer.choice, [answer.note]
            answer = self.terminal.ask("Does the derivation hold?", opinions)
            if answer.choice == "back" and item.problem.answer is not None:
                continue  # to the first question of the same candidate
            if answer.choice in LEAVE:
                return _move(answer.choice)
            self.keep(item, matches, answer.choice, "; ".join(filter(None, [*notes, answer.note])))
            return "next"

    def show(self, item: Item, at: int) -> None:
        """The question once for all its candidates that follow each other, then the candidate without its name."""
        problem, say = item.problem, self.terminal.say
        if problem.id != self.last:
            say()
            say(f"Question {problem.id}", bold=True)
            self.terminal.show(problem.question)
            if problem.answer is not None:
                say(f"Known answer: {problem.answer}", bold=True)
            if problem.solution is not None:
                say("Known solution", bold=True)
                self.terminal.show(problem.solution)
        self.last = problem.id
        say()
        say(f"Candidate {at + 1} of {len(self.items)}", bold=True)
        self.terminal.show(item.candidate.text)
        if item.candidate.answer is not None:
            say(f"Its final answer: {item.candidate.answer}", bold=True)
        say()
        for judgement in self.others.get(item.key, {}).values():
            say(f"{judgement.rater}: {said(judgement)}")
        if item.key in self.mine and not self.others:
            say(f"You said: {said(self.mine[item.key])}")

    def keep(self, item: Item, matches: Any, holds: Any, note: str) -> None:
        """Append the judgement."""
        from datetime import UTC, datetime

        judgement = Judgement(
            rater=self.rater,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            problem=item.problem.id,
            candidate=item.candidate.id,
            text_hash=item.text_hash,
            answer_matches=matches,
            derivation_holds=holds,
            note=note,
        )
        self.log.add(judgement)
        self.mine[item.key] = judgement
        if self.others:
            self.others[item.key] = {**self.others[item.key], self.rater: judgement}
        self.done.add(item.key)


def said(judgement: Judgement) -> str:
    """A judgement on one line."""
    matches = judgement.answer_matches
    words = ([] if matches is None else [f"answer {matches}"]) + [f"derivation {judgement.derivation_holds}"]
    return ", ".join(words) + (f" ({judgement.note})" if judgement.note else "")


def _move(choice: str) -> Move:
    return "back" if choice == "back" else "quit" if choice == "quit" else "next"
