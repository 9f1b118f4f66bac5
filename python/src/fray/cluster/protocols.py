"""What every cluster can do, whether it is a fray cluster or this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, overload, runtime_checkable

from fray.cluster.types import (
    ActorChanges,
    ActorEndpoint,
    ActorId,
    JobGroupConfig,
    JobId,
    JobInfo,
    JobRequest,
    Namespace,
    ReservationConfig,
    ReservationId,
    ReservationInfo,
)


@runtime_checkable
class Metadata(Protocol):
    """Names of actors and where they listen, in the namespace of a cluster connection.

    An endpoint lives as long as the task that registered it.
    """

    @property
    def namespace(self) -> Namespace:
        """The scope of the names; "" before the connection has one."""
        ...

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
        """Make an endpoint known. Several may share a name.

        One that its task registered earlier under this name and address gives way.

        Args:
            name: What it is looked up by.
            address: host:port
            job_id: Whose it is. In a LocalCluster "" is for programs outside of jobs.
            metadata: Further values for clients that look it up.
            actor_id: "actor-" and 26 letters and digits: the id that it gets, or that it has, to change it or
                to renew its time. None: one is made.
            unique: Refuse a name that another has.
            ttl: Seconds after which it expires, unless it is registered again under its actor_id. None: it
                lives as long as its task.
            task: The index of its task in the job; None: the one that calls this.

        Raises:
            NotFoundError: there is no such job.
            RefusedError: the job has ended.
            AlreadyExistsError: the name is taken, and one of the two is `unique`.
        """
        ...

    def unregister(self, actor_id: ActorId) -> None:
        """Forget an endpoint. One that is not known changes nothing."""
        ...

    def lookup(self, name: str) -> ActorEndpoint:
        """Return the newest endpoint of exactly this name.

        Raises:
            ActorNotFoundError: there is none. The message has names that are near.
        """
        ...

    def lookup_all(self, name: str) -> list[ActorEndpoint]:
        """Return all endpoints of exactly this name, the oldest first."""
        ...

    def list_actors(self, prefix: str = "") -> list[ActorEndpoint]:
        """Return the endpoints whose names begin so, by name, then the oldest first."""
        ...

    def watch(
        self, name: str = "", prefix: str = "", *, job_id: JobId | None = None
    ) -> Iterator[ActorChanges]:
        """Yield the endpoints of a name, or of all that begin with a prefix, then every change, without end.

        The first has all of them and `reset` set; so has one after which changes were missed.

        Raises:
            RefusedError: the job of `job_id` has ended, so its actors will not come.
        """
        ...


@runtime_checkable
class Cluster(Protocol):
    """Launches jobs, follows them and ends them. Jobs are independent processes.

    Every method raises ClusterUnavailableError when the cluster does not answer in time, and
    AccessDeniedError when it does not let the caller do that.
    """

    def launch(self, request: JobRequest) -> JobId:
        """Start a job, as a child of the job that calls this, and return at once.

        Raises:
            InvalidRequestError: the request has invalid fields; the error names them.
            AlreadyExistsError: a job of that name lives, see NameClash.
            RefusedError: the job can never fit.
            PickleError: the entrypoint's callable cannot be pickled; it names what in it cannot.
        """
        ...

    def launch_group(
        self,
        requests: Sequence[JobRequest],
        group: JobGroupConfig,
        reservation_id: ReservationId | None = None,
    ) -> list[JobId]:
        """Start jobs that are placed together, all or none; ids are in the order of the requests.

        `reservation_id` is for the requests that name none. Raises what `launch` raises.
        """
        ...

    def monitor(self, job_id: JobId) -> JobInfo:
        """Print what a job writes until it has ended."""
        ...

    def poll(self, job_id: JobId) -> JobInfo:
        """Return how a job stands.

        Raises:
            NotFoundError: there is no such job.
        """
        ...

    def terminate(self, job_id: JobId) -> None:
        """End a job and all that it launched. One that has ended stays as it is."""
        ...

    def list_jobs(self) -> list[JobInfo]:
        """Return the jobs of the namespace, with those that have ended a short while ago."""
        ...

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
        """Block until a job, or each of several, has ended.

        Args:
            job_id: One id, or several; the answer has the same shape and order.
            raise_on_failure: Raise as soon as one of them has ended without success.
            timeout: The longest wait in seconds; None: without end.

        Raises:
            JobFailedError: with `raise_on_failure`, one has failed or was stopped.
            WaitTimeoutError: the time was over before. The jobs go on.
        """
        ...

    def create_reservation(self, config: ReservationConfig) -> ReservationId:
        """Reserve slices for jobs to come. It ends with the job that made it, or when its ttl is over."""
        ...

    def release_reservation(self, reservation_id: ReservationId) -> None:
        """Give a reservation up. One that was released stays so."""
        ...

    def get_reservation(self, reservation_id: ReservationId) -> ReservationInfo:
        """Return how a reservation stands.

        Raises:
            NotFoundError: there is no such reservation.
        """
        ...

    @property
    def namespace(self) -> Namespace:
        """The scope of names of this connection."""
        ...

    @property
    def metadata(self) -> Metadata:
        """The registry of actors."""
        ...
