"""IrisCluster: an Iris cluster, by calls to its controller."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

from fray.cluster.attached import attached, close_attached
from fray.cluster.check import check_group, check_request, check_reservation
from fray.cluster.context import job_context
from fray.cluster.errors import (
    AlreadyExistsError,
    ClusterError,
    ClusterUnavailableError,
    JobFailedError,
    NotFoundError,
    UnsupportedError,
    WaitTimeoutError,
)
from fray.cluster.iris import request as requests
from fray.cluster.iris import spec as specs
from fray.cluster.iris.answer import status_of
from fray.cluster.iris.connection import Connection, InterruptedCallError, Patience
from fray.cluster.iris.devices import devices_of
from fray.cluster.iris.dialect import CONTROLLER
from fray.cluster.iris.identity import own_identity
from fray.cluster.iris.jobs import Jobs
from fray.cluster.iris.leases import Leases
from fray.cluster.iris.metadata import IrisMetadata
from fray.cluster.iris.monitor import Monitor
from fray.cluster.iris.names import Names, own_namespace
from fray.cluster.iris.ship import LAUNCH, Shipper
from fray.cluster.protocols import Metadata
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

_AWAY = 3600.0  # seconds for which the controller may be away while jobs are waited for
_LAUNCH = 180.0  # seconds: Iris waits up to 120 for the tasks of a job that is replaced
_FIRST, _LONGEST = 0.1, 2.0  # seconds between two looks at jobs that are waited for
_ACTOR = "FRAY_ACTOR_NAMES"  # what jobs have that host actors of clients


class IrisCluster:
    """Launches jobs on an Iris cluster.

    Outside of Iris its jobs are at the root, /USER/NAME. In a task of Iris they are children of that task's
    job, and end with it; `detached` ones are at the root there too.

    Tasks run fray as the launching process has it, which is shipped with the project. Iris has no
    reservations, no groups of jobs, no health checks and no labels: such requests are rejected before they
    are sent.
    """

    def __init__(
        self,
        address: str,
        *,
        user: str = "",
        namespace: str = "",
        workspace: str | os.PathLike[str] | None = None,
        timeout: float = 120.0,
    ) -> None:
        """Use a controller, which is connected to at the first call.

        Args:
            address: HOST:PORT, http://HOST:PORT, https://HOST:PORT, or iris://HOST:PORT with a query.
            user: Whose jobs are launched; "": that of the Iris task, else IRIS_USER, else this machine's.
            namespace: The scope of actors' names; "": FRAY_NAMESPACE, else that of the Iris task's root job,
                else the user.
            workspace: The project that is shipped with jobs that name none; None: the nearest directory with
                a pyproject.toml at or above the working directory.
            timeout: Seconds within which a call is answered. While jobs are waited for, the controller may be
                away for an hour.

        Raises:
            ValueError: the address is none.
            AccessDeniedError: the token would leave this machine in plain text.
        """
        spec = specs.of_address(address)
        self._task = specs.task_of(os.environ)
        if user and not self._task:
            spec = specs.parse(specs.Spec(spec.host, spec.port, user, spec.namespace, spec.tls).text)
        self.spec = spec
        parent = self._task.job if self._task else ""
        chosen = namespace or spec.namespace or os.environ.get("FRAY_NAMESPACE", "")
        self._namespace = Namespace(chosen or own_namespace(spec.user, parent))
        self._names = Names(spec.user, self._namespace, parent)
        self._connection = Connection(spec, timeout)
        self._jobs = Jobs(self._connection, self._names)
        self._shipper = Shipper(os.fspath(workspace) if workspace is not None else None, self._task)
        self._session: list[JobId] = []  # what ends with this process

    @classmethod
    def from_spec(cls, spec: str) -> IrisCluster:
        """Use iris://HOST:PORT, the form of FRAY_CLIENT_SPEC and FRAY_CLUSTER_SPEC.

        It may end in ?user=NAME, namespace=NAME and tls=1, with & between them; see the constructor. In an
        Iris task "iris://" alone is its own controller.
        """
        return cls(spec)

    # Jobs

    def launch(self, request: JobRequest) -> JobId:
        """Start a job, see Cluster.launch."""
        self._check(request)
        return self._launch(request)[0]

    def _launch(self, request: JobRequest) -> tuple[JobId, str]:
        """Start a job, and return its id, and by which mark it is this launch's, see `_is_new`."""
        job_id = self._names.job_id(request.name, request.detached)
        if _ACTOR in (request.environment.env_vars if request.environment else {}):
            there = self._same_actor(request, job_id)
            if there is not None:
                return there, ""
        launch_id = uuid.uuid4().hex
        region = self._task.region if self._task else ""
        body = requests.launch_of(request, job_id, region)
        dialect = self._connection.dialect
        if dialect.scripts:
            body["maxTaskFailures"] = body["maxRetriesFailure"]
        elif dialect.wants_date and not (self._task and not request.detached):
            body["clientRevisionDate"] = time.strftime("%Y-%m-%d", time.gmtime())
        own = {LAUNCH: launch_id, "FRAY_NAMESPACE": self._namespace}
        self._shipper.complete(body, request, dialect, own, self.identity_of(self._namespace) or "")
        answered = self._send(body, launch_id)
        self._shipper.sent(body)
        if request.session and not request.detached and self._is_new(request, answered, launch_id):
            self._session.append(answered)
        return answered, launch_id

    def _is_new(self, request: JobRequest, job_id: JobId, launch_id: str) -> bool:
        """Report whether a launch made its job: one that keeps a name may have found another's."""
        if request.name_clash is not NameClash.KEEP:
            return True
        with contextlib.suppress(ClusterError):  # in doubt it is the other's
            return bool(launch_id) and self._jobs.launch_of(job_id) == launch_id
        return False

    def _same_actor(self, request: JobRequest, job_id: str) -> JobId | None:
        """Return the job that hosts the same actor elsewhere in the namespace, None if there is none.

        Raises:
            AlreadyExistsError: there is one, and the request does not keep it.
        """
        if request.name_clash is NameClash.RECREATE:
            return None
        for job in self._jobs.named(request.name):
            if not job.status.ended and job.job_id != job_id:
                if request.name_clash is NameClash.KEEP:
                    return job.job_id
                raise AlreadyExistsError(f"job {job.job_id} hosts an actor of that name already")
        return None

    def _send(self, body: dict[str, Any], launch_id: str) -> JobId:
        """Launch a job once, whatever of it is not answered."""
        patience = Patience(self.spec.target, self._connection.timeout + _LAUNCH)
        doubtful = False  # whether it may have been launched
        while True:
            try:
                if doubtful and self._jobs.launch_of(body["name"]) == launch_id:
                    return JobId(body["name"])
                answer = self._connection.once(f"{CONTROLLER}/LaunchJob", body, _LAUNCH)
                return JobId(answer["jobId"])
            except InterruptedCallError as err:
                doubtful = doubtful or err.sent
                patience.failed(err)
            except AlreadyExistsError as err:
                if doubtful and self._jobs.launch_of(body["name"]) == launch_id:
                    return JobId(body["name"])
                raise AlreadyExistsError(
                    f"a job {body['name']} lives; terminate it, or choose another name, or another name_clash"
                ) from err

    def launch_group(
        self,
        requests: Sequence[JobRequest],
        group: JobGroupConfig,
        reservation_id: ReservationId | None = None,
    ) -> list[JobId]:
        """Start jobs without accelerators, all or none; each is placed for itself. See Cluster.launch_group.

        Raises:
            UnsupportedError: several have accelerators, or there is a reservation. Iris places the tasks of
                one job together, and no jobs.
        """
        check_group(requests, group)
        self._check_group(requests, group, reservation_id)
        launched: list[tuple[JobId, str]] = []
        try:
            for request in requests:
                launched.append(self._launch(request))
        except Exception:
            for request, (job_id, launch_id) in zip(requests, launched, strict=False):
                with contextlib.suppress(ClusterError):
                    if self._is_new(request, job_id, launch_id):
                        self.terminate(job_id)
            raise
        return [job_id for job_id, _ in launched]

    def _check_group(
        self, group: Sequence[JobRequest], config: JobGroupConfig, reservation_id: ReservationId | None
    ) -> None:
        if reservation_id:
            raise UnsupportedError("Iris has no reservations, for groups of jobs neither")
        if len(group) > 1 and any(devices_of(request.resources) for request in group):
            raise UnsupportedError(
                "Iris cannot place several jobs with accelerators together: make them tasks of one job"
            )
        for request in group:
            self._check(replace(request, namespace=request.namespace or config.namespace))

    def _check(self, request: JobRequest) -> None:
        check_request(request)
        requests.check(request, self.spec.user, self._namespace)

    def poll(self, job_id: JobId) -> JobInfo:
        """Return how a job stands, see Cluster.poll."""
        return self._jobs.info(job_id)

    def terminate(self, job_id: JobId) -> None:
        """End a job and all that it launched, see Cluster.terminate."""
        self._connection.call("TerminateJob", {"jobId": job_id})

    def list_jobs(self) -> list[JobInfo]:
        """Return the jobs of the namespace, also ended ones, without their tasks, see Cluster.list_jobs."""
        return self._jobs.listed()

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
        ids = [job_id] if isinstance(job_id, str) else list(job_id)
        until = None if timeout is None else time.monotonic() + timeout
        ended: dict[JobId, JobInfo] = {}
        pause = _FIRST
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            before = len(ended)
            for each in self._ended([i for i in dict.fromkeys(ids) if i not in ended], left, timeout):
                ended[each] = self._jobs.info(each)
            failed = [info for info in ended.values() if info.status is not JobStatus.SUCCEEDED]
            if failed and raise_on_failure:
                raise JobFailedError(failed)
            if len(ended) == len(set(ids)):
                infos = [ended[each] for each in ids]
                return infos[0] if isinstance(job_id, str) else infos
            if left == 0:
                raise WaitTimeoutError(
                    f"{', '.join(i for i in ids if i not in ended)} had not ended after {timeout} s"
                )
            pause = _FIRST if len(ended) > before else min(_LONGEST, 1.5 * pause)
            time.sleep(pause if left is None else min(pause, left))

    def _ended(self, ids: Sequence[JobId], left: float | None, timeout: float | None) -> list[JobId]:
        """Return which of some jobs have ended; the controller may be away for long."""
        if not ids:
            return []
        patience = _AWAY if left is None else min(_AWAY, max(left, 1.0))
        try:
            states = self._connection.call("GetJobState", {"jobIds": list(ids)}, patience).get("states", {})
        except ClusterUnavailableError as err:
            if left is not None and patience < _AWAY:
                raise WaitTimeoutError(f"{', '.join(ids)} had not ended after {timeout} s: {err}") from err
            raise
        for each in ids:
            if each not in states:
                raise NotFoundError(f"there is no job {each}")
        return [each for each in ids if status_of(states[each]).ended]

    def monitor(self, job_id: JobId) -> JobInfo:
        """Print what a job writes, of all attempts, until it has ended, see Cluster.monitor."""
        try:
            logs = self._jobs.logs(job_id)
        except NotFoundError as err:
            raise NotFoundError(f"there is no job {job_id}") from err
        Monitor(
            logs, lambda: bool(self._ended([job_id], None, None)), lambda: len(self._jobs.tasks(job_id))
        ).run()
        return self._jobs.info(job_id)

    # Reservations

    def create_reservation(self, config: ReservationConfig) -> ReservationId:
        """Raise UnsupportedError: Iris has no reservations."""
        check_reservation(config)
        raise UnsupportedError("Iris has no reservations: its autoscaler makes capacity when jobs ask for it")

    def release_reservation(self, reservation_id: ReservationId) -> None:
        """Raise NotFoundError: Iris has no reservations."""
        raise NotFoundError(f"there is no reservation {reservation_id}: Iris has none")

    def get_reservation(self, reservation_id: ReservationId) -> ReservationInfo:
        """Raise NotFoundError: Iris has no reservations."""
        raise NotFoundError(f"there is no reservation {reservation_id}: Iris has none")

    # The connection

    @property
    def namespace(self) -> Namespace:
        """The scope of actors' names, see the constructor."""
        context = job_context()
        return context.namespace if context else self._namespace

    @property
    def metadata(self) -> Metadata:
        """The registry of actors."""
        return self.metadata_of(self._namespace)

    def metadata_of(self, namespace: str) -> IrisMetadata:
        """Return the registry of actors of a namespace."""
        connection = self._connection

        def leases() -> Leases:
            return attached(
                self, Leases, lambda: Leases(lambda body: connection.call_endpoints("RegisterEndpoint", body))
            )

        return IrisMetadata(connection, Namespace(namespace), leases, self._jobs.death_of_actor)

    def session(self) -> str:
        """Return the id of this process, with whose end the actors end that it created; "" in a task of Iris.

        They are terminated when the interpreter ends. Iris does not notice the death of a process outside of
        it: after a SIGKILL they live on, until they are deleted.
        """
        if self._task is not None:
            return ""
        return attached(self, _Session, lambda: _Session(self)).id

    def identity_of(self, namespace: str, wait: bool = True) -> str | None:  # noqa: ARG002
        """Return the file by which this process proves itself to actors of a namespace.

        A task has the one that was shipped with it. Another program has one of this user's on this machine,
        which is made when it is first needed.
        """
        return os.environ.get("FRAY_ACTOR_IDENTITY", "") or own_identity(namespace)

    def end_session(self) -> None:
        """End the jobs that end with this process."""
        ending, self._session = self._session, []
        for job_id in ending:
            with contextlib.suppress(ClusterError):
                self._connection.call("TerminateJob", {"jobId": job_id}, timeout=2.0)

    def close(self) -> None:
        """Close the connection. Jobs go on."""
        close_attached(self)
        self._connection.close()


class _Session:
    """Ends jobs with this process."""

    busy = False

    def __init__(self, cluster: IrisCluster) -> None:
        self._cluster = cluster
        self.id = uuid.uuid4().hex
        atexit.register(self.close)

    def close(self) -> None:
        """End them."""
        atexit.unregister(self.close)
        self._cluster.end_session()
