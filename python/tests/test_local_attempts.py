"""Attempts of a LocalCluster's jobs, and why another one follows."""

from __future__ import annotations

import functools
from pathlib import Path

from fray.cluster import (
    JobId,
    JobStatus,
    LocalCluster,
    ResourceConfig,
    TaskState,
)
from jobs import call, fail_first_task, fail_until, succeed, until_stopped
from waiting import eventually


def runs(cluster: LocalCluster, job_id: JobId, attempt: int) -> bool:
    job = cluster.poll(job_id)
    return job.ready and job.attempt == attempt


def test_failures_are_retried_up_to_the_budget(local: LocalCluster, tmp_path: Path) -> None:
    file = tmp_path / "tried"
    job = local.wait(local.launch(call(fail_until, str(file), 3, max_retries_failure=2)))
    assert (job.status, job.failures, job.attempt) == (JobStatus.SUCCEEDED, 2, 3)
    assert [attempt.outcome for attempt in job.attempts] == [
        TaskState.FAILED,
        TaskState.FAILED,
        TaskState.SUCCEEDED,
    ]
    assert "not yet" in job.attempts[1].why or "exit code 1" in job.attempts[1].why


def test_one_failure_too_many(local: LocalCluster, tmp_path: Path) -> None:
    job = local.wait(local.launch(call(fail_until, str(tmp_path / "tried"), 3, max_retries_failure=1)))
    assert (job.status, job.failures, job.attempt) == (JobStatus.FAILED, 2, 2)


def test_preemption_spends_no_failure_budget(local: LocalCluster) -> None:
    job_id = local.launch(call(until_stopped, max_retries_preemption=2))
    for attempt in (1, 2):
        eventually(functools.partial(runs, local, job_id, attempt))
        local.preempt(job_id)
    eventually(lambda: local.poll(job_id).attempt == 3)
    job = local.poll(job_id)
    assert (job.status, job.failures, job.preemptions) == (JobStatus.RUNNING, 0, 2)
    local.preempt(job_id)
    job = local.wait(job_id, timeout=300)
    assert (job.status, job.reason) == (JobStatus.FAILED, "it was preempted 3 times")
    assert {attempt.outcome for attempt in job.attempts} == {TaskState.PREEMPTED}
    local.preempt(job_id)  # it has ended: nothing changes
    assert local.poll(job_id) == job


def test_one_task_that_fails_ends_the_gang(local: LocalCluster) -> None:
    job = local.wait(local.launch(call(fail_first_task, num_tasks=3)), timeout=300)
    assert job.status is JobStatus.FAILED
    assert [task.state for task in job.tasks] == [TaskState.FAILED, TaskState.KILLED, TaskState.KILLED]
    assert job.reason.startswith("task 0: ")


def test_replicas_are_tasks(local: LocalCluster) -> None:
    resources = ResourceConfig.with_tpu("v5litepod-16", slice_count=3)
    job = local.wait(local.launch(call(succeed, resources=resources)), raise_on_failure=True)
    assert len(job.tasks) == 3


def test_an_attempt_that_takes_too_long_has_failed(local: LocalCluster) -> None:
    job = local.wait(local.launch(call(until_stopped, timeout_seconds=0.5)), timeout=300)
    assert (job.status, job.reason) == (JobStatus.FAILED, "it took longer than 0.5 s")


def test_a_job_that_cannot_start_in_time_has_failed() -> None:
    with LocalCluster(max_workers=1) as cluster:
        cluster.launch(call(until_stopped, name="first"))
        patient = cluster.launch(call(succeed, name="patient", scheduling_timeout_seconds=3600))
        second = cluster.launch(call(succeed, name="second", scheduling_timeout_seconds=0.1))
        waiting = cluster.poll(patient)
        assert waiting.status is JobStatus.PENDING
        assert waiting.pending_reasons == ("it waits for a worker: all 1 are in use",)
        job = cluster.wait(second, timeout=300)
    assert job.status is JobStatus.FAILED
    assert "it could not start in 0.1 s" in job.reason
