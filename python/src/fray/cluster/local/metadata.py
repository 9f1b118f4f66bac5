"""The registry of actors that is embedded in a LocalCluster."""

from __future__ import annotations

import difflib
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping

from fray.cluster.errors import ActorNotFoundError
from fray.cluster.local.job import Job
from fray.cluster.types import ActorChanges, ActorEndpoint, ActorId, JobId, Namespace

_WAKE = 0.5  # seconds


class Registry:
    """Endpoints of all namespaces, in the order of their registration.

    `changed` is the lock of the cluster that it belongs to, held by whoever calls `add` and `drop`.
    """

    def __init__(self, changed: threading.Condition) -> None:
        self.changed = changed
        self._endpoints: dict[ActorId, ActorEndpoint] = {}
        self._numbers = itertools.count(1)

    def add(
        self, name: str, address: str, job_id: JobId, namespace: Namespace, metadata: Mapping[str, str]
    ) -> ActorId:
        """Register an endpoint."""
        actor_id = ActorId(f"{job_id}/{name}-{next(self._numbers)}")
        self._endpoints[actor_id] = ActorEndpoint(actor_id, name, address, job_id, namespace, dict(metadata))
        self.changed.notify_all()
        return actor_id

    def drop(self, actor_ids: Iterable[ActorId]) -> None:
        """Forget endpoints. Those that are not known change nothing."""
        for actor_id in actor_ids:
            self._endpoints.pop(actor_id, None)
        self.changed.notify_all()

    def of_job(self, job_id: JobId) -> list[ActorId]:
        """Return the endpoints of a job."""
        return [e.actor_id for e in self._endpoints.values() if e.job_id == job_id]

    def all(self, namespace: Namespace, prefix: str = "") -> list[ActorEndpoint]:
        """Return the endpoints whose names begin so, by name, then the oldest first."""
        with self.changed:
            found = [
                e for e in self._endpoints.values() if e.namespace == namespace and e.name.startswith(prefix)
            ]
        return sorted(found, key=lambda e: e.name)

    def named(self, namespace: Namespace, name: str) -> list[ActorEndpoint]:
        """Return the endpoints of exactly this name, the oldest first."""
        return [e for e in self.all(namespace, name) if e.name == name]

    def newest(self, namespace: Namespace, name: str) -> ActorEndpoint:
        """Return the newest endpoint of exactly this name."""
        found = self.named(namespace, name)
        if found:
            return found[-1]
        near = difflib.get_close_matches(name, {e.name for e in self.all(namespace)})
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ActorNotFoundError(f'no actor "{name}" is registered in namespace {namespace}{hint}')

    def watch(self, namespace: Namespace, name: str, prefix: str) -> Iterator[ActorChanges]:
        """Yield what is there, then what changes."""
        known: dict[ActorId, ActorEndpoint] | None = None
        while True:
            now = self._other_than(known, namespace, name, prefix)
            before = known or {}
            yield ActorChanges(
                reset=known is None,
                added=tuple(e for actor_id, e in now.items() if before.get(actor_id) != e),
                removed=tuple(actor_id for actor_id in before if actor_id not in now),
            )
            known = now

    def _other_than(
        self, known: dict[ActorId, ActorEndpoint] | None, namespace: Namespace, name: str, prefix: str
    ) -> dict[ActorId, ActorEndpoint]:
        """Return what is there as soon as it is not what is known."""
        while True:
            # A thread that is stopped meanwhile notices when it lets go of the lock.
            with self.changed:
                self.changed.wait_for(lambda: self._wanted(namespace, name, prefix) != known, timeout=_WAKE)
                now = self._wanted(namespace, name, prefix)
            if now != known:
                return now

    def _wanted(self, namespace: Namespace, name: str, prefix: str) -> dict[ActorId, ActorEndpoint]:
        found = self.named(namespace, name) if name else self.all(namespace, prefix)
        return {e.actor_id: e for e in found}


class LocalMetadata:
    """The registry as seen by one namespace, see fray.cluster.Metadata."""

    def __init__(
        self, registry: Registry, namespace: Namespace, job_that_runs: Callable[[JobId], Job]
    ) -> None:
        self._registry, self._namespace, self._job_that_runs = registry, namespace, job_that_runs

    def register(
        self, name: str, address: str, job_id: JobId, metadata: Mapping[str, str] | None = None
    ) -> ActorId:
        """Make an endpoint known. Programs outside of jobs may register theirs, with "" as job."""
        with self._registry.changed:
            namespace = self._job_that_runs(job_id).namespace if job_id else self._namespace
            return self._registry.add(name, address, job_id, namespace, metadata or {})

    def unregister(self, actor_id: ActorId) -> None:
        """Forget an endpoint."""
        with self._registry.changed:
            self._registry.drop([actor_id])

    def lookup(self, name: str) -> ActorEndpoint:
        """Return the newest endpoint of a name."""
        return self._registry.newest(self._namespace, name)

    def lookup_all(self, name: str) -> list[ActorEndpoint]:
        """Return all endpoints of a name."""
        return self._registry.named(self._namespace, name)

    def list_actors(self, prefix: str = "") -> list[ActorEndpoint]:
        """Return the endpoints whose names begin so."""
        return self._registry.all(self._namespace, prefix)

    def watch(self, name: str = "", prefix: str = "") -> Iterator[ActorChanges]:
        """Yield what is there, then what changes."""
        return self._registry.watch(self._namespace, name, prefix)
