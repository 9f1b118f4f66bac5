"""LocalCluster: the life of jobs on this machine."""

from __future__ import annotations

import atexit
import hmac
import json
import os
import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import overload

from fray.cluster.attached import busy_attached, close_attached
from fray.cluster.check import check_group, check_request, check_reservation
from fray.cluster.context import job_context
from fray.cluster.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    ClusterError,
    FieldError,
    InvalidRequestError,
    JobFailedError,
    NotFoundError,
    RefusedError,
    WaitTimeoutError,
)
from fray.cluster.local.job import Job
from fray.cluster.local.lock import ClusterLock
from fray.cluster.local.metadata import LocalMetadata, Registry
from fray.cluster.local.reservation import Reservation
from fray.cluster.local.scheduler import Scheduler
from fray.cluster.local.task import write_lines_at_once
from fray.cluster.protocols import Metadata
from fray.cluster.resources import CpuConfig
from fray.cluster.types import (
    JobGroupConfig,
    JobId,
    JobInfo,
    JobRequest,
    JobStatus,
    NameClash,
    Namespace,
    ReservationConfig,
    ReservationId,
    ReservationInfo,
)


class LocalCluster:
    """Runs jobs on this machine, as threads or processes of the current environment.

    What jobs write appears on this process's own output as they write it.

    A job has one task for each of its `replicas`, or `num_tasks` if that is more. Commands are processes
    always. A thread cannot be killed: it ends when its Python code goes on after `terminate`, and its
    FRAY_ variables are in `job_context().environ` rather than in os.environ.
    """

    def __init__(self, max_workers: int = 4, use_processes: bool = False) -> None:
        """Make a cluster without jobs.

        Args:
            max_workers: How many tasks run at a time; others are pending, first in, first out. Tasks that
                wait for other jobs, and the job that launches another, do not count. Jobs of a group, and
                tasks of a job, start together; where there are more than this, when nothing else runs.
            use_processes: Whether callables run in processes of their own. They are pickled then.
        """
        if max_workers < 1:
            raise ValueError(f"max_workers is {max_workers}; it must be at least 1")
        self._changed = ClusterLock()
        self._reservations: dict[ReservationId, Reservation] = {}
        self._scheduler = Scheduler(self, self._changed, max_workers, use_processes)
        self._scheduler.on_end = self._forget
        self._registry = Registry(self._changed, self._scheduler.timers)
        self._registry.hosts = partial(_hosts_among, self._scheduler.jobs)  # without a reference to this
        self._secret = secrets.token_bytes(32)
        self._used = False  # since it was made or shut down

    def actor_secret(self, namespace: str) -> bytes:
        """Return what processes of this cluster prove to each other with that they are of a namespace."""
        return hmac.digest(self._secret, namespace.encode(), "sha256")

    # Jobs

    def launch(self, request: JobRequest) -> JobId:
        """Start a job, see Cluster.launch."""
        check_request(request)
        return self._launch([request], "")[0]

    def launch_group(
        self,
        requests: Sequence[JobRequest],
        group: JobGroupConfig,
        reservation_id: ReservationId | None = None,
    ) -> list[JobId]:
        """Start jobs together, all or none, see Cluster.launch_group."""
        check_group(requests, group)
        filled = [
            replace(
                r,
                reservation_id=r.reservation_id or reservation_id,
                namespace=r.namespace or group.namespace,
            )
            for r in requests
        ]
        return self._launch(filled, group.name)

    def _launch(self, requests: Sequence[JobRequest], group: str) -> list[JobId]:
        with self._changed.held:
            if not self._used:
                atexit.register(self._scheduler.kill, os.getpid())
                self._used = True
                write_lines_at_once()
            self._check_capacity(requests)
            namespaces = [self._namespace_of(r) for r in requests]
            kept: dict[int, JobId] = {}
            clashing = []
            for i, (request, namespace) in enumerate(zip(requests, namespaces, strict=True)):
                other = self._scheduler.living(namespace, request.name)
                if other is None:
                    continue
                match request.name_clash:
                    case NameClash.ERROR:
                        raise AlreadyExistsError(
                            f'job "{request.name}" lives in namespace {namespace} as {other.job_id}; '
                            "wait for its end, terminate it, or set name_clash"
                        )
                    case NameClash.KEEP:
                        kept[i] = other.job_id
                    case NameClash.RECREATE:
                        clashing.append(other)
            for other in clashing:
                self._scheduler.stop(other, "another job takes its name")
            if clashing:
                self._block_until(lambda: all(self._scheduler.is_over(job) for job in clashing))
            jobs = {
                i: self._job(request, namespaces[i], group)
                for i, request in enumerate(requests)
                if i not in kept
            }
            self._scheduler.submit(list(jobs.values()))
            return [kept[i] if i in kept else jobs[i].job_id for i in range(len(requests))]

    def _job(self, request: JobRequest, namespace: Namespace, group: str) -> Job:
        parent = self._caller()
        environment = request.environment
        inherited: Mapping[str, str] = {}
        if parent is not None and (environment is None or environment.inherit):
            # Children of a job that hosts an actor host none.
            inherited = {k: v for k, v in parent.environ.items() if not k.startswith("FRAY_ACTOR_")}
        return Job(
            job_id=JobId(f"{request.name}-{uuid.uuid4().hex[:8]}"),
            request=replace(request),
            namespace=namespace,
            environ={**inherited, **(environment.env_vars if environment else {})},
            submitted_at=time.time(),
            parent=parent.job_id if parent else None,
            parent_attempt=parent.attempt if parent else 0,
            group=group,
        )

    def _namespace_of(self, request: JobRequest) -> Namespace:
        own = self.namespace
        if job_context() is not None and request.namespace not in (None, own):
            raise AccessDeniedError(f"a job of namespace {own} cannot launch one in {request.namespace}")
        return request.namespace or own

    def _check_capacity(self, requests: Sequence[JobRequest]) -> None:
        """Refuse what can never fit into its reservation."""
        asked: dict[ReservationId, int] = {}
        for i, request in enumerate(requests):
            if request.reservation_id is None:
                continue
            path = f"requests[{i}].reservation_id"
            reservation = self._reservations.get(request.reservation_id)
            if reservation is None or reservation.released:
                raise NotFoundError(f'{path}: there is no reservation "{request.reservation_id}"')
            most = reservation.config.max_resources
            if request.resources.with_replicas(1).device != most.device:
                message = f"the reservation has {most.device}, not {request.resources.device}"
                raise InvalidRequestError("the request is invalid", [FieldError(path, message)])
            count = asked[request.reservation_id] = (
                asked.get(request.reservation_id, 0) + request.resources.replicas
            )
            if count > most.replicas:
                raise RefusedError(
                    f"{path}: {count} slices are asked for at once, more than the {most.replicas} that "
                    f"reservation {request.reservation_id} can have"
                )

    def _caller(self) -> Job | None:
        """Return the job whose code this is, None outside of jobs and in those of another cluster."""
        context = job_context()
        return self._scheduler.jobs.get(context.job_id) if context else None

    def poll(self, job_id: JobId) -> JobInfo:
        """Return how a job stands, see Cluster.poll."""
        with self._changed.held:
            return self._scheduler.job(job_id).info()

    def terminate(self, job_id: JobId) -> None:
        """End a job and all that it launched, see Cluster.terminate."""
        with self._changed.held:
            context = job_context()
            who = f"job {context.job_id}" if context is not None else "this program"
            self._scheduler.stop(self._scheduler.job(job_id), f"stopped by {who}")

    def preempt(self, job_id: JobId) -> None:
        """Take a running job's machines away, for tests of how it takes that. One that has ended stays so."""
        with self._changed.held:
            self._scheduler.preempt(self._scheduler.job(job_id))

    def list_jobs(self) -> list[JobInfo]:
        """Return the jobs of the namespace by name, ended ones too, see Cluster.list_jobs."""
        with self._changed.held:
            found = [job.info() for job in self._scheduler.jobs.values() if job.namespace == self.namespace]
        return sorted(found, key=lambda job: job.name)

    @overload
    def wait(
        self, job_id: JobId, raise_on_failure: bool = False, *, timeout: float | None = None
    ) -> JobInfo: ...
    @overload
    def wait(
        self,
        job_id: list[JobId] | tuple[JobId, ...],
        raise_on_failure: bool = False,
        *,
        timeout: float | None = None,
    ) -> list[JobInfo]: ...
    def wait(
        self,
        job_id: JobId | Sequence[JobId],
        raise_on_failure: bool = False,
        *,
        timeout: float | None = None,
    ) -> JobInfo | list[JobInfo]:
        """Block until a job, or each of several, has ended, see Cluster.wait."""
        ids = [JobId(job_id)] if isinstance(job_id, str) else list(job_id)
        with self._changed.held:
            jobs = [self._scheduler.job(each) for each in ids]

            # A job that was stopped has ended once its processes have drained, as on a cluster.
            is_over = self._scheduler.is_over

            def failed() -> list[JobInfo]:
                bad = (JobStatus.FAILED, JobStatus.STOPPED)
                return [job.info() for job in jobs if raise_on_failure and job.status in bad and is_over(job)]

            done = self._block_until(lambda: bool(failed()) or all(map(is_over, jobs)), timeout)
            if failed():
                raise JobFailedError(failed())
            if not done:
                living = ", ".join(job.job_id for job in jobs if not is_over(job))
                raise WaitTimeoutError(f"{living} had not ended after {timeout} s")
            infos = [job.info() for job in jobs]
        return infos[0] if isinstance(job_id, str) else infos

    def monitor(self, job_id: JobId) -> JobInfo:
        """Block until a job has ended. What it writes is shown anyway, see the class."""
        return self.wait(job_id)

    def await_actor(self, name: str, namespace: str, seconds: float) -> bool:
        """Wait until an actor of a name is registered, for at most so long; return whether one is.

        A job that waits takes no worker meanwhile: the actor may be of one that has none yet.
        """
        with self._changed.held:
            return self._block_until(lambda: bool(self._registry.named(Namespace(namespace), name)), seconds)

    def _block_until(self, ready: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait for something with the lock held. A job that waits takes no worker meanwhile."""
        with self._scheduler.blocking(self._caller()) as interrupted:
            self._changed.wait_for(lambda: interrupted() or ready(), timeout)
            if interrupted():
                raise ClusterError("the job that waits here was stopped")
            return ready()

    # Reservations

    def create_reservation(self, config: ReservationConfig) -> ReservationId:
        """Reserve slices, all of which are there at once, see Cluster.create_reservation."""
        check_reservation(config)
        name = config.name or f"reservation-{uuid.uuid4().hex[:8]}"
        with self._changed.held:
            if name in self._reservations and not self._reservations[ReservationId(name)].released:
                raise AlreadyExistsError(f"there is a reservation {name}; release it, or choose another name")
            parent = self._caller()
            made = Reservation(
                reservation_id=ReservationId(name),
                config=replace(config),
                namespace=self.namespace,
                parent=parent.job_id if parent and not config.detached else None,
                expires_at=time.time() + config.ttl_seconds,
            )
            self._reservations[made.reservation_id] = made
            self._scheduler.timers.set(
                made.reservation_id, config.ttl_seconds, self._release, made, "its reservation has expired"
            )
        return made.reservation_id

    def release_reservation(self, reservation_id: ReservationId) -> None:
        """Give a reservation up, and end the jobs that use it, see Cluster.release_reservation."""
        with self._changed.held:
            self._release(self._reservation(reservation_id), "its reservation was released")

    def _release(self, reservation: Reservation, reason: str) -> None:
        if reservation.released:
            return
        reservation.released = True
        self._scheduler.timers.cancel(reservation.reservation_id)
        for job in list(self._scheduler.jobs.values()):
            if job.request.reservation_id == reservation.reservation_id:
                self._scheduler.stop(job, reason)
        self._changed.notify_all()

    def _reservation(self, reservation_id: ReservationId) -> Reservation:
        found = self._reservations.get(reservation_id)
        if found is None:
            raise NotFoundError(f'there is no reservation "{reservation_id}"')
        return found

    def get_reservation(self, reservation_id: ReservationId) -> ReservationInfo:
        """Return how a reservation stands, see Cluster.get_reservation.

        As on a fray cluster, jobs of the namespace that ask for the same TPU slices without naming a
        reservation count as its users.
        """
        with self._changed.held:
            reservation = self._reservation(reservation_id)
            users = {
                job.job_id: job.request.resources.replicas
                for job in self._scheduler.jobs.values()
                if job.status is JobStatus.RUNNING and self._draws(job, reservation)
            }
            return reservation.info(users)

    def _draws(self, job: Job, reservation: Reservation) -> bool:
        if job.request.reservation_id is not None:
            return job.request.reservation_id == reservation.reservation_id
        wanted, offered = job.request.resources, reservation.config.max_resources
        return (
            job.namespace == reservation.namespace
            and not isinstance(wanted.device, CpuConfig)
            and not wanted.alternatives
            and wanted.device == offered.device
        )

    def _forget(self, job: Job) -> None:
        """Take away what does not outlive an attempt, or the job."""
        self._registry.drop(self._registry.of_job(job.job_id))
        if job.status.ended:
            self._scheduler.discard(job)
            for reservation in self._reservations.values():
                if reservation.parent == job.job_id:
                    self._release(reservation, "the job that made its reservation has ended")

    def note_death(self, namespace: Namespace, name: str, why: str) -> None:
        """Note why an actor is dead that was an object of this process; "": it is alive again."""
        with self._changed.held:
            self._registry.deaths[namespace, name] = why

    # The connection

    @property
    def namespace(self) -> Namespace:
        """The namespace of the job whose code this is; "default" outside of jobs."""
        context = job_context()
        return context.namespace if context else Namespace("default")

    @property
    def metadata(self) -> Metadata:
        """The registry of actors."""
        return self.metadata_of(self.namespace)

    def metadata_of(self, namespace: str) -> Metadata:
        """Return the registry of actors as another namespace has it."""
        return LocalMetadata(self._registry, Namespace(namespace), self._scheduler.job)

    def shutdown(self) -> None:
        """End all jobs and actors, wait for their processes, and give up all that was made for them.

        The cluster may be used again.
        """
        with self._changed.held:
            for job in list(self._scheduler.jobs.values()):
                self._scheduler.stop(job, "the cluster was shut down")
            self._changed.wait_for(
                lambda: all(self._scheduler.is_over(j) for j in self._scheduler.jobs.values())
            )
            self._scheduler.timers.ring_all()  # such as those of what programs registered for a time
        close_attached(self)
        self.rest()

    def rest(self) -> None:
        """Give up what was made for jobs and actors, if none lives. It is made again where it is needed."""
        if busy_attached(self):
            return
        close_attached(self)
        with self._changed.held:
            if all(self._scheduler.is_over(job) for job in self._scheduler.jobs.values()):
                self._scheduler.rest()
                atexit.unregister(self._scheduler.kill)
                self._used = False

    def __enter__(self) -> LocalCluster:
        """Return the cluster, which is shut down at the end."""
        return self

    def __exit__(self, *args: object) -> None:
        """Shut the cluster down."""
        self.shutdown()


def _hosts_among(jobs: Mapping[JobId, Job], namespace: Namespace, name: str) -> list[Job]:
    """Return the jobs that were launched to host an actor."""
    word = json.dumps(name)
    return [
        job
        for job in jobs.values()
        if job.namespace == namespace and word in job.environ.get("FRAY_ACTOR_NAMES", "")
    ]
