"""FrayCluster: a fray cluster, by calls to its controller."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, overload

from fray._pb import cluster_pb2 as pb
from fray.cluster.attached import attached, close_attached
from fray.cluster.check import check_group, check_request, check_reservation
from fray.cluster.context import job_context
from fray.cluster.errors import (
    ClusterError,
    JobFailedError,
    NotFoundError,
    UnsupportedError,
    WaitTimeoutError,
)
from fray.cluster.protocols import Metadata
from fray.cluster.remote import spec as specs
from fray.cluster.remote.connection import Connection
from fray.cluster.remote.convert import (
    duration,
    group_to,
    job_of,
    request_to,
    reservation_of,
    reservation_to,
)
from fray.cluster.remote.metadata import FrayMetadata
from fray.cluster.remote.monitor import Monitor
from fray.cluster.types import (
    JobGroupConfig,
    JobId,
    JobInfo,
    JobRequest,
    JobStatus,
    Namespace,
    ReservationConfig,
    ReservationId,
    ReservationInfo,
)

if TYPE_CHECKING:
    from fray.cluster.remote.ship import Shipper

_ASK_AGAIN = 30.0  # seconds that one call waits for jobs
_MARGIN = 15.0  # seconds that such a call may take beyond that
_Result = TypeVar("_Result")


class FrayCluster:
    """Launches jobs on a fray cluster.

    In a job, make one with `current_cluster`: calls go to the agent of its host, which passes them to the
    controller that leads. A call that the cluster does not answer is made again with increasing pauses;
    what it asks for is carried out once.

    What callables and projects a request needs is uploaded unless the cluster has it.
    """

    def __init__(
        self,
        address: str,
        *,
        fingerprint: str = "",
        namespace: str | None = None,
        token: str | Callable[[], str] | None = None,
        timeout: float = 120.0,
    ) -> None:
        """Connect to a cluster.

        Args:
            address: host:port of an agent on this machine, or of a controller.
            fingerprint: The SHA-256 of the controller's TLS certificate in hex, as in the stack's lease. ""
                is plain text, and rejected unless the host is this machine.
            namespace: None: FRAY_NAMESPACE. If that is not set either, the first job launched founds one,
                which is named after it, and in which the connection stays.
            token: None: FRAY_CLUSTER_TOKEN. A function is called for each call, as users' tokens expire.
            timeout: Seconds within which a call is answered, and for which the cluster may be away while
                something waits for it.

        Raises:
            ValueError: the address is none, or plain text would leave this machine.
            AccessDeniedError: the controller shows another certificate.
            ClusterUnavailableError: no server answers there; with a fingerprint only, otherwise at a call.
        """
        text = f"fray://{address}" + (f"?fingerprint={fingerprint}" if fingerprint else "")
        self._connect(specs.parse(text), namespace, token, timeout)

    @classmethod
    def from_spec(cls, spec: str) -> FrayCluster:
        """Connect to fray://HOST:PORT, the form of FRAY_CLUSTER_SPEC.

        It may end in ?fingerprint=SHA256 and namespace=NAME, with & between them; see the constructor.
        """
        parsed = specs.parse(spec)
        cluster = cls.__new__(cls)
        cluster._connect(parsed, parsed.namespace or None, None, 120.0)
        return cluster

    @cached_property
    def _shipper(self) -> Shipper:
        from fray.cluster.remote.ship import Shipper  # for programs that launch jobs

        return Shipper(self._connection)

    def _connect(
        self, spec: specs.Spec, namespace: str | None, token: str | Callable[[], str] | None, timeout: float
    ) -> None:
        fixed = os.environ.get("FRAY_CLUSTER_TOKEN", "") if token is None else token
        self._connection = Connection(spec, fixed if callable(fixed) else lambda: fixed, timeout)
        self._stub = self._connection.cluster
        self._namespace = namespace or os.environ.get("FRAY_NAMESPACE", "")
        self._identities: dict[str, str] = {}  # files, by namespace

    def session(self) -> str:
        """Return the id of this process's session, with which what it launches may end; "": there is none.

        A job has none: what it launches ends with its attempt.
        """
        if job_context() is not None:
            return ""
        from fray.cluster.remote.session import Session  # which only creators of actors need

        return attached(self, Session, lambda: Session(self._connection)).held()

    # Jobs

    def launch(self, request: JobRequest) -> JobId:
        """Start a job, see Cluster.launch."""
        check_request(request)
        request_id = uuid.uuid4().hex

        def launch() -> JobId:
            message = pb.LaunchRequest(request=self._message(request), request_id=request_id)
            return JobId(self._connection.call(self._stub.Launch, message).job_id)

        return self._founded(self._shipped(launch))

    def launch_group(
        self,
        requests: Sequence[JobRequest],
        group: JobGroupConfig,
        reservation_id: ReservationId | None = None,
    ) -> list[JobId]:
        """Start jobs together, all or none, see Cluster.launch_group."""
        check_group(requests, group)
        request_id = uuid.uuid4().hex

        def launch() -> list[JobId]:
            message = pb.LaunchGroupRequest(
                requests=[self._message(request, group.namespace) for request in requests],
                group=group_to(group, self._namespace),
                reservation_id=reservation_id or "",
                request_id=request_id,
            )
            return [JobId(i) for i in self._connection.call(self._stub.LaunchGroup, message).job_ids]

        ids = self._shipped(launch)
        self._founded(ids[0])
        return ids

    def _message(self, request: JobRequest, namespace: str | None = None) -> pb.JobRequest:
        entrypoint = self._shipper.entrypoint(request.entrypoint)
        environment = self._shipper.environment(request)
        return request_to(request, namespace or self._namespace, entrypoint, environment)

    def _shipped(self, launch: Callable[[], _Result]) -> _Result:
        """Launch; once more if the cluster has lost what was uploaded before."""
        try:
            return launch()
        except NotFoundError:
            if not self._shipper.forget():
                raise
            return launch()

    def _founded(self, job_id: JobId) -> JobId:
        """Stay in the namespace of the first job that was launched."""
        if not self._namespace:
            self._namespace = self.poll(job_id).namespace
        return job_id

    def poll(self, job_id: JobId) -> JobInfo:
        """Return how a job stands, see Cluster.poll."""
        return job_of(self._connection.call(self._stub.Poll, pb.PollRequest(job_id=job_id)))

    def terminate(self, job_id: JobId) -> None:
        """End a job and all that it launched, see Cluster.terminate."""
        self._connection.call(self._stub.Terminate, pb.TerminateRequest(job_id=job_id))

    def list_jobs(self) -> list[JobInfo]:
        """Return the jobs of the namespace, those that ended lately too, see Cluster.list_jobs."""
        request = pb.ListJobsRequest(namespace=self._namespace, ended=True)
        return [job_of(job) for job in self._connection.call(self._stub.ListJobs, request).jobs]

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
        until = None if timeout is None else time.monotonic() + timeout
        ended: dict[JobId, JobInfo] = {}
        while living := [each for each in dict.fromkeys(ids) if each not in ended]:
            left = _ASK_AGAIN if until is None else until - time.monotonic()
            for asked, info in zip(living, self._ended(living, left), strict=True):
                if info.status.ended:
                    ended[asked] = info
            failed = [info for info in ended.values() if info.status is not JobStatus.SUCCEEDED]
            if failed and raise_on_failure:
                raise JobFailedError(failed)
            if until is not None and time.monotonic() >= until and len(ended) < len(set(ids)):
                names = ", ".join(each for each in ids if each not in ended)
                raise WaitTimeoutError(f"{names} had not ended after {timeout} s")
        infos = [ended[each] for each in ids]
        return infos[0] if isinstance(job_id, str) else infos

    def _ended(self, ids: Sequence[JobId], seconds: float) -> list[JobInfo]:
        """Return how jobs stand once one of them has ended, or after some time."""
        seconds = min(max(seconds, 0), _ASK_AGAIN)
        request = pb.WaitRequest(job_ids=ids, timeout=duration(seconds), any=True)
        answer = self._connection.call(
            self._stub.Wait, request, timeout=self._connection.timeout + seconds + _MARGIN
        )
        return [job_of(job) for job in answer.jobs]

    def monitor(self, job_id: JobId) -> JobInfo:
        """Print what a job writes, from its first attempt on, until it has ended, see Cluster.monitor."""
        return Monitor(self._connection, job_id).run()

    # Reservations

    def create_reservation(self, config: ReservationConfig) -> ReservationId:
        """Reserve slices, see Cluster.create_reservation."""
        check_reservation(config)
        request = pb.CreateReservationRequest(
            config=reservation_to(config, self._namespace), request_id=uuid.uuid4().hex
        )
        answer = self._connection.call(self._stub.CreateReservation, request)
        self._namespace = self._namespace or answer.config.namespace
        return ReservationId(answer.reservation_id)

    def release_reservation(self, reservation_id: ReservationId) -> None:
        """Give a reservation up, see Cluster.release_reservation."""
        request = pb.ReleaseReservationRequest(reservation_id=reservation_id)
        self._connection.call(self._stub.ReleaseReservation, request)

    def get_reservation(self, reservation_id: ReservationId) -> ReservationInfo:
        """Return how a reservation stands, see Cluster.get_reservation."""
        request = pb.GetReservationRequest(reservation_id=reservation_id)
        return reservation_of(self._connection.call(self._stub.GetReservation, request))

    # The connection

    @property
    def namespace(self) -> Namespace:
        """The scope of names of this connection; "" before one is founded, see the constructor."""
        context = job_context()
        return context.namespace if context else Namespace(self._namespace)

    @property
    def metadata(self) -> Metadata:
        """The registry of actors, of whatever namespace the connection has when it is used."""
        return FrayMetadata(self._connection, lambda: Namespace(self._namespace))

    def metadata_of(self, namespace: str) -> Metadata:
        """Return the registry of actors of another namespace, which only users may read."""
        return FrayMetadata(self._connection, lambda: Namespace(namespace))

    def identity_of(self, namespace: str, wait: bool = True) -> str | None:
        """Return the file of what this process shows to actors of a namespace; "": it has nothing to show.

        Jobs have that of their own namespace in FRAY_ACTOR_IDENTITY. Under fray run there is one for each
        namespace that is asked for; None: it was not asked for yet, and the call does not `wait`.

        Raises:
            ClusterError: it could not be asked for.
        """
        own = os.environ.get("FRAY_ACTOR_IDENTITY", "")
        if own and os.environ.get("FRAY_NAMESPACE", "") in ("", namespace):
            return own
        found = self._identities.get(namespace)
        if found is None and wait:
            try:
                request = pb.IdentityRequest(namespace=namespace)
                found = self._connection.call(self._connection.client.Identity, request).file
            except UnsupportedError:
                found = own  # neither an agent nor a controller has others
            self._identities[namespace] = found
        return found

    def renew_identity(self, namespace: str) -> None:
        """Bring the file of `identity_of` up to date: a leader of the cluster that is new has to be in it.

        Only fray run does so when it is asked; an agent does by itself. What fails is left as it is.
        """
        with suppress(ClusterError):
            request = pb.IdentityRequest(namespace=namespace)
            self._connection.call(self._connection.client.Identity, request)

    def close(self) -> None:
        """Close the connection. Jobs go on."""
        close_attached(self)
        self._connection.close()
