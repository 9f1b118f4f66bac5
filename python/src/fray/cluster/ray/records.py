"""What travels between a client, the registry and supervisors, and what the registry keeps of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fray.cluster.project import UV
from fray.cluster.types import (
    AttemptInfo,
    Choice,
    Command,
    JobId,
    JobInfo,
    JobRequest,
    JobStatus,
    Namespace,
    TaskInfo,
    TaskState,
    Termination,
)

PROTOCOL = 2
"""Of the calls between clients, the registry and supervisors: all of one namespace have the same."""

GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL where a request names none."""


@dataclass(frozen=True)
class Environment:
    """Where tasks find programs, modules and variables."""

    variables: Mapping[str, str] = field(default_factory=dict, repr=False)  # secrets among them
    bundle: str = ""
    """The SHA-256 of the project's bundle, "" without a project."""
    uv: UV | None = None


@dataclass(frozen=True)
class Launch:
    """A job to launch."""

    request: JobRequest
    """Its entrypoint is a command always; that of a callable runs `fray._callable`."""
    environment: Environment
    package: str
    """The SHA-256 of the client's fray, with which the job is supervised."""
    callable: str = ""
    """The SHA-256 of the pickled callable, "" without one."""
    hosted: bool = False
    """Whether the callable is fray's own for an actor, which a Ray worker hosts itself, see `actors`."""
    inherit: bool = False
    """Whether it starts from the environment of its parent."""
    parent: JobId | None = None
    parent_attempt: int = 0
    accelerators: tuple[str, ...] = ()
    """Its alternatives, of which `request` has the chosen one; all of them where no node has any."""
    choice: Choice | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The command of each task."""
        kind = self.request.entrypoint.kind
        assert isinstance(kind, Command)
        return kind.words

    @property
    def blobs(self) -> tuple[str, ...]:
        """What has to be stored before it can run."""
        return tuple(filter(None, (self.package, self.callable, self.environment.bundle)))


@dataclass(frozen=True)
class Place:
    """Where one task runs."""

    node: str
    """The id of its Ray node."""
    address: str = ""
    slice: str = ""
    host: int = 0
    """Its index within the slice."""


@dataclass(frozen=True)
class TaskEnd:
    """How a task of an attempt ended."""

    index: int
    state: TaskState
    reason: str = ""
    exit_code: int | None = None
    tail: tuple[str, ...] = ()
    termination: Termination | None = None


@dataclass(frozen=True)
class Started:
    """An attempt that may start."""

    attempt: int
    environment: Environment
    identity: bytes = field(default=b"", repr=False)
    """What its processes show to actors, in PEM; b"": the head cannot make any."""
    blobs: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Those of the job that are small, by their SHA-256; others are in the store."""


@dataclass(frozen=True)
class Shared:
    """Places of a job within a placement group that several jobs have."""

    name: str
    """Of the placement group."""
    first: int
    """The bundle of the first task."""


@dataclass(frozen=True)
class Job:
    """A job as it stands. Times are Unix times in seconds."""

    job_id: JobId
    launch: Launch
    namespace: Namespace
    submitted_at: float
    group: str = ""
    asked: str = ""
    """The id of the call that launched it, which may be made again."""
    shared: Shared | None = None
    """Where its places are among those of a group; None: it has its own."""
    status: JobStatus = JobStatus.PENDING
    reason: str = ""
    failures: int = 0
    preemptions: int = 0
    ended_at: float | None = None
    attempts: tuple[AttemptInfo, ...] = ()
    tasks: tuple[TaskInfo, ...] = ()
    """Of the last attempt."""
    places: tuple[Place, ...] = ()
    """Of the attempt that runs; empty if none does."""
    holder: str = ""
    """The supervisor's process that began the last attempt."""
    draining: bool = False
    """Whether it has ended, but its processes may not have."""

    @property
    def attempt(self) -> int:
        """The number of the last attempt, 0 before the first."""
        return len(self.attempts)

    @property
    def running(self) -> bool:
        """Whether an attempt is under way."""
        return bool(self.attempts) and self.attempts[-1].ended_at is None

    @property
    def hosted(self) -> bool:
        """Whether a Ray worker itself hosts its actor, as that needs no other Python."""
        return self.launch.hosted and self.shared is None and self.launch.environment.uv is None

    @property
    def over(self) -> bool:
        """Whether it has ended, and its processes too."""
        return self.status.ended and not self.draining

    @property
    def grace(self) -> float:
        """Seconds between SIGTERM and SIGKILL."""
        return self.launch.request.stop_grace_seconds or GRACE

    def info(self, pending: tuple[str, ...] = ()) -> JobInfo:
        """Return how it stands; `pending` is why it waits."""
        request = self.launch.request
        waits = self.status is JobStatus.PENDING
        return JobInfo(
            job_id=self.job_id,
            name=request.name,
            namespace=self.namespace,
            status=self.status,
            reason=self.reason or ("; ".join(pending) if waits else ""),
            pending_reasons=pending if waits else (),
            parent_job_id=self.launch.parent,
            user=request.user or "",
            band=request.band,
            ready=self.running,
            tasks=self.tasks,
            attempt=self.attempt,
            failures=self.failures,
            preemptions=self.preemptions,
            submitted_at=self.submitted_at,
            started_at=self.attempts[0].started_at if self.attempts else None,
            ended_at=self.ended_at,
            attempts=self.attempts,
            group=self.group,
            reservation_id=request.reservation_id,
            accelerators=self.launch.accelerators,
            choice=self.launch.choice,
        )
