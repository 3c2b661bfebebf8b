"""The only module that speaks to Ray: a connection, actors, and an answer or the news that an actor is gone.

Actors belong to this process: when it ends, however it ends, Ray ends them. Ray's own talk is kept off the terminal,
where rankings and the display stand; its logs lie where they always do, in the session folder of each machine.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from porism.config import Placement
from porism.errors import ConfigError, MissingExtra, ModelError
from porism.scale.worker import Setup, Worker

REACH = 5.0  # seconds for a first sign of the cluster
GOODBYE = 20.0  # seconds an actor has to end its engine


class Gone(Exception):
    """An actor is no more: its process, or its machine. The text is Ray's reason, in short."""


class Cluster:
    """The Ray cluster at the address in `placement`, connected while entered. note is told what happens on it.

    Raises MissingExtra without Ray, and ConfigError where there is no cluster, no way in, or another version.
    """

    def __init__(self, placement: Placement, note: Callable[[str], None]) -> None:
        self.placement, self.note = placement, note
        self._ours = False

    async def __aenter__(self) -> Cluster:
        extra = "ray-data" if self.placement.batches else "ray"
        needs = ("ray", "pandas", "pyarrow") if self.placement.batches else ("ray",)
        if not all(map(find_spec, needs)):
            raise MissingExtra(f"--executor {extra}", extra)
        self._ours = await asyncio.to_thread(_connect, self.placement.address)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._ours:
            await asyncio.to_thread(_ray().shutdown)

    @property
    def hosts(self) -> list[str]:
        """Where text leaves to: nowhere where this machine is the whole cluster."""
        machines = sorted({node["NodeManagerAddress"] for node in _ray().nodes() if node["Alive"]})
        return [f"the Ray cluster of {', '.join(machines)}"] if len(machines) > 1 else []

    def check(self, setup: Setup) -> None:
        """ConfigError where no machine of the cluster could ever hold a replica."""
        nodes = [node["Resources"] for node in _ray().nodes() if node["Alive"]]
        for what, wanted in (("GPU", setup.gpus), ("CPU", setup.cpus)):
            most = max((node.get(what, 0) for node in nodes), default=0)
            if wanted > most:
                has = f"the largest has {most:g}" if most else "none has any"
                raise ConfigError(
                    f"{setup.spec}: a replica needs {_count(wanted, what)} on one machine, and of the "
                    f"{_count(len(nodes), 'machine')} of the Ray cluster {has}: see `ray status`, or change "
                    f"--{what.lower()}s"
                )

    def actor(self, setup: Setup, number: int) -> Any:
        """A new actor, waiting for its place if need be. A failed one is not Ray's to restart."""
        ray = _ray()
        return (
            ray.remote(Worker)
            .options(
                num_cpus=setup.cpus,
                num_gpus=setup.gpus,
                max_restarts=0,
                max_task_retries=0,
                max_concurrency=(setup.concurrency or 1000) + 16,
                scheduling_strategy="SPREAD",
            )
            .remote(setup, number)
        )

    async def ask(self, method: Any, *arguments: object, limit: float | None = None) -> Any:
        """What the actor's method answers. Raises Gone, TimeoutError after `limit` seconds, ModelError for faults."""
        ray = _ray()
        try:
            asked = method.remote(*arguments)
            try:
                async with asyncio.timeout(limit):
                    return await asked
            except asyncio.CancelledError:
                with suppress(ray.exceptions.RayError):
                    ray.cancel(asked)
                raise
        except ray.exceptions.RayTaskError as error:
            raise ModelError(f"a replica failed: {error.cause!r}", fatal=True) from None
        except ray.exceptions.RayError as error:
            if "No module named 'porism" in str(error):
                raise ConfigError(
                    "a machine of the Ray cluster has no porism: install it in the environment that `ray start` runs in"
                ) from None
            raise Gone(_reason(error)) from None

    def kill(self, actor: Any) -> None:
        """End an actor at once, if it is still there."""
        _ray().kill(actor)

    async def dismiss(self, actor: Any) -> None:
        """Let an actor end its engine, then end it."""
        with suppress(Gone, ModelError, ConfigError, TimeoutError):
            await self.ask(actor.stop, limit=GOODBYE)
        self.kill(actor)

    @staticmethod
    def share(setup: Setup) -> str:
        """What a replica takes of the cluster, in words."""
        parts = [
            _count(number, what) for number, what in ((setup.gpus, "GPU"), (setup.cpus, "CPU")) if number
        ]
        return " and ".join(parts) or "a process"


def _ray() -> Any:
    if "ray" not in sys.modules:
        # What its processes say is for their logs; it would stand in the middle of ours, on stdout even.
        os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    import ray

    return ray


def _connect(address: str) -> bool:
    """Connect to the cluster; whether that was needed. Takes seconds. Raises ConfigError."""
    ray = _ray()
    if ray.is_initialized():
        return False
    where = os.environ.get("RAY_ADDRESS") or address if address == "auto" else address
    if where not in ("auto", "local"):
        _reach(where)
    how = {"include_dashboard": False} if where == "local" else {}
    try:
        ray.init(address=where, log_to_driver=False, logging_level=logging.CRITICAL, **how)
    except ray.exceptions.AuthenticationError as error:
        raise ConfigError(f"the Ray cluster at {where} wants another token: {error}") from None
    except (ConnectionError, RuntimeError, ValueError) as error:
        said = " ".join(str(error).split())
        if said.startswith("Version mismatch"):
            raise ConfigError(
                f"this machine and the Ray cluster at {where} differ in version. {said}. Run porism in the environment "
                "that `ray start` ran in"
            ) from None
        if where == "auto":
            raise ConfigError(
                "no Ray cluster runs on this machine: start one with `ray start --head`, join one with `ray start "
                "--address HOST:6379`, or give --address local to use this machine alone"
            ) from None
        raise ConfigError(
            f"no way to the Ray cluster at {where}: {said}. Run porism on a machine of the cluster, with the cluster's "
            "token (RAY_AUTH_MODE, RAY_AUTH_TOKEN)"
        ) from None
    return True


def _reach(address: str) -> None:
    """ConfigError where nothing listens: Ray itself would try for minutes."""
    if "://" in address:
        raise ConfigError(
            f"--address {address}: porism runs on a machine of the cluster; give auto there, or HOST:PORT of its head"
        )
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdigit()):
        raise ConfigError(f"--address {address}: write auto, local or HOST:PORT, as in 10.0.0.1:6379")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH).close()
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"no Ray cluster answers at {address}: {why}. `ray start --head` on that machine says its address"
        ) from None


def _reason(error: Exception) -> str:
    """The one line of Ray's explanation that says why."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = next((line for line in lines if "because" in line), lines[0] if lines else type(error).__name__)
    return told.partition(". ")[0][:200].removeprefix("The actor is dead because ").rstrip(".")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


__all__ = ["Cluster", "Gone"]
