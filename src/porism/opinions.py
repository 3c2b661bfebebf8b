"""Second opinions: a model asked about doubted verdicts alone, whose word is shown beside them and never changes one.

What is judged was written by a model and may try to talk to the judge, so it stands between two lines that it cannot
foresee, after an instruction to obey nothing in it; and a reply counts only in one exact form. That makes tricks
harder, not impossible, which is one more reason why an opinion is not a verdict.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Literal, TypeAlias

from porism.audit import Checked
from porism.config import RankConfig
from porism.engine import Watch
from porism.generate import Generated, Generator, Request
from porism.methods.prompt import load_template, render
from porism.types import Completion, Usage
from porism.verify.extract import visible

Opinion: TypeAlias = Literal["equal", "different", "no opinion", "missing"]

LONGEST = 4000  # characters of an answer or a gold; nobody is asked about longer ones
_WORD = "VERDICT"
_FORM = re.compile(r"VERDICT: (EQUAL|DIFFERENT)")


@dataclass(frozen=True, slots=True)
class Opinions:
    """What `model` said of each row, None where the verdict was not doubted, and how the asking ended."""

    model: str
    given: tuple[Opinion | None, ...]
    generated: Generated

    @property
    def counts(self) -> Counter[Opinion]:
        """How many rows were given each opinion."""
        return Counter(opinion for opinion in self.given if opinion is not None)


async def second_opinions(
    rows: Sequence[Checked],
    model: str,
    folder: Path,
    *,
    base_url: str | None = None,
    watch: Watch | None = None,
) -> Opinions:
    """Ask `model` whether the doubted rows' answers equal their golds; what it answers is kept in `folder`.

    Equal questions are asked once, and those answered in the folder not again. Raises what Generator raises.
    """
    doubted = {i: row for i, row in enumerate(rows) if row.doubted}
    if not doubted:
        return Opinions(model, (None,) * len(rows), Generated(answers={}, usage=Usage()))
    sampling = RankConfig(models=(model,), temperature=0.0).sampling
    requests = {
        i: Request(f"{row.id} ({i + 1})", equivalence_prompt(row))
        for i, row in doubted.items()
        if max(len(row.answer or ""), len(row.gold)) <= LONGEST
    }
    async with Generator(folder, (model,), sampling=sampling, base_url=base_url, watch=watch) as generator:
        generated = await generator.ask(list(requests.values()))
    given: list[Opinion | None] = [None] * len(rows)
    for i in doubted:
        given[i] = "no opinion"
        if (request := requests.get(i)) is not None:
            (completion,) = generated.answers[request.key]
            given[i] = "missing" if completion is None else opinion_of(completion)
    return Opinions(model, tuple(given), generated)


def equivalence_prompt(row: Checked) -> str:
    """What the model is asked about a row. Equal for equal texts, so that it is asked once."""
    answer = "none" if row.answer is None else row.answer
    judged = "\n".join((row.gold, answer, row.text))
    fence = f"====== {blake2b(judged.encode(errors='replace'), digest_size=8).hexdigest()} ======"
    return render(
        load_template(None, "equivalence"),
        question=row.question,
        gold=row.gold,
        answer=answer,
        text=row.text or "(not given)",
        fence=fence,
    )


def opinion_of(completion: Completion) -> Opinion:
    """What a reply says: its last line is one of the two verdicts to the letter, and there is no other in it."""
    shown = visible(completion.text)
    if shown is None or completion.truncated or shown.count(_WORD) != 1:
        return "no opinion"
    found = _FORM.fullmatch(shown.rstrip().rpartition("\n")[2].strip())
    if found is None:
        return "no opinion"
    return "equal" if found[1] == "EQUAL" else "different"


__all__ = ["Opinion", "Opinions", "equivalence_prompt", "opinion_of", "second_opinions"]
