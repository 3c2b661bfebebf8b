"""YAML as a person would write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from porism.data.yamltree import BOOLEAN, NULL, NUMBER

_BREAKS = frozenset("\r\x85\u2028\u2029")
_NO_FOLD = 1_000_000_000  # columns: a long line stays one line


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Several lines as a block, unless the emitter must escape some of it.

    Breaks that are not \\n are written as escapes: a reader of any other style turns them into spaces.
    """
    style = None
    if not _BREAKS.isdisjoint(text):
        style = '"'
    elif "\n" in text and not text[0].isspace():
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
# The emitter quotes text that a resolver takes for something else: YAML 1.1's are there, ours are added.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", NUMBER, list("-+.0123456789"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", BOOLEAN, list("tTfF"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:null", NULL, ["", "~", "n", "N"])


def yaml_text(rows: Sequence[object]) -> str:
    """One document a row."""
    return yaml.dump_all(
        rows,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=_NO_FOLD,
        explicit_start=len(rows) > 1,
    )
