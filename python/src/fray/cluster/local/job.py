"""One job of a LocalCluster, as it stands. The cluster's lock guards it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fray.cluster.context import JobContext
from fray.cluster.local.task import Outcome, Task
from fray.cluster.types import (
    AttemptInfo,
    Choice,
    ChoiceReason,
    JobId,
    JobInfo,
    JobRequest,
    JobStatus,
    Namespace,
    TaskInfo,
    TaskState,
)


@dataclass
class Job:
    """A job and its attempts."""

    job_id: JobId
    request: JobRequest
    namespace: Namespace
    environ: Mapping[str, str]  # what requests set, its parents' included
    submitted_at: float  # Unix times in seconds
    parent: JobId | None = None
    parent_attempt: int = 0
    group: str = ""
    status: JobStatus = JobStatus.PENDING
    reason: str = ""
    failures: int = 0
    preemptions: int = 0
    ended_at: float | None = None
    attempts: list[AttemptInfo] = field(default_factory=list)
    # Of the last attempt:
    tasks: list[Task] = field(default_factory=list)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    failure: Outcome | None = None  # the first of a task
    preempted: bool = False
    blocked: int = 0  # tasks that wait for other jobs

    @property
    def size(self) -> int:
        """How many tasks start together. A slice has one host here."""
        return max(self.request.num_tasks, self.request.resources.replicas)

    @property
    def attempt(self) -> int:
        """The number of the last attempt, 0 before the first."""
        return len(self.attempts)

    @property
    def alive(self) -> int:
        """How many tasks of the last attempt have not ended."""
        return len(self.tasks) - len(self.outcomes)

    def context(self, task: int) -> JobContext:
        """Return what a task of the last attempt is to know of itself."""
        return JobContext(
            job_id=self.job_id,
            job_name=self.request.name,
            namespace=self.namespace,
            attempt=self.attempt,
            task_index=task,
            num_tasks=self.size,
        )

    @property
    def failure_text(self) -> str:
        """Why it ended: what its actor's constructor raised, or its reason."""
        end = self.attempts[-1].termination if self.attempts else None
        if self.status is JobStatus.FAILED and end is not None and end.type:
            return f"its constructor raised {end.type}: {end.message}"
        return self.reason

    def begin(self, now: float, why: str) -> None:
        """Begin an attempt, without tasks so far."""
        self.attempts.append(AttemptInfo(self.attempt + 1, why, started_at=now))
        self.status, self.reason = JobStatus.RUNNING, ""
        self.tasks, self.outcomes, self.failure = [], {}, None
        self.preempted = False

    def ended(self, task: int, outcome: Outcome) -> None:
        """Record how a task of the last attempt ended."""
        self.outcomes[task] = outcome
        counts = self.failure is None and not self.preempted and not self.status.ended
        if outcome.state is TaskState.FAILED and counts:
            self.failure = replace(outcome, reason=self._reason(task, outcome.reason))

    def _reason(self, task: int, reason: str) -> str:
        return reason if self.size == 1 else f"task {task}: {reason}"

    def conclude(self, now: float) -> Outcome:
        """End the attempt, whose tasks have all ended, and count what it was."""
        if self.status is JobStatus.STOPPED:
            outcome = Outcome(TaskState.KILLED, self.reason)
        elif self.preempted:
            outcome = Outcome(TaskState.PREEMPTED, "it was preempted")
            self.preemptions += 1
        elif self.failure is not None:
            outcome = self.failure
            self.failures += 1
        else:
            outcome = Outcome(TaskState.SUCCEEDED)
        self.close_attempt(now, outcome)
        return outcome

    def close_attempt(self, now: float, outcome: Outcome) -> None:
        """Write down how the last attempt ended, unless that is known."""
        if self.attempts and self.attempts[-1].ended_at is None:
            self.attempts[-1] = replace(
                self.attempts[-1],
                ended_at=now,
                outcome=outcome.state,
                reason=outcome.reason,
                termination=outcome.termination,
            )

    def end(self, status: JobStatus, reason: str, now: float) -> None:
        """End the job."""
        self.status, self.reason, self.ended_at = status, reason, now

    def info(self) -> JobInfo:
        """Return how it stands."""
        return JobInfo(
            job_id=self.job_id,
            name=self.request.name,
            namespace=self.namespace,
            status=self.status,
            reason=self.reason,
            pending_reasons=(self.reason,) if self.status is JobStatus.PENDING and self.reason else (),
            parent_job_id=self.parent,
            user=self.request.user or "",
            band=self.request.band,
            ready=self.status is JobStatus.RUNNING and self.alive > 0,
            tasks=tuple(self._task(i) for i in range(len(self.tasks))),
            attempt=self.attempt,
            failures=self.failures,
            preemptions=self.preemptions,
            submitted_at=self.submitted_at,
            started_at=self.attempts[0].started_at if self.attempts else None,
            ended_at=self.ended_at,
            attempts=tuple(self.attempts),
            group=self.group,
            reservation_id=self.request.reservation_id,
            accelerators=tuple(self.request.resources.accelerators),
            choice=self._choice(),
        )

    def _choice(self) -> Choice | None:
        """Return the first alternative, which a job has here once it has begun: none is ever blocked."""
        accelerators = self.request.resources.accelerators
        return Choice(accelerators[0], ChoiceReason.FIRST) if accelerators and self.attempts else None

    def _task(self, index: int) -> TaskInfo:
        outcome = self.outcomes.get(index, Outcome(TaskState.RUNNING))
        return TaskInfo(
            index,
            outcome.state,
            outcome.reason,
            exit_code=outcome.exit_code,
            tail=outcome.tail,
            termination=outcome.termination,
            address="127.0.0.1",
        )
