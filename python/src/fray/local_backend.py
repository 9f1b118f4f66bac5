"""marin-fray's `fray.local_backend`: jobs and actors in this process."""

from __future__ import annotations

from fray._marin.backend import Backend
from fray._marin.handle import Handle as LocalActorHandle
from fray._marin.handle import Method as LocalActorMethod
from fray._marin.job import Job as LocalJobHandle
from fray.cluster import Cluster
from fray.cluster.current import cluster_of

__all__ = ["LocalActorHandle", "LocalActorMethod", "LocalClient", "LocalJobHandle"]


class LocalClient(Backend):
    """Runs jobs and actors in threads of this process, on the cluster that all such clients of it share."""

    def __init__(self, max_threads: int | None = None, *, cluster: Cluster | None = None) -> None:
        """Use a LocalCluster, None: the process's; `max_threads` has no effect: each job has a thread."""
        del max_threads
        super().__init__(cluster or cluster_of(""))
