"""JSON and JSONL as rows.

Numbers are kept as written, a key given twice is a fault rather than silently the last, and so is NaN.
JSONL is read line by line. Lines inside a .json file are looked up by a second pass over its tokens, made
only once something was found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from porism.data.finding import MAX_JSON, FileFaultError, Finding, KeyPath, Raw, Row
from porism.data.texts import read_lines, read_text

_MARK = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:\n]|[^\s\[\]{},:"]+')
_DEPTH = 5  # candidates[0].text in a list of problems is 4 deep; what lies deeper is named by its parent


class _TwiceError(ValueError):
    """A key stands twice in one object."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _TwiceError(next(key for key in keys if keys.count(key) > 1))
    return value


def _constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON; leave the key out")


def parse(text: str, file: Path, *, line: int = 1) -> object:
    """The value of a JSON text that begins at a line. FileFaultError says what is wrong with it."""
    try:
        return json.loads(
            text, parse_int=Raw, parse_float=Raw, parse_constant=_constant, object_pairs_hook=_object
        )
    except json.JSONDecodeError as error:
        message = f"not valid JSON at column {error.colno}: {error.msg}"
        raise FileFaultError(file, line + error.lineno - 1, message) from None
    except _TwiceError as error:
        at = 1
        with suppress(IndexError, ValueError):  # what follows the key may not even be JSON
            at = _lines(text)[1] or 1
        raise FileFaultError(file, line + at - 1, f"the key {str(error)!r} is given twice") from None
    except RecursionError:
        raise FileFaultError(file, line, "nested too deeply") from None
    except ValueError as error:
        raise FileFaultError(file, line, str(error)) from None


def jsonl_rows(file: Path) -> Iterator[Row | Finding]:
    """One row a line."""
    empty = True
    for item in read_lines(file):
        empty = False
        if isinstance(item, Finding):
            yield item
            continue
        number, text = item
        try:
            value = parse(text, file, line=number)
        except FileFaultError as fault:
            yield fault.finding
            continue
        yield Row(value, lambda _, number=number: (str(file), number))  # type: ignore[misc]
    if empty:
        raise FileFaultError(file, None, "the file is empty")


def json_rows(file: Path) -> Iterator[Row | Finding]:
    """The rows of a file that holds one problem, or a list of problems."""
    text = read_text(file, most=MAX_JSON)
    value = parse(text, file)
    lines = cache(lambda: _lines(text)[0])

    def row(value: object, *prefix: int) -> Row:
        def place(path: KeyPath) -> tuple[str, int | None]:
            full = (*prefix, *path)
            found = (lines().get(full[:end]) for end in range(len(full), 0, -1))
            return str(file), next((line for line in found if line), 1)

        return Row(value, place)

    if not isinstance(value, list):
        yield row(value)
    elif not value:
        raise FileFaultError(file, None, "the list of problems is empty")
    else:
        for index, item in enumerate(value):
            yield row(item, index)


def _lines(text: str) -> tuple[dict[KeyPath, int], int | None]:
    """The line of every key and list item that is not too deep, and the line of the first key given twice."""
    lines: dict[KeyPath, int] = {}
    twice: int | None = None
    seen: list[set[str]] = []  # the keys of each open object
    path: list[str | int | None] = []  # None: in an object, before its next key
    line = 1
    for match in _MARK.finditer(text):
        mark = match[0]
        if mark == "\n":
            line += 1
        elif mark in "]}":
            path.pop()
            seen.pop()
        elif mark == ",":
            step = path[-1]
            path[-1] = step + 1 if isinstance(step, int) else None
        elif mark != ":":
            if path and path[-1] is None:
                key: str = json.loads(mark)
                if key in seen[-1] and twice is None:
                    twice = line
                seen[-1].add(key)
                path[-1] = key
                opens = False
            else:
                opens = mark in "[{"
            if path and len(path) <= _DEPTH:
                lines.setdefault(tuple(step for step in path if step is not None), line)
            if opens:
                path.append(0 if mark == "[" else None)
                seen.append(set())
    return lines, twice
