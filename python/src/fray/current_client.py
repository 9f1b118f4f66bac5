"""marin-fray's `fray.current_client`: which client this code is to use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from fray import v2
from fray._marin.backend import Backend
from fray.client import Client
from fray.cluster import Cluster, LocalCluster
from fray.local_backend import LocalClient

_current: ContextVar[Client | None] = ContextVar("fray_marin_client", default=None)


def current_client() -> Client:
    """Return the client that `set_current_client` has set, or one over what fray.v2.current_client returns.

    The latter is what FRAY_CLIENT_SPEC names: "local", "fray://host:port" and so on; in a job, its cluster.

    Raises:
        ValueError: the variable has another value.
    """
    client = _current.get()
    if client is not None:
        return client
    cluster: Cluster | None = getattr(v2.current_client(), "cluster", None)
    if cluster is None:
        raise TypeError(f"{v2.current_client()!r} is no client of a cluster")
    return LocalClient(cluster=cluster) if isinstance(cluster, LocalCluster) else Backend(cluster)


@contextlib.contextmanager
def set_current_client(client: Client) -> Iterator[Client]:
    """Make a client the current one, within a `with` statement."""
    token = _current.set(client)
    try:
        yield client
    finally:
        _current.reset(token)
