"""A folder as a problem: what a mathematician holds.

    question.md or .tex        the target
    candidates/*.md, *.tex     one attempt a file: its id is the file's name; optional YAML front matter
    neighbors.yaml             a list of {question, answer, ...}
    family.yaml                optional: a family that more neighbors are drawn from
    answer.md  solution.md     optional, as .tex too
    problem.yaml               optional: id, group, subject, metadata, answer

A folder without a question whose folders have one is read as several problems.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from porism.data import yamltree
from porism.data.finding import FileFaultError, Finding, KeyPath, Row
from porism.data.texts import read_text

_TEXT = (".md", ".tex")
_FRONT = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
Line = Callable[[KeyPath], int]


def folder_rows(folder: Path) -> Iterator[Row | Finding]:
    """The problem of a folder, or of each folder in it."""
    if _text_file(folder, "question"):
        yield from _problem(folder)
        return
    inner = [path for path in sorted(folder.iterdir()) if path.is_dir() and _text_file(path, "question")]
    if not inner:
        raise FileFaultError(
            folder, None, f"no question.md or question.tex here; make one: porism new {folder}"
        )
    for path in inner:
        yield from _problem(path)


def _text_file(folder: Path, stem: str) -> Path | None:
    """The .md or .tex file of a name; FileFaultError where there are both."""
    found = [path for ending in _TEXT if (path := folder / f"{stem}{ending}").is_file()]
    if len(found) > 1:
        raise FileFaultError(found[1], None, f"{found[0].name} is there too: keep one of them")
    return found[0] if found else None


class _Folder:
    """Values read so far, and which file and line each of them stands in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.value: dict[str, Any] = {"candidates": [], "neighbors": []}
        self.files: dict[KeyPath, tuple[Path, Line]] = {}

    def place(self, path: KeyPath) -> tuple[str, int | None]:
        for end in range(len(path), 0, -1):
            if found := self.files.get(path[:end]):
                file, line = found
                return str(file), line(path[end:])
        return str(self.folder), None

    def text(self, key: str) -> None:
        """Read question, answer or solution."""
        if file := _text_file(self.folder, key):
            if key in self.value:
                raise FileFaultError(file, None, f"problem.yaml gives {key!r} too: keep one of them")
            self.value[key] = read_text(file).strip()
            self.files[(key,)] = (file, lambda _: 1)

    def settings(self) -> None:
        """Read problem.yaml."""
        if (found := _yaml_file(self.folder, "problem")) is None:
            return
        file, value, node = found
        if not isinstance(value, dict):
            raise FileFaultError(file, 1, "must be keys and values, such as `subject: number theory`")
        for key, item in value.items():
            line = yamltree.line_of(node, (key,)) + 1
            if key in ("question", "candidates", "neighbors"):
                raise FileFaultError(file, line, f"{key!r} stands in files of its own in a folder problem")
            self.value[key] = item
            self.files[(key,)] = (file, lambda path, key=key: yamltree.line_of(node, (key, *path)) + 1)  # type: ignore[misc]

    def candidate(self, file: Path) -> None:
        front, text, line = _front_matter(read_text(file), file)
        for key in ("id", "text"):
            if key in front:
                raise FileFaultError(file, line((key,)), f"leave out {key!r}: it is the file's name or text")
        self.files["candidates", len(self.value["candidates"])] = (file, line)
        self.value["candidates"].append({"id": file.stem, "text": text, **front})

    def neighbors(self) -> None:
        if (found := _yaml_file(self.folder, "neighbors")) is None:
            return
        file, value, node = found
        if not isinstance(value, list):
            raise FileFaultError(file, 1, "must be a list: each neighbor begins with `- question: ...`")
        self.files[("neighbors",)] = (file, lambda path: yamltree.line_of(node, path) + 1)
        self.value["neighbors"] = [
            {"id": f"n{number}", **item} if isinstance(item, dict) else item
            for number, item in enumerate(value, start=1)
        ]

    def family(self) -> None:
        if (found := _yaml_file(self.folder, "family")) is None:
            return
        file, value, node = found
        if "family" in self.value:
            raise FileFaultError(file, None, "problem.yaml gives 'family' too: keep one of them")
        self.value["family"] = value
        self.files[("family",)] = (file, lambda path: yamltree.line_of(node, path) + 1)


def _problem(folder: Path) -> Iterator[Row | Finding]:
    """One row. A file that cannot be read is a finding, and the others are still looked at."""
    problem = _Folder(folder)
    problem.value["id"] = folder.resolve().name
    candidates = folder / "candidates"
    parts: list[Callable[[], None]] = [problem.settings]
    parts += [lambda key=key: problem.text(key) for key in ("question", "answer", "solution")]  # type: ignore[misc]
    for file in sorted(candidates.iterdir()) if candidates.is_dir() else []:
        if file.suffix.lower() in _TEXT:
            parts.append(lambda file=file: problem.candidate(file))  # type: ignore[misc]
        elif not file.name.startswith(".") and not file.name.endswith(("~", ".bak")):
            yield Finding("warning", str(file), None, "", "not read: a candidate is a .md or .tex file")
    whole = True
    for part in [*parts, problem.neighbors, problem.family]:
        try:
            part()
        except FileFaultError as fault:
            whole = False
            yield fault.finding
    if whole:
        yield Row(problem.value, problem.place)


def _yaml_file(folder: Path, stem: str) -> tuple[Path, object, yamltree.Node] | None:
    """File, value and node of a YAML file with one document, if it is there."""
    file = next(
        (path for ending in (".yaml", ".yml") if (path := folder / f"{stem}{ending}").is_file()), None
    )
    if file is None:
        return None
    documents = list(yamltree.parse(read_text(file), file))
    if len(documents) != 1:
        raise FileFaultError(file, None, "no values in the file" if not documents else "must be one document")
    return file, *documents[0]


def _front_matter(text: str, file: Path) -> tuple[dict[str, Any], str, Line]:
    """Keys, text and line of each key of a file that may begin with keys between two lines `---`."""
    front = _FRONT.match(text)
    documents = list(yamltree.parse(front[1], file, line=2)) if front else []
    if front and not documents:
        return {}, text[front.end() :].strip(), lambda _: 1
    if front and len(documents) == 1:
        value, node = documents[0]
        if isinstance(value, dict):
            body = text[front.end() :].strip()
            return value, body, lambda path: yamltree.line_of(node, path) + 2 if path else 1
    return {}, text.strip(), lambda _: 1
