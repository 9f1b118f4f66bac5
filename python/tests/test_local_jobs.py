from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fray.cluster import (
    AccessDeniedError,
    Cluster,
    Entrypoint,
    EnvironmentConfig,
    InvalidRequestError,
    JobFailedError,
    JobRequest,
    JobStatus,
    LocalCluster,
    Namespace,
    PickleError,
    ResourceConfig,
    TaskState,
    current_cluster,
    job_context,
)
from jobs import (
    call,
    child_named,
    exit_with,
    fail,
    launch_and_return,
    launch_and_stay,
    launch_child,
    report_context,
    succeed,
    until_stopped,
)
from waiting import eventually


def test_a_job_that_returns_has_succeeded(local: LocalCluster) -> None:
    job = local.wait(local.launch(call(succeed)), raise_on_failure=True)
    assert job.status is JobStatus.SUCCEEDED
    assert [task.state for task in job.tasks] == [TaskState.SUCCEEDED]
    assert job.started_at is not None
    assert job.ended_at is not None
    assert (job.submitted_at or 0) <= job.started_at <= job.ended_at


def test_a_job_that_raises_has_failed_with_the_reason(local: LocalCluster) -> None:
    job_id = local.launch(call(fail))
    with pytest.raises(JobFailedError) as caught:
        local.wait(job_id, raise_on_failure=True)
    assert "ValueError: no such luck" in str(caught.value)
    assert caught.value.jobs[0].job_id == job_id
    assert local.wait(job_id).status is JobStatus.FAILED


@pytest.mark.parametrize(
    ("code", "status", "exit_code"),
    [
        (None, JobStatus.SUCCEEDED, 0),
        (0, JobStatus.SUCCEEDED, 0),
        (7, JobStatus.FAILED, 7),
        ("it is late", JobStatus.FAILED, 1),
    ],
)
def test_sys_exit_is_honoured(local: LocalCluster, code: object, status: JobStatus, exit_code: int) -> None:
    job = local.wait(local.launch(call(exit_with, code)))
    assert (job.status, job.tasks[0].exit_code) == (status, exit_code)


@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        (["true"], JobStatus.SUCCEEDED, ""),
        (["sh", "-c", "echo last words; exit 3"], JobStatus.FAILED, "exit code 3"),
        (["sh", "-c", "kill -9 $$"], JobStatus.FAILED, "killed by SIGKILL"),
        (["/no/such/program"], JobStatus.FAILED, "start /no/such/program"),
    ],
)
def test_commands(local: LocalCluster, words: list[str], status: JobStatus, reason: str) -> None:
    job = local.wait(local.launch(JobRequest("train", Entrypoint.from_command(words))))
    assert job.status is status
    assert reason in job.reason


def test_output_appears_and_the_last_lines_are_kept(capfd: pytest.CaptureFixture[str]) -> None:
    with LocalCluster() as cluster:
        words = ["sh", "-c", "for i in $(seq 100); do echo line $i; done; exit 1"]
        job = cluster.monitor(cluster.launch(JobRequest("train", Entrypoint.from_command(words))))
    assert "line 1\n" in capfd.readouterr().out
    assert job.tasks[0].tail == tuple(f"line {i}" for i in range(51, 101))


def test_what_jobs_need_is_removed_when_they_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with LocalCluster(use_processes=True) as cluster:
        cluster.wait(cluster.launch(call(succeed)), raise_on_failure=True)
        assert [file.name for file in tmp_path.glob("*/*")] == ["cluster.sock"]


def test_a_process_that_leaves_another_with_its_output_does_not_hang(local: LocalCluster) -> None:
    words = ["sh", "-c", "sleep 1000 & exit 0"]
    job_id = local.launch(JobRequest("train", Entrypoint.from_command(words)))
    assert local.wait(job_id, timeout=300).status is JobStatus.SUCCEEDED


def test_jobs_know_who_they_are(local: LocalCluster, tmp_path: Path) -> None:
    file = tmp_path / "context"
    environment = EnvironmentConfig.create(env_vars={"WANDB": "marin"})
    request = call(report_context, str(file), name="train/a", num_tasks=2, environment=environment)
    job_id = local.launch(request)
    local.wait(job_id, raise_on_failure=True)
    want = [
        f"FRAY_JOB_ID={job_id} FRAY_JOB_NAME=train/a FRAY_NAMESPACE=default FRAY_ATTEMPT=1 "
        f"FRAY_TASK_INDEX={i} FRAY_NUM_TASKS=2 WANDB=marin"
        for i in range(2)
    ]
    assert sorted(file.read_text().splitlines()) == want
    assert job_context() is None


def test_commands_have_real_variables(tmp_path: Path) -> None:
    file = tmp_path / "env"
    with LocalCluster() as cluster:
        words = ["sh", "-c", f"echo $FRAY_JOB_NAME $FRAY_NAMESPACE $FRAY_PORT_HTTP $A > {file}"]
        environment = EnvironmentConfig.create(env_vars={"A": "b"})
        request = JobRequest("train", Entrypoint.from_command(words), environment=environment, ports=["http"])
        cluster.wait(cluster.launch(request), raise_on_failure=True)
    name, namespace, port, value = file.read_text().split()
    assert (name, namespace, value) == ("train", "default", "b")
    assert 1024 <= int(port) < 65536


def test_children_inherit_namespace_and_variables(local: LocalCluster, tmp_path: Path) -> None:
    file = tmp_path / "context"
    environment = EnvironmentConfig.create(env_vars={"WANDB": "of the parent", "FRAY_ACTOR_NAMES": "[]"})
    request = call(
        launch_child, str(file), None, name="parent", namespace=Namespace("rl"), environment=environment
    )
    parent = local.launch(request)
    local.wait(parent, raise_on_failure=True)
    assert "FRAY_JOB_NAME=child FRAY_NAMESPACE=rl" in file.read_text()
    assert "WANDB=of the parent" in file.read_text()
    assert "FRAY_ACTOR_" not in file.read_text()
    assert local.list_jobs() == []  # of this namespace
    assert local.poll(parent).namespace == "rl"


def test_jobs_launch_in_their_own_namespace_only(local: LocalCluster, tmp_path: Path) -> None:
    job = local.wait(local.launch(call(launch_child, str(tmp_path / "context"), "other", name="parent")))
    assert job.status is JobStatus.FAILED
    assert AccessDeniedError.__name__ in "".join(job.tasks[0].tail)


def test_children_end_with_their_parent(local: LocalCluster) -> None:
    local.wait(local.launch(call(launch_and_return, False, name="parent")), raise_on_failure=True)
    child = child_named(local, "child")
    assert child is not None
    assert local.wait(child, timeout=300).status is JobStatus.STOPPED
    assert local.poll(child).reason.endswith(", which launched it")


def test_detached_children_live_on(local: LocalCluster) -> None:
    local.wait(local.launch(call(launch_and_return, True, name="parent")), raise_on_failure=True)
    child = child_named(local, "child")
    assert child is not None
    assert local.poll(child).status is JobStatus.RUNNING


def test_terminate_ends_the_subtree(local: LocalCluster) -> None:
    parent = local.launch(call(launch_and_stay, name="parent"))
    eventually(lambda: child_named(local, "child"))
    child = child_named(local, "child")
    assert child is not None
    local.terminate(parent)
    assert [job.status for job in local.wait([parent, child])] == [JobStatus.STOPPED] * 2
    assert local.poll(child).parent_job_id == parent
    local.terminate(parent)  # changes nothing
    assert local.poll(parent).reason == "stopped by this program"


def test_a_thread_that_is_terminated_unwinds(tmp_path: Path) -> None:
    started, unwound, went_on = tmp_path / "started", tmp_path / "unwound", tmp_path / "went_on"

    def work() -> None:
        try:
            started.touch()  # which is when it may be stopped
            until_stopped()
            went_on.touch()
        except Exception:
            went_on.touch()
        finally:
            unwound.touch()

    with LocalCluster() as cluster:
        job_id = cluster.launch(call(work))
        eventually(started.exists)
        cluster.terminate(job_id)
        eventually(unwound.exists)
        eventually(lambda: cluster.poll(job_id).tasks[0].state is TaskState.KILLED)
    assert not went_on.exists()


def test_threads_that_are_stopped_amid_calls_leave_no_lock_held() -> None:
    def busy() -> None:
        cluster = current_cluster()
        while True:
            cluster.list_jobs()

    with LocalCluster(max_workers=8) as cluster:
        for i in range(40):
            job_id = cluster.launch(call(busy, name=f"busy-{i}"))
            eventually(lambda: cluster.list_jobs())
            cluster.terminate(job_id)
        eventually(
            lambda: {job.tasks[0].state for job in cluster.list_jobs()} == {TaskState.KILLED},
        )


def test_what_a_job_of_a_thread_leaves_can_be_traced() -> None:
    """Debuggers and coverage trace. It is tried in a process that can be killed, as it waits if it fails."""
    program = """if True:
        import sys
        from fray.cluster import Entrypoint, JobRequest, LocalCluster

        def trace(*_):
            return trace

        with LocalCluster() as cluster:
            cluster.wait(cluster.launch(JobRequest("train", Entrypoint.from_callable(print))))
        sys.settrace(trace)
        cluster.list_jobs()
        """
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600)


def test_a_process_that_is_terminated_gets_sigterm(tmp_path: Path) -> None:
    started = tmp_path / "started"
    with LocalCluster() as cluster:
        words = ["sh", "-c", f"touch {started}; exec sleep 1000"]
        job_id = cluster.launch(JobRequest("train", Entrypoint.from_command(words)))
        eventually(started.exists)
        cluster.terminate(job_id)
        eventually(lambda: cluster.poll(job_id).tasks[0].exit_code == 128 + 15)


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    started = tmp_path / "started"
    with LocalCluster() as cluster:
        words = ["sh", "-c", f"trap '' TERM; touch {started}; while true; do sleep 0.01; done"]
        request = JobRequest("train", Entrypoint.from_command(words), stop_grace_seconds=0.2)
        job_id = cluster.launch(request)
        eventually(started.exists)
        cluster.terminate(job_id)
        eventually(lambda: cluster.poll(job_id).tasks[0].exit_code == 128 + 9)


def test_mistakes_are_reported_together(local: LocalCluster) -> None:
    request = call(
        succeed,
        name="no spaces",
        num_tasks=0,
        max_retries_failure=-2,
        max_retries_preemption=-2,
        timeout_seconds=0,
        resources=ResourceConfig(ram="a lot", cpu=0, replicas=0),
    )
    with pytest.raises(InvalidRequestError) as caught:
        local.launch(request)
    assert {error.field for error in caught.value.fields} == {
        "name",
        "num_tasks",
        "max_retries_failure",
        "max_retries_preemption",
        "timeout_seconds",
        "resources.ram",
        "resources.cpu",
        "resources.replicas",
    }
    assert '"a lot" is no size' in str(caught.value)
    assert local.list_jobs() == []


def test_errors_name_what_cannot_be_pickled_for_a_process() -> None:
    lock = threading.Lock()

    def work() -> None:
        with lock:
            pass

    with LocalCluster(use_processes=True) as cluster:
        with pytest.raises(PickleError, match="closes over lock"):
            cluster.launch(call(work))
        assert cluster.list_jobs() == []


def test_shutdown_ends_all_jobs(local: LocalCluster) -> None:
    jobs = [local.launch(call(until_stopped, name=f"job-{i}")) for i in range(6)]
    local.shutdown()
    assert {local.poll(job_id).status for job_id in jobs} == {JobStatus.STOPPED}
    assert local.wait(local.launch(call(succeed)), timeout=300).status is JobStatus.SUCCEEDED


def test_a_cluster_without_workers_is_rejected() -> None:
    with pytest.raises(ValueError, match="max_workers is 0"):
        LocalCluster(max_workers=0)


def test_it_is_a_cluster(local: LocalCluster) -> None:
    assert isinstance(local, Cluster)
