"""What is submitted, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from fray import cluster
from fray.cluster import Cluster, Entrypoint, EnvironmentConfig, JobId, JobStatus, ResourceConfig


@dataclass
class JobRequest:
    """A job to submit."""

    name: str
    """Unique in the namespace among the jobs that live."""
    entrypoint: Entrypoint
    resources: ResourceConfig = field(default_factory=ResourceConfig)
    environment: EnvironmentConfig | None = None
    num_tasks: int = 1
    """How many tasks start together, as for TPU slices; 1: as many as the resources have hosts."""
    max_retries_failure: int = 0
    """How often it is started again after it exits with another status than 0. -1: always."""
    max_retries_preemption: int = 100
    """How often it is started again after it lost a machine or its place. -1: always."""

    def for_cluster(self) -> cluster.JobRequest:
        """Return the same for fray.cluster."""
        return cluster.JobRequest(
            name=self.name,
            entrypoint=self.entrypoint,
            resources=self.resources,
            environment=self.environment,
            num_tasks=self.num_tasks,
            max_retries_failure=self.max_retries_failure,
            max_retries_preemption=self.max_retries_preemption,
        )


@runtime_checkable
class JobHandle(Protocol):
    """A job that was submitted. Each method raises a ClusterError where the cluster cannot be asked."""

    @property
    def job_id(self) -> str:
        """Its id in the cluster, such as "train-1"."""
        ...

    def wait(self, timeout: float = 300.0, *, raise_on_failure: bool = True) -> JobStatus:
        """Block until the job has ended, and return its final status.

        Args:
            timeout: The longest wait, in seconds.
            raise_on_failure: Whether ending without success is an error.

        Raises:
            JobFailedError: with `raise_on_failure`, the job failed or was stopped.
            WaitTimeoutError: the time was over before. The job goes on.
        """
        ...

    def status(self) -> JobStatus:
        """Return where the job is in its life."""
        ...

    def terminate(self) -> None:
        """End the job and all that it launched. One that has ended stays as it is."""
        ...


class ClusterJob:
    """A job of a cluster."""

    def __init__(self, on: Cluster, job_id: JobId) -> None:
        self._cluster, self._job_id = on, job_id

    @property
    def job_id(self) -> str:
        """What the cluster calls it."""
        return self._job_id

    def wait(self, timeout: float = 300.0, *, raise_on_failure: bool = True) -> JobStatus:
        """Block until the job has ended, see JobHandle.wait."""
        return self._cluster.wait(self._job_id, raise_on_failure, timeout=timeout).status

    def status(self) -> JobStatus:
        """Return where the job is in its life."""
        return self._cluster.poll(self._job_id).status

    def terminate(self) -> None:
        """End the job and all that it launched."""
        self._cluster.terminate(self._job_id)

    def __reduce__(self) -> tuple[Callable[[JobId], ClusterJob], tuple[JobId]]:
        """Travel as the id: where it arrives it is a job of the cluster that is current there."""
        return _arrived, (self._job_id,)

    def __repr__(self) -> str:
        """Return the id."""
        return f"<job {self._job_id}>"


def _arrived(job_id: JobId) -> ClusterJob:
    return ClusterJob(cluster.current_cluster(), job_id)
