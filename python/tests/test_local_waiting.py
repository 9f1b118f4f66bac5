"""Whose turn it is on a LocalCluster, and waiting for jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from fray.cluster import (
    AlreadyExistsError,
    JobFailedError,
    JobId,
    JobStatus,
    LocalCluster,
    NameClash,
    Namespace,
    NotFoundError,
    WaitTimeoutError,
    current_cluster,
)
from jobs import append, call, child_named, fail, launch_child, succeed, until_stopped
from waiting import eventually


def test_jobs_wait_their_turn(tmp_path: Path) -> None:
    file = tmp_path / "order"
    with LocalCluster(max_workers=1) as cluster:
        jobs = [cluster.launch(call(append, str(file), str(i), name=f"job-{i}")) for i in range(5)]
        cluster.wait(jobs, raise_on_failure=True)
    assert file.read_text().split() == list("01234")


def test_a_job_that_waits_for_others_takes_no_worker(tmp_path: Path) -> None:
    for use_processes in (False, True):
        with LocalCluster(max_workers=1, use_processes=use_processes) as cluster:
            request = call(launch_child, str(tmp_path / "context"), None, name="parent")
            assert cluster.wait(cluster.launch(request), timeout=300).status is JobStatus.SUCCEEDED


def wait_for_child() -> None:
    cluster = current_cluster()
    cluster.wait(cluster.launch(call(until_stopped, name="child")))


def test_the_worker_of_a_job_that_waits_is_for_others_too() -> None:
    with LocalCluster(max_workers=2) as cluster:
        cluster.launch(call(wait_for_child, name="parent"))
        eventually(lambda: child_named(cluster, "child"))
        other = cluster.launch(call(until_stopped, name="other"))
        eventually(lambda: cluster.poll(other).status is JobStatus.RUNNING)
        third = cluster.launch(call(until_stopped, name="third"))
        assert cluster.poll(third).status is JobStatus.PENDING


@pytest.mark.parametrize("raises", [False, True])
def test_wait_for_several(local: LocalCluster, raises: bool) -> None:
    good, bad = local.launch(call(succeed, name="good")), local.launch(call(fail, name="bad"))
    if raises:
        with pytest.raises(JobFailedError, match="job bad"):
            local.wait([good, bad], raise_on_failure=True)
    assert [job.status for job in local.wait([bad, good])] == [JobStatus.FAILED, JobStatus.SUCCEEDED]
    assert local.wait([]) == []


def test_wait_raises_as_soon_as_one_has_failed(local: LocalCluster) -> None:
    jobs = [local.launch(call(until_stopped, name="endless")), local.launch(call(fail, name="bad"))]
    with pytest.raises(JobFailedError, match="job bad"):
        local.wait(jobs, raise_on_failure=True, timeout=300)
    assert local.poll(jobs[0]).status is JobStatus.RUNNING


def test_wait_gives_up_after_its_timeout(local: LocalCluster) -> None:
    job_id = local.launch(call(until_stopped))
    with pytest.raises(WaitTimeoutError, match=job_id):
        local.wait(job_id, timeout=0.05)
    assert local.poll(job_id).status is JobStatus.RUNNING


def test_name_clashes(local: LocalCluster) -> None:
    first = local.launch(call(until_stopped))
    with pytest.raises(AlreadyExistsError, match=first):
        local.launch(call(succeed))
    assert local.launch(call(succeed, name_clash=NameClash.KEEP)) == first
    assert local.poll(first).status is JobStatus.RUNNING
    other = local.launch(call(until_stopped, namespace=Namespace("other")))  # no clash
    second = local.launch(call(until_stopped, name_clash=NameClash.RECREATE))
    assert second != first
    assert local.poll(first).status is JobStatus.STOPPED
    assert local.poll(second).status is JobStatus.RUNNING
    assert local.poll(other).status is JobStatus.RUNNING


def test_the_name_of_a_job_that_has_ended_is_free(local: LocalCluster) -> None:
    first = local.launch(call(succeed))
    local.wait(first)
    second = local.launch(call(succeed))
    assert second != first
    assert local.wait(first).job_id == first  # is on record
    local.wait(second)


def test_what_is_not_there(local: LocalCluster) -> None:
    unknown = JobId("missing-1")
    for ask in (local.poll, local.terminate, local.wait, local.monitor):
        with pytest.raises(NotFoundError, match="missing-1"):
            ask(unknown)
