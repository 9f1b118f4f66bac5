"""The vocabulary of jobs: requests, what becomes of them, and their identities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NewType, TypeAlias

from fray.cluster.errors import InvalidRequestError
from fray.cluster.resources import ResourceConfig

JobId = NewType("JobId", str)
ActorId = NewType("ActorId", str)
ReservationId = NewType("ReservationId", str)
Namespace = NewType("Namespace", str)


class JobStatus(StrEnum):
    """Where a job is in its life."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def ended(self) -> bool:
        """Whether a job of this status stays as it is."""
        return self in (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.STOPPED)


class NameClash(StrEnum):
    """What to do when a job of the same name lives in the namespace. Ended jobs do not clash."""

    ERROR = "error"
    KEEP = "keep"
    """Answer with the job that lives."""
    RECREATE = "recreate"
    """End that one, then start this."""


class Band(StrEnum):
    """Which jobs go first. A job may take the place of one of a lower band."""

    PRODUCTION = "production"
    INTERACTIVE = "interactive"
    BATCH = "batch"


@dataclass(frozen=True)
class Command:
    """A program with its arguments."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class PythonCall:
    """A Python function with what it is called with."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The function's name, for people: "train:main"."""
        named = getattr(self.function, "func", self.function)  # of a functools.partial
        qualname = getattr(named, "__qualname__", type(named).__qualname__)
        return f"{getattr(named, '__module__', None) or '?'}:{qualname}"


@dataclass(frozen=True)
class Entrypoint:
    """What the tasks of a job run. Make one with `from_callable` or `from_command`."""

    kind: Command | PythonCall

    @classmethod
    def from_callable(
        cls,
        function: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Entrypoint:
        """Return an entrypoint that calls a function.

        On a cluster it is pickled with its arguments by cloudpickle: what `__main__` defines travels by
        value, what modules define is imported there.
        """
        if not callable(function):
            raise InvalidRequestError.of("entrypoint", f"{function!r} cannot be called")
        return cls(PythonCall(function, tuple(args), dict(kwargs or {})))

    @classmethod
    def from_command(cls, command: Sequence[str]) -> Entrypoint:
        """Return an entrypoint that runs a program: its name and its arguments, without a shell."""
        if isinstance(command, str) or not command or not all(isinstance(word, str) for word in command):
            message = f"{command!r} is no command: write its words as a list, such as ['python', 'main.py']"
            raise InvalidRequestError.of("entrypoint", message)
        return cls(Command(tuple(command)))


@dataclass
class EnvironmentConfig:
    """Where the tasks of a job find their programs, modules and variables.

    Inside of a job it starts from the environment of that job. Outside, `project` is the nearest directory
    with a pyproject.toml at or above the working directory, unless it is given.
    """

    project: str | None = None
    """A directory that is shipped, but for what its .gitignore files exclude."""
    image: str | None = None
    """A container image."""
    extras: Sequence[str] = ()
    """Optional dependencies of the project, which uv installs from its uv.lock."""
    groups: Sequence[str] = ()
    """Dependency groups of the project."""
    python: str | None = None
    """The version of Python, such as "3.12"; None: what the project asks for."""
    env_vars: Mapping[str, str] = field(default_factory=dict)
    inherit: bool = True
    """Whether to start from the environment of the job that launches this one."""

    @classmethod
    def create(
        cls,
        *,
        project: str | None = None,
        image: str | None = None,
        extras: Sequence[str] | None = None,
        groups: Sequence[str] | None = None,
        python: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        inherit: bool = True,
    ) -> EnvironmentConfig:
        """Return an environment, see the fields."""
        return cls(
            project=project,
            image=image,
            extras=tuple(extras or ()),
            groups=tuple(groups or ()),
            python=python,
            env_vars=dict(env_vars or {}),
            inherit=inherit,
        )


@dataclass
class HealthCheck:
    """How to see that a running task works. Exactly one of `http`, `tcp` and `exec` is given."""

    http: str = ""
    """A path, which answers with a status of 2xx or 3xx."""
    tcp: bool = False
    """Whether it is enough that a port accepts connections."""
    exec: Sequence[str] = ()
    """A command, which ends with status 0."""
    port: str = ""
    """Name of one of the job's ports, for `http` and `tcp`."""
    interval_seconds: float = 10
    timeout_seconds: float = 5
    threshold: int = 3
    """After how many failures in a row a task has failed."""


@dataclass
class JobRequest:
    """A job to launch."""

    name: str
    """Unique in the namespace among the jobs that live: letters, digits and ". _ - /", at most 200."""
    entrypoint: Entrypoint
    resources: ResourceConfig = field(default_factory=ResourceConfig)
    environment: EnvironmentConfig | None = None
    """None: that of the job which launches it, see EnvironmentConfig."""
    namespace: Namespace | None = None
    """None: the cluster connection's. Jobs may give their own only."""
    num_tasks: int = 1
    """How many tasks start together; 1: as many as the resources have hosts."""
    max_retries_failure: int = 0
    """-1: without end."""
    max_retries_preemption: int = 100
    """-1: without end."""
    band: Band | None = None
    """None: that of the job which launches it, or interactive."""
    priority: int = 0
    """Within the band; the higher goes first."""
    user: str | None = None
    """Whose share it uses; None: that of the job which launches it."""
    name_clash: NameClash = NameClash.ERROR
    detached: bool = False
    """Whether it lives on when the job that launched it ends."""
    session: str = ""
    """Of the client, see FrayCluster.session: it ends with that, unless it is detached. "": with none."""
    timeout_seconds: float | None = None
    """The longest an attempt may take."""
    scheduling_timeout_seconds: float | None = None
    """The longest it may wait for its first attempt."""
    stop_grace_seconds: float | None = None
    """Between asking tasks to stop and killing them; None: 10."""
    labels: Mapping[str, str] = field(default_factory=dict)
    health_check: HealthCheck | None = None
    reservation_id: ReservationId | None = None
    """The reservation whose slices it uses."""
    ports: Sequence[str] = ()
    """Names of ports that tasks get, as FRAY_PORT_<NAME>."""


@dataclass
class JobGroupConfig:
    """Jobs that are placed together, all or none, close to each other."""

    name: str
    namespace: Namespace | None = None
    same_region: bool = True
    same_zone: bool = False
    """Stricter: for calls that cannot wait."""


@dataclass
class ReservationConfig:
    """Slices for jobs to come: `min_resources` are kept, up to `max_resources` are made as jobs need them."""

    min_resources: ResourceConfig
    max_resources: ResourceConfig
    """Of the same shape as `min_resources`; only `replicas` differs."""
    priority: int = 0
    ttl_seconds: int = 3600
    preemptible: bool = True
    name: str = ""
    """"": one is made."""
    detached: bool = False
    """Whether it lives on when the job that made it ends."""


@dataclass(frozen=True)
class ReservationInfo:
    """What became of a reservation."""

    reservation_id: ReservationId
    allocated_resources: ResourceConfig
    """Its `replicas` are the slices that are up."""
    pending_resources: ResourceConfig
    """Its `replicas` are the slices that are asked for."""
    jobs: list[JobId]
    """Those that use it."""
    expires_at: float
    """Unix time in seconds; infinity: never."""
    pending_reasons: tuple[str, ...] = ()
    released: bool = False
    free: int = 0
    """How many of the allocated slices no job uses."""


class TaskState(StrEnum):
    """Where a task is in its life, or how it ended."""

    PENDING = "pending"
    ASSIGNED = "assigned"
    BUILDING = "building"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"
    WORKER_FAILED = "worker_failed"
    PREEMPTED = "preempted"
    UNSCHEDULABLE = "unschedulable"
    EXIT_UNKNOWN = "exit_unknown"


class TerminationCause(StrEnum):
    """Why a program can never do what it was started for."""

    ACTOR_UNMADE = "actor_unmade"
    """The constructor of the actor failed."""
    ACTOR_INVALID = "actor_invalid"
    """The actor can never be registered: its class, its options or its name are wrong."""
    CALLABLE_REFUSED = "callable_refused"
    """Unpickling the callable failed."""
    CALLABLE_INVALID = "callable_invalid"
    """The callable can never run there: it is of another Python, or a module is missing."""
    PROGRAM_MISSING = "program_missing"
    """Its host does not have the program, or may not execute it."""
    PACKAGE_MISSING = "package_missing"
    """Its Python does not have the package fray."""
    FINAL = "final"
    """As the program itself states: what it was to do has failed for good, such as a run of fray.rl."""

    @property
    def permanent(self) -> bool:
        """Whether each further attempt would end the same way, so that there is none."""
        return self not in (TerminationCause.ACTOR_UNMADE, TerminationCause.CALLABLE_REFUSED)


@dataclass(frozen=True)
class Termination:
    """What a program of fray's own recorded about why it failed."""

    cause: TerminationCause
    message: str
    type: str = ""
    """Of the exception, "" without one."""
    trace: str = ""
    """Where it was raised."""


@dataclass(frozen=True)
class TaskInfo:
    """One process of a job, in its last attempt."""

    index: int
    state: TaskState
    reason: str = ""
    slice: str = ""
    host: int = 0
    address: str = ""
    zone: str = ""
    exit_code: int | None = None
    ports: Mapping[str, int] = field(default_factory=dict)
    tail: tuple[str, ...] = ()
    """The last lines that it wrote."""
    termination: Termination | None = None
    """None unless it is a program of fray's own that recorded why it failed."""


@dataclass(frozen=True)
class AttemptInfo:
    """One try at running all tasks of a job. Times are Unix times in seconds."""

    number: int
    why: str = ""
    """Why it began."""
    started_at: float | None = None
    ended_at: float | None = None
    outcome: TaskState | None = None
    """None while it runs."""
    reason: str = ""
    """Why it ended."""
    slices: tuple[str, ...] = ()
    termination: Termination | None = None
    """Of the task by which it failed."""


class ChoiceReason(StrEnum):
    """Why an alternative was chosen."""

    FIRST = "first"
    """It is the first of the list."""
    BLOCKED = "blocked"
    """Those before it were blocked everywhere."""
    IDLE = "idle"
    """Slices of it idled."""
    FOUND = "found"
    """The job was found running on it."""


@dataclass(frozen=True)
class PassedAlternative:
    """An alternative that was not to be had when another was chosen."""

    accelerator: str
    cause: str
    """Such as "capacity" or "quota", see docs/status-json.md."""
    text: str = ""
    """For people."""


@dataclass(frozen=True)
class Choice:
    """Which of its alternatives a job was given, as `ResourceConfig.with_accelerators` takes them."""

    accelerator: str
    reason: ChoiceReason | None
    """None: a later version of the controller knows others."""
    passed: tuple[PassedAlternative, ...] = ()
    """Those before it in the list."""


@dataclass(frozen=True)
class JobInfo:
    """A job as it stands. Times are Unix times in seconds."""

    job_id: JobId
    name: str
    namespace: Namespace
    status: JobStatus
    reason: str = ""
    """Why it waits, failed or was stopped."""
    pending_reasons: tuple[str, ...] = ()
    """Why it waits, for each place where it might run."""
    parent_job_id: JobId | None = None
    user: str = ""
    band: Band | None = None
    ready: bool = False
    tasks: tuple[TaskInfo, ...] = ()
    attempt: int = 0
    """The number of the last attempt, from 1; 0: none has begun."""
    failures: int = 0
    preemptions: int = 0
    submitted_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    attempts: tuple[AttemptInfo, ...] = ()
    group: str = ""
    reservation_id: ReservationId | None = None
    address: str = ""
    """Its address in the stack, for fray's command line."""
    accelerators: tuple[str, ...] = ()
    """Its alternatives, in order of preference; empty where there is no choice."""
    choice: Choice | None = None
    """Which of them it was last given, None before."""


@dataclass(frozen=True)
class ActorEndpoint:
    """Where an actor listens."""

    actor_id: ActorId
    """Of this incarnation."""
    name: str
    address: str
    """host:port"""
    job_id: JobId
    namespace: Namespace
    metadata: Mapping[str, str] = field(default_factory=dict)
    task: int = 0
    """The index of its task in the job."""


@dataclass(frozen=True)
class ActorChanges:
    """What changed among the actors that are watched."""

    reset: bool
    """Whether `added` is all there is, and what was known before is void."""
    added: tuple[ActorEndpoint, ...] = ()
    removed: tuple[ActorId, ...] = ()


JobIds: TypeAlias = JobId | Sequence[JobId]
