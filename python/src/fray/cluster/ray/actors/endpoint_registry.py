"""The names of actors as the registry actor keeps them: saved at each change, and watched by long polls.

What the table decides is in `endpoint_table`. The jobs that host actors are another's, see `Hosts`.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from fray.cluster.check import name_problem
from fray.cluster.errors import ActorNotFoundError, InvalidRequestError, NotFoundError, RefusedError
from fray.cluster.ray.actors.endpoint_table import Change, EndpointTable, Registration, Selection
from fray.cluster.types import ActorChanges, ActorEndpoint, ActorId, JobId, JobInfo, Namespace

_PREFIX, _ID_SIZE = "actor-", 26
_LONGEST_POLL = 60.0  # seconds that a client may ask to wait for a change


class Storage(Protocol):
    """Keeps registrations while the process of the registry may die."""

    def load(self) -> list[Registration]:
        """Return what was saved, the oldest first."""
        ...

    def save(self, change: Change) -> None:
        """Keep what was added, and forget what was removed, before the call that changed it is answered."""
        ...


@dataclass(frozen=True)
class Fate:
    """What is known of the future of an actor that is not registered."""

    death: str = ""
    """Why it is dead; "" while a job may still host it, and where none is on record."""
    undecided: bool = False
    """The attempt that hosted it is ending, and whether another follows is not known yet."""


class Hosts(Protocol):
    """Knows the jobs that host actors."""

    def job(self, job_id: JobId) -> JobInfo | None:
        """Return how a job stands; None: there is none."""
        ...

    def fate(self, namespace: Namespace, name: str, job_id: str) -> Fate:
        """Return what is known of an actor without an endpoint; of the one that a given job hosted."""
        ...


@dataclass(frozen=True)
class Poll:
    """What a long poll was answered."""

    boot: str
    """Which process of the registry this is; of another one, versions mean nothing."""
    version: int
    changes: ActorChanges | None
    """None: nothing has changed meanwhile."""


class EndpointRegistry:
    """Answers who registers, looks up and watches. All methods belong to one event loop."""

    def __init__(self, storage: Storage, hosts: Hosts) -> None:
        self._storage, self._hosts = storage, hosts
        self._table = EndpointTable(storage.load())
        self._boot = secrets.token_hex(8)
        self._changed = asyncio.Event()
        self._expiry: asyncio.TimerHandle | None = None
        self._expire()

    def register(
        self,
        namespace: Namespace,
        endpoint: ActorEndpoint,
        unique: bool = False,
        ttl: float | None = None,
        caller: int = 0,
    ) -> ActorId:
        """Make an endpoint known, see fray.cluster.Metadata.register.

        A job's endpoint belongs to the job's namespace, others to that of the caller. One without an id gets
        one. `caller` is the attempt of the job that calls, 0 for another program: an attempt that is over,
        whose process may live on, takes no name from the one that follows.
        """
        _check(endpoint)
        attempt = 0
        if endpoint.job_id:
            job = self._hosts.job(endpoint.job_id)
            if job is None:
                raise NotFoundError(f"there is no job {endpoint.job_id}")
            if job.status.ended:
                raise RefusedError(
                    f"job {job.job_id} is {job.status}; only those of a job that lives register"
                )
            if caller and (caller != job.attempt or not job.ready):
                raise RefusedError(f"attempt {caller} of job {job.job_id} is over; it registers no actors")
            namespace, attempt = job.namespace, job.attempt
        made = ActorEndpoint(
            endpoint.actor_id or ActorId(_PREFIX + secrets.token_hex(_ID_SIZE // 2)),
            endpoint.name,
            endpoint.address,
            endpoint.job_id,
            namespace,
            dict(endpoint.metadata),
            endpoint.task,
        )
        expires = None if ttl is None else time.time() + ttl
        self._keep(self._table.register(Registration(made, attempt, unique, expires)))
        self._expire()
        return made.actor_id

    def unregister(self, actor_ids: Iterable[ActorId]) -> None:
        """Forget endpoints. Those that are not known change nothing."""
        self._keep(self._table.drop(actor_ids))

    def end_attempt(self, job_id: JobId, attempt: int) -> None:
        """Forget the endpoints of a job's attempts up to one, which has ended."""
        of_job = [r for r in self._table.of_job(job_id) if r.attempt <= attempt]
        self.unregister([r.endpoint.actor_id for r in of_job])

    def end_task(self, job_id: JobId, attempt: int, task: int) -> None:
        """Forget the endpoints of a task of an attempt, which has ended."""
        of_task = [r for r in self._table.of_job(job_id) if r.attempt <= attempt and r.endpoint.task == task]
        self.unregister([r.endpoint.actor_id for r in of_task])

    def touch(self) -> None:
        """Have those that wait for changes ask again: the fate of an actor may be known now."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self, seconds: float) -> None:
        """Return when something has changed, or after so many seconds."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)

    def lookup(self, namespace: Namespace, name: str, job_id: str = "") -> ActorEndpoint:
        """Return the newest endpoint of a name, of those that a job hosts if one is given.

        Raises:
            ActorNotFoundError: there is none. The error has what became of the actor.
        """
        found = self._table.named(namespace, name, job_id)
        if found:
            return found[-1]
        fate = self._hosts.fate(namespace, name, job_id)
        near = self.near(namespace, name)
        text = f'no actor "{name}" is registered in namespace {namespace}'
        if fate.death:
            text += f": {fate.death}"
        elif near:
            text += f"; did you mean {' or '.join(near)}?"
        raise ActorNotFoundError(text, fate.death, fate.undecided)

    def near(self, namespace: Namespace, name: str) -> list[str]:
        """Return names that are registered there and spelled alike."""
        return self._table.near(namespace, name)

    def lookup_all(self, namespace: Namespace, name: str) -> list[ActorEndpoint]:
        """Return all endpoints of a name, the oldest first."""
        return self._table.named(namespace, name)

    def list_actors(self, namespace: Namespace, prefix: str = "") -> list[ActorEndpoint]:
        """Return the endpoints whose names begin so, by name, then the oldest first."""
        return self._table.select(Selection(namespace, prefix=prefix))

    async def poll(
        self, wanted: Selection, boot: str, version: int, seconds: float, job_id: str = ""
    ) -> Poll:
        """Return what changed after a version of a boot, as soon as something has, or after so many seconds.

        Raises:
            NotFoundError, RefusedError: there is no such job, or it has ended.
        """
        known = version if boot == self._boot else None
        until = time.monotonic() + min(seconds, _LONGEST_POLL)
        while True:
            now = self._table.version
            changes = self._table.since(wanted, known)
            if changes is not None:
                return Poll(self._boot, now, changes)
            self._check_lives(job_id)
            left = until - time.monotonic()
            if left <= 0:
                return Poll(self._boot, now, None)
            known = now
            await self.changed(left)

    def _check_lives(self, job_id: str) -> None:
        if not job_id:
            return
        job = self._hosts.job(JobId(job_id))
        if job is None:
            raise NotFoundError(f"there is no job {job_id}")
        if job.status.ended:
            reason = f", {job.reason}" if job.reason else ""
            raise RefusedError(f"job {job_id} has ended: it is {job.status}{reason}")

    def _keep(self, change: Change) -> None:
        if change.added or change.removed:
            self._storage.save(change)
            self.touch()

    def _expire(self) -> None:
        """Forget what was not renewed, now and when the next endpoint expires."""
        self._keep(self._table.expire(time.time()))
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        following = self._table.next_expiry
        if following is not None:
            loop = asyncio.get_running_loop()
            self._expiry = loop.call_later(max(0.0, following - time.time()), self._expire)


def _check(endpoint: ActorEndpoint) -> None:
    """Raise InvalidRequestError if an endpoint can never be registered."""
    if problem := name_problem(endpoint.name):
        raise InvalidRequestError.of("name", problem)
    host, _, port = endpoint.address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise InvalidRequestError.of("address", f'"{endpoint.address}" is none: want HOST:PORT')
    given = endpoint.actor_id
    rest = given.removeprefix(_PREFIX)
    if given and (rest == given or len(rest) != _ID_SIZE or not rest.isalnum()):
        raise InvalidRequestError.of("actor_id", f'"{given}" is none: give back what register returned')
