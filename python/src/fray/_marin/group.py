"""Actors that were created together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fray._marin.handle import Handle
from fray.actor import ActorHandle
from fray.cluster import Cluster, JobId, LocalCluster, NotFoundError
from fray.cluster.current import current_cluster
from fray.v2._hosted import HostedActor
from fray.v2._local import actors_of
from fray.v2.actor import ActorCreationError, PendingActor, wait_ready


class Group:
    """Actors of a client, see fray.actor.ActorGroup. It may be pickled: all its actors are new there then."""

    def __init__(self, name: str, actors: Sequence[PendingActor]) -> None:
        """Wait for actors that are being created."""
        self._name, self._actors = name, tuple(actors)
        self._returned: set[str] = set()

    @property
    def ready_count(self) -> int:
        """How many can be called."""
        return sum(map(_is_ready, self._actors))

    def wait_ready(self, count: int | None = None, timeout: float | None = 300.0) -> list[ActorHandle]:
        """Block until `count` of them can be called, and return the first that can; others are discovered."""
        wanted = len(self._actors) if count is None else count
        found = wait_ready(self._actors, wanted, timeout)[:wanted]
        self._returned.update(handle.name for handle in found)
        return [Handle(handle) for handle in found]

    def discover_new(self) -> list[ActorHandle]:
        """Return the handles of those that can be called and were not returned before."""
        found = [actor for actor in self._actors if actor.name not in self._returned and _is_ready(actor)]
        self._returned.update(actor.name for actor in found)
        return [Handle(actor.handle) for actor in found]

    def is_done(self) -> bool:
        """Return whether all of them have ended."""
        return all(map(_has_ended, self._actors))

    def shutdown(self) -> None:
        """End all of them."""
        for actor in self._actors:
            try:
                actor.job.terminate()
            except NotFoundError:  # it ended long ago
                continue

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self._name, tuple((actor.name, actor.job.job_id) for actor in self._actors))

    def __repr__(self) -> str:
        return f"<{len(self._actors)} actors {self._name}>"


def _is_ready(actor: PendingActor) -> bool:
    try:
        return actor.poll(0)
    except (ActorCreationError, NotFoundError):
        return False


def _has_ended(actor: PendingActor) -> bool:
    try:
        return actor.job.status().ended
    except NotFoundError:
        return True


def _arrived(name: str, actors: Sequence[tuple[str, str]]) -> Group:
    cluster = current_cluster()
    return Group(name, [_found(cluster, actor, JobId(job_id)) for actor, job_id in actors])


def _found(cluster: Cluster, name: str, job_id: JobId) -> PendingActor:
    if isinstance(cluster, LocalCluster):
        actor = actors_of(cluster).find(name)
        if actor is not None and actor.job_id == job_id:
            return actor
    return HostedActor(cluster, job_id, name, created=False)
