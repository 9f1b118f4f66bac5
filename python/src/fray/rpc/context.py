"""What a method of an actor can know of the call that it answers, and of its server.

Running calls is left to `_call`.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from fray.cluster.context import job_context
from fray.cluster.types import JobId, Namespace
from fray.rpc._call_chain import call_deadline

if TYPE_CHECKING:
    from fray.cluster.protocols import Cluster
    from fray.rpc.resolver import ClusterResolver, Resolver


class Surroundings:
    """What all calls of a server have in common."""

    def __init__(self, cluster: Cluster, job_id: JobId, namespace: Namespace) -> None:
        self.cluster, self.job_id, self.namespace = cluster, job_id, namespace
        self._lock = threading.Lock()
        self._resolver: ClusterResolver | None = None

    @property
    def resolver(self) -> ClusterResolver:
        """One for all, made when it is first used."""
        with self._lock:
            if self._resolver is None:
                from fray.rpc.resolver import ClusterResolver

                self._resolver = ClusterResolver(self.cluster, namespace=self.namespace)
            return self._resolver


class ActorContext:
    """Passed to methods whose first parameter is annotated with it, or called `ctx`."""

    __slots__ = ("_surroundings", "actor", "caller", "deadline", "incarnation", "method", "trace")

    def __init__(
        self,
        surroundings: Surroundings,
        *,
        actor: str = "",
        incarnation: str = "",
        method: str = "",
        caller: str = "",
        trace: str = "",
        deadline: float | None = None,
    ) -> None:
        self._surroundings = surroundings
        self.actor, self.incarnation, self.method = actor, incarnation, method
        self.caller = caller
        """The process that calls: random letters."""
        self.trace = trace
        """W3C traceparent of the call, ""."""
        self.deadline = deadline
        """When the caller stops waiting, by time.monotonic(); None: never."""

    @classmethod
    def from_environment(cls) -> ActorContext:
        """Return the context of code that answers no call, from FRAY_ variables."""
        from fray.cluster.current import current_cluster

        cluster, context = current_cluster(), job_context()
        job_id = context.job_id if context else JobId("")
        return cls(Surroundings(cluster, job_id, cluster.namespace), deadline=call_deadline.get())

    @property
    def cluster(self) -> Cluster:
        """The cluster that the server registers its actors with."""
        return self._surroundings.cluster

    @property
    def resolver(self) -> Resolver:
        """Finds other actors of the namespace."""
        return self._surroundings.resolver

    @property
    def job_id(self) -> JobId:
        """The job that the server belongs to, "" if none."""
        return self._surroundings.job_id

    @property
    def namespace(self) -> Namespace:
        """The scope of the actors' names."""
        return self._surroundings.namespace

    def remaining(self) -> float | None:
        """Return the seconds until the deadline, at least 0; None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
