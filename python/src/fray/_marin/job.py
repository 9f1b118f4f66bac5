"""Jobs that were submitted."""

from __future__ import annotations

from typing import Any

from fray.client import JobFailed
from fray.cluster import Cluster, JobFailedError, JobId, NotFoundError
from fray.cluster.current import current_cluster
from fray.types import JobStatus


class Job:
    """A job of a cluster, see fray.client.JobHandle. It may be pickled: it is of the cluster there then."""

    def __init__(self, on: Cluster, job_id: JobId) -> None:
        """Ask a cluster."""
        self._cluster, self._job_id = on, job_id

    @property
    def job_id(self) -> str:
        """Its id in the cluster."""
        return self._job_id

    def wait(self, timeout: float | None = None, *, raise_on_failure: bool = True) -> JobStatus:
        """Block until it has ended."""
        try:
            info = self._cluster.wait(self._job_id, raise_on_failure, timeout=timeout)
        except JobFailedError as err:
            raise JobFailed(self._job_id, self.status(), str(err)) from err
        return JobStatus(info.status)

    def status(self) -> JobStatus:
        """Return where it is in its life."""
        return JobStatus(self._cluster.poll(self._job_id).status)

    def terminate(self) -> None:
        """End it; one that ended so long ago that it was forgotten stays so."""
        try:
            self._cluster.terminate(self._job_id)
        except NotFoundError:
            return

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self._job_id,)

    def __repr__(self) -> str:
        return f"<job {self._job_id}>"


def _arrived(job_id: JobId) -> Job:
    return Job(current_cluster(), job_id)
