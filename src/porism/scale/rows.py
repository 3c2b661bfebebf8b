"""Rows through a processor of Ray Data, as they come out; without its talk on the terminal."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

TURNERS = 2  # processes at once that turn rows into what a stage takes, or back


def beside() -> dict[str, Any]:
    """How the tasks run that only turn rows: a few, which do not wait for the CPUs that replicas hold."""
    from ray.data import TaskPoolStrategy

    few = {"num_cpus": 0.01, "compute": TaskPoolStrategy(size=TURNERS)}
    return {"preprocess_map_kwargs": few, "postprocess_map_kwargs": few}


def through(processor: Any, rows: list[dict[str, Any]], block: int) -> Iterator[dict[str, Any]]:
    """The rows that come out, as they come."""
    import ray.data

    data = processor(ray.data.from_items(rows, override_num_blocks=-(-len(rows) // block)))
    for table in data.iter_batches(batch_size=None, prefetch_batches=0, batch_format="pyarrow"):
        yield from table.to_pylist()


def quiet() -> None:
    """Ray Data's talk is for its log file: on the terminal stand rankings and the display."""
    import ray.data

    logger = logging.getLogger("ray.data")
    for handler in [*logger.handlers]:
        if type(handler).__name__ == "PlainRayHandler":
            logger.removeHandler(handler)
    ray.data.DataContext.get_current().enable_progress_bars = False


__all__ = ["beside", "quiet", "through"]
