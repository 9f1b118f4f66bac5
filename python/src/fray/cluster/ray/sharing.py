"""The placement groups that jobs share which were launched together, made as often as it takes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from fray.cluster.ray import places
from fray.cluster.ray.demand import demand_of
from fray.cluster.ray.job_table import JobTable
from fray.cluster.ray.records import Job

_AGAIN = 1.0  # seconds before a group that could not be made is made again
_log = logging.getLogger("fray")


class SharedGroups:
    """Those of one namespace. All of it runs in the registry's event loop."""

    def __init__(self, ray: Any, table: JobTable) -> None:
        self._ray, self._table = ray, table
        self._problems: dict[str, str] = {}  # of groups that could not be made so far

    async def make(self, jobs: Iterable[Job]) -> None:
        """Make the groups that some jobs share, unless they are there, while any of those jobs lives."""
        await asyncio.gather(*(self._make(name) for name in {job.shared.name for job in jobs if job.shared}))

    async def _make(self, name: str) -> None:
        try:
            while any(_shares(job, name) for job in self._table.living()):
                problem = self._tried(name)
                if not problem:
                    return
                if self._problems.get(name) != problem:
                    _log.warning("the placement group %s cannot be made: %s", name, problem)
                self._problems[name] = problem
                await asyncio.sleep(_AGAIN)
        finally:
            self._problems.pop(name, None)

    def _tried(self, name: str) -> str:
        """Make a group, and return why Ray could not, "" if it did."""
        sharing = [job for job in self._table if _shares(job, name)]
        sharing.sort(key=lambda job: job.shared.first if job.shared else 0)
        try:
            places.make_shared(self._ray, name, [demand_of(job.launch.request) for job in sharing])
        except Exception as err:  # whatever it is: the jobs wait, and report it
            return f"{type(err).__qualname__}: {err}"
        return ""

    def reasons(self, job: Job) -> tuple[str, ...]:
        """Return why a job waits whose group could not be made so far."""
        problem = self._problems.get(job.shared.name) if job.shared else None
        return (f"Ray could not reserve the places of its group, which is tried again: {problem}",) * bool(
            problem
        )


def _shares(job: Job, name: str) -> bool:
    return job.shared is not None and job.shared.name == name
