"""The registry of actors on Iris: endpoints of tasks, by names that begin with fray and the namespace.

An endpoint's own metadata have the id of the incarnation, when and by which attempt it was registered, and
the fingerprint of the certificate that its server shows. Since leases came Iris lists an endpoint until its
lease is over, so that endpoints whose attempt has ended are left out here.
"""

from __future__ import annotations

import base64
import difflib
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fray.cluster.context import job_context
from fray.cluster.errors import (
    ActorNotFoundError,
    AlreadyExistsError,
    ClusterUnavailableError,
    NotFoundError,
    RefusedError,
)
from fray.cluster.iris.answer import number, status_of
from fray.cluster.iris.connection import Connection
from fray.cluster.iris.identity import fingerprint_of
from fray.cluster.iris.jobs import listed as listed_jobs
from fray.cluster.iris.leases import LEASE, Leases
from fray.cluster.iris.names import endpoint_name
from fray.cluster.iris.spec import task_of
from fray.cluster.types import ActorChanges, ActorEndpoint, ActorId, JobId, Namespace
from fray.cluster.watch import Ending, Watch

INCARNATION = "fray.incarnation"
REGISTERED = "fray.registered"
FINGERPRINT = "fray.fingerprint"
ATTEMPT = "fray.attempt"
_OWN = (INCARNATION, REGISTERED, ATTEMPT)

_FIRST, _LONGEST = 0.1, 5.0  # seconds between two reads of a watch
_SHORTEST_LEASE = 180.0  # seconds, the least that Iris grants

Body = Mapping[str, Any]


class IrisMetadata:
    """Names of actors and where they listen, see fray.cluster.Metadata."""

    def __init__(
        self,
        connection: Connection,
        namespace: Namespace,
        leases: Callable[[], Leases],
        death: Callable[[str], str],
    ) -> None:
        """Make the registry of a namespace.

        Args:
            connection: Of the cluster.
            namespace: The scope of the names.
            leases: Returns what renews the leases of this process.
            death: Returns why an actor of a name is gone for good, "" if it is not, or that is not known.
        """
        self._connection, self._namespace = connection, namespace
        self._leases, self._death = leases, death

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
        """Make an endpoint of this task known, see Metadata.register."""
        own = task_of(os.environ)
        if own is None or job_id != own.job:
            raise RefusedError(
                f'actor "{name}" cannot be registered: Iris registers endpoints of its tasks only, and this '
                + (f"is a task of {own.job}, not of {job_id}" if own else "process is none; host it in a job")
            )
        context = job_context()
        index = task if task is not None else context.task_index if context else own.index
        made = actor_id or ActorId(f"actor-{base64.b32encode(secrets.token_bytes(17)).decode().lower()[:26]}")
        about = {**(metadata or {}), ATTEMPT: str(own.attempt)}
        body = self._body(name, address, f"{job_id}/{index}", made, about)
        body["attemptId"] = own.attempt
        leases = self._connection.dialect.leases
        if leases:
            seconds = LEASE if ttl is None else max(ttl, _SHORTEST_LEASE)
            body["leaseDuration"] = {"milliseconds": str(round(seconds * 1000))}
        before = [e for e in self.lookup_all(name) if e.actor_id != made]
        same_task = [e for e in before if (e.job_id, e.task) == (job_id, index)]
        if unique:
            self._check_unique(name, [e for e in before if e not in same_task])
        answer = self._send(body)
        for each in same_task:
            if unique or each.address == address:
                self.unregister(each.actor_id)
        if unique:
            self._keep_unique(name, made)
        if leases and ttl is None:
            self._leases().keep(body, answer)
        return made

    def _body(
        self, name: str, address: str, task_id: str, made: str, metadata: Mapping[str, str]
    ) -> dict[str, Any]:
        about = {**metadata, INCARNATION: made, REGISTERED: str(time.time_ns())}
        identity = os.environ.get("FRAY_ACTOR_IDENTITY", "")
        if identity:
            about[FINGERPRINT] = fingerprint_of(identity)
        return {
            "name": endpoint_name(self._namespace, name),
            "address": address,
            "taskId": task_id,
            "metadata": about,
            "endpointId": made,
        }

    def _send(self, body: Body) -> Any:
        try:
            return self._connection.call_endpoints("RegisterEndpoint", body)
        except NotFoundError as err:
            raise NotFoundError(f"{err}; has the job ended?") from err

    @staticmethod
    def _check_unique(name: str, others: list[ActorEndpoint]) -> None:
        if others:
            raise AlreadyExistsError(
                f'actor "{name}" is at {others[-1].address}; unregister that, or choose another name'
            )

    def _keep_unique(self, name: str, made: ActorId) -> None:
        """Give way to another that was registered at the same time: to that of the smallest id."""
        others = [e for e in self.lookup_all(name) if e.actor_id != made]
        if any(e.actor_id < made for e in others):
            self.unregister(made)
            self._check_unique(name, others)

    def unregister(self, actor_id: ActorId) -> None:
        """Forget an endpoint. One that is not known changes nothing."""
        self._leases().drop(actor_id)
        self._connection.call_endpoints("UnregisterEndpoint", {"endpointId": actor_id})

    def lookup(self, name: str) -> ActorEndpoint:
        """Return the newest endpoint of a name, see Metadata.lookup."""
        found = self.lookup_all(name)
        if found:
            return found[-1]
        death = self._death(name)
        if death:
            raise ActorNotFoundError(
                f'no actor "{name}" is registered in namespace {self._namespace}: {death}', death
            )
        near = difflib.get_close_matches(name, {e.name for e in self.list_actors()})
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ActorNotFoundError(f'no actor "{name}" is registered in namespace {self._namespace}{hint}')

    def lookup_all(self, name: str) -> list[ActorEndpoint]:
        """Return all endpoints of a name, the oldest first."""
        return listed(self._connection, self._namespace, name, exact=True)

    def list_actors(self, prefix: str = "") -> list[ActorEndpoint]:
        """Return the endpoints whose names begin so, by name, then the oldest first."""
        return sorted(listed(self._connection, self._namespace, prefix, exact=False), key=lambda e: e.name)

    def watch(self, name: str = "", prefix: str = "", *, job_id: JobId | None = None) -> Watch:
        """Yield what is there, then what changes: it is read again and again, the rarer the less happens."""
        # What goes on refers to the connection alone, so that it ends when its cluster is gone.
        connection, namespace = self._connection, self._namespace
        return Watch(lambda ending: _changes(connection, namespace, (name, prefix), job_id, ending))


def listed(
    connection: Connection, namespace: str, name: str, *, exact: bool, ending: Ending | None = None
) -> list[ActorEndpoint]:
    """Return endpoints of a namespace by the beginning of their names, or exactly; the oldest first."""
    body = {"prefix": endpoint_name(namespace, name), "exact": exact}
    answer = connection.call_endpoints("ListEndpoints", body, ending=ending)
    found = [each for each in answer.get("endpoints", ()) if INCARNATION in each.get("metadata", {})]
    if not found:
        return []
    attempts = running_attempts(connection, {str(each["taskId"]) for each in found})
    lives = [
        each for each in found if attempts.get(each["taskId"], -1) <= number(each["metadata"].get(ATTEMPT))
    ]
    lives = [each for each in lives if each["taskId"] in attempts]
    lives.sort(key=lambda each: number(each["metadata"].get(REGISTERED)))
    return [_endpoint(each, namespace) for each in lives]


def running_attempts(connection: Connection, task_ids: set[str]) -> dict[str, int]:
    """Return the number of the present attempt at tasks, from 0; tasks whose job does not run have none."""
    wanted: dict[str, list[str]] = {}
    for task_id in task_ids:
        wanted.setdefault(task_id.rpartition("/")[0], []).append(task_id)
    found: dict[str, int] = {}
    for user in {job_id.split("/")[1] for job_id in wanted}:
        for job in listed_jobs(connection, {"jobIdPrefix": f"/{user}/", "stateFilter": "running"}):
            for task_id in wanted.get(job["jobId"], ()):
                if number(job.get("taskCount")) == 1:  # each attempt before has failed, or was preempted
                    found[task_id] = number(job.get("failureCount")) + number(job.get("preemptionCount"))
            if job["jobId"] in wanted and number(job.get("taskCount")) > 1:
                tasks = connection.call("ListTasks", {"jobId": job["jobId"]}).get("tasks", ())
                found |= {
                    t["taskId"]: number(t.get("currentAttemptId")) for t in tasks if t["taskId"] in task_ids
                }
    return found


def _endpoint(each: Body, namespace: str) -> ActorEndpoint:
    job_id, _, task = str(each["taskId"]).rpartition("/")
    about = {key: value for key, value in each["metadata"].items() if key not in _OWN}
    return ActorEndpoint(
        actor_id=ActorId(each["metadata"][INCARNATION]),
        name=str(each["name"]).removeprefix(endpoint_name(namespace, "")),
        address=str(each["address"]),
        job_id=JobId(job_id),
        namespace=Namespace(namespace),
        metadata=about,
        task=int(task),
    )


def _changes(
    connection: Connection, namespace: str, which: tuple[str, str], job_id: JobId | None, ending: Ending
) -> Iterator[ActorChanges]:
    name, prefix = which
    known: dict[ActorId, ActorEndpoint] | None = None
    pause = _FIRST
    while not ending.over:
        try:
            over = _end_of(connection, job_id, ending) if job_id else ""
            found = listed(connection, namespace, name or prefix, exact=bool(name), ending=ending)
        except ClusterUnavailableError:
            continue  # it has waited already
        now = {endpoint.actor_id: endpoint for endpoint in found}
        if now == known:
            pause = min(_LONGEST, 1.5 * pause)
        else:
            before = known or {}
            yield ActorChanges(
                reset=known is None,
                added=tuple(e for actor_id, e in now.items() if before.get(actor_id) != e),
                removed=tuple(actor_id for actor_id in before if actor_id not in now),
            )
            known, pause = now, _FIRST
        if over:
            raise RefusedError(f"job {job_id} has ended: it is {over}")
        ending.wait(pause)


def _end_of(connection: Connection, job_id: str, ending: Ending) -> str:
    """Return how a job has ended, "" if it has not."""
    states = connection.call("GetJobState", {"jobIds": [job_id]}, ending=ending).get("states", {})
    if job_id not in states:
        raise NotFoundError(f"there is no job {job_id}")
    status = status_of(states[job_id])
    return status.value if status.ended else ""
