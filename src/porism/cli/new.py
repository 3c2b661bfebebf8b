"""porism new: a folder problem to write over, which already works as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TEMPLATE = {
    "question.md": """\
How many integers from 1 to 1000 are divisible by neither 2 nor 5?
""",
    "candidates/inclusion-exclusion.md": """\
---
# These keys between the two lines are optional. Others: correct (true or false, if you know it),
# human (true if a person wrote it), source, kind.
answer: 400
---
Count the complement. There are 500 multiples of 2 and 200 multiples of 5 up to 1000. The multiples of
both are the multiples of 10, of which there are 100, and they were counted twice. So 500 + 200 - 100 = 600
integers are divisible by 2 or by 5, and 1000 - 600 = 400 are divisible by neither.
""",
    "candidates/plain-subtraction.md": """\
---
answer: 300
---
Take away what is divisible. There are 500 multiples of 2 and 200 multiples of 5 up to 1000. Removing both
leaves 1000 - 500 - 200 = 300 integers that are divisible by neither.
""",
    "neighbors.yaml": """\
# Neighbors are questions near yours whose answers you know. A candidate ranks high if its method, shown as
# an example, helps a solver answer them. Three to five are good: not so easy that any solver gets them
# without help, not so hard that none does, and with answers that no candidate gives.
# LaTeX goes without quotes, or in single ones where it holds `: ` or ` #`; in double quotes \\ is an escape.
- question: How many integers from 1 to 2000 are divisible by neither 3 nor 7?
  answer: 1144
- question: How many integers from 1 to 1800 are divisible by neither 4 nor 6?
  answer: 1200
- question: How many integers from 1 to 900 are divisible by none of 2, 3 and 5?
  answer: 240
""",
    "problem.yaml": """\
# All of this is optional. Also: id (the folder's name if left out), group, answer, metadata.
subject: elementary number theory
""",
}


def new(
    folder: Annotated[Path, typer.Argument(help="The folder to make.")],
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Write into a folder that is not empty; replaced files are kept as .bak."
        ),
    ] = False,
) -> None:
    """Make a folder problem with a small worked example to write over."""
    import shlex

    from porism.data.write import save
    from porism.errors import InputError

    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise InputError(f"{folder}: is not empty; add --force to write into it all the same")
    for name, text in TEMPLATE.items():
        save(folder / name, text.encode(), force=force)
    name = shlex.quote(str(folder))
    typer.echo(
        f"{folder} holds a small example that works. Write your own over it:\n"
        f"  {folder / 'question.md'}     the question nobody can check\n"
        f"  {folder / 'candidates'}      one attempt a file, .md or .tex\n"
        f"  {folder / 'neighbors.yaml'}  questions near it, with answers\n"
        f"Then type:\n"
        f"  porism data check {name}\n"
        f"  porism rank {name}"
    )
