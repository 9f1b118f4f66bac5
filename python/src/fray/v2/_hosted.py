"""Actors that are hosted by jobs of their own."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from fray._host_run import Hosting, host_created
from fray.cluster import (
    AlreadyExistsError,
    Cluster,
    Entrypoint,
    EnvironmentConfig,
    JobId,
    JobInfo,
    JobRequest,
    JobStatus,
    NameClash,
    NotFoundError,
    RefusedError,
    Termination,
    TerminationCause,
    WaitTimeoutError,
    job_context,
)
from fray.rpc._calling.resolve_cluster import directory_of
from fray.rpc._serving.core import KILL
from fray.rpc.errors import ActorError, UnknownMethodError
from fray.rpc.handle import ActorHandle
from fray.v2.actor import ActorCreationError, ActorSpec, ActorStatus, handle_of, job_name
from fray.v2.types import ClusterJob, JobHandle

_REMIND = 30.0  # seconds between two log lines on why an actor is not ready yet
_REACH = 2.0  # seconds to reach an actor that is to be killed; its job ends in any case
_ENDING = 120.0  # seconds for which the end of an actor that was deleted is awaited
_Standing: TypeAlias = tuple[bool, JobInfo | None]
"""Whether the actor of a job is registered, and how the job stands, which may be left out if it is."""
_log = logging.getLogger("fray")


def create(cluster: Cluster, spec: ActorSpec) -> tuple[HostedActor, bool]:
    """Begin to create an actor, and return it and True, or the one that is there and False.

    Raises:
        AlreadyExistsError: an actor of that name lives, and getting that was not asked for.
        ClusterError: see fray.cluster.Cluster.launch.
    """
    request = _request(spec, _session(cluster, spec))
    try:
        return HostedActor(cluster, cluster.launch(request), spec.name), True
    except AlreadyExistsError as err:
        if not spec.options.get_if_exists:
            where = f"lives in namespace {cluster.namespace}" if cluster.namespace else "lives already"
            raise AlreadyExistsError(f'actor "{spec.name}" {where}; delete it, or set get_if_exists') from err
    living = {job.job_id for job in _jobs(cluster, spec.name) if not job.status.ended}
    # Keeping it also brings the connection into its namespace, where it has none yet.
    job_id = cluster.launch(replace(request, name_clash=NameClash.KEEP))
    created = job_id not in living
    return HostedActor(cluster, job_id, spec.name, created=created), created


def _session(cluster: Cluster, spec: ActorSpec) -> str:
    """Return the session with which an actor ends, "" if it ends with a job, or lives until it is deleted."""
    session = getattr(cluster, "session", None)  # which a LocalCluster does without: it ends with its process
    return "" if session is None or spec.options.detached else session()


def _request(spec: ActorSpec, session: str = "") -> JobRequest:
    """Return the request for the job that hosts an actor."""
    environment = spec.options.environment or EnvironmentConfig()
    variables = {**environment.env_vars, "FRAY_ACTOR_NAMES": json.dumps(spec.names)}
    hosting = Hosting(
        spec.names,
        spec.options.max_concurrency,
        concurrency_groups=dict(spec.options.concurrency_groups),
        created=True,
    )
    args = (spec.actor_class, tuple(spec.args), dict(spec.kwargs), hosting)
    return JobRequest(
        name=job_name(spec.name),
        entrypoint=Entrypoint.from_callable(host_created, args=args),
        resources=spec.resources,
        environment=replace(environment, env_vars=variables),
        max_retries_failure=spec.options.max_restarts,
        max_retries_preemption=-1,
        detached=spec.options.detached,
        ports=("actor",),
        session=session,
    )


class HostedActor:
    """An actor with a job of its own, see PendingActor."""

    def __init__(self, cluster: Cluster, job_id: JobId, name: str, created: bool = True) -> None:
        self._cluster, self._job_id, self._created = cluster, job_id, created
        self.name = name
        self.handle: ActorHandle[Any] = handle_of(cluster, name)
        self.job: JobHandle = ClusterJob(cluster, job_id)
        self._reminded = time.monotonic()
        # Of a cluster that reports what happens.
        self._waits: Callable[[JobId, str, float, int], _Standing] | None = getattr(
            cluster, "await_hosted", None
        )
        self._ended = 0  # attempts, as far as was reported

    @property
    def notified(self) -> bool:
        """See PendingActor."""
        return self._waits is not None

    def poll(self, seconds: float) -> bool:
        """Report whether it answers, see PendingActor."""
        there, info = (self._waits or self._awaited)(self._job_id, self.name, seconds, self._ended)
        if there or info is None:
            return True
        self._ended = sum(attempt.ended_at is not None for attempt in info.attempts)
        error = self._failure(info)
        if error is None:
            self._remind()
            return False
        if self._created and not info.status.ended:
            self._cluster.terminate(self._job_id)
        raise error

    def _awaited(self, job_id: JobId, name: str, seconds: float, _: int) -> _Standing:
        """Return whether the job has registered the actor, and how it stands, soon or when it has."""
        if seconds > 0:
            self._await_registration(seconds)
        if any(e.job_id == job_id for e in self._cluster.metadata.lookup_all(name)):
            return True, None
        return False, self._cluster.poll(job_id)

    def _await_registration(self, seconds: float) -> None:
        """Return when the actor may have been registered, after so many seconds at the latest."""
        directory = directory_of(self._cluster, None)
        if not directory.known(self.name):
            directory.wait(self.name, seconds)
        else:
            time.sleep(seconds)  # until its other names are, or until a former one of the name has gone

    def _failure(self, info: JobInfo) -> ActorCreationError | None:
        """Return why there will be no actor, if so."""
        ends = [task.termination for task in info.tasks] + [a.termination for a in reversed(info.attempts)]
        for end in filter(None, ends):
            return self._terminated(end)
        if info.status.ended:
            return ActorCreationError(self.name, info.reason or f"its job {info.job_id} {info.status}")
        return None

    def _terminated(self, end: Termination) -> ActorCreationError:
        match end.cause:
            case TerminationCause.ACTOR_UNMADE | TerminationCause.ACTOR_INVALID:
                return ActorCreationError(self.name, end.message, end.type, end.trace)
            case (
                TerminationCause.CALLABLE_REFUSED
                | TerminationCause.CALLABLE_INVALID
                | TerminationCause.PROGRAM_MISSING
                | TerminationCause.PACKAGE_MISSING
                | TerminationCause.FINAL
            ):
                return ActorCreationError(self.name, end.message)

    def _remind(self) -> None:
        """Log why it takes so long."""
        if time.monotonic() - self._reminded < _REMIND:
            return
        self._reminded = time.monotonic()
        info = self._cluster.poll(self._job_id)
        why = "; ".join(info.pending_reasons) or info.reason or f"its job is {info.status}"
        _log.warning('actor "%s" is awaited: %s', self.name, why)


def delete(cluster: Cluster, name: str) -> None:
    """End an actor that `create` made, and wait for that, unless it is the caller itself.

    Raises:
        ActorNotFoundError: there is none.
        RefusedError: there is one, but it belongs to a job that was not made for it.
        WaitTimeoutError: it is to end, but has not for a long time.
    """
    job_id = _living(cluster, name)
    cluster.terminate(job_id)
    await_end(cluster, name, job_id)


def kill(cluster: Cluster, name: str, no_restart: bool) -> None:
    """End the process of an actor that `create` made, without grace, see Client.kill. Raises as `delete`."""
    job_id = _living(cluster, name)
    handle = handle_of(cluster, name).options(resolve_timeout=_REACH, timeout=_REACH)
    there = bool(cluster.metadata.lookup_all(name))
    reached = there and _asked(handle, "__fray_reach__")  # a method that no actor has
    if not no_restart:
        if reached:
            _asked(handle, KILL)
        return
    cluster.terminate(job_id)  # before, so that no other attempt begins
    if reached:
        _asked(handle, KILL)
    await_end(cluster, name, job_id)


def _asked(handle: ActorHandle[Any], method: str) -> bool:
    """Call a method, and report whether the actor was there."""
    try:
        handle[method]()
    except UnknownMethodError:
        return True
    except ActorError as err:
        return err.ran
    return True


def _living(cluster: Cluster, name: str) -> JobId:
    """Return the job that was made for an actor and lives.

    Raises:
        ActorNotFoundError: there is no such actor.
        RefusedError: it belongs to a job that was not made for it.
    """
    for job in _jobs(cluster, name):
        if not job.status.ended:
            return job.job_id
    endpoint = cluster.metadata.lookup(name)
    raise RefusedError(
        f'actor "{name}" was not created by create_actor: job {endpoint.job_id} hosts it; terminate that'
    )


def await_end(cluster: Cluster, name: str, job_id: JobId) -> None:
    """Wait until the job of an actor has ended, unless this is it.

    Raises:
        WaitTimeoutError: it has not for a long time.
    """
    context = job_context()
    if context is not None and context.job_id == job_id:
        return
    try:
        cluster.wait(job_id, timeout=_ENDING)
    except WaitTimeoutError as err:
        raise WaitTimeoutError(
            f'actor "{name}" is to end, but job {job_id} had not after {_ENDING:g} s: it has a long '
            "stop_grace, or its machine does not answer; call again to wait longer"
        ) from err
    except NotFoundError:
        return  # it ended, and was forgotten


def status(cluster: Cluster, name: str) -> ActorStatus:
    """Return where an actor is in its life.

    Raises:
        ActorNotFoundError: there is none, or it was deleted.
    """
    if cluster.metadata.lookup_all(name):
        return ActorStatus.READY
    last = next(iter(_jobs(cluster, name)), None)
    match last.status if last else None:
        case JobStatus.FAILED:
            return ActorStatus.FAILED
        case JobStatus.PENDING | JobStatus.RUNNING if last is not None:
            return ActorStatus.RESTARTING if last.attempt > 1 else ActorStatus.CREATING
        case _:
            cluster.metadata.lookup(name)  # raises what names are near
            return ActorStatus.READY


def _jobs(cluster: Cluster, name: str) -> Iterator[JobInfo]:
    """Return the jobs that were made for an actor, the newest first."""
    found = [job for job in cluster.list_jobs() if job.name == job_name(name)]
    return iter(sorted(found, key=lambda job: job.submitted_at or 0, reverse=True))
