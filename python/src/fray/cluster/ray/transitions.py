"""What becomes of one job: pure functions from a job and an event to the job afterwards.

`begin` starts an attempt, `finish` and `lose` end one and decide whether another follows, `stop` ends the
job. Failures and preemptions have budgets of their own: a preemption never counts as a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fray.cluster.ray.records import Job, Place, TaskEnd
from fray.cluster.types import AttemptInfo, JobStatus, TaskInfo, TaskState, Termination

_BACKOFF, _LONGEST_BACKOFF = 0.1, 5.0  # seconds between a failure and the next attempt


def backoff(failures: int) -> float:
    """Return how many seconds the next attempt waits after so many failures."""
    return float(min(_LONGEST_BACKOFF, _BACKOFF * 2 ** max(0, min(failures, 20) - 1)))


def begin(job: Job, holder: str, places: Sequence[Place], now: float) -> Job:
    """Begin an attempt in these places. A former one has ended."""
    assert not job.running
    assert not job.status.ended
    number = job.attempt + 1
    return replace(
        job,
        status=JobStatus.RUNNING,
        reason="",
        attempts=(
            *job.attempts,
            AttemptInfo(number, _why(job), started_at=now, slices=_slices(places)),
        ),
        tasks=tuple(
            TaskInfo(
                i,
                TaskState.RUNNING,
                slice=place.slice,
                host=place.host,
                address=place.address,
            )
            for i, place in enumerate(places)
        ),
        places=tuple(places),
        holder=holder,
    )


def _slices(places: Sequence[Place]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(place.slice for place in places if place.slice))


def _why(job: Job) -> str:
    last = job.attempts[-1] if job.attempts else None
    if last is None:
        return "it was launched"
    if last.outcome is TaskState.PREEMPTED:
        return f"it was preempted: {last.reason}"
    return f"it failed: {last.reason}"


def finish(job: Job, ends: Sequence[TaskEnd], now: float) -> Job:
    """End the attempt, of whose tasks the first that failed decides. If that ends the job, it drains."""
    tasks = _ended_tasks(job, ends)
    first = next((end for end in ends if end.state is TaskState.FAILED), None)
    if first is None:
        closed = _close(job, tasks, now, TaskState.SUCCEEDED, "", None)
        return replace(_end(closed, JobStatus.SUCCEEDED, "", now), draining=True)
    reason = first.reason if len(job.places) == 1 else f"task {first.index}: {first.reason}"
    closed = _close(job, tasks, now, TaskState.FAILED, reason, first.termination)
    closed = replace(closed, failures=job.failures + 1)
    limit = job.launch.request.max_retries_failure
    permanent = first.termination is not None and first.termination.cause.permanent
    if permanent or 0 <= limit < closed.failures:
        return replace(_end(closed, JobStatus.FAILED, reason, now), draining=True)
    return replace(closed, status=JobStatus.PENDING, reason=f"it is tried again after a failure: {reason}")


def lose(job: Job, why: str, now: float) -> Job:
    """End the attempt, whose place was lost: a preemption."""
    tasks = _ended_tasks(job, [])
    closed = _close(job, tasks, now, TaskState.PREEMPTED, why, None)
    closed = replace(closed, preemptions=job.preemptions + 1)
    limit = job.launch.request.max_retries_preemption
    if 0 <= limit < closed.preemptions:
        times = "once" if closed.preemptions == 1 else f"{closed.preemptions} times"
        reason = f"it was preempted {times}, the last time because {why}"
        return replace(_end(closed, JobStatus.FAILED, reason, now), draining=True)
    return replace(closed, status=JobStatus.PENDING, reason=f"it waits for a place: {why}")


def stop(job: Job, reason: str, now: float) -> Job:
    """End the job. Its processes drain, where it has any."""
    if job.status.ended:
        return job
    draining = job.running
    closed = job
    if job.running:
        tasks = tuple(replace(task, state=TaskState.KILLED, reason=reason) for task in job.tasks)
        closed = _close(job, tasks, now, TaskState.KILLED, reason, None)
    return replace(_end(closed, JobStatus.STOPPED, reason, now), draining=draining)


def fail(job: Job, reason: str, termination: Termination | None, now: float) -> Job:
    """End the job, which can never run."""
    closed = _close(job, job.tasks, now, TaskState.FAILED, reason, termination) if job.running else job
    return _end(closed, JobStatus.FAILED, reason, now)


def _end(job: Job, status: JobStatus, reason: str, now: float) -> Job:
    return replace(job, status=status, reason=reason, ended_at=now, places=(), draining=False)


def _close(
    job: Job,
    tasks: tuple[TaskInfo, ...],
    now: float,
    outcome: TaskState,
    reason: str,
    termination: Termination | None,
) -> Job:
    last = replace(job.attempts[-1], ended_at=now, outcome=outcome, reason=reason, termination=termination)
    return replace(job, attempts=(*job.attempts[:-1], last), tasks=tasks, places=())


def _ended_tasks(job: Job, ends: Sequence[TaskEnd]) -> tuple[TaskInfo, ...]:
    known = {end.index: end for end in ends}
    found = []
    for task in job.tasks:
        end = known.get(task.index)
        if end is None:
            found.append(replace(task, state=TaskState.PREEMPTED))
            continue
        found.append(
            replace(
                task,
                state=end.state,
                reason=end.reason,
                exit_code=end.exit_code,
                tail=end.tail,
                termination=end.termination,
            )
        )
    return tuple(found)
