"""The jobs of a namespace as Ray's store keeps them: those that are launched together all or none."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator, Sequence

from fray.cluster.ray.records import Job
from fray.cluster.ray.store import Store


class Journal:
    """Writes jobs, and reads those that a former process of the registry has written.

    A job is a value of its own, so that a change of one writes no other. Several that are launched together
    are one value more until each has been written: a process that ends in between has launched all of them.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, job: Job) -> None:
        """Write a job."""
        self._store.put("job", job.job_id, pickle.dumps(job))

    @contextlib.contextmanager
    def together(self, jobs: Sequence[Job]) -> Iterator[None]:
        """Have the jobs that are written meanwhile written all or none."""
        if len(jobs) < 2:
            yield
            return
        self._store.put("launch", jobs[0].asked, pickle.dumps(tuple(jobs)))
        yield
        self._store.delete("launch", jobs[0].asked)

    def jobs(self) -> list[Job]:
        """Return all jobs, after writing what was not written of a launch."""
        values = [self._store.get("job", name) for name in self._store.names("job")]
        found: list[Job] = [pickle.loads(value) for value in values if value is not None]
        known = {job.job_id for job in found}
        for name in self._store.names("launch"):
            launched: tuple[Job, ...] = pickle.loads(self._store.get("launch", name) or pickle.dumps(()))
            for job in launched:
                if job.job_id not in known:
                    self.put(job)
                    found.append(job)
            self._store.delete("launch", name)
        return found
