"""A Ray cluster of several nodes on this machine, in a process of its own: `python tests/ray_cluster.py --nodes 3`.

The first line it prints is the address. Then it obeys lines on stdin, each with a line in answer, the pids concerned:
    replicas      the actors of porism that run
    kill replica  SIGKILL to one of them
    kill node     SIGKILL to all processes of a node that holds one, other than the head
    add           another node
The end of stdin ends the cluster.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

TRIES = 8


class Nodes:
    """The cluster, from outside."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.address = self._line()

    def tell(self, order: str) -> list[int]:
        """Give an order; the pids that the answer names."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        return [int(pid) for pid in self._line().split()]

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the cluster has ended"
        return line.strip()


@contextmanager
def ray_cluster(nodes: int = 3, cpus: int = 2, environment: dict[str, str] | None = None) -> Iterator[Nodes]:
    """A running cluster, ended with the block."""
    command = [sys.executable, __file__, f"--nodes={nodes}", f"--cpus={cpus}"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    ) as process:
        yield Nodes(process)
        assert process.stdin is not None
        process.stdin.close()


def children() -> dict[int, list[int]]:
    """The children of every process."""
    found: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            pid, rest = stat.read_text().split(" ", 1)
            found.setdefault(int(rest.rpartition(")")[2].split()[1]), []).append(int(pid))
    return found


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    below = children()
    found = [pid]
    for each in found:
        found += below.get(each, [])
    return found


def replicas(raylet: int) -> list[int]:
    """The actors of porism on the node of a raylet."""
    found = []
    for pid in family(raylet):
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_text().startswith("ray::Worker"):
                found.append(pid)
    return found


def kill(pids: list[int]) -> str:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return " ".join(map(str, pids))


def raylet(node: Any) -> int:
    pid: int = node.all_processes["raylet"][0].process.pid
    return pid


def ports() -> dict[str, int]:
    """Ports for a node's helpers: told of them it need not wait, and on a busy machine fail, for theirs."""
    agents = "metrics_agent_port", "dashboard_agent_listen_port", "runtime_env_agent_port"
    names = (*agents, "metrics_export_port")
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in names]
        return {name: each.getsockname()[1] for name, each in zip(names, taken, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--cpus", type=int, default=2)
    asked = parser.parse_args()
    say, sys.stdout = sys.stdout, sys.stderr
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    living: list[Any] = []

    def add() -> None:
        """A node more. Its helpers have 15 s to come up, which on a busy machine takes a few tries."""
        for attempt in range(TRIES):
            try:
                node = cluster.add_node(wait=False, num_cpus=asked.cpus, include_dashboard=False, **ports())
            except Exception:  # what Ray raises
                if cluster.head_node is None or attempt == TRIES - 1:
                    raise
            else:
                living.append(node)
                return

    def obey(order: str) -> str:
        match order:
            case "replicas":
                return " ".join(str(pid) for node in living for pid in replicas(raylet(node)))
            case "kill replica":
                return kill([pid for node in reversed(living) for pid in replicas(raylet(node))][:1])
            case "kill node":
                for node in living[1:]:
                    if replicas(raylet(node)):
                        living.remove(node)
                        return kill(family(raylet(node)))
                return ""
            case "add":
                add()
                return str(raylet(living[-1]))
        raise ValueError(order)

    for _ in range(asked.nodes):
        add()
    cluster.wait_for_nodes(timeout=300)
    print(cluster.address, file=say, flush=True)
    for line in sys.stdin:
        print(obey(line.strip()), file=say, flush=True)
    for node in reversed(living):
        pids = family(raylet(node))
        node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
        time.sleep(0.5)
        kill(pids)


if __name__ == "__main__":
    main()
