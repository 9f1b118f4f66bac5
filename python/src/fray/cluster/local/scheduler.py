"""Which jobs of a LocalCluster run, and what follows when their tasks end.

All of it happens under the cluster's lock, which its callers hold.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from enum import Enum

from fray.cluster.errors import NotFoundError
from fray.cluster.local.job import Job
from fray.cluster.local.launch import TaskMaker
from fray.cluster.local.lock import ClusterLock
from fray.cluster.local.task import Outcome, ProcessTask, Task
from fray.cluster.local.timers import Timers
from fray.cluster.protocols import Cluster
from fray.cluster.types import JobId, JobStatus, Namespace, TaskState

_GRACE = 10.0  # seconds, the default of JobRequest.stop_grace_seconds
_BACKOFF, _LONGEST_BACKOFF = 0.1, 5.0  # seconds between a failure and the next attempt


class _Timer(Enum):
    """What is done later about a job."""

    START = "start"
    """It is given up if it has not started by then."""
    END = "end"
    """Its attempt is stopped."""
    RETRY = "retry"
    """The next attempt begins."""


class Scheduler:
    """The jobs of a cluster. `on_end` is called when an attempt has ended."""

    def __init__(self, cluster: Cluster, changed: ClusterLock, max_workers: int, use_processes: bool) -> None:
        self.jobs: dict[JobId, Job] = {}
        self.on_end: Callable[[Job], None] = lambda _job: None
        self._changed = changed
        self.timers = Timers(changed)
        """What the cluster does later."""
        self._max_workers = max_workers
        self._make = TaskMaker(cluster, use_processes)
        self._queue: list[list[Job]] = []  # each starts as a whole

    def job(self, job_id: JobId) -> Job:
        """Return a job by its id."""
        found = self.jobs.get(job_id)
        if found is None:
            raise NotFoundError(f'there is no job "{job_id}"')
        return found

    def living(self, namespace: Namespace, name: str) -> Job | None:
        """Return the job that has a name now."""
        for job in self.jobs.values():
            if job.namespace == namespace and job.request.name == name and not job.status.ended:
                return job
        return None

    def is_over(self, job: Job) -> bool:
        """Report whether a job has ended and its processes too. Threads that were stopped do not matter."""
        living = (t for i, t in enumerate(job.tasks) if i not in job.outcomes and isinstance(t, ProcessTask))
        return job.status.ended and not any(living)

    def submit(self, jobs: list[Job]) -> None:
        """Queue jobs that start together, and start what can be."""
        if not jobs:
            return
        for job in jobs:
            self._make.check(job)  # before any is kept
        try:
            self._submit(jobs)
        except BaseException:  # of a handler of a signal: its caller has no id to end them by
            for job in jobs:
                self.stop(job, "its launch was interrupted")
            raise

    def _submit(self, jobs: list[Job]) -> None:
        for job in jobs:
            self.jobs[job.job_id] = job
            if job.request.scheduling_timeout_seconds is not None:
                key = _Timer.START, job.job_id
                self.timers.set(key, job.request.scheduling_timeout_seconds, self._give_up, job)
        self._queue.append(jobs)
        self._admit()

    def _give_up(self, job: Job) -> None:
        if job.status is JobStatus.PENDING:
            reason = f"it could not start in {job.request.scheduling_timeout_seconds} s: {job.reason}"
            self._end(job, JobStatus.FAILED, reason)

    def _admit(self) -> None:
        while self._queue:
            unit = [job for job in self._queue[0] if job.status is JobStatus.PENDING]
            if unit and not self._fits(unit):
                break
            for job in unit:
                self._begin(job, "it was launched")
            self._queue.pop(0)  # only now: what interrupts this leaves the rest in the queue
        for unit in self._queue:
            for job in (each for each in unit if each.status is JobStatus.PENDING):  # others have ended here
                job.reason = f"it waits for a worker: all {self._max_workers} are in use"
        self._changed.notify_all()

    def _fits(self, unit: list[Job]) -> bool:
        """Report whether the tasks of a unit may start beside those that run and do not wait for them."""
        above = {job.job_id for job in self._line(unit[0])}
        running = (j for j in self.jobs.values() if j.status is JobStatus.RUNNING and j.job_id not in above)
        used = sum(max(0, j.size - j.blocked) for j in running)
        return used == 0 or used + sum(job.size for job in unit) <= self._max_workers

    def _line(self, job: Job) -> Iterator[Job]:
        """Yield the parents of a job, the nearest first."""
        while job.parent is not None and job.parent in self.jobs:
            job = self.jobs[job.parent]
            yield job

    def _begin(self, job: Job, why: str) -> None:
        try:
            self._start(job, why)
        except (
            BaseException
        ):  # of a handler of a signal: a job with half its tasks would hold workers for ever
            self.stop(job, "its start was interrupted")
            raise

    def _start(self, job: Job, why: str) -> None:
        job.begin(time.time(), why)
        self.timers.cancel((_Timer.START, job.job_id))
        job.tasks = [self._make.task(job, i) for i in range(job.size)]
        for i, task in enumerate(job.tasks):
            name = f"{job.job_id}/{i}"
            threading.Thread(
                target=self._run, args=(job, job.attempt, i, task), name=name, daemon=True
            ).start()
        if job.request.timeout_seconds is not None:
            key = _Timer.END, job.job_id
            self.timers.set(key, job.request.timeout_seconds, self._time_out, job, job.attempt)
        self._changed.notify_all()

    def _time_out(self, job: Job, attempt: int) -> None:
        if job.status is JobStatus.RUNNING and job.attempt == attempt and job.alive:
            if job.failure is None:
                reason = f"it took longer than {job.request.timeout_seconds} s"
                job.failure = Outcome(TaskState.FAILED, reason)
            self._stop_tasks(job)

    def _run(self, job: Job, attempt: int, index: int, task: Task) -> None:
        """Run a task, in a thread of its own."""
        outcome = task.run()
        with self._changed.held:
            if job.attempt != attempt:
                return  # a thread that was stopped late
            job.ended(index, outcome)
            if job.failure is not None or job.status.ended:
                self._stop_tasks(job)
            if job.alive == 0:
                self._conclude(job)
            self._changed.notify_all()

    def _conclude(self, job: Job) -> None:
        """Decide what follows an attempt whose tasks have all ended."""
        self.timers.cancel((_Timer.END, job.job_id))
        self._stop_children(job)
        if job.status.ended:
            job.conclude(time.time())
            self.on_end(job)
            self._admit()
            return
        outcome = job.conclude(time.time())
        self.on_end(job)
        request = job.request
        match outcome.state:
            case TaskState.SUCCEEDED:
                self._end(job, JobStatus.SUCCEEDED, "")
            case TaskState.PREEMPTED:
                limit = request.max_retries_preemption
                if limit >= 0 and job.preemptions > limit:
                    self._end(job, JobStatus.FAILED, f"it was preempted {job.preemptions} times")
                else:
                    self._begin(job, "it was preempted")
            case _ if outcome.termination is not None and outcome.termination.cause.permanent:
                self._end(job, JobStatus.FAILED, outcome.reason)
            case _ if 0 <= request.max_retries_failure < job.failures:
                self._end(job, JobStatus.FAILED, outcome.reason)
            case _:
                delay = min(_LONGEST_BACKOFF, _BACKOFF * 2 ** (job.failures - 1))
                key = _Timer.RETRY, job.job_id
                self.timers.set(key, delay, self._retry, job, job.attempt, outcome.reason)

    def _retry(self, job: Job, attempt: int, reason: str) -> None:
        if job.status is JobStatus.RUNNING and job.attempt == attempt:
            self._begin(job, f"it failed: {reason}")

    def _end(self, job: Job, status: JobStatus, reason: str) -> None:
        job.end(status, reason, time.time())
        self._cancel_timers(job)
        self.on_end(job)
        self._admit()

    def _cancel_timers(self, job: Job) -> None:
        for kind in _Timer:
            self.timers.cancel((kind, job.job_id))

    def stop(self, job: Job, reason: str) -> None:
        """End a job and the jobs that it launched, unless they have ended."""
        if not job.status.ended:
            job.end(JobStatus.STOPPED, reason, time.time())
            job.close_attempt(time.time(), Outcome(TaskState.KILLED, reason))
            self._stop_tasks(job)
            self._cancel_timers(job)
            self.on_end(job)
            self._stop_children(job)
        self._admit()

    def preempt(self, job: Job) -> None:
        """End the attempt of a running job as the loss of its machines would."""
        if job.status is JobStatus.RUNNING and job.alive:
            job.preempted = True
            job.failure = None
            self._stop_tasks(job)

    def _stop_children(self, parent: Job) -> None:
        for child in list(self.jobs.values()):
            if child.parent == parent.job_id and not child.request.detached and not child.status.ended:
                self.stop(child, f"stopped by the end of job {parent.job_id}, which launched it")

    def _stop_tasks(self, job: Job) -> None:
        grace = job.request.stop_grace_seconds or _GRACE
        for i, task in enumerate(job.tasks):
            if i not in job.outcomes:
                task.stop(grace)
        self._changed.notify_all()

    @contextlib.contextmanager
    def blocking(self, job: Job | None) -> Iterator[Callable[[], bool]]:
        """Give a job's worker to others while it waits; yields whether it was stopped."""
        if job is None:
            yield lambda: False
            return
        attempt = job.attempt
        job.blocked += 1
        self._admit()
        try:
            yield (
                lambda: job.status.ended or job.attempt != attempt or job.preempted or job.failure is not None
            )
        finally:
            job.blocked -= 1

    def discard(self, job: Job) -> None:
        """Remove what only attempts of a job need, which has ended."""
        self._make.discard(job)

    def rest(self) -> None:
        """Release the directory and the server of processes, which only jobs need."""
        self._make.close()

    def kill(self, owner: int) -> None:
        """End all processes at once, as this process ends and cannot wait for them.

        They are of the process `owner`: one that was forked from it leaves them alone when it exits.
        """
        if os.getpid() != owner:
            return
        for job in self.jobs.values():
            for task in job.tasks:
                if isinstance(task, ProcessTask):
                    task.kill()
