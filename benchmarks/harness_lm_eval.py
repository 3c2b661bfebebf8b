"""lm-eval's side of benchmarks/harness.py, run by the Python of its own environment.

python harness_lm_eval.py QUESTIONS URL AT_ONCE FOLDER     one document a line of QUESTIONS; samples go to FOLDER
"""

from __future__ import annotations

import sys

from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager


def main(questions: str, url: str, at_once: str, folder: str) -> None:
    """Ask, score and save results and samples as the command line does."""
    task = {
        "task": "benchmark",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": questions}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"do_sample": True, "temperature": 1.0, "max_gen_toks": 1024, "until": []},
        "filter_list": [
            {
                "name": "boxed",
                "filter": [
                    {"function": "regex", "regex_pattern": r"\\boxed\{(\d+)\}"},
                    {"function": "take_first"},
                ],
            }
        ],
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    tracker = EvaluationTracker(output_path=folder)
    results = simple_evaluate(
        model="local-chat-completions",
        model_args={
            "model": "test-model",
            "base_url": f"{url}/v1/chat/completions",
            "num_concurrent": int(at_once),
        },
        tasks=[task],
        task_manager=TaskManager(include_defaults=False),
        apply_chat_template=True,
        bootstrap_iters=0,
        log_samples=True,
        evaluation_tracker=tracker,
    )
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for name in results["configs"]:
        tracker.save_results_samples(task_name=name, samples=samples[name])
    print(len(samples["benchmark"]), results["results"]["benchmark"]["exact_match,boxed"])


if __name__ == "__main__":
    main(*sys.argv[1:])
