"""Actors of this machine: a resolver that hosts them, too, for programs and tests without a cluster.

Hosting itself is left to `server`, and the registry to LocalCluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fray.cluster.local import LocalCluster
from fray.rpc.resolver import ClusterResolver

if TYPE_CHECKING:
    from fray.cluster.types import ActorId
    from fray.rpc.options import ConnectionSettings, RpcOptions
    from fray.rpc.server import ActorServer


class LocalResolver(ClusterResolver):
    """Finds actors on this machine: those of a LocalCluster, or without one those that `register` hosts."""

    def __init__(
        self,
        cluster: LocalCluster | None = None,
        *,
        options: RpcOptions | None = None,
        settings: ConnectionSettings | None = None,
    ) -> None:
        """Make a resolver of a cluster's actors, or one that stands alone."""
        self._local, self._alone = cluster or LocalCluster(), cluster is None
        self._server: ActorServer | None = None
        super().__init__(self._local, options=options, settings=settings)

    def register(self, name: str, actor: object, **options: Any) -> ActorId:
        """Host an object in this process; options are those of ActorServer.register."""
        from fray.rpc.server import ActorServer  # which programs that only call do not need

        with self._lock:
            if self._server is None:
                self._server = ActorServer(self._local)
                self._server.serve_background()
        return self._server.register(name, actor, **options)

    def close(self) -> None:
        """End what `register` hosts."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.shutdown()
        if self._alone:
            self._local.shutdown()

    def __enter__(self) -> LocalResolver:
        """Return the resolver, which is closed at the end."""
        return self

    def __exit__(self, *args: object) -> None:
        """Close it."""
        self.close()
