"""What the repository shows the world: the public names, the locks, and no trace of any one machine."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import porism

ROOT = Path(__file__).resolve().parents[1]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
MACHINE = [  # spelled so that this file does not match itself
    re.compile(r"(?<![\w.$}/~-])/(?:home|Users|root|work|tmp|opt|mnt)/[\w.-]+"),
    re.compile(r"/nix/store/\w{32}-"),
    re.compile(r"\b[a-z]:\\\\?users\\", re.IGNORECASE),
    re.compile(r"(?:pypi|pythonhosted|registry\.npmjs)\.(?:org|io)\b|\bfile:/{2}", re.IGNORECASE),
]


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_all_is_the_sorted_public_names() -> None:
    assert list(porism.__all__) == sorted(porism.__all__)
    assert all(hasattr(porism, name) for name in porism.__all__)
    assert not [name for name in porism.__all__ if name.startswith("_") and name != "__version__"]
    assert set(porism.__all__) <= set(dir(porism))


def test_version_is_the_packaged_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert porism.__version__ == project["version"]
    assert f"## {porism.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_no_file_names_a_machine_or_a_registry() -> None:
    found = []
    for path in tracked():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {match.group()}"
            for number, line in enumerate(lines, start=1)
            for pattern in MACHINE
            if (match := pattern.search(line))
        ]
    assert not found


@pytest.mark.parametrize(
    "text", ["see /ho|me/ann/x", "'/t|mp/run'", r"C:\Us|ers\ann", "https://py|pi.org/simple"]
)
def test_machine_patterns_match(text: str) -> None:
    assert any(pattern.search(text.replace("|", "")) for pattern in MACHINE)


@pytest.mark.parametrize("text", ["s3://bucket/home/x", "$HOME/tmp/x", "examples/work/x", "POST /v1/chat"])
def test_machine_patterns_let_pass(text: str) -> None:
    assert not any(pattern.search(text) for pattern in MACHINE)


def locked(lock: Path) -> dict[str, list[str]]:
    """Hashes by 'name==version', for every entry of a lock."""
    entries: dict[str, list[str]] = {}
    for line in lock.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith((" ", "#")):
            entries[line.removesuffix("\\").strip()] = []
        elif line.lstrip().startswith("--hash="):
            entries[list(entries)[-1]].append(line.split("=", 1)[1].removesuffix("\\").strip())
    return entries


def test_there_are_locks() -> None:
    assert {lock.stem for lock in LOCKS} == {"base", "local", "dev", "installer", "ray"}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_locked_requirement_is_pinned_and_hashed(lock: Path) -> None:
    entries = locked(lock)
    assert entries
    for entry, hashes in entries.items():
        assert re.match(r"[a-z0-9-]+==[^ ]+( ; .+)?$", entry), entry
        assert hashes, entry
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in hashes), entry
    assert not re.search(r"://|^\s*-(?!-hash=)", lock.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("lock", ["base", "local", "dev"])
def test_locks_answer_pyproject(lock: str) -> None:
    """Every dependency that pyproject declares is in the lock, at a version it allows: else `make lock` is owed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = list(project["project"]["dependencies"])
    groups = project["dependency-groups"]
    wanted += groups["build"]
    if lock != "base":
        wanted += project["project"]["optional-dependencies"]["local"]
    if lock == "dev":
        wanted += [line for line in groups["dev"] if isinstance(line, str)]
    versions: dict[str, list[str]] = {}
    for entry in locked(ROOT / "requirements" / f"{lock}.lock"):
        name, version = entry.partition(" ;")[0].split("==")
        versions.setdefault(name, []).append(version)
    for line in wanted:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        assert name in versions, f"{name} is not in {lock}.lock: make lock"
        assert all(requirement.specifier.contains(version) for version in versions[name]), (
            f"{line}: make lock"
        )


def test_the_locks_agree() -> None:
    """What one lock pins, no other pins differently."""
    dev = set(locked(ROOT / "requirements" / "dev.lock"))
    assert (
        set(locked(ROOT / "requirements" / "base.lock"))
        <= set(locked(ROOT / "requirements" / "local.lock"))
        <= dev
    )
