"""What a method of an actor can know of the call that it answers, and of its server.

Running calls is left to `_serving.call`.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from fray.cluster.context import job_context
from fray.cluster.types import JobId, Namespace
from fray.rpc._transport.call_chain import call_deadline

if TYPE_CHECKING:
    from fray.cluster.protocols import Cluster
    from fray.rpc.resolver import ClusterResolver, Resolver

_NO_JOB = JobId("")


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

    __slots__ = (
        "_resolver",
        "_surroundings",
        "actor",
        "caller",
        "deadline",
        "incarnation",
        "method",
        "trace",
    )

    def __init__(
        self,
        cluster: Cluster,
        resolver: Resolver | None = None,
        job_id: JobId = _NO_JOB,
        namespace: Namespace | None = None,
        *,
        actor: str = "",
        incarnation: str = "",
        method: str = "",
        caller: str = "",
        trace: str = "",
        deadline: float | None = None,
    ) -> None:
        """Make a context, as a test of an actor does that calls its methods without a server.

        Args:
            cluster: The cluster that the actor belongs to.
            resolver: Finds other actors; None: a ClusterResolver of the namespace.
            job_id: The job that hosts the actor, "" if none.
            namespace: The scope of the actors' names; None: that of the cluster.
            actor: The name of the actor.
            incarnation: The id of this incarnation of it.
            method: The name of the method.
            caller: The process that calls.
            trace: W3C traceparent of the call, "".
            deadline: When the caller stops waiting, by time.monotonic(); None: never.
        """
        within = cluster.namespace if namespace is None else namespace
        self._surroundings, self._resolver = Surroundings(cluster, job_id, within), resolver
        self._describe(actor, incarnation, method, caller, trace, deadline)

    @classmethod
    def of_call(
        cls,
        surroundings: Surroundings,
        *,
        actor: str,
        incarnation: str,
        method: str,
        caller: str,
        trace: str,
        deadline: float | None,
    ) -> ActorContext:
        """Return the context of a call that a server answers."""
        context = cls.__new__(cls)
        context._surroundings, context._resolver = surroundings, None
        context._describe(actor, incarnation, method, caller, trace, deadline)
        return context

    def _describe(
        self, actor: str, incarnation: str, method: str, caller: str, trace: str, deadline: float | None
    ) -> None:
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
        job_id = context.job_id if context else _NO_JOB
        return cls(cluster, job_id=job_id, deadline=call_deadline.get())

    @property
    def cluster(self) -> Cluster:
        """The cluster that the server registers its actors with."""
        return self._surroundings.cluster

    @property
    def resolver(self) -> Resolver:
        """Finds other actors of the namespace."""
        return self._resolver or self._surroundings.resolver

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
