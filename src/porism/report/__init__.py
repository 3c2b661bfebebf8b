"""A run as something people would rather look at than read: one HTML file, or tables for a paper.

`write` is the whole of it: it reads a run folder, asks nothing, and costs no token.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from porism.types import Problem

Format = Literal["html", "md", "csv"]


async def write(
    run: Path, file: Path | None, *, format: Format = "html", problems: Sequence[str] = ()
) -> str:
    """The report of a run folder as Markdown or CSV, and written to `file` if one is given; HTML is only written.

    problems: for HTML, ids of problems to show in full; otherwise, those to list. Raises ConfigError for an unknown id
    or a folder without a run, StoreError where the file cannot be written, MissingExtra without the extra `report`.
    """
    from porism.errors import StoreError
    from porism.report.load import Folder

    if format == "html":
        need_extra()
    async with Folder(run) as folder:
        check_ids(folder.problems, problems)
        try:
            if format == "html":
                from porism.report.page import Layout, write_html

                await write_html(folder, file or run / "report.html", Layout(wanted=frozenset(problems)))
                return ""
            from porism.report import tables

            chosen = [p for p in folder.problems if not problems or p.id in problems] if folder.method else []
            pages = [await folder.page(problem) for problem in chosen]
            text = tables.markdown(folder, pages) if format == "md" else tables.csv(pages)
            if file is not None:
                temporary = file.with_name(f".{file.name}.tmp")
                temporary.write_text(text, encoding="utf-8", newline="")
                temporary.replace(file)
        except OSError as error:
            raise StoreError(f"{file or run}: the report cannot be written: {error.strerror}") from error
        return text


def need_extra() -> None:
    """Raises MissingExtra where the libraries of the HTML report are not installed."""
    from importlib.util import find_spec

    from porism.errors import MissingExtra

    if not (find_spec("math_core") and find_spec("markdown_it")):
        raise MissingExtra("porism report", "report")


def check_ids(known: Sequence[Problem], asked: Sequence[str]) -> None:
    """Raises ConfigError for an id that no problem has, with the nearest that one has."""
    from difflib import get_close_matches

    from porism.errors import ConfigError

    ids = [problem.id for problem in known]
    for id in asked:
        if id not in ids:
            near = get_close_matches(id, ids, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(ids[:5]) or 'none'}"
            raise ConfigError(f"--problems {id}: the run has no such problem; {hint}")


__all__ = ["Format", "check_ids", "need_extra", "write"]
