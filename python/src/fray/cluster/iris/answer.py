"""Iris's answers as fray's types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fray.cluster.types import (
    AttemptInfo,
    JobId,
    JobInfo,
    JobStatus,
    Namespace,
    TaskInfo,
    TaskState,
    Termination,
)

Body = Mapping[str, Any]

_STATUS = {
    "JOB_STATE_PENDING": JobStatus.PENDING,
    "JOB_STATE_BUILDING": JobStatus.PENDING,
    "JOB_STATE_RUNNING": JobStatus.RUNNING,
    "JOB_STATE_SUCCEEDED": JobStatus.SUCCEEDED,
    "JOB_STATE_FAILED": JobStatus.FAILED,
    "JOB_STATE_KILLED": JobStatus.STOPPED,
    "JOB_STATE_WORKER_FAILED": JobStatus.FAILED,
    "JOB_STATE_UNSCHEDULABLE": JobStatus.FAILED,
}
_STATE = {
    "TASK_STATE_PENDING": TaskState.PENDING,
    "TASK_STATE_ASSIGNED": TaskState.ASSIGNED,
    "TASK_STATE_BUILDING": TaskState.BUILDING,
    "TASK_STATE_RUNNING": TaskState.RUNNING,
    "TASK_STATE_SUCCEEDED": TaskState.SUCCEEDED,
    "TASK_STATE_FAILED": TaskState.FAILED,
    "TASK_STATE_KILLED": TaskState.KILLED,
    "TASK_STATE_WORKER_FAILED": TaskState.WORKER_FAILED,
    "TASK_STATE_UNSCHEDULABLE": TaskState.UNSCHEDULABLE,
    "TASK_STATE_PREEMPTED": TaskState.PREEMPTED,
    "TASK_STATE_COSCHED_FAILED": TaskState.KILLED,  # with another task of its gang
    "TASK_STATE_MISSING": TaskState.EXIT_UNKNOWN,
}
_FRESH = "Pending scheduler feedback"  # before Iris has tried to place a job

_LIVES = ("TASK_STATE_PENDING", "TASK_STATE_ASSIGNED", "TASK_STATE_BUILDING", "TASK_STATE_RUNNING")

Terminations = Mapping[tuple[int, int], Termination]
"""What programs recorded, by index of the task and number of the attempt as Iris counts it."""
Tails = Mapping[int, tuple[str, ...]]
"""The last lines of tasks, by index."""


def status_of(state: str) -> JobStatus:
    """Return where a job of a state is in its life."""
    return _STATUS.get(state, JobStatus.PENDING)


def number(value: Any) -> int:
    """Return a number, which JSON has as a text if it is of 64 bits, and not at all if it is 0."""
    return int(value or 0)


def seconds(moment: Any) -> float | None:
    """Return a time as Unix time in seconds."""
    return number(moment["epochMs"]) / 1000 if moment and moment.get("epochMs") else None


def index_of(task: Body) -> int:
    """Return the index of a task in its job."""
    return int(str(task["taskId"]).rpartition("/")[2])


def attempts_of(task: Body) -> list[Body]:
    """Return the attempts at a task, the oldest first. A release of June has the last one only."""
    return sorted(task.get("attempts", ()), key=lambda attempt: number(attempt.get("attemptId")))


def ended_attempts(tasks: Sequence[Body]) -> list[tuple[int, int, int, str]]:
    """Return index, attempt, exit status and Iris's id of each attempt that is over."""
    return [
        (
            index_of(task),
            number(attempt.get("attemptId")),
            number(attempt.get("exitCode")),
            str(attempt.get("attemptUid")),
        )
        for task in tasks
        for attempt in attempts_of(task)
        if attempt.get("state") not in _LIVES
    ]


def job_of(
    job: Body,
    tasks: Sequence[Body],
    name: str,
    namespace: str,
    terminations: Terminations,
    tails: Tails,
) -> JobInfo:
    """Return how a job stands.

    Args:
        job: Its JobStatus.
        tasks: The TaskStatus of each of its tasks; empty where they were not asked for.
        name: What fray calls it.
        namespace: Of the client.
        terminations: What its programs recorded.
        tails: What its tasks wrote last.
    """
    job_id = str(job["jobId"])
    status = status_of(str(job.get("state", "")))
    infos = tuple(sorted((_task_of(t, terminations, tails) for t in tasks), key=lambda info: info.index))
    pending = _pending(job, tasks) if status is JobStatus.PENDING else ()
    return JobInfo(
        job_id=JobId(job_id),
        name=name,
        namespace=Namespace(namespace),
        status=status,
        reason="; ".join(pending) if pending else _reason(job, tasks),
        pending_reasons=pending,
        parent_job_id=_parent(job_id),
        user=job_id.split("/")[1],
        ready=status is JobStatus.RUNNING,
        tasks=infos,
        attempt=max((number(t.get("currentAttemptId")) + 1 for t in tasks if t.get("attempts")), default=0),
        failures=number(job.get("failureCount")),
        preemptions=number(job.get("preemptionCount")),
        submitted_at=seconds(job.get("submittedAt")),
        started_at=seconds(job.get("startedAt")),
        ended_at=seconds(job.get("finishedAt")) if status.ended else None,
        attempts=_attempts(tasks, terminations),
        address=job_id,
    )


def _parent(job_id: str) -> JobId | None:
    parent = job_id.rpartition("/")[0]
    return JobId(parent) if parent.count("/") > 1 else None


def _pending(job: Body, tasks: Sequence[Body]) -> tuple[str, ...]:
    """Return why a job waits; there is always a reason."""
    text = str(job.get("pendingReason", "")).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip() and line.strip() != _FRESH]
    if not lines:
        lines = [str(task["pendingReason"]) for task in tasks if task.get("pendingReason")]
    if not lines and job.get("state") == "JOB_STATE_BUILDING":
        lines = ["its environment is being set up"]
    return tuple(dict.fromkeys(lines)) or ("Iris has not tried to place it yet",)


def _reason(job: Body, tasks: Sequence[Body]) -> str:
    """Return why a job ended, or restarted: why its program failed, and what else Iris reports."""
    own = str(job.get("error", ""))
    for task in tasks:
        for attempt in reversed(attempts_of(task)):
            said = str(attempt.get("error", ""))
            if attempt.get("state") == "TASK_STATE_FAILED" and said:
                return said if said in own or not own else f"{said} ({own})"
    return own


def _task_of(task: Body, terminations: Terminations, tails: Tails) -> TaskInfo:
    index, attempts = index_of(task), attempts_of(task)
    state = _STATE.get(str(task.get("state")), TaskState.PENDING)
    last = attempts[-1] if attempts else {}
    # A task that Iris ended because of its own failure is killed afterwards.
    if state is TaskState.KILLED and last.get("state") == "TASK_STATE_FAILED":
        state = TaskState.FAILED
    ended = "exitCode" in last and last.get("state") in ("TASK_STATE_FAILED", "TASK_STATE_SUCCEEDED")
    return TaskInfo(
        index=index,
        state=state,
        reason=str(last.get("error") or task.get("error") or task.get("pendingReason") or ""),
        slice=str(task.get("workerId", "")),
        address=str(task.get("workerAddress", "")),
        exit_code=_exit_status(last) if ended else None,
        ports={name: number(port) for name, port in task.get("ports", {}).items()},
        tail=tails.get(index, ()),
        termination=terminations.get((index, number(last.get("attemptId")))) if last else None,
    )


def _exit_status(attempt: Body) -> int:
    """Return the exit status of an attempt; for one that a signal ended, 128 and the signal, as in shells."""
    status = number(attempt.get("exitCode"))
    return 128 - status if status < 0 else status


def _attempts(tasks: Sequence[Body], terminations: Terminations) -> tuple[AttemptInfo, ...]:
    """Return the attempts at a job: of the task that was tried most often."""
    most = max(tasks, key=lambda task: number(task.get("currentAttemptId")), default=None)
    if most is None:
        return ()
    index = index_of(most)
    return tuple(_attempt_of(attempt, index, terminations) for attempt in attempts_of(most))


def _attempt_of(attempt: Body, index: int, terminations: Terminations) -> AttemptInfo:
    state = _STATE.get(str(attempt.get("state")))
    ended = seconds(attempt.get("finishedAt"))
    return AttemptInfo(
        number=number(attempt.get("attemptId")) + 1,
        started_at=seconds(attempt.get("startedAt")),
        ended_at=ended,
        outcome=state if ended is not None else None,
        reason=str(attempt.get("error", "")),
        slices=(str(attempt["workerId"]),) if attempt.get("workerId") else (),
        termination=terminations.get((index, number(attempt.get("attemptId")))),
    )
