"""porism neighbors review: a person looks at every neighbor, and accepts, edits or rejects it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from porism.types import Neighbor, Problem
    from porism.walk import Move, Terminal

EXAMPLE = "Examples: porism neighbors review set.jsonl   |   porism neighbors review set.jsonl --write"


def review(
    file: Annotated[Path, typer.Argument(help="A problem file that can be written, or a folder problem.")],
    write: Annotated[
        bool, typer.Option("--write", help="Write what is decided so far into FILE, and end.")
    ] = False,
) -> None:
    """Walk over the neighbors: accept, edit in $EDITOR, reject, or leave for later.

    Decisions are kept at once in FILE.review.jsonl, and the same command goes on. When none is open, FILE is written
    anew and the old one kept as .bak: accepted and edited neighbors are flagged, rejected ones are taken out.
    """
    from porism.data.rewrite import may_rewrite
    from porism.walk import Terminal

    may_rewrite(file)
    terminal = Terminal(sys.stdin, sys.stderr)
    if not write:
        open_ones = _Review(terminal, file).run()
        if open_ones:
            return
    _write(terminal, file)


class _Review:
    """One walk over the neighbors of a file."""

    def __init__(self, terminal: Terminal, file: Path) -> None:
        from porism.data import load
        from porism.neighbors.review import Decision, decided, latest
        from porism.walk import Log, beside

        self.terminal, self.file = terminal, file
        self.items = [(p, n) for p in load(file).problems for n in p.neighbors]
        self.log = Log(beside(file, "review"), Decision)
        self.decisions = latest(self.log.rows)
        self.last: str | None = None  # the problem on the screen
        if self.log.unreadable:
            terminal.say(
                f"warning: {self.log.path}: {self.log.unreadable} lines cannot be read, and are passed over"
            )
        stale = sum(
            (p.id, n.id) in self.decisions and not decided(p, n, self.decisions) for p, n in self.items
        )
        if stale:
            terminal.say(f"{stale} neighbors have changed since they were decided on, so they are open again")

    def run(self) -> int:
        """Walk, and return how many neighbors are open."""
        import shlex

        from porism.neighbors.review import decided
        from porism.walk import walk

        self.log.trial()
        try:
            walk(len(self.items), lambda i: decided(*self.items[i], self.decisions) is not None, self.visit)
        except KeyboardInterrupt:
            self.terminal.say()
            raise
        finally:
            left = sum(decided(*item, self.decisions) is None for item in self.items)
            self.terminal.say(f"{len(self.items) - left} of {len(self.items)} decided, in {self.log.path}")
            if left:
                again = f"porism neighbors review {shlex.quote(str(self.file))}"
                self.terminal.say(
                    f"To go on: {again}\nTo write what is decided into the file: {again} --write"
                )
        return left

    def visit(self, at: int) -> Move:
        """Show one neighbor and take a decision."""
        from porism.neighbors.review import decided, edited
        from porism.walk import LEAVE

        problem, neighbor = self.items[at]
        before = decided(problem, neighbor, self.decisions)
        shown = edited(neighbor, before) if before and before.decision == "edit" else neighbor
        self.show(problem, shown, at)
        if before:
            self.terminal.say(f"You decided: {before.decision}{f' ({before.note})' if before.note else ''}")
        while True:
            answer = self.terminal.ask("Is it a good neighbor?", ("accept", "edit", "reject", *LEAVE))
            match answer.choice:
                case "accept":
                    self.keep(problem, neighbor, shown, "accept", answer.note)
                case "reject":
                    self.keep(problem, neighbor, neighbor, "reject", answer.note)
                case "edit":
                    changed = self.edit(problem, shown)
                    if changed is None:
                        continue
                    self.keep(problem, neighbor, changed, "edit", answer.note)
                case "back" | "quit":
                    return "back" if answer.choice == "back" else "quit"
            return "next"

    def show(self, problem: Problem, neighbor: Neighbor, at: int) -> None:
        """The target question once for its neighbors, then the neighbor."""
        say = self.terminal.say
        if problem.id != self.last:
            say()
            say(f"Target {problem.id}", bold=True)
            self.terminal.show(problem.question)
        self.last = problem.id
        say()
        say(f"Neighbor {neighbor.id}, {at + 1} of {len(self.items)}", bold=True)
        self.terminal.show(neighbor.question)
        say(f"Answer: {neighbor.answer}", bold=True)
        rest: dict[str, Any] = {
            "answer type": neighbor.answer_type,
            "kind": neighbor.kind,
            "flags": ", ".join(neighbor.flags),
            "source": neighbor.source,
            "provenance": "; ".join(f"{key}: {value}" for key, value in (neighbor.provenance or {}).items()),
            "solution": neighbor.solution,
        }
        for key, value in rest.items():
            if value:
                self.terminal.show(f"{key}: {value}")
        say()

    def edit(self, problem: Problem, neighbor: Neighbor) -> Neighbor | None:
        """What the person makes of it in an editor, asked again while it cannot be used; None where nothing changes."""
        from porism.errors import InputError
        from porism.neighbors.review import as_yaml, from_yaml
        from porism.walk import in_editor

        text = first = as_yaml(neighbor)
        while True:
            try:
                text = in_editor(text, "neighbor.yaml")
            except InputError as error:
                self.terminal.say(str(error))
                return None
            if text == first:
                self.terminal.say("Nothing was changed.")
                return None
            changed, findings = from_yaml(text, problem, neighbor)
            for finding in findings:
                self.terminal.say(finding)
            if changed is not None:
                return changed
            if self.terminal.ask("It cannot be used like this.", ("edit", "drop")).choice != "edit":
                return None

    def keep(
        self,
        problem: Problem,
        neighbor: Neighbor,
        result: Neighbor,
        decision: Literal["accept", "edit", "reject"],
        note: str,
    ) -> None:
        """Append the decision. To accept what an edit made is that edit."""
        from datetime import UTC, datetime

        from porism.data.write import as_dict
        from porism.neighbors.review import EDITED, Decision, text_hash

        record: dict[str, Any] | None = None
        if decision == "reject":
            record = as_dict(neighbor)
        elif text_hash(result) != text_hash(neighbor):
            decision = "edit"
            record = {key: value for key in EDITED if (value := getattr(result, key)) is not None}
        row = Decision(
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            problem=problem.id,
            neighbor=neighbor.id,
            text_hash=text_hash(neighbor),
            decision="accept" if decision == "edit" and record is None else decision,
            note=note,
            edited_hash=text_hash(result) if record is not None and decision == "edit" else "",
            record=record,
        )
        self.log.add(row)
        self.decisions[problem.id, neighbor.id] = row


def _write(terminal: Terminal, file: Path) -> None:
    """Write the decisions into the file as it is now, which may have changed since the walk began."""
    from porism.data import load
    from porism.data.rewrite import rewrite
    from porism.neighbors.review import Decision, latest, settle
    from porism.walk import Log, beside

    problems = list(load(file).problems)
    result, counts = settle(problems, latest(Log(beside(file, "review"), Decision).rows))
    said = f"{counts['accept']} accepted, {counts['edit']} edited, {counts['reject']} rejected, {counts['open']} open"
    if result == problems:
        terminal.say(f"{file}: holds every decision already ({said})")
        return
    for path in rewrite(file, result):
        terminal.say(f"{path}: written; as it was before: {path.name}.bak")
    terminal.say(f"{said}; rejected neighbors are out of the file, and whole in {beside(file, 'review')}")
