"""Creates the actors of one client, where its cluster wants them: see _local and _hosted."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from fray.cluster import ActorNotFoundError, Cluster, ClusterError, JobId, LocalCluster, NotFoundError
from fray.rpc._calling.future_arguments import futures_among, resolved
from fray.rpc.handle import ActorHandle
from fray.v2 import _hosted
from fray.v2._local import LocalActors, actors_of
from fray.v2.actor import (
    ActorCreationError,
    ActorGroup,
    ActorSpec,
    ActorStatus,
    PendingActor,
    check_spec,
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

    def create(self, spec: ActorSpec) -> ActorHandle[Any]:
        """Create an actor and wait for it, see Client.create_actor."""
        if spec.options.get_if_exists and self._cluster.metadata.lookup_all(spec.name):
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

    def create_group(self, spec: ActorSpec, count: int) -> ActorGroup[Any]:
        """Begin to create actors, all or none, see Client.create_actor_group."""
        if count < 1:
            raise ValueError(f"count is {count}; a group has at least one actor")
        if spec.options.get_if_exists:
            raise ValueError("get_if_exists is for single actors; a group is always created")
        check_spec(spec)
        actors = self.create_all(replace(spec, name=f"{spec.name}_{i}", pool=spec.name) for i in range(count))
        return ActorGroup(spec.name, actors)

    def create_all(self, specs: Iterable[ActorSpec]) -> list[PendingActor]:
        """Begin to create actors, all or none. Raises as `create_group` does."""
        actors: list[PendingActor] = []
        try:
            for spec in specs:
                actor, _ = self._begin(spec)
                actors.append(actor)
        except Exception:
            _end(actors)
            raise
        return actors

    def _begin(self, spec: ActorSpec) -> tuple[PendingActor, bool]:
        check_spec(spec)
        spec = _awaited(spec)
        actor: PendingActor
        actor, created = self._local.create(spec) if self._local else _hosted.create(self._cluster, spec)
        if created and not spec.options.detached:
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

    def kill(self, name: str, no_restart: bool) -> None:
        """End an actor without grace, see Client.kill."""
        actor = self._local.find(name) if self._local else None
        if actor is None:
            _hosted.kill(self._cluster, name, no_restart)
        elif no_restart:
            actor.kill()
        else:
            actor.fail("it was killed")

    def get(self, name: str) -> ActorHandle[Any]:
        """Return a handle of an actor that there is, see Client.get_actor."""
        there = self._cluster.metadata.lookup_all(name)
        if not there and self.status(name) is ActorStatus.FAILED:
            raise ActorNotFoundError(f'actor "{name}" has failed for good; create another one')
        return handle_of(self._cluster, name)

    def status(self, name: str) -> ActorStatus:
        """Return where an actor is in its life, see Client.actor_status."""
        known = self._local.status(name) if self._local else None
        return known or _hosted.status(self._cluster, name)

    def fail(self, name: str) -> None:
        """Have an actor of this process fail, see LocalClient.fail_actor."""
        assert self._local is not None
        self._local.fail(name)

    def terminate(self) -> list[PendingActor]:
        """Have what was created and is not detached end, and return it."""
        with self._lock:
            created, self._created = self._created, []
        _end(created)
        return created

    def await_end(self, actors: Sequence[PendingActor]) -> None:
        """Wait until these have ended."""
        for actor in actors:
            if self._local is None:  # those of this process have
                with contextlib.suppress(NotFoundError):
                    self._cluster.wait(JobId(actor.job.job_id))


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
