"""What clients do, in the words of marin-fray's `fray.client`.

For programs that were written for marin-fray. New ones use `fray.v2`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from fray.actor import ActorGroup, ActorHandle, HostedActor
from fray.types import ActorConfig, EnvironmentConfig, JobRequest, JobStatus, ResourceConfig

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds between two polls of jobs


class JobHandle(Protocol):
    """A job that was submitted."""

    @property
    def job_id(self) -> str:
        """Its id."""
        ...

    def wait(self, timeout: float | None = None, *, raise_on_failure: bool = True) -> JobStatus:
        """Block until it has ended, and return how.

        Raises:
            JobFailed: with `raise_on_failure`, it failed or was stopped.
            TimeoutError: the seconds were over before.
        """
        ...

    def status(self) -> JobStatus:
        """Return where it is in its life."""
        ...

    def terminate(self) -> None:
        """End it, and all that it launched."""
        ...


class Client(Protocol):
    """Submits jobs, and creates actors."""

    def submit(self, request: JobRequest, adopt_existing: bool = True) -> JobHandle:
        """Start a job and return at once.

        Args:
            request: The job.
            adopt_existing: Whether a job of that name which lives is the answer, instead of an error.

        Raises:
            JobAlreadyExists: one lives, and that is not asked for.
            ValueError: the request has invalid fields, or some that no cluster of fray has; it names them.
        """
        ...

    def host_actor(
        self,
        actor_class: type,
        *args: Any,
        name: str,
        actor_config: ActorConfig = ...,
        **kwargs: Any,
    ) -> HostedActor:
        """Make an actor in this process, which others call."""
        ...

    def create_actor(
        self,
        actor_class: type,
        *args: Any,
        name: str,
        resources: ResourceConfig = ...,
        actor_config: ActorConfig = ...,
        environment: EnvironmentConfig | None = None,
        **kwargs: Any,
    ) -> ActorHandle:
        """Create an actor and return its handle once it answers."""
        ...

    def create_actor_group(
        self,
        actor_class: type,
        *args: Any,
        name: str,
        count: int,
        resources: ResourceConfig = ...,
        actor_config: ActorConfig = ...,
        environment: EnvironmentConfig | None = None,
        **kwargs: Any,
    ) -> ActorGroup:
        """Begin to create `count` actors."""
        ...

    def shutdown(self, wait: bool = True) -> None:
        """End the actors that were created; with `wait`, once the jobs that were submitted have ended."""
        ...


class JobFailed(RuntimeError):  # noqa: N818 as marin-fray calls it
    """A job failed or was stopped."""

    def __init__(self, job_id: str, status: JobStatus, reason: str = "") -> None:
        super().__init__(job_id, status, reason)
        self.job_id, self.failed_status, self.reason = job_id, status, reason

    def __str__(self) -> str:
        return self.reason or f"job {self.job_id} finished with status {self.failed_status}"


class JobAlreadyExists(RuntimeError):  # noqa: N818 as marin-fray calls it
    """A job of the name lives; `handle` is it, where it is known."""

    def __init__(self, job_name: str, handle: JobHandle | None = None) -> None:
        super().__init__(job_name, handle)
        self.job_name, self.handle = job_name, handle

    def __str__(self) -> str:
        return f"Job {self.job_name} already exists"


def wait_all(
    jobs: Sequence[JobHandle], *, timeout: float | None = None, raise_on_failure: bool = True
) -> list[JobStatus]:
    """Wait until all jobs have ended, and return how, in the order given.

    Raises:
        JobFailed: with `raise_on_failure`, one failed or was stopped. The others go on.
        TimeoutError: the seconds were over before.
    """
    ended: dict[int, JobStatus] = {}
    until = None if timeout is None else time.monotonic() + timeout
    pause = _FIRST_PAUSE
    while True:
        for i, job in enumerate(jobs):
            if i in ended or not JobStatus.finished(status := job.status()):
                continue
            ended[i] = status
            if raise_on_failure and status is not JobStatus.SUCCEEDED:
                raise JobFailed(job.job_id, status)
        if len(ended) == len(jobs):
            return [ended[i] for i in range(len(jobs))]
        if until is not None and time.monotonic() >= until:
            raise TimeoutError(
                f"{len(jobs) - len(ended)} of {len(jobs)} jobs had not ended after {timeout} s"
            )
        time.sleep(pause if until is None else max(0.0, min(pause, until - time.monotonic())))
        pause = min(_LONGEST_PAUSE, pause * 1.5)
