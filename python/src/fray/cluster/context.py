"""Which job the running code belongs to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from fray.cluster.types import JobId, Namespace

if TYPE_CHECKING:
    from fray.cluster.protocols import Cluster

_PORT = "FRAY_PORT_"


@dataclass(frozen=True)
class JobContext:
    """The task that the running code is. Make one with `job_context`."""

    job_id: JobId
    job_name: str
    namespace: Namespace
    attempt: int = 1
    task_index: int = 0
    num_tasks: int = 1
    environ: Mapping[str, str] = field(default_factory=dict)
    """Its variables; os.environ, unless the job is a thread."""

    @property
    def ports(self) -> dict[str, int]:
        """The numbers of its ports, by their names in lower case with "_" for "-"."""
        named = {k: v for k, v in self.environ.items() if k.startswith(_PORT)}
        return {name.removeprefix(_PORT).lower(): int(number) for name, number in named.items()}

    def variables(self) -> dict[str, str]:
        """Return the FRAY_ variables with these values."""
        return {
            "FRAY_JOB_ID": self.job_id,
            "FRAY_JOB_NAME": self.job_name,
            "FRAY_NAMESPACE": self.namespace,
            "FRAY_ATTEMPT": str(self.attempt),
            "FRAY_TASK_INDEX": str(self.task_index),
            "FRAY_NUM_TASKS": str(self.num_tasks),
        }


class Guard(Protocol):
    """Keeps a thread from being stopped in the midst of what others depend on."""

    def enter(self) -> None:
        """Begin such a part."""
        ...

    def leave(self) -> None:
        """End it, and be stopped now if that was to be meanwhile."""
        ...


@dataclass(frozen=True)
class _Scope:
    context: JobContext
    cluster: Cluster
    guard: Guard | None


_scope: ContextVar[_Scope | None] = ContextVar("fray_job", default=None)


def job_context() -> JobContext | None:
    """Return the task that this code runs in, None outside of jobs.

    In a process the FRAY_ variables have it. In a thread of a LocalCluster it is a context variable,
    which threads started by the job do not see, unless they run in contextvars.copy_context().
    """
    scope = _scope.get()
    return scope.context if scope else context_of(os.environ)


def context_of(environ: Mapping[str, str]) -> JobContext | None:
    """Return the task that a process with these variables is, None if it is no task."""
    if not environ.get("FRAY_JOB_ID"):
        return None
    return JobContext(
        job_id=JobId(environ["FRAY_JOB_ID"]),
        job_name=environ.get("FRAY_JOB_NAME", ""),
        namespace=Namespace(environ.get("FRAY_NAMESPACE", "")),
        attempt=int(environ.get("FRAY_ATTEMPT", "1")),
        task_index=int(environ.get("FRAY_TASK_INDEX", "0")),
        num_tasks=int(environ.get("FRAY_NUM_TASKS", "1")),
        environ=environ,
    )


def scoped_cluster() -> Cluster | None:
    """Return the LocalCluster whose thread this is."""
    scope = _scope.get()
    return scope.cluster if scope else None


def scoped_guard() -> Guard | None:
    """Return the guard of the thread that this is."""
    scope = _scope.get()
    return scope.guard if scope else None


@contextmanager
def job_scope(context: JobContext, cluster: Cluster, guard: Guard | None = None) -> Iterator[None]:
    """Make the code within be a task of a job."""
    token = _scope.set(_Scope(context, cluster, guard))
    try:
        yield
    finally:
        _scope.reset(token)
