"""What the report says of the run as a whole: its summary in words, its settings, sessions, tokens and failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from porism.report.load import Folder, Page

TOLD = 10  # warnings of a session that are shown


def facts(folder: Folder, pages: Sequence[Page]) -> dict[str, Any]:
    """The values of the page's frame, by the names its template uses."""
    models = folder.settings.get("models")
    sessions = folder.sessions
    usage = folder.store.usage
    notices = list(folder.notices)
    if folder.methods and not folder.problems:
        notices.append("This run holds no problem.")
    if not folder.store.rows:
        notices.append("Nothing has been answered yet.")
    if sessions and sessions[-1].stopped:
        notices.append(f"The last session stopped before its plan was done: {sessions[-1].stopped}")
    elif sessions and sessions[-1].seconds is None:
        notices.append("The last session has not ended: it still runs, or it was killed.")
    told = list(dict.fromkeys(sessions[-1].warnings)) if sessions else []
    notices += told[:TOLD]
    if len(told) > TOLD:
        notices.append(f"{len(told) - TOLD} more warnings of the last session are in run.json.")
    return {
        "name": folder.name,
        "path": str(folder.path),
        "models": list(models) if isinstance(models, dict) and models else ["model unknown"],
        "rollouts": len(folder.store.rows),
        "usage": usage,
        "cost": folder.cost,
        "started": sessions[-1].started[:10] if sessions else "",
        "notices": notices,
        "summary": summary(pages),
        "facts": _settings(folder, pages),
        "sessions": sessions,
        "failures": folder.failures,
        "missing": folder.missing,
        "templates": [
            (title, text)
            for title, text in (
                ("Prompt with an example", folder.method.template),
                ("Prompt without an example", folder.method.solve_template),
            )
        ]
        if folder.method
        else [],
    }


def summary(pages: Sequence[Page]) -> str:
    """How many problems are decided, in one sentence."""
    rankings = [page.ranking for page in pages]
    decided = [r for r in rankings if r.leaders]
    ahead = sum(len(r.leaders) == 1 and len(r.ranking) > 1 for r in decided)
    tied = len(decided) - ahead
    parts = [f"in {ahead:,} one candidate is ahead" if ahead else "in none is one candidate ahead"]
    if tied:
        parts.append(f"in {tied:,} the first cannot be told apart from the next")
    if open_ := len(rankings) - len(decided):
        parts.append(f"in {open_:,} nothing is decided yet")
    joined = ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]
    return f"Of {len(rankings):,} problems, {joined}." if rankings else "There is no problem to rank."


def _settings(folder: Folder, pages: Sequence[Page]) -> list[tuple[str, str]]:
    settings, usage, method = folder.settings, folder.store.usage, folder.method
    models = settings.get("models")
    found: list[tuple[str, str]] = []
    for name, identity in models.items() if isinstance(models, dict) else ():
        found.append(("Solver", name if identity == name else f"{name} ({identity})"))
    if method is not None:
        sampling = msgspec.to_builtins(method.sampling)
        names = [m.name for m in folder.methods]
        found += [
            ("Method" if len(names) == 1 else "Methods", ", ".join(names)),
            ("Rollouts", f"{method.rollouts} for every candidate and neighbor"),
            ("Sampling", ", ".join(f"{key} {value}" for key, value in sampling.items())),
            ("Row without example", "asked" if method.no_example else "left out"),
            ("Own attempts at the question", str(method.target_samples)),
            ("Seeds", "of every rollout its own, drawn from its prompt and its number"),
        ]
    planned, answered = sum(p.planned for p in pages), sum(p.answered for p in pages)
    if planned:
        found.append(("Progress", f"{answered:,} of {planned:,} rollouts answered"))
    found += [
        ("Requests", f"{usage.requests:,}"),
        ("Prompt tokens", f"{usage.prompt:,}, {usage.cached:,} of them from cache"),
        ("Completion tokens", f"{usage.completion:,}{'' if usage.counted else ' (estimated in part)'}"),
        ("Failed attempts", f"{folder.store.failures:,}"),
    ]
    labels = {"porism": "porism", "python": "Python", "verifier": "Verifier", "data_hash": "Data hash"}
    for key, label in labels.items():
        if key in settings:
            found.append((label, str(settings[key])))
    return [*found, ("Folder", str(folder.path))]


__all__ = ["facts", "summary"]
