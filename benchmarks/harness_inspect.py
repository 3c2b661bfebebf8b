"""inspect-ai's side of benchmarks/harness.py, run by the Python of its own environment.

python harness_inspect.py QUESTIONS URL AT_ONCE FOLDER     one sample a line of QUESTIONS; the log goes to FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import pattern
from inspect_ai.solver import generate


def main(questions: str, url: str, at_once: str, folder: str) -> None:
    """Ask, score and log; exit status 1 where the evaluation did not succeed."""
    rows = map(json.loads, Path(questions).read_text("utf-8").splitlines())
    task = Task(
        dataset=MemoryDataset([Sample(input=row["question"], target=row["answer"]) for row in rows]),
        solver=generate(),
        scorer=pattern(r"\\boxed\{(\d+)\}"),
    )
    (log,) = eval(
        task,
        model="openai-api/local/test-model",
        model_base_url=f"{url}/v1",
        model_args={"api_key": "none"},
        max_connections=int(at_once),
        max_samples=int(at_once),
        temperature=1.0,
        max_tokens=1024,
        display="none",
        log_dir=folder,
        log_realtime=False,
        log_model_api=False,
        log_header_only=True,
        score_display=False,
        ctl_server=False,
    )
    assert log.results is not None
    print(log.status, log.results.completed_samples)
    sys.exit(log.status != "success")


if __name__ == "__main__":
    main(*sys.argv[1:])
