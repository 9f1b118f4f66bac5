"""What the registry knows and does of actors: their names, their hosts, and how other programs reach them."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import secrets
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fray.cluster.errors import NotFoundError
from fray.cluster.ray.actors.endpoint_registry import EndpointRegistry, Fate
from fray.cluster.ray.actors.endpoint_table import Change, Registration
from fray.cluster.ray.actors.fates import fate_of, names_of
from fray.cluster.ray.actors.host import Beginning
from fray.cluster.ray.actors.keeper import ActorKeeper, Launcher
from fray.cluster.ray.job_table import JobTable
from fray.cluster.ray.private import write_private
from fray.cluster.ray.reach import Reach
from fray.cluster.ray.records import Job, Place, Started
from fray.cluster.ray.store import Store
from fray.cluster.types import JobId, JobInfo, Namespace

if TYPE_CHECKING:
    from fray.cluster.ray.actors.certificates import Authority
    from fray.cluster.ray.actors.metadata_service import MetadataService

_log = logging.getLogger("fray")


class ActorSide:
    """The part of the registry that is about actors. All of it runs in the registry's event loop."""

    def __init__(
        self,
        store: Store,
        table: JobTable,
        launcher: Launcher,
        stop: Callable[[JobId, str], None],
        attempt_over: Callable[[Job], None],
    ) -> None:
        """Take over what was stored; for `stop` and `attempt_over` see ActorKeeper."""
        self._store, self._table = store, table
        self._secrets = _Secrets(store)
        self.endpoints = EndpointRegistry(_Endpoints(store), _Hosts(table))
        self.keeper = ActorKeeper(table, launcher, self.endpoints.end_attempt, stop, attempt_over)
        self._directory = Path(os.environ["FRAY_RAY_HOME"], "identities")
        self._reach: Reach | None = None
        self._service: MetadataService | None = None
        self._served = asyncio.Event()
        self._waits: dict[str, Callable[..., Coroutine[Any, Any, Any]]] = {
            "poll": self.endpoints.poll,
            "await_hosted": self._await_hosted,
            "reach": self._reached,
        }
        self._methods: dict[str, Callable[..., Any]] = {
            "begin_host": self._begin_host,
            "is_wanted": self._is_wanted,
            "identity": self._identity,
            "exiting": self.keeper.exiting,
            "hold": self.keeper.hold,
            "end_session": self.keeper.end_session,
        }

    async def call(self, method: str, *args: Any) -> Any:
        """Return what a method of the actors' part returned."""
        if method in self._waits:
            return await self._waits[method](*args)
        if method in self._methods:
            return self._methods[method](*args)
        return getattr(self.endpoints, method)(*args)

    async def serve(self, address: str) -> None:
        """Begin to answer programs without Ray, at the port that the process before had."""
        try:
            await self._serve(address)
        finally:
            self._served.set()

    async def _serve(self, address: str) -> None:
        try:
            from fray.cluster.ray.actors.certificates import ServerCertificate, server_certificate
            from fray.cluster.ray.actors.metadata_service import Access, MetadataService
        except ImportError as err:
            _log.warning("actors cannot be reached from programs without Ray: %s", err)
            return
        kept = self._secrets.get("server", lambda: pickle.dumps(server_certificate()))
        certificate: ServerCertificate = pickle.loads(kept)
        token = self._secrets.get("token", lambda: secrets.token_hex(32).encode()).decode()
        port = int(self._store.get("secret", "port") or b"0")
        service = MetadataService(
            self.endpoints, Access(port, address, token, certificate), self._identity_file
        )
        await service.start()
        self._service = service  # which ends with its last reference
        self._store.put("secret", "port", str(service.port).encode())
        self._reach = Reach(address, service.port, token, certificate.fingerprint, self._table.namespace)

    def changed(self, job: Job) -> None:
        """Take note of a job that has changed."""
        if job.status.ended:
            self.endpoints.end_attempt(job.job_id, job.attempt)
        self.endpoints.touch()
        self.keeper.touch()

    def _begin_host(self, job_id: JobId, attempt: int, holder: str, place: Place) -> Beginning | None:
        """Begin an attempt; None: that one is not wanted."""
        job = self._table.job(job_id)
        expected = job.attempt if job.running and job.holder == holder else job.attempt + 1
        if attempt != expected or (job.running and job.holder != holder):
            return None
        started = self._table.begin(job_id, holder, [place], time.time())
        return Beginning(self._table.job(job_id), self.equipped(job, started)) if started else None

    def equipped(self, job: Job, started: Started) -> Started:
        """Return an attempt with what it would ask for next: its identity, and the blobs that are at hand."""
        try:
            identity = self._identity(job.namespace)
        except ImportError as err:
            _log.warning("jobs cannot call actors: %s", err)
            identity = b""
        return replace(started, identity=identity, blobs=self._store.at_hand(job.launch.blobs))

    async def _await_hosted(
        self, job_id: JobId, name: str, seconds: float, ended: int
    ) -> tuple[bool, JobInfo]:
        """Return whether a job has registered an actor of a name, and how it stands.

        It waits, for at most so many seconds, until the actor is there, or as many attempts as `ended` are
        not all that have ended.
        """
        until = time.monotonic() + seconds
        while True:
            job = self._table.job(job_id)
            there = any(e.job_id == job_id for e in self.endpoints.lookup_all(job.namespace, name))
            left = until - time.monotonic()
            if there or job.status.ended or _ends(job) != ended or left <= 0:
                return there, job.info()
            await self.endpoints.changed(left)

    def _is_wanted(self, job_id: JobId, attempt: int) -> bool:
        job = self._table.job(job_id)
        return job.attempt == attempt and (job.running or job.draining)

    def keep(self, job_id: JobId) -> None:
        """Run a job that hosts an actor to its end, or end it where no actor can be hosted."""
        try:
            self._identity(self._table.namespace)
        except ImportError as err:
            reason = f"the Python of the Ray head lacks the package {err.name}; install fray-ml[ray] there"
            self._table.fail(job_id, reason, None, time.time())
        else:
            self.keeper.keep(job_id)

    def _identity(self, namespace: str) -> bytes:
        return self._authority.identity(namespace)

    @cached_property
    def _authority(self) -> Authority:
        from fray.cluster.ray.actors.certificates import (  # which need the package cryptography
            Authority,
            new_key,
        )

        return Authority(self._secrets.get("authority", new_key), self._secrets.cluster())

    def _identity_file(self, namespace: str) -> Path:
        path = self._directory / f"{namespace.replace('/', '%2F')}.pem"
        if not path.exists():
            self._directory.mkdir(mode=0o700, exist_ok=True)
            write_private(path, self._identity(namespace))
        return path

    async def _reached(self) -> Reach | None:
        """Return how programs without Ray are answered, once they are; None: they cannot be."""
        await self._served.wait()
        return self._reach


def _ends(job: Job) -> int:
    return sum(attempt.ended_at is not None for attempt in job.attempts)


class _Secrets:
    """Keys and tokens, which are made when they are first needed."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, name: str, make: Callable[[], bytes]) -> bytes:
        found = self._store.get("secret", name)
        if found is None:
            found = make()
            self._store.put("secret", name, found)
        return found

    def cluster(self) -> str:
        """Return the mark by which certificates name this cluster."""
        return self.get("cluster", lambda: secrets.token_hex(8).encode()).decode()


class _Endpoints:
    """Registrations in Ray's store, see endpoint_registry.Storage."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._number = 0  # of the next, so that they are loaded in order

    def load(self) -> list[Registration]:
        values = [self._store.get("endpoint", name) for name in self._store.names("endpoint")]
        found: list[tuple[int, Registration]] = [pickle.loads(value) for value in values if value is not None]
        found.sort(key=lambda each: each[0])
        self._number = found[-1][0] + 1 if found else 0
        return [registration for _, registration in found]

    def save(self, change: Change) -> None:
        for each in change.added:
            self._store.put("endpoint", each.endpoint.actor_id, pickle.dumps((self._number, each)))
            self._number += 1
        for actor_id in change.removed:
            self._store.delete("endpoint", actor_id)


class _Hosts:
    """The jobs of a table as hosts of actors, see endpoint_registry.Hosts."""

    def __init__(self, table: JobTable) -> None:
        self._table = table

    def job(self, job_id: JobId) -> JobInfo | None:
        try:
            return self._table.job(job_id).info()
        except NotFoundError:
            return None

    def fate(self, namespace: Namespace, name: str, job_id: str) -> Fate:
        jobs = [j for j in self._table if j.namespace == namespace and name in names_of(j)]
        return fate_of(name, [job for job in jobs if job_id in ("", job.job_id)])
