r"""The boxed answers of a text: one pass over its braces, whatever their number and nesting.

A box that is opened and never closed is no answer, and if it comes last it voids the ones before it:
the writer was about to say something else. Boxes in one sentence are one answer of several parts;
after a sentence's end a new box replaces the old ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Every branch opens with a literal, which lets the search skip what is none of them: [{}] is four times as slow.
_TOKEN = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{|\\(?:boxed|fbox)\s*(\d)|\\.|\{|\}", re.DOTALL)
_STOP = re.compile(r"[.!?。！？](?:\s|\*|$)|\n\s*\n")
_NAME = re.compile(r"([A-Za-z](?:_(?:\w|\{\w{1,4}\}))?)\s*=\s*[$\s]*$")
_FILLER = re.compile(
    r"[\s,;，、；$&*]|\\quad|\\qquad|\\\\|\\[,;! ]|\\text\s*\{|\}|\b(?:and|or|und|oder|et|ou|y)\b|[和或]|\\[()\[\]]"
)
_NOT_BEFORE = re.compile(r"\b(?:not|isn't|instead of|rather than)[\s$]*$")
_NOT_AFTER = re.compile(
    r"[$\s]*(?:(?:is|was) (?:wrong|incorrect|impossible|not (?:correct|right|possible|the))|isn't|cannot be|can't be)\b"
)
GAP = 200  # characters between two boxes of one sentence


@dataclass(frozen=True, slots=True)
class Box:
    start: int  # of the command
    end: int  # after the closing brace
    content: str


def boxes(text: str) -> tuple[list[Box], int]:
    """The outermost complete boxes with something in them, and where the last unfinished one starts or -1."""
    found: list[Box] = []
    stack: list[tuple[int, int] | None] = []  # a box's start and content start, or a plain brace
    open_boxes = 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == "{":
            stack.append(None)
        elif mark == "}":
            if not stack:
                continue
            top = stack.pop()
            if top is not None:
                open_boxes -= 1
                content = text[top[1] : token.start()].strip()
                if content:
                    while found and found[-1].start > top[0]:  # nested inside this one
                        found.pop()
                    found.append(Box(top[0], token.end(), content))
        elif mark.endswith("{") and len(mark) > 2:
            stack.append((token.start(), token.end()))
            open_boxes += 1
        elif token[1]:
            found.append(Box(token.start(), token.end(), token[1]))
    unfinished = next((item[0] for item in reversed(stack) if item is not None), -1)
    return found, unfinished


def _denied(text: str, box: Box) -> bool:
    """Whether the sentence says that the box is not the answer."""
    before, after = text[max(0, box.start - 20) : box.start], text[box.end : box.end + 40]
    return bool(_NOT_BEFORE.search(before) or _NOT_AFTER.match(after))


def last_answer(text: str) -> tuple[str | None, str, int]:
    """The answer in the last sentence with boxes (or None), the rule, and where it ends in the text."""
    found, unfinished = boxes(text)
    found = [box for box in found if not _denied(text, box)]
    if not found:
        return None, "box-unfinished" if unfinished >= 0 else "none", unfinished
    if unfinished > found[-1].start:
        return None, "box-unfinished", unfinished
    group = [found[-1]]
    for box in reversed(found[:-1]):
        gap = text[box.end : group[0].start]
        if len(gap) > GAP or _STOP.search(gap):
            break
        rest = _FILLER.sub("", gap)
        if len(rest) > 40:
            break
        group.insert(0, box)
    if len(group) > 1:
        named = [_NAME.search(text[max(0, box.start - 20) : box.start]) for box in group]
        parts = [box.content for box in group]
        if all(part == parts[0] for part in parts):
            return parts[0], "box", group[-1].end
        if all(named):
            parts = [f"{name[1]} = {part}" for name, part in zip(named, parts, strict=True) if name]
        return ", ".join(parts), "boxes", group[-1].end
    return group[0].content, "box", group[0].end


__all__ = ["Box", "boxes", "last_answer"]
