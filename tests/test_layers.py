"""The shape of the code, read from its syntax trees: layers, purity, sizes and docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "src"

# Lowest first; the longest matching name decides. A module imports from its own layer and those below.
LAYERS: list[tuple[str, ...]] = [
    ("porism.types", "porism.errors"),
    (
        "porism.neighbors.definition",
        "porism.neighbors.draw",
        "porism.neighbors.expand",
        "porism.neighbors.expression",
        "porism.neighbors.family",
        "porism.neighbors.functions",
        "porism.neighbors.rules",
        "porism.neighbors.values",
        "porism.verify",
        "porism.methods",
        "porism.metrics",
        "porism.stats",
        "porism.inference",
        "porism.reference",
        "porism.data",
        "porism.config",
        "porism.prompts",
        "porism.analysis",
        "porism.calibrate",
        "porism.power",
        "porism.capacity",
    ),
    (
        "porism.models",
        "porism.store",
        "porism.records",
        "porism.segments",
        "porism.lines",
        "porism.totals",
        "porism.verify.pool",
        "porism.verify.worker",
    ),
    ("porism.engine", "porism.lane", "porism.router", "porism.budget", "porism.scale"),
    (
        "porism.progress",
        "porism.display",
        "porism.live",
        "porism.report",
        "porism.neighbors",
        "porism.bench",
        "porism.stress",
        "porism.run",
        "porism.generate",
        "porism.walk",
        "porism.labels",
        "porism.sample",
        "porism.candidates",
        "porism.export",
        "porism.solve_rate",
        "porism.interrupt",
        "porism.blocking",
        "porism.frames",
        "porism.stored",
        "porism.analyze",
        "porism.failures",
        "porism.right",
        "porism.audit",
        "porism.cases",
        "porism.opinions",
        "porism.prepare",
        "porism.table",
        "porism.cli",
        "porism.__main__",
        "porism",
    ),
]
PURE = (
    "porism.types",
    "porism.errors",
    "porism.verify",
    "porism.methods",
    "porism.metrics",
    "porism.stats",
    "porism.inference",
)
IMPURE_IMPORTS = {
    *("asyncio", "aiohttp", "anyio", "socket", "ssl", "http", "urllib", "requests", "httpx"),
    *("subprocess", "multiprocessing", "threading", "concurrent", "signal"),
}
FILE_CALLS = {
    "open",
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "unlink",
    "mkdir",
    "touch",
    "print",
    "input",
}
READS_PROMPTS = (
    "porism.methods.prompt",
    "porism.methods.prompts",
)  # they load templates that ship with the package


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def within(module: str, name: str) -> bool:
    return module == name or (module.startswith(name + ".") and name != "porism")


def layer(module: str) -> int:
    best = max(
        ((len(name), level) for level, names in enumerate(LAYERS) for name in names if within(module, name)),
        default=None,
    )
    assert best is not None, f"{module} stands in no layer: add it to LAYERS in {Path(__file__).name}"
    return best[1]


def is_pure(module: str) -> bool:
    return any(within(module, name) for name in PURE) and layer(module) < 2


def imports(module: str) -> Iterator[tuple[int, str]]:
    """Every (line, absolute name) that a module imports, anywhere in it, unless it only serves annotations."""
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    typing_only = {
        id(inner)
        for node in ast.walk(tree(module))
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree(module)):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*up, base] if base else up)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                if full == "porism.__version__":
                    continue
                yield node.lineno, full if full in MODULES else base


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    mine = layer(module)
    upward = [
        f"{MODULES[module].name}:{line} imports {name}"
        for line, name in imports(module)
        if name in MODULES and layer(name) > mine
    ]
    assert not upward


def test_no_cycles() -> None:
    graph = {
        module: {name for _, name in imports(module) if name in MODULES} - {module} for module in MODULES
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("module", [module for module in MODULES if is_pure(module)])
def test_pure_layers_touch_nothing(module: str) -> None:
    found = [
        f"line {line}: import {name}"
        for line, name in imports(module)
        if name.partition(".")[0] in IMPURE_IMPORTS
    ]
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await) and module != "porism.types":
            found.append(f"line {node.lineno}: async")
        if isinstance(node, ast.Call) and module not in READS_PROMPTS:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in FILE_CALLS:
                found.append(f"line {node.lineno}: {called}()")
    assert not found


@pytest.mark.parametrize("module", MODULES)
def test_no_module_is_long(module: str) -> None:
    assert len(MODULES[module].read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module: str) -> None:
    missing: list[str] = []
    if MODULES[module].stat().st_size and not ast.get_docstring(tree(module)):
        missing.append("the module")
    for node in tree(module).body:
        if not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ) or node.name.startswith("_"):
            continue
        fields_only = isinstance(node, ast.ClassDef) and not any(
            isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) for inner in node.body
        )
        if not fields_only and not ast.get_docstring(node):
            missing.append(node.name)
    assert not missing


def test_the_rules_find_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A made-up module that breaks each rule is caught by it."""
    bad = tmp_path / "bad.py"
    bad.write_text(
        "import socket\n\ndef f():\n    from porism.engine import Engine\n    return open('x')\n" + "\n" * 400
    )
    monkeypatch.setitem(MODULES, "porism.methods.bad", bad)
    tree.cache_clear()
    for rule in (
        test_imports_point_down,
        test_pure_layers_touch_nothing,
        test_no_module_is_long,
        test_docstrings,
    ):
        with pytest.raises(AssertionError):
            rule("porism.methods.bad")
    tree.cache_clear()
