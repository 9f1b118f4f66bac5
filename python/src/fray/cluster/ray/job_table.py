"""The jobs of one namespace: who has which name, who launched whom, and what an event changes.

It is pure but for its own state: the registry calls it, stores what it reports as changed, and carries out
what follows. Start with `launch`, then `begin`, which is also the start fence: it answers None to a
supervisor whose job is not wanted any more.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from fray.cluster.errors import AlreadyExistsError, NotFoundError, RefusedError
from fray.cluster.ray import transitions
from fray.cluster.ray.demand import demand_of
from fray.cluster.ray.records import Environment, Job, Launch, Place, Shared, Started, TaskEnd
from fray.cluster.types import JobId, NameClash, Namespace, Termination

MOST_ENDED = 10_000
"""How many jobs that have ended are kept, of the newest."""


class JobTable:
    """All jobs of a namespace.

    `changed` is called with each job that has changed, and within `together` with those of one launch.
    """

    def __init__(
        self,
        namespace: Namespace,
        changed: Callable[[Job], None],
        together: Callable[[Sequence[Job]], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        self.namespace = namespace
        self._changed, self._together = changed, together
        self._jobs: dict[JobId, Job] = {}
        self._living: dict[str, JobId] = {}
        self._requests: dict[str, list[JobId]] = {}  # of launches that may be asked for again

    def load(self, jobs: Iterable[Job]) -> None:
        """Take over what was stored before this process began."""
        # Those of a group have one time, and the order of their places.
        for job in sorted(jobs, key=lambda job: (job.submitted_at, job.shared.first if job.shared else 0)):
            self._jobs[job.job_id] = job
            if job.asked:
                self._requests.setdefault(job.asked, []).append(job.job_id)
            if not job.status.ended:
                self._living[job.launch.request.name] = job.job_id

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self._jobs.values()))

    def job(self, job_id: JobId) -> Job:
        """Return a job.

        Raises:
            NotFoundError: there is none.
        """
        found = self._jobs.get(job_id)
        if found is None:
            raise NotFoundError(f'there is no job "{job_id}" in namespace {self.namespace}')
        return found

    def living(self) -> list[Job]:
        """Return the jobs that have not ended."""
        return [self._jobs[job_id] for job_id in self._living.values()]

    def unused(self, job: Job) -> list[str]:
        """Return which blobs of a job that is over no other job needs; that of fray itself is kept."""
        own = {job.launch.callable, job.launch.environment.bundle} - {""}
        if not job.over or not own:
            return []
        for other in self._jobs.values():
            if not other.over:
                own -= set(other.launch.blobs)
        return sorted(own)

    def children(self, job_id: JobId) -> list[Job]:
        """Return the jobs that end with one."""
        return [j for j in self.living() if j.launch.parent == job_id and not j.launch.request.detached]

    # Launching

    def launch(
        self, launches: Sequence[Launch], group: str, request_id: str, now: float
    ) -> tuple[list[JobId], list[Job], list[Job]]:
        """Add jobs, all or none.

        Returns:
            Their ids, in order; those that are new; those that have to end first, as they hold a name that
            is to be taken. With any of the latter nothing was added.

        Raises:
            AlreadyExistsError: a name is taken.
            RefusedError: the job that launches them has ended, or another attempt of it has begun.
        """
        if request_id in self._requests:
            return self._answered(launches, self._requests[request_id]), [], []
        ids: list[JobId] = []
        clashing: list[Job] = []
        new: list[Job] = []
        for launch in launches:
            self._check_parent(launch)
            other = self._living.get(launch.request.name)
            if other is not None and launch.request.name_clash is NameClash.KEEP:
                ids.append(other)
                continue
            if other is not None and launch.request.name_clash is NameClash.RECREATE:
                clashing.append(self._jobs[other])
            elif other is not None:
                raise AlreadyExistsError(
                    f'job "{launch.request.name}" lives in namespace {self.namespace} as {other}; wait for '
                    "its end, terminate it, or set name_clash"
                )
            job_id = self._new_id(launch.request.name)
            ids.append(job_id)
            new.append(Job(job_id, self._inherited(launch), self.namespace, now, group, request_id))
        if clashing:
            return [], [], clashing
        new = _sharing(new) if group else new
        with self._together(new):
            for job in new:
                self._living[job.launch.request.name] = job.job_id
                self._put(job)
        self._requests[request_id] = ids
        return ids, new, []

    def _answered(self, launches: Sequence[Launch], ids: list[JobId]) -> list[JobId]:
        """Return the ids of launches that are asked for again, of which `ids` were new."""
        if len(ids) == len(launches):
            return ids
        known = {job.launch.request.name: job_id for job_id, job in self._jobs.items()}  # the last of a name
        known |= self._living | {self._jobs[job_id].launch.request.name: job_id for job_id in ids}
        return [known[launch.request.name] for launch in launches if launch.request.name in known]

    def _new_id(self, name: str) -> JobId:
        while True:
            job_id = JobId(f"{name}-{secrets.token_hex(4)}")
            if job_id not in self._jobs:
                return job_id

    def _check_parent(self, launch: Launch) -> None:
        parent = self._jobs.get(launch.parent) if launch.parent else None
        if parent is None:
            return
        if parent.status.ended:
            raise RefusedError(f"job {parent.job_id} has ended, so that it launches no others")
        if parent.attempt != launch.parent_attempt or not parent.running:
            raise RefusedError(
                f"attempt {launch.parent_attempt} of job {parent.job_id} is over; it launches no others"
            )

    def _inherited(self, launch: Launch) -> Launch:
        parent = self._jobs.get(launch.parent) if launch.parent else None
        if parent is None or not launch.inherit:
            return launch
        own, theirs = launch.environment, parent.launch.environment
        # Children of a job that hosts an actor host none.
        variables = {k: v for k, v in theirs.variables.items() if not k.startswith("FRAY_ACTOR_")}
        inherited = Environment(
            {**variables, **own.variables}, own.bundle or theirs.bundle, own.uv or theirs.uv
        )
        return replace(launch, environment=inherited)

    # Attempts

    def begin(self, job_id: JobId, holder: str, places: Sequence[Place], now: float) -> Started | None:
        """Begin an attempt; None: the job has ended, or its budget is spent."""
        job = self._jobs.get(job_id)
        if job is None or job.status.ended:
            return None
        if job.running and job.holder == holder:
            return Started(job.attempt, job.launch.environment)  # it is asked again
        if job.running:
            job = self._put(transitions.lose(job, f"{_where(job)} was lost", now))
            if job.status.ended:
                return None
        job = self._put(transitions.begin(job, holder, places, now))
        return Started(job.attempt, job.launch.environment)

    def current(self, job_id: JobId, attempt: int) -> Job | None:
        """Return the job if that attempt of it is under way: what another reports is void."""
        job = self._jobs.get(job_id)
        return job if job is not None and job.running and job.attempt == attempt else None

    def finish(self, job_id: JobId, attempt: int, ends: Sequence[TaskEnd], now: float) -> Job | None:
        """End an attempt whose tasks have ended; None: that attempt is not under way."""
        job = self.current(job_id, attempt)
        return self._put(transitions.finish(job, ends, now)) if job else None

    def lose(self, job_id: JobId, attempt: int, why: str, now: float) -> Job | None:
        """End an attempt whose place was lost; None: that attempt is not under way."""
        job = self.current(job_id, attempt)
        return self._put(transitions.lose(job, why, now)) if job else None

    def stop(self, job_id: JobId, reason: str, now: float) -> Job:
        """End a job."""
        job = self.job(job_id)
        return job if job.status.ended else self._put(transitions.stop(job, reason, now))

    def fail(self, job_id: JobId, reason: str, termination: Termination | None, now: float) -> Job:
        """End a job that can never run."""
        job = self.job(job_id)
        return job if job.status.ended else self._put(transitions.fail(job, reason, termination, now))

    def drained(self, job_id: JobId) -> None:
        """Note that the processes of a job that has ended have, too."""
        job = self._jobs.get(job_id)
        if job is not None and job.draining:
            self._put(replace(job, draining=False))

    def _put(self, job: Job) -> Job:
        self._jobs[job.job_id] = job
        name = job.launch.request.name
        if job.status.ended and self._living.get(name) == job.job_id:
            del self._living[name]
        self._changed(job)
        return job

    def old(self) -> list[Job]:
        """Remove the jobs that ended longest ago beyond those that are kept, and return them."""
        if len(self._jobs) - len(self._living) <= MOST_ENDED:
            return []
        ended = sorted((j for j in self._jobs.values() if j.over), key=lambda j: j.ended_at or 0.0)
        gone = ended[: max(0, len(self._jobs) - len(self._living) - MOST_ENDED)]
        for job in gone:
            del self._jobs[job.job_id]
            self._requests.pop(job.asked, None)
        return gone


def _sharing(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs of a group, with their places in the placement group that they share."""
    found, first = [], 0
    for job in jobs:
        found.append(replace(job, shared=Shared(f"fray-group {jobs[0].job_id}", first)))
        first += demand_of(job.launch.request).tasks
    return found


def _where(job: Job) -> str:
    nodes = ", ".join(dict.fromkeys(place.address or place.node for place in job.places))
    return f"its Ray worker on {nodes}" if nodes else "its Ray worker"
