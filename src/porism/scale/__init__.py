"""Replicas of a model on a Ray cluster: an actor for each, and to the engine one model that several servers serve.

Ray does what it is good at, which is placing processes on machines and telling when one is gone. What is asked, of
which replica, and what happens after a failure stays with the engine, its router and the store, as without Ray: so
plans, rounds, budgets, scores and resuming are the same, and only the driver writes.
"""

from porism.scale.batch import BatchModel
from porism.scale.cluster import Cluster
from porism.scale.ray_data import open_batches
from porism.scale.replicas import Replicas, open_replicas

__all__ = ["BatchModel", "Cluster", "Replicas", "open_batches", "open_replicas"]
