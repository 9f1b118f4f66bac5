"""The registry of actors that is embedded in a LocalCluster."""

from __future__ import annotations

import base64
import difflib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from fray.cluster.context import job_context
from fray.cluster.errors import ActorNotFoundError, AlreadyExistsError, RefusedError
from fray.cluster.local.job import Job
from fray.cluster.local.lock import ClusterLock
from fray.cluster.local.timers import Timers
from fray.cluster.types import ActorChanges, ActorEndpoint, ActorId, JobId, JobStatus, Namespace
from fray.cluster.watch import Ending, Watch

_PREFIX = "actor-"
_WAKE = 0.5  # seconds


@dataclass(frozen=True)
class _Entry:
    endpoint: ActorEndpoint
    unique: bool

    def replaces(self, other: _Entry) -> bool:
        """Whether this is the actor that another registration is of, as a fray cluster decides it."""
        mine, its = self.endpoint, other.endpoint
        same = mine.job_id == its.job_id and mine.task == its.task
        return mine.actor_id == its.actor_id or (same and (mine.address == its.address or self.unique))


class Registry:
    """Endpoints of all namespaces, in the order of their registration.

    `changed` is the lock of the cluster that it belongs to; callers of `add` and `drop` hold it.
    """

    def __init__(self, changed: ClusterLock, timers: Timers) -> None:
        self.changed, self._timers = changed, timers
        self._entries: dict[ActorId, _Entry] = {}
        self.deaths: dict[tuple[Namespace, str], str] = {}
        """Why actors without a job of their own are dead, by namespace and name."""
        self.hosts: Callable[[Namespace, str], list[Job]] = lambda _namespace, _name: []
        """Returns the jobs that were launched to host an actor."""

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
        if ttl is None:
            self._timers.cancel(new.actor_id)
        else:
            self._timers.set(new.actor_id, ttl, self.drop, [new.actor_id])
        self._entries[new.actor_id] = entry
        self.changed.notify_all()

    def drop(self, actor_ids: Iterable[ActorId]) -> None:
        """Forget endpoints. Those that are not known change nothing."""
        for actor_id in actor_ids:
            self._entries.pop(actor_id, None)
            self._timers.cancel(actor_id)
        self.changed.notify_all()

    def of_job(self, job_id: JobId) -> list[ActorId]:
        """Return the endpoints of a job."""
        return [i for i, entry in self._entries.items() if entry.endpoint.job_id == job_id]

    def all(self, namespace: Namespace, prefix: str = "") -> list[ActorEndpoint]:
        """Return the endpoints whose names begin so, by name, then the oldest first."""
        with self.changed.held:
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
        death = self._death(namespace, name)
        if death:
            raise ActorNotFoundError(
                f'no actor "{name}" is registered in namespace {namespace}: {death}', death
            )
        near = difflib.get_close_matches(name, {e.name for e in self.all(namespace)})
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ActorNotFoundError(f'no actor "{name}" is registered in namespace {namespace}{hint}')

    def _death(self, namespace: Namespace, name: str) -> str:
        """Return why an actor is dead, "" if it is not, or may come back."""
        with self.changed.held:
            hosts = self.hosts(namespace, name)
            if not hosts:
                return self.deaths.get((namespace, name), "")
            if not all(job.status.ended for job in hosts):
                return ""
            last = max(hosts, key=lambda job: job.ended_at or 0.0)
        return death_of(name, last.job_id, last.status, last.failure_text)

    def watch(
        self, which: tuple[Namespace, str, str], over: Callable[[], bool], ending: Ending
    ) -> Iterator[ActorChanges]:
        """Yield what is there of a namespace, name and prefix, then what changes, until `over` or ending."""
        known: dict[ActorId, ActorEndpoint] | None = None
        ending.wakes(self._wake)
        while (now := self._other_than(known, which, lambda: ending.over or over())) != known:
            before = known or {}
            yield ActorChanges(
                reset=known is None,
                added=tuple(e for actor_id, e in now.items() if before.get(actor_id) != e),
                removed=tuple(actor_id for actor_id in before if actor_id not in now),
            )
            known = now

    def _wake(self) -> None:
        with self.changed.held:
            self.changed.notify_all()

    def _other_than(
        self,
        known: dict[ActorId, ActorEndpoint] | None,
        which: tuple[Namespace, str, str],
        over: Callable[[], bool],
    ) -> dict[ActorId, ActorEndpoint]:
        """Return what is there as soon as it is not what is known, or it is over."""
        while True:
            # A thread that is stopped meanwhile notices when it lets go of the lock.
            with self.changed.held:
                self.changed.wait_for(lambda: over() or self._wanted(*which) != known, timeout=_WAKE)
                now, ended = self._wanted(*which), over()
            if now != known or ended:
                return now

    def _wanted(self, namespace: Namespace, name: str, prefix: str) -> dict[ActorId, ActorEndpoint]:
        found = self.named(namespace, name) if name else self.all(namespace, prefix)
        return {e.actor_id: e for e in found}


def death_of(name: str, job_id: JobId, status: JobStatus, reason: str) -> str:
    """Return why an actor is dead whose job has ended, as the controller of a fray cluster reports it."""
    if status is JobStatus.STOPPED:
        return f'actor "{name}" was deleted: job {job_id} was {reason}'
    if status is JobStatus.SUCCEEDED:
        return f'actor "{name}" has ended: job {job_id} exited with status 0'
    return f'actor "{name}" has failed for good: job {job_id}: {reason or "no reason is known"}'


class LocalMetadata:
    """The registry as seen by one namespace, see fray.cluster.Metadata."""

    def __init__(self, registry: Registry, namespace: Namespace, job: Callable[[JobId], Job]) -> None:
        self._registry, self._namespace, self._job = registry, namespace, job

    @property
    def namespace(self) -> Namespace:
        """The scope of the names."""
        return self._namespace

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
        with self._registry.changed.held:
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
        with self._registry.changed.held:
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

    def watch(self, name: str = "", prefix: str = "", *, job_id: JobId | None = None) -> Watch:
        """Yield what is there, then what changes. A waiting thread keeps no cluster alive."""
        registry, which = self._registry, (self._namespace, name, prefix)
        if not job_id:
            return Watch(lambda ending: registry.watch(which, lambda: False, ending))
        with registry.changed.held:
            job = self._job(job_id)
        return Watch(lambda ending: _until_its_end(job, registry, which, ending))


def _until_its_end(
    job: Job, registry: Registry, which: tuple[Namespace, str, str], ending: Ending
) -> Iterator[ActorChanges]:
    yield from registry.watch(which, lambda: job.status.ended, ending)
    if ending.over:
        return
    reason = f", {job.reason}" if job.reason else ""
    raise RefusedError(f"job {job.job_id} has ended: it is {job.status}{reason}")
