"""YAML as a person would write it."""

from __future__ import annotations

from typing import Any

import yaml

from porism.data.yamltree import BOOLEAN, NULL, NUMBER

_NO_FOLD = 1_000_000_000  # columns: a long line stays one line


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Several lines as a block, where the emitter can keep every character of them so."""
    block = "\n" in text and text.strip() != "" and not text[0].isspace() and "\t" not in text
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if block else None)


_Dumper.add_representer(str, _text)
# The emitter quotes text that a resolver takes for something else: YAML 1.1's are there, ours are added.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", NUMBER, list("-+.0123456789"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", BOOLEAN, list("tTfF"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:null", NULL, ["", "~", "n", "N"])


def yaml_text(rows: list[dict[str, Any]]) -> str:
    """One document a problem."""
    return yaml.dump_all(
        rows,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=_NO_FOLD,
        explicit_start=len(rows) > 1,
    )
