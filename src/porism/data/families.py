"""Families in files of their own: read alone, or into the problem that names one.

A problem may say `family: {file: necklaces.yaml, target: {...}}`: what stands in that file, seen from the problem's,
is taken over when the problem is read, and the problem's own keys go before it. So a problem that was read is whole,
and can be written anywhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from porism.data.finding import Doubt, FileFaultError, Row
from porism.data.texts import read_text


def read_family_file(path: Path) -> dict[str, Any]:
    """The keys and values of a YAML or JSON file with one family. FileFaultError for anything else."""
    try:
        text = read_text(path)
    except OSError as error:
        raise FileFaultError(path, None, f"cannot be read: {error.strerror or error}") from None
    if path.suffix.lower() == ".json":
        from porism.data.jsontree import parse

        documents = [parse(text, path)]
    else:
        from porism.data import yamltree

        documents = [value for value, _ in yamltree.parse(text, path)]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise FileFaultError(
            path, None, "must be the keys and values of one family: name, question, parameters, ..."
        )
    return documents[0]


def inlined(row: Row) -> tuple[object, list[Doubt]]:
    """A row with the family of the file that it names, and what is wrong with that file."""
    value = row.value
    if (
        not isinstance(value, dict)
        or not isinstance(family := value.get("family"), dict)
        or "file" not in family
    ):
        return value, []
    own = {key: item for key, item in family.items() if key != "file"}
    if not isinstance(family["file"], str):
        return value | {"family": own}, [("error", ("family", "file"), "must be the path of a family file")]
    here = Path(row.place(("family",))[0])
    try:
        found = read_family_file((here if here.is_dir() else here.parent) / family["file"])
    except FileFaultError as fault:
        return value | {"family": None}, [("error", ("family", "file"), str(fault))]
    return value | {"family": found | own}, []


__all__ = ["inlined", "read_family_file"]
