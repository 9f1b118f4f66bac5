"""Errors of clusters, as exceptions whose messages name the next step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fray.cluster.types import JobInfo


class ClusterError(Exception):
    """A cluster did not do what it was asked for."""


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one field of a request."""

    field: str
    """Its path, such as "requests[2].resources.tpu"."""
    message: str


class InvalidRequestError(ClusterError, ValueError):
    """A request has invalid fields. Nothing of it was carried out."""

    def __init__(self, message: str, fields: Sequence[FieldError] = ()) -> None:
        super().__init__(message, tuple(fields))
        self.message = message
        self.fields = tuple(fields)

    @classmethod
    def of(cls, field: str, message: str) -> InvalidRequestError:
        """Return the error of a single field."""
        return cls("the request is invalid", [FieldError(field, message)])

    def __str__(self) -> str:
        if not self.fields:
            return self.message
        return "\n".join([self.message + ":", *(f"  {f.field}: {f.message}" for f in self.fields)])


class RefusedError(ClusterError):
    """The request is well formed but infeasible in the present state, such as a group that cannot fit."""


class PickleError(InvalidRequestError):
    """A callable cannot be pickled. The message names what in it cannot."""


class NotFoundError(ClusterError, LookupError):
    """There is no job, reservation or blob of that name."""


class ActorNotFoundError(NotFoundError):
    """No actor of that name is registered in the namespace.

    `death` is why, if it was there and is gone for good: who deleted it, or why it failed; else "".
    `undecided`: its run is ending, and whether another follows is not known yet.
    """

    def __init__(self, message: str = "", death: str = "", undecided: bool = False) -> None:
        super().__init__(message, death, undecided)
        self.message, self.death, self.undecided = message, death, undecided

    def __str__(self) -> str:
        return self.message


class AlreadyExistsError(ClusterError):
    """A job or actor of that name lives in the namespace."""


class AccessDeniedError(ClusterError, PermissionError):
    """The token is missing, has expired, or does not allow this."""


class WaitTimeoutError(ClusterError, TimeoutError):
    """A job had not ended when the time to wait for it was over. It goes on."""


class ClusterUnavailableError(ClusterError, ConnectionError):
    """The cluster did not answer until the deadline. It may have carried the request out."""

    def __init__(self, target: str, tries: int, seconds: float, last: str) -> None:
        super().__init__(target, tries, seconds, last)
        self.target, self.tries, self.seconds, self.last = target, tries, seconds, last

    def __str__(self) -> str:
        times = "once" if self.tries == 1 else f"{self.tries} times"
        return (
            f"the cluster at {self.target} did not answer: tried {times} in {self.seconds:.1f} s; "
            f"the last error was: {self.last}"
        )


class NoControllerError(ClusterUnavailableError):
    """No controller leads at this moment; calls fail until one does."""


class UnsupportedError(ClusterError):
    """What answers at the address does not know such a call: it is another part of fray, or an older one."""


class JobFailedError(ClusterError):
    """A job that was waited for ended without success."""

    def __init__(self, jobs: Iterable[JobInfo]) -> None:
        self.jobs = tuple(jobs)
        super().__init__(self.jobs)

    def __reduce__(self) -> tuple[type[JobFailedError], tuple[tuple[JobInfo, ...]]]:
        return JobFailedError, (self.jobs,)

    def __str__(self) -> str:
        lines = []
        for job in self.jobs:
            lines.append(f"job {job.name} ({job.job_id}) {job.status}: {job.reason or 'no reason is known'}")
            for task in job.tasks:
                if task.exit_code == 0:
                    continue
                lines += [f"  task {task.index} | {line}" for line in task.tail]
        return "\n".join(lines)
