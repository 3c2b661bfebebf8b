"""Why wrong candidates fail, in the eyes of a model: optional tags on those that methods disagree about.

A tag is one model's reading and nothing more: it changes no score, and is shown as its word. An answer counts only in
the strict form of the prompt (prompts/failures.j2); anything else is counted as unreadable and not guessed at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from porism.analysis.agreement import Case
from porism.engine import Watch
from porism.generate import Generator, Request
from porism.methods.marks import last_mark
from porism.methods.prompt import load_template, render
from porism.types import Completion, Problem, Sampling
from porism.verify.extract import visible

KINDS = {
    "compression": "unjustified compression",
    "reasoning": "incorrect reasoning",
    "reference": "external reference",
    "interpretation": "unjustified interpretation",
}


class Tags(Struct, frozen=True, kw_only=True):
    """What the model said, by (problem, candidate): the kinds found, or None where nothing could be read.

    asked: candidates asked about. unreadable: answers that are not in the form. missing: never answered. stopped and
    exit_code as in Generated.
    """

    model: str
    found: dict[tuple[str, str], tuple[str, ...] | None]
    asked: int
    unreadable: int
    missing: int
    stopped: str | None = None
    exit_code: int = 0

    def counts(self, cases: Sequence[Case]) -> Counter[str]:
        """How many of these cases show each kind (a case may show several), and how many `none`."""
        found: Counter[str] = Counter()
        for case in cases:
            kinds = self.found.get((case.problem, case.candidate))
            if kinds is not None:
                found.update([KINDS[k] for k in kinds] or ["none"])
        return found


async def tag(
    cases: Sequence[Case],
    problems: Mapping[str, Problem],
    model: str,
    folder: Path,
    *,
    sampling: Sampling,
    base_url: str | None = None,
    limit: int | None = None,
    watch: Watch | None = None,
) -> Tags:
    """Ask `model` how the wrong candidates among `cases` fail, the first `limit` of them; answers are kept in `folder`.

    A candidate that stands in several cases is asked about once, and one that is answered in the folder not again.
    Raises what Generator raises.
    """
    wrong = list(dict.fromkeys((c.problem, c.candidate) for c in cases if c.label == "wrong"))[:limit]
    template = load_template(None, "failures")
    requests = []
    for problem, candidate in wrong:
        p = problems[problem]
        text = next(c.text for c in p.candidates if c.id == candidate)
        requests.append(
            Request(f"{problem}/{candidate}", render(template, question=p.question, candidate=text))
        )
    async with Generator(folder, [model], sampling=sampling, base_url=base_url, watch=watch) as generator:
        generated = await generator.ask(requests)
    answers = [generated.answers[r.key][0] for r in requests]
    found = {key: read(answer) for key, answer in zip(wrong, answers, strict=True)}
    missing = answers.count(None)
    return Tags(
        model=model,
        found=found,
        asked=len(wrong),
        unreadable=sum(kinds is None for kinds in found.values()) - missing,
        missing=missing,
        stopped=generated.stopped,
        exit_code=generated.exit_code,
    )


def read(answer: Completion | None) -> tuple[str, ...] | None:
    """The kinds on the last line `Failures: ...`, in the order of KINDS; None where it is not in the form."""
    text = None if answer is None or answer.truncated else visible(answer.text)
    mark = None if text is None else last_mark(text, "failures")
    if mark is None:
        return None
    words = [word.strip() for word in mark.casefold().split(",")]
    if words == ["none"]:
        return ()
    if len(set(words)) < len(words) or not set(words) <= KINDS.keys():
        return None
    return tuple(kind for kind in KINDS if kind in words)


__all__ = ["KINDS", "Tags", "read", "tag"]
