"""The registry of actors that is embedded in a LocalCluster."""

from __future__ import annotations

import base64
import difflib
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from fray.cluster.context import job_context
from fray.cluster.errors import ActorNotFoundError, AlreadyExistsError, RefusedError
from fray.cluster.local.job import Job
from fray.cluster.types import ActorChanges, ActorEndpoint, ActorId, JobId, JobStatus, Namespace

_PREFIX = "actor-"
_WAKE = 0.5  # seconds


@dataclass(frozen=True)
class _Entry:
    endpoint: ActorEndpoint
    unique: bool

    def replaces(self, other: _Entry) -> bool:
        """Whether this is the actor that another registration is of, as a fray cluster says it."""
        mine, its = self.endpoint, other.endpoint
        same = mine.job_id == its.job_id and mine.task == its.task
        return mine.actor_id == its.actor_id or (same and (mine.address == its.address or self.unique))


class Registry:
    """Endpoints of all namespaces, in the order of their registration.

    `changed` is the lock of the cluster that it belongs to, held by whoever calls `add` and `drop`.
    """

    def __init__(self, changed: threading.Condition) -> None:
        self.changed = changed
        self._entries: dict[ActorId, _Entry] = {}
        self._expiries: dict[ActorId, threading.Timer] = {}

    def add(self, entry: _Entry, ttl: float | None) -> None:
        """Register an endpoint, or change the one that has its id."""
        new = entry.endpoint
        same = [
            other
            for other in self._entries.values()
            if other.endpoint.name == new.name and other.endpoint.namespace == new.namespace
        ]
        gone = [other.endpoint.actor_id for other in same if entry.replaces(other)]
        for other in same:
            if not entry.replaces(other) and (entry.unique or other.unique):
                raise AlreadyExistsError(
                    f'actor "{new.name}" of namespace {new.namespace} is at {other.endpoint.address}; '
                    "unregister that, or choose another name"
                )
        self.drop(actor_id for actor_id in gone if actor_id != new.actor_id)
        self._renew(new.actor_id, ttl)
        self._entries[new.actor_id] = entry
        self.changed.notify_all()

    def _renew(self, actor_id: ActorId, ttl: float | None) -> None:
        """Count an endpoint's time from now on."""
        expiry = self._expiries.pop(actor_id, None)
        if expiry is not None:
            expiry.cancel()
        if ttl is not None:
            expiry = self._expiries[actor_id] = threading.Timer(ttl, self._expire, [actor_id])
            expiry.daemon = True
            expiry.start()

    def _expire(self, actor_id: ActorId) -> None:
        with self.changed:
            # Unless it was renewed while this waited for the lock.
            if self._expiries.get(actor_id) is threading.current_thread():
                self.drop([actor_id])

    def drop(self, actor_ids: Iterable[ActorId]) -> None:
        """Forget endpoints. Those that are not known change nothing."""
        for actor_id in actor_ids:
            self._entries.pop(actor_id, None)
            self._renew(actor_id, None)
        self.changed.notify_all()

    def of_job(self, job_id: JobId) -> list[ActorId]:
        """Return the endpoints of a job."""
        return [i for i, entry in self._entries.items() if entry.endpoint.job_id == job_id]

    def all(self, namespace: Namespace, prefix: str = "") -> list[ActorEndpoint]:
        """Return the endpoints whose names begin so, by name, then the oldest first."""
        with self.changed:
            endpoints = [entry.endpoint for entry in self._entries.values()]
        found = [e for e in endpoints if e.namespace == namespace and e.name.startswith(prefix)]
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

    def watch(
        self, namespace: Namespace, name: str, prefix: str, over: Callable[[], bool]
    ) -> Iterator[ActorChanges]:
        """Yield what is there, then what changes, until `over`."""
        known: dict[ActorId, ActorEndpoint] | None = None
        while (now := self._other_than(known, (namespace, name, prefix), over)) != known:
            before = known or {}
            yield ActorChanges(
                reset=known is None,
                added=tuple(e for actor_id, e in now.items() if before.get(actor_id) != e),
                removed=tuple(actor_id for actor_id in before if actor_id not in now),
            )
            known = now

    def _other_than(
        self,
        known: dict[ActorId, ActorEndpoint] | None,
        which: tuple[Namespace, str, str],
        over: Callable[[], bool],
    ) -> dict[ActorId, ActorEndpoint]:
        """Return what is there as soon as it is not what is known, or it is over."""
        while True:
            # A thread that is stopped meanwhile notices when it lets go of the lock.
            with self.changed:
                self.changed.wait_for(lambda: over() or self._wanted(*which) != known, timeout=_WAKE)
                now, ended = self._wanted(*which), over()
            if now != known or ended:
                return now

    def _wanted(self, namespace: Namespace, name: str, prefix: str) -> dict[ActorId, ActorEndpoint]:
        found = self.named(namespace, name) if name else self.all(namespace, prefix)
        return {e.actor_id: e for e in found}


class LocalMetadata:
    """The registry as seen by one namespace, see fray.cluster.Metadata."""

    def __init__(self, registry: Registry, namespace: Namespace, job: Callable[[JobId], Job]) -> None:
        self._registry, self._namespace, self._job = registry, namespace, job

    def register(
        self,
        name: str,
        address: str,
        job_id: JobId,
        metadata: Mapping[str, str] | None = None,
        *,
        actor_id: ActorId | None = None,
        unique: bool = False,
        ttl: float | None = None,
        task: int | None = None,
    ) -> ActorId:
        """Make an endpoint known. Programs outside of jobs may register theirs, with "" as job."""
        context = job_context()
        if task is None:
            task = context.task_index if context else 0
        made = actor_id or ActorId(_PREFIX + base64.b32encode(secrets.token_bytes(17)).decode().lower()[:26])
        with self._registry.changed:
            namespace = self._job_that_runs(job_id).namespace if job_id else self._namespace
            endpoint = ActorEndpoint(made, name, address, job_id, namespace, dict(metadata or {}), task)
            self._registry.add(_Entry(endpoint, unique), ttl)
        return made

    def _job_that_runs(self, job_id: JobId) -> Job:
        job = self._job(job_id)
        if job.status is not JobStatus.RUNNING:
            raise RefusedError(f"job {job_id} is {job.status}; only those of a running job are registered")
        return job

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

    def watch(
        self, name: str = "", prefix: str = "", *, job_id: JobId | None = None
    ) -> Iterator[ActorChanges]:
        """Yield what is there, then what changes."""
        if not job_id:
            yield from self._registry.watch(self._namespace, name, prefix, lambda: False)
            return
        with self._registry.changed:
            job = self._job(job_id)
        yield from self._registry.watch(self._namespace, name, prefix, lambda: job.status.ended)
        reason = f", {job.reason}" if job.reason else ""
        raise RefusedError(f"job {job_id} has ended: it is {job.status}{reason}")
