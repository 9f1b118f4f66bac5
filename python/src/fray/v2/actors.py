"""Creates the actors of one client, where its cluster wants them: see _local and _hosted."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace

from fray.cluster import Cluster, ClusterError, JobId, LocalCluster, NotFoundError
from fray.rpc._future_arguments import futures_among, resolved
from fray.rpc.handle import ActorHandle
from fray.v2 import _hosted
from fray.v2._local import LocalActors, actors_of
from fray.v2.actor import (
    ActorCreationError,
    ActorGroup,
    ActorSpec,
    ActorStatus,
    Lifetime,
    PendingActor,
    handle_of,
    wait_ready,
)


class Actors:
    """The actors of a client."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._local: LocalActors | None = actors_of(cluster) if isinstance(cluster, LocalCluster) else None
        self._lock = threading.Lock()
        self._created: list[PendingActor] = []

    def create(self, spec: ActorSpec) -> ActorHandle:
        """Create an actor and wait for it, see Client.create_actor."""
        if spec.get_if_exists and self._cluster.metadata.lookup_all(spec.name):
            return handle_of(self._cluster, spec.name)
        actor, created = self._begin(spec)
        try:
            wait_ready([actor], 1)
        except ActorCreationError:
            if created and self._local is None:
                with contextlib.suppress(ClusterError):  # what matters is why there is no actor
                    _hosted.await_end(self._cluster, spec.name, JobId(actor.job.job_id))
            raise
        return actor.handle

    def create_group(self, spec: ActorSpec, count: int) -> ActorGroup:
        """Begin to create actors, all or none, see Client.create_actor_group."""
        if count < 1:
            raise ValueError(f"count is {count}; a group has at least one actor")
        actors: list[PendingActor] = []
        try:
            for i in range(count):
                actor, _ = self._begin(replace(spec, name=f"{spec.name}_{i}", pool=spec.name))
                actors.append(actor)
        except Exception:
            _end(actors)
            raise
        return ActorGroup(spec.name, actors)

    def _begin(self, spec: ActorSpec) -> tuple[PendingActor, bool]:
        spec = _awaited(spec)
        actor: PendingActor
        actor, created = self._local.create(spec) if self._local else _hosted.create(self._cluster, spec)
        if created and spec.lifetime is Lifetime.NON_DETACHED:
            with self._lock:
                self._created.append(actor)
        return actor, created

    def delete(self, name: str) -> None:
        """End an actor, see Client.delete_actor."""
        if self._local is None:
            _hosted.delete(self._cluster, name)
            return
        actor = self._local.find(name)
        if actor is not None:
            actor.terminate()
            return
        _hosted.delete(self._cluster, name)

    def status(self, name: str) -> ActorStatus:
        """Return where an actor is in its life, see Client.actor_status."""
        known = self._local.status(name) if self._local else None
        return known or _hosted.status(self._cluster, name)

    def fail(self, name: str) -> None:
        """Have an actor of this process fail, see LocalClient.fail_actor."""
        assert self._local is not None
        self._local.fail(name)

    def shutdown(self) -> None:
        """End what was created and is not detached."""
        with self._lock:
            created, self._created = self._created, []
        _end(created)


def _awaited(spec: ActorSpec) -> ActorSpec:
    """Wait for futures among the constructor's arguments, and return the spec with their results instead."""
    args = tuple(spec.args)
    if not futures_among(args, spec.kwargs):
        return spec
    args, kwargs = resolved(args, spec.kwargs)
    return replace(spec, args=args, kwargs=kwargs)


def _end(actors: list[PendingActor]) -> None:
    for actor in actors:
        with contextlib.suppress(NotFoundError):  # it ended long ago
            actor.job.terminate()
