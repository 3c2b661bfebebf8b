"""YAML as plain values that know their lines.

Only mappings, lists and scalars: what a person writes by hand. Plain scalars follow YAML 1.2 (true, false,
null and numbers; `no`, dates and 0o17 are text), numbers stay as written, and aliases and tags are
refused, so no file grows when it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from porism.data.finding import FileFaultError, Finding, KeyPath, Raw, Row
from porism.data.texts import read_text

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # a PyYAML built without libyaml: the same, ten times slower
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
BOOLEAN = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
NULL = re.compile(r"(?:|~|null|Null|NULL)\Z")
_DEPTH = 100

Node: TypeAlias = yaml.Node


class _Loader(_SafeLoader):
    # One resolver for every plain scalar: it keeps `5` and `!!str 5` apart, and decides nothing else.
    yaml_implicit_resolvers = {None: [("plain", re.compile(""))]}  # noqa: RUF012


def parse(text: str, file: Path, *, line: int = 1) -> Iterator[tuple[object, Node]]:
    """Value and node of each document of a text that begins at a line. FileFaultError says what is wrong."""
    try:
        loader = _Loader(text)
        try:
            while loader.check_node():
                node: Node = loader.get_node()  # type: ignore[assignment]  # check_node says there is one
                value = _Builder(file, line).build(node, 0)
                if value is not None:
                    yield value, node
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        column = f" at column {mark.column + 1}" if mark else ""
        problem = error.problem or error.context or ""
        message = f"not valid YAML{column}: {problem}"
        if "escape character" in problem:
            message += " (LaTeX stands in single quotes, or in none: in double quotes a backslash means something else)"
        raise FileFaultError(file, line + mark.line if mark else None, message) from None
    except yaml.reader.ReaderError as error:
        at = text.find(chr(error.character))  # its position counts bytes or characters, as the parser likes
        message = f"the character U+{error.character:04X} is not allowed in YAML"
        raise FileFaultError(file, line + text.count("\n", 0, max(at, 0)), message) from None
    except RecursionError:
        raise FileFaultError(file, None, "nested too deeply") from None


def _short(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")


class _Builder:
    """Plain values of one document."""

    def __init__(self, file: Path, line: int) -> None:
        self.file = file
        self.first = line
        self.seen: set[int] = set()

    def fault(self, node: Node, message: str) -> FileFaultError:
        return FileFaultError(self.file, self.first + node.start_mark.line, message)

    def build(self, node: Node, depth: int) -> object:
        if id(node) in self.seen:
            raise self.fault(node, "anchors and aliases (& and *) are not read here: write the value out")
        self.seen.add(id(node))
        if depth > _DEPTH:
            raise self.fault(node, f"nested more than {_DEPTH} deep")
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        if node.tag.rpartition(":")[2] not in ("map", "seq"):
            raise self.fault(node, f"the tag {_short(node.tag)} is not read here: leave it out")
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, depth + 1) for item in node.value]
        value: dict[str, object] = {}
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self.fault(key, "a key must be plain text")
            if key.value in value:
                raise self.fault(key, f"the key {key.value!r} is given twice")
            value[key.value] = self.build(item, depth + 1)
        return value

    def scalar(self, node: yaml.ScalarNode) -> object:
        text: str = node.value
        if node.tag == "plain":
            if NULL.match(text):
                return None
            return Raw(text) if NUMBER.match(text) or BOOLEAN.match(text) else text
        if node.tag != "tag:yaml.org,2002:str":
            raise self.fault(node, f"the tag {_short(node.tag)} is not read here: leave it out")
        return text


def line_of(node: Node, path: KeyPath) -> int:
    """The line, from 0, of a key below a node; of the nearest one above it where there is no such key."""
    line: int = node.start_mark.line
    for step in path:
        if isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if k.value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            found = (node.value[step], node.value[step])
        else:
            found = None
        if found is None:
            break
        line, node = found[0].start_mark.line, found[1]
    return line


def yaml_rows(file: Path) -> Iterator[Row | Finding]:
    """The rows of a file: each document is one problem, or a list of problems."""
    empty = True
    for value, node in parse(read_text(file), file):
        items: Any = zip(value, node.value, strict=True) if isinstance(value, list) else [(value, node)]
        for item, at in items:
            empty = False
            yield Row(item, lambda path, at=at: (str(file), line_of(at, path) + 1))  # type: ignore[misc]
    if empty:
        raise FileFaultError(file, None, "no problem in the file")
