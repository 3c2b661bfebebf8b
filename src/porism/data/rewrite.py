"""Problems back to where they were read from: a file whole, a folder only in the parts that changed.

Whatever is replaced stays as .bak. In a folder the question and the candidates that are there are never touched:
neighbors.yaml is written anew, and new candidates become new files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from porism.data.write import WRITE, as_dict, save, write_problems
from porism.errors import InputError
from porism.types import Candidate, Problem


def may_rewrite(path: Path) -> None:
    """Raises InputError for a format that is only read."""
    if path.suffix.lower() == ".csv" and not path.is_dir():
        goal = path.with_suffix(".jsonl")
        raise InputError(
            f"{path}: .csv is only read; make a file of it first: porism data convert {path} {goal}"
        )


def check_goal(path: Path, goal: Path | None, *, force: bool) -> None:
    """Raises InputError where what was read from `path` could not be written to `goal`, or back where that is None."""
    if goal is None:
        may_rewrite(path)
    elif goal.suffix.lower() not in WRITE:
        raise InputError(
            f"{goal}: {goal.suffix or 'no ending'!r} is not written: use one of {', '.join(WRITE)}"
        )
    elif goal.exists() and not force:
        raise InputError(f"{goal}: exists already; add --force to replace it (a copy is kept as .bak)")


def rewrite(path: Path, problems: Sequence[Problem]) -> list[Path]:
    """Write all problems of a file or folder back to it, and return the files written.

    In a folder only neighbors and new candidates are written. InputError where that cannot be.
    """
    may_rewrite(path)
    if not path.is_dir():
        write_problems(problems, path, force=True)
        return [path]
    written: list[Path] = []
    folders = _folders(path)
    for problem in problems:
        folder, before = folders[problem.id]
        if problem.neighbors != before.neighbors:
            written.append(_neighbors(folder, problem))
        there = {candidate.id for candidate in before.candidates}
        written += [_candidate(folder, c) for c in problem.candidates if c.id not in there]
    return written


def _folders(path: Path) -> dict[str, tuple[Path, Problem]]:
    """The folder of each problem, and the problem as it stands there."""
    from porism.data import read_problems

    single = any((path / f"question{ending}").is_file() for ending in (".md", ".tex"))
    inner = [path] if single else [p for p in sorted(path.iterdir()) if p.is_dir()]
    found: dict[str, tuple[Path, Problem]] = {}
    for folder in inner:
        if any((folder / f"question{ending}").is_file() for ending in (".md", ".tex")):
            problem = read_problems(folder)[0]
            found[problem.id] = (folder, problem)
    return found


def _neighbors(folder: Path, problem: Problem) -> Path:
    from porism.data.yamlwrite import yaml_text

    old = folder / "neighbors.yml"
    file = old if old.is_file() else folder / "neighbors.yaml"
    save(file, yaml_text([[as_dict(neighbor) for neighbor in problem.neighbors]]).encode(), force=True)
    return file


def _candidate(folder: Path, candidate: Candidate) -> Path:
    """A new file with the keys between two lines `---` and the text below. InputError where the file is there."""
    from porism.data.yamlwrite import yaml_text

    keys = {key: value for key, value in as_dict(candidate).items() if key not in ("id", "text")}
    front = f"---\n{yaml_text([keys])}---\n" if keys else ""
    file = folder / "candidates" / f"{candidate.id}.md"
    save(file, f"{front}{candidate.text.strip()}\n".encode())
    return file


__all__ = ["check_goal", "may_rewrite", "rewrite"]
