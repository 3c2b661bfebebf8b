"""Neighbors added to a problem file, so that nothing in it is lost.

A file is written anew, whole or not at all, with the old one kept as .bak. A folder problem gets its new neighbors as
text at the end of its neighbors.yaml, so that what a person wrote there, comments too, stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from porism.data import load
from porism.data.finding import FileFaultError
from porism.data.write import WRITE, as_dict, save, write_problems
from porism.errors import InputError
from porism.types import Neighbor


def add_neighbors(source: Path, added: Mapping[str, Sequence[Neighbor]], target: Path | None = None) -> Path:
    """The file that now holds the problems of `source` with the neighbors added, by problem id.

    target: another file to write instead; one that exists is kept as .bak. InputError where it cannot be written.
    """
    problems = load(source).problems
    used = {p.id: {n.id for n in p.neighbors} for p in problems}
    if any(id not in used or used[id] & {n.id for n in new} for id, new in added.items()):
        raise InputError(f"{source}: has changed meanwhile; give the same command again, which costs nothing")
    if target is None and source.is_dir():
        if len(problems) > 1 or problems[0].id not in added:
            raise InputError(
                f"{source}: holds several problems; give one of them, or a file to write with -o"
            )
        return _append(source, added[problems[0].id])
    goal = target or source
    check_target(goal)
    whole = [replace(p, neighbors=(*p.neighbors, *added.get(p.id, ()))) for p in problems]
    write_problems(whole, goal, force=True)
    return goal


def check_target(goal: Path) -> None:
    """InputError where problems cannot be written to this path, or to this folder."""
    if goal.is_dir() or goal.suffix.lower() in WRITE:
        return
    raise InputError(f"{goal}: is not written: give -o a name that ends in one of {', '.join(WRITE)}")


def _append(folder: Path, neighbors: Sequence[Neighbor]) -> Path:
    from porism.data.texts import read_text
    from porism.data.yamltree import parse
    from porism.data.yamlwrite import yaml_text

    file = next((p for ending in (".yaml", ".yml") if (p := folder / f"neighbors{ending}").is_file()), None)
    goal = file or folder / "neighbors.yaml"
    new = "".join(yaml_text([[as_dict(n)]]) for n in neighbors)  # type: ignore[list-item]
    old = read_text(file).rstrip() + "\n" if file is not None else ""
    try:
        before = next(value for value, _ in parse(old, goal)) if old else []
        ((after, _),) = parse(old + new, goal)
        whole = isinstance(before, list) and isinstance(after, list) and after[: len(before)] == before
    except (FileFaultError, ValueError):
        whole = False
    if not whole:
        raise InputError(f"{goal}: is not a plain list that can be added to; give a file to write with -o")
    save(goal, (old + new).encode(), force=True)
    return goal


__all__ = ["add_neighbors", "check_target"]
