"""Clients, and which of them is the current one."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from typing import Protocol, Self, runtime_checkable

from fray.cluster import Cluster, JobId, LocalCluster, NotFoundError
from fray.cluster.context import scoped_cluster
from fray.cluster.current import cluster_of
from fray.v2.types import ClusterJob, JobHandle, JobRequest


@runtime_checkable
class Client(Protocol):
    """Submits jobs."""

    def submit(self, request: JobRequest) -> JobHandle:
        """Start a job and return at once.

        Raises:
            ClusterError: see fray.cluster.Cluster.launch.
        """
        ...

    def shutdown(self, wait: bool = True) -> None:
        """End the jobs that were submitted and have not ended; with `wait`, return when they have.

        The client cannot be used afterwards.
        """
        ...


class _ClusterClient:
    """Submits jobs to a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._lock = threading.Lock()
        self._jobs: list[JobId] = []
        self._closed = False

    def submit(self, request: JobRequest) -> JobHandle:
        """Start a job and return at once, see Client.submit."""
        if self._closed:
            raise RuntimeError("the client was shut down; make another one")
        job_id = self.cluster.launch(request.for_cluster())
        with self._lock:
            self._jobs.append(job_id)
        return ClusterJob(self.cluster, job_id)

    def shutdown(self, wait: bool = True) -> None:
        """End the jobs that were submitted and have not ended, see Client.shutdown."""
        with self._lock:
            self._closed = True
            jobs, self._jobs = self._jobs, []
        for job_id in jobs:
            with contextlib.suppress(NotFoundError):  # it ended long ago
                self.cluster.terminate(job_id)
        for job_id in jobs if wait else ():
            with contextlib.suppress(NotFoundError):
                self.cluster.wait(job_id)

    def __enter__(self) -> Self:
        """Make this the current client until the end, which shuts it down."""
        self._current = set_current_client(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Shut the client down."""
        self._current.__exit__(None, None, None)
        self.shutdown()


class LocalClient(_ClusterClient):
    """Runs jobs on this machine, see fray.cluster.LocalCluster."""

    def __init__(self, max_workers: int = 4, use_processes: bool = False) -> None:
        super().__init__(LocalCluster(max_workers, use_processes))


class FrayClient(_ClusterClient):
    """Submits jobs to a fray cluster."""

    def __init__(self, spec: str) -> None:
        """Connect to fray://host:port, see fray.cluster.FrayCluster.from_spec."""
        from fray.cluster.remote import FrayCluster  # slow to import, and LocalClient needs none of it

        super().__init__(FrayCluster.from_spec(spec))


_current: ContextVar[Client | None] = ContextVar("fray_client", default=None)


def set_current_client(client: Client) -> AbstractContextManager[Client]:
    """Make a client the current one, for good or, in a `with` statement, until its end."""
    return _Setting(client, _current.set(client))


class _Setting(AbstractContextManager[Client]):
    """A client that is the current one."""

    def __init__(self, client: Client, token: Token[Client | None]) -> None:
        self._client, self._token = client, token

    def __enter__(self) -> Client:
        return self._client

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


def current_client() -> Client:
    """Return the client that this code is to use.

    It is the first of these:

    1. the one that `set_current_client` or a `with` statement made the current one;
    2. in a job of a local cluster, a client of that cluster;
    3. what FRAY_CLIENT_SPEC names, or FRAY_CLUSTER_SPEC, which fray sets for its tasks: "local" or
       "fray://host:port";
    4. a LocalClient.

    Raises:
        ValueError: the variable has another value.
    """
    client = _current.get()
    if client is not None:
        return client
    cluster = scoped_cluster()
    if cluster is not None:
        return _ClusterClient(cluster)
    return _client_of(os.environ.get("FRAY_CLIENT_SPEC") or os.environ.get("FRAY_CLUSTER_SPEC", ""))


@functools.cache
def _client_of(spec: str) -> Client:
    if spec in ("", "local"):
        return LocalClient()
    if spec.startswith("fray:"):
        return FrayClient(spec)
    return _ClusterClient(cluster_of(spec))
