"""A benchmark as a person reads it: methods by metrics with intervals, comparisons in words, what each one cost."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from porism.progress import printable
from porism.table import print_json

if TYPE_CHECKING:
    from rich.console import Console

    from porism.bench.evaluate import Control, MethodResult
    from porism.bench.run import Benchmark, Planned
    from porism.metrics import Estimate

SHOWN = ("acc@1", "recall@R", "auc", "mean_win", "human_win")
PIPE_WIDTH = 160


def show(result: Benchmark, *, as_json: bool) -> None:
    """Print a benchmark on stdout: one JSON document, or tables and sentences."""
    if as_json:
        print_json(document(result))
        return
    from rich.console import Console

    console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
    methods = result.evaluated.methods
    _metrics(methods, console)
    _levels(methods, console)
    _kinds(methods, console)
    _controls(result.evaluated.controls, console)
    if result.evaluated.primary is not None:
        console.print("primary comparison", style="bold")
        console.print(f"  {printable(result.evaluated.primary.sentence(), 500)}", markup=False)
    if result.evaluated.paired:
        console.print("other comparisons (one family; p after Holm)", style="bold")
        for comparison in result.evaluated.paired:
            console.print(f"  {printable(comparison.sentence(), 500)}", markup=False)
    for name, method in methods.items():
        for note in method.notes:
            console.print(f"{printable(name, 40)}: {note}", markup=False)
    for reason, count in list(result.missing.items())[:10]:
        console.print(f"missing: {count} rollouts of {printable(reason, 400)}", markup=False)
    console.print(
        f"run: {result.run}   {result.problems} problems in {result.groups} groups, "
        f"{result.usage.requests:,} requests, {result.usage.prompt:,} prompt tokens, "
        f"{result.usage.completion:,} completion tokens",
        markup=False,
        soft_wrap=True,
    )


def show_plan(plans: Mapping[str, Planned], *, executor: str = "local", as_json: bool) -> None:
    """Print what each method would ask at first, and who would ask."""
    if as_json:
        print_json({"methods": plans, "executor": executor})
        return
    if executor != "local":
        sys.stdout.write(f"asked by {executor}\n")
    width = max(map(len, plans), default=6)
    for name, plan in plans.items():
        sys.stdout.write(
            f"{printable(name, 60):{width}}  {plan.rollouts:,} rollouts ({plan.stored:,} stored), "
            f"{plan.tokens:,} tokens at most\n"
        )


def document(result: Benchmark) -> dict[str, Any]:
    """The JSON contract: run, methods -> metric -> value, ci95, n; paired comparisons, the primary one first."""
    import msgspec

    whole: dict[str, Any] = msgspec.to_builtins(result)
    found = whole.pop("evaluated")
    paired = ([found["primary"] | {"primary": True}] if found["primary"] else []) + found["paired"]
    methods = {
        name: {**method["metrics"], **{key: value for key, value in method.items() if key != "metrics"}}
        for name, method in found["methods"].items()
    }
    return {
        "run": whole.pop("run"),
        "methods": methods,
        "paired": paired,
        "controls": found["controls"],
        **whole,
    }


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(printable(cell, 60)) for cell in row))
    console.print(table)
    console.print()


def _metrics(methods: Mapping[str, MethodResult], console: Console) -> None:
    shown = [m for m in SHOWN if any(_has(method.metrics.get(m)) for method in methods.values())]
    if not shown:
        return
    rows = [[name, *(_estimate(method.metrics[m]) for m in shown)] for name, method in methods.items()]
    some = next(iter(methods.values())).metrics
    rows.append(["(chance)", *("-" if some[m].chance is None else f"{some[m].chance:.2f}" for m in shown)])
    _table(["method", *shown], rows, console)
    first = some[shown[0]]
    left = (
        f"; {first.dropped} problems without a right or a wrong candidate left out" if first.dropped else ""
    )
    console.print(f"means over {first.groups} groups with 95 % intervals{left}", style="dim")
    console.print()


def _levels(methods: Mapping[str, MethodResult], console: Console) -> None:
    rows = [
        [
            name,
            _level(method.right.value, method.right.ci95),
            _level(method.wrong.value, method.wrong.ci95),
            str(method.unscored),
            f"{method.rollouts:,}",
            f"{method.completion_tokens:,}",
        ]
        for name, method in methods.items()
    ]
    _table(["method", "score of right", "of wrong", "unscored", "rollouts", "tokens written"], rows, console)


def _kinds(methods: Mapping[str, MethodResult], console: Console) -> None:
    kinds = list(dict.fromkeys(kind for method in methods.values() for kind in method.by_kind))
    if len(kinds) < 2:
        return
    rows = [
        [name, *(_estimate(method.by_kind[k]) if k in method.by_kind else "-" for k in kinds)]
        for name, method in methods.items()
    ]
    _table(["AUC against", *kinds], rows, console)


def _controls(controls: Mapping[str, Control], console: Console) -> None:
    if not controls:
        return
    rows = [
        [
            name,
            control.full,
            control.exemplar,
            _level(control.lost.value, control.lost.ci95),
            "-" if control.left is None else f"{control.left:.0%}",
        ]
        for name, control in controls.items()
    ]
    _table(["control", "of", "shown", "utility lost", "left"], rows, console)


def _has(estimate: Estimate | None) -> bool:
    return estimate is not None and estimate.value is not None


def _estimate(found: Estimate) -> str:
    return "-" if found.value is None else _level(found.value, found.ci95)


def _level(value: float | None, span: tuple[float, float] | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" + (f" ({span[0]:.2f} .. {span[1]:.2f})" if span else "")


__all__ = ["document", "show", "show_plan"]
