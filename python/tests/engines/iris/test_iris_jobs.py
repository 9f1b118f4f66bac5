"""Jobs on a real Iris: checks 1 to 11, 14 and 15 of the facts measured on it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fray.cluster import (
    AlreadyExistsError,
    Command,
    Entrypoint,
    EnvironmentConfig,
    InvalidRequestError,
    JobFailedError,
    JobInfo,
    JobRequest,
    JobStatus,
    NameClash,
    RefusedError,
    ResourceConfig,
    TaskState,
    TpuConfig,
    WaitTimeoutError,
)
from fray.cluster.iris import IrisCluster
from iris_process import Iris
from waiting import eventually

Flag = Callable[[str], Path]


def shell(script: str) -> Entrypoint:
    return Entrypoint.from_command(["bash", "-c", script])


def waiting(path: Path) -> Entrypoint:
    """Run until there is a file."""
    return shell(f"echo $$ >> {path}.started; until [ -e {path} ]; do sleep 0.05; done")


MACHINE = ResourceConfig(cpu=16, preemptible=False)
"""All of one of the two machines without accelerators."""


def fill(cluster: IrisCluster, flag: Flag) -> None:
    """Take both machines without accelerators, or wait for them."""
    for i in range(2):
        cluster.launch(JobRequest(f"filler-{i}", waiting(flag("never")), MACHINE))


def is_running(cluster: IrisCluster, job_id: str) -> bool:
    return cluster.poll(job_id).status is JobStatus.RUNNING  # type: ignore[arg-type]


@pytest.mark.short
def test_iris_01_ends(cluster: IrisCluster) -> None:
    def fine(text: str) -> None:
        print(text, os.environ["FRAY_JOB_ID"], os.environ["FRAY_TASK_INDEX"], os.environ["FRAY_NUM_TASKS"])

    def wrong() -> None:
        raise KeyError("nothing of that name")

    well = cluster.launch(JobRequest("well", Entrypoint.from_callable(fine, ["it is"])))
    seven = cluster.launch(JobRequest("seven", shell("echo before; exit 7")))
    key = cluster.launch(JobRequest("key", Entrypoint.from_callable(wrong)))
    killed = cluster.launch(JobRequest("killed", shell("kill -9 $$")))
    assert well == f"/{cluster.spec.user}/well"
    infos = cluster.wait([well, seven, key, killed], timeout=300)
    assert [info.status for info in infos] == [JobStatus.SUCCEEDED, *[JobStatus.FAILED] * 3]
    assert [info.tasks[0].exit_code for info in infos] == [0, 7, 1, 137]
    assert infos[1].tasks[0].tail == ("before",)
    assert "7" in infos[1].reason
    with pytest.raises(JobFailedError) as raised:
        cluster.wait(key, raise_on_failure=True)
    assert "KeyError: 'nothing of that name'" in str(raised.value)
    assert "in wrong" in str(raised.value)


def test_iris_01_monitor_prints(cluster: IrisCluster, capsys: pytest.CaptureFixture[str]) -> None:
    def fine(text: str) -> None:
        print(text, os.environ["FRAY_JOB_ID"], os.environ["FRAY_TASK_INDEX"], os.environ["FRAY_NUM_TASKS"])

    job_id = cluster.launch(JobRequest("well", Entrypoint.from_callable(fine, ["it is"])))
    assert cluster.monitor(job_id).status is JobStatus.SUCCEEDED
    assert capsys.readouterr().out == f"it is {job_id} 0 1\n"


def test_iris_02_names(cluster: IrisCluster, flag: Flag) -> None:
    go = flag("go")
    first = cluster.launch(JobRequest("train", waiting(go)))
    with pytest.raises(AlreadyExistsError, match="train lives"):
        cluster.launch(JobRequest("train", shell("true")))
    assert cluster.launch(JobRequest("train", shell("exit 3"), name_clash=NameClash.KEEP)) == first
    eventually(lambda: is_running(cluster, first))
    assert cluster.launch(JobRequest("train", shell("exit 4"), name_clash=NameClash.RECREATE)) == first
    assert cluster.wait(first, timeout=300).tasks[0].exit_code == 4
    # One that has ended does not clash.
    again = cluster.launch(JobRequest("train", shell("exit 5")))
    assert cluster.wait(again, timeout=300).tasks[0].exit_code == 5


def test_iris_02_odd_names(cluster: IrisCluster) -> None:
    job_id = cluster.launch(JobRequest("train/eval.1_a-b", shell("true")))
    assert cluster.wait(job_id, timeout=300).name == "train/eval.1_a-b"
    assert [job.name for job in cluster.list_jobs()] == ["train/eval.1_a-b"]
    with pytest.raises(InvalidRequestError, match="a number"):
        cluster.launch(JobRequest("12", shell("true")))


def test_iris_03_budgets(cluster: IrisCluster, iris: Iris) -> None:
    request = JobRequest("retried", shell("exit 3"), max_retries_failure=2, max_retries_preemption=5)
    info = cluster.wait(cluster.launch(request), timeout=300)
    assert (info.status, info.failures, info.preemptions, info.attempt) == (JobStatus.FAILED, 3, 0, 3)
    assert [attempt.outcome for attempt in info.attempts] == [TaskState.FAILED] * 3
    sent = iris.call("GetJobStatus", {"jobId": info.job_id})["request"]
    assert (sent["maxRetriesFailure"], sent["maxRetriesPreemption"]) == (2, 5)
    endless = cluster.launch(
        JobRequest("endless", shell("true"), max_retries_failure=-1, max_retries_preemption=-1)
    )
    sent = iris.call("GetJobStatus", {"jobId": endless})["request"]
    assert sent["maxRetriesFailure"] == sent["maxRetriesPreemption"] == (1 << 31) - 1


def test_iris_04_preemption(cluster: IrisCluster, iris: Iris, flag: Flag) -> None:
    go = flag("go")
    started = Path(f"{go}.started")
    job_id = cluster.launch(JobRequest("spot", waiting(go), max_retries_preemption=1))
    eventually(started.exists)
    eventually(lambda: is_running(cluster, job_id))
    iris.preempt(f"{job_id}/0")
    eventually(lambda: len(started.read_text().split()) == 2)
    info = cluster.poll(job_id)
    assert (info.preemptions, info.failures, info.attempt) == (1, 0, 2)
    eventually(lambda: cluster.poll(job_id).tasks[0].state is TaskState.RUNNING)
    iris.preempt(f"{job_id}/0")
    info = cluster.wait(job_id, timeout=300)
    assert (info.status, info.preemptions, info.failures) == (JobStatus.FAILED, 2, 0)
    assert info.tasks[0].state in (TaskState.PREEMPTED, TaskState.WORKER_FAILED)
    assert info.tasks[0].exit_code is None


def test_iris_05_gang(cluster: IrisCluster, iris: Iris, flag: Flag) -> None:
    go = flag("go")
    script = (
        f"echo $FRAY_TASK_INDEX $FRAY_NUM_TASKS $FRAY_ATTEMPT >> {go}.started; "
        f"until [ -e {go} ]; do sleep 0.05; done"
    )

    def lines() -> list[str]:
        path = Path(f"{go}.started")
        return sorted(path.read_text().splitlines()) if path.exists() else []

    request = JobRequest("gang", shell(script), ResourceConfig.with_tpu("v4-16"), max_retries_preemption=3)
    job_id = cluster.launch(request)
    eventually(lambda: lines() == ["0 2 1", "1 2 1"])
    eventually(lambda: all(task.state is TaskState.RUNNING for task in cluster.poll(job_id).tasks))
    sent = iris.call("GetJobStatus", {"jobId": job_id})["request"]
    assert sent["coscheduling"] == {"groupBy": "tpu-name"}
    device = sent["resources"]["device"]["tpu"]
    assert (device["variant"], device["count"]) == ("v4-16", 4)
    iris.preempt(f"{job_id}/1")
    eventually(lambda: lines() == ["0 2 1", "0 2 2", "1 2 1", "1 2 2"])
    go.touch()
    info = cluster.wait(job_id, timeout=300)
    assert (info.status, info.failures) == (JobStatus.SUCCEEDED, 0)
    assert info.preemptions >= 1


def test_iris_05_one_task_fails(cluster: IrisCluster, flag: Flag) -> None:
    go = flag("never")
    script = f'[ "$FRAY_TASK_INDEX" = 1 ] && exit 9; until [ -e {go} ]; do sleep 0.05; done'
    request = JobRequest("gang", shell(script), ResourceConfig.with_tpu("v4-16"))
    info = cluster.wait(cluster.launch(request), timeout=300)
    assert (info.status, info.failures) == (JobStatus.FAILED, 1)
    assert [task.exit_code for task in info.tasks] == [None, 9]
    assert info.tasks[0].state is TaskState.KILLED


@pytest.mark.parametrize("attribute", ["tpu-name", "scale-group"])
def test_iris_06_no_gang_of_several_slices(iris: Iris, user: str, attribute: str) -> None:
    """Iris itself would let it wait for ever, whatever its workers have in common, so it is rejected."""
    body = {
        "name": f"/{user}/slices",
        "entrypoint": {"runCommand": {"argv": ["true"]}},
        "environment": {},
        "resources": {"cpuMillicores": 1000, "device": {"tpu": {"variant": "v4-16", "count": 4}}},
        "replicas": 4,
        "coscheduling": {"groupBy": attribute},
        "clientRevisionDate": time.strftime("%Y-%m-%d"),
    }
    iris.call("LaunchJob", body)

    def reason() -> str:
        return str(iris.call("GetJobStatus", {"jobId": body["name"]})["job"].get("pendingReason"))

    eventually(lambda: "job needs 4 tasks coscheduled but no matching group has num_vms=4" in reason())
    iris.call("TerminateJob", {"jobId": body["name"]})


@pytest.mark.short
def test_iris_06_refused_before_sending(cluster: IrisCluster) -> None:
    request = JobRequest("odd", shell("true"), ResourceConfig(device=TpuConfig("v4-16")), num_tasks=3)
    with pytest.raises(InvalidRequestError, match="want a multiple of 2, this is 3"):
        cluster.launch(request)
    two = ResourceConfig.with_tpu("v4-16", slice_count=2)
    with pytest.raises(
        InvalidRequestError, match="a slice of v4-16 has 2 hosts, not 4: launch one job for each slice"
    ):
        cluster.launch(JobRequest("odd", shell("true"), two))
    with pytest.raises(InvalidRequestError, match="bands only"):
        cluster.launch(JobRequest("odd", shell("true"), priority=3))
    assert cluster.list_jobs() == []


def test_iris_07_terminate(cluster: IrisCluster, flag: Flag) -> None:
    go = flag("never")
    running = cluster.launch(JobRequest("running", waiting(go)))
    eventually(Path(f"{go}.started").exists)
    fill(cluster, flag)
    pending = cluster.launch(JobRequest("pending", waiting(flag("other")), MACHINE, max_retries_failure=3))
    for job_id in (running, pending):
        cluster.terminate(job_id)
        cluster.terminate(job_id)  # which is fine
    infos = cluster.wait([running, pending], timeout=300)
    assert [info.status for info in infos] == [JobStatus.STOPPED, JobStatus.STOPPED]
    processes = Path(f"{go}.started").read_text().split()  # two, where Iris took a busy worker for a lost one
    eventually(lambda: not any(Path(f"/proc/{process}").exists() for process in processes))
    assert not Path(f"{flag('other')}.started").exists()


def test_iris_08_logs_follow(cluster: IrisCluster, capsys: pytest.CaptureFixture[str]) -> None:
    script = (
        "for i in $(seq 300); do echo line $i; done; sleep 1; for i in $(seq 301 400); do echo line $i; done"
    )
    job_id = cluster.launch(JobRequest("talks", shell(script)))
    cluster.monitor(job_id)
    assert capsys.readouterr().out.splitlines() == [f"line {i}" for i in range(1, 401)]
    cluster.monitor(job_id)  # which has ended
    assert capsys.readouterr().out.splitlines() == [f"line {i}" for i in range(1, 401)]
    again = cluster.launch(JobRequest("talks", shell("echo once")))
    cluster.monitor(again)  # without the lines of the one before
    assert capsys.readouterr().out == "once\n"


def test_iris_09_pending_reason(cluster: IrisCluster, flag: Flag) -> None:
    fill(cluster, flag)
    job_id = cluster.launch(JobRequest("big", shell("true"), MACHINE))
    assert cluster.poll(job_id).pending_reasons  # at once

    def reasons() -> JobInfo | None:
        info = cluster.poll(job_id)
        return info if "cpu" in info.reason.lower() else None

    eventually(reasons)
    info = cluster.poll(job_id)
    assert info.status is JobStatus.PENDING
    with pytest.raises(WaitTimeoutError, match=r"big had not ended after 0.2 s"):
        cluster.wait(job_id, timeout=0.2)


def test_iris_09_larger_than_any_machine(cluster: IrisCluster, iris: Iris) -> None:
    request = JobRequest("huge", shell("true"), ResourceConfig(cpu=10_000))
    if iris.is_june:  # which waits for such a machine
        job_id = cluster.launch(request)
        eventually(lambda: "cpu" in cluster.poll(job_id).reason.lower())
        return
    with pytest.raises(RefusedError, match="need 10000000, available 16000"):
        cluster.launch(request)


def test_iris_10_constraints(cluster: IrisCluster, iris: Iris) -> None:
    def constraints(name: str, resources: ResourceConfig) -> list[object]:
        job_id = cluster.launch(JobRequest(name, shell("true"), resources))
        sent = iris.call("GetJobStatus", {"jobId": job_id})["request"].get("constraints", [])
        return [each for each in sent if each["key"] not in ("device-type",)]

    def of(key: str, *values: str) -> dict[str, object]:
        given = [{"stringValue": value} for value in values]
        return {"key": key, "values": given} if len(given) > 1 else {"key": key, "value": given[0]}

    anywhere = constraints("anywhere", ResourceConfig(regions=["*"]))
    kept = constraints("kept", ResourceConfig(preemptible=False))
    assert anywhere == []
    assert [each["key"] for each in kept] == ["preemptible"]  # type: ignore[index]
    assert kept[0]["value"] == {"stringValue": "false"}  # type: ignore[index]
    info = cluster.wait(f"/{cluster.spec.user}/kept", timeout=300)  # type: ignore[call-overload]
    assert "-cpu-" in info.tasks[0].slice  # the workers that are no preemptible ones


def test_iris_10_region_that_no_worker_has(cluster: IrisCluster) -> None:
    # Iris itself rejects what none of its groups can ever have.
    with pytest.raises(RefusedError, match="unschedulable"):
        cluster.launch(JobRequest("far", shell("true"), ResourceConfig(regions=["mars-1", "mars-2"])))


def test_iris_11_children(cluster: IrisCluster, flag: Flag) -> None:
    out = flag("out")

    def parent(path: str) -> None:
        from fray.v2 import Entrypoint, JobRequest, current_client

        child = current_client().submit(
            JobRequest("child", Entrypoint.from_command(["bash", "-c", "echo $FRAY_JOB_ID $GIVEN > " + path]))
        )
        child.wait(timeout=300)
        print(child.job_id, current_client().cluster.namespace)  # type: ignore[attr-defined]

    environment = EnvironmentConfig(env_vars={"GIVEN": "passed on"})
    request = JobRequest("parent", Entrypoint.from_callable(parent, [str(out)]), environment=environment)
    info = cluster.wait(cluster.launch(request), raise_on_failure=True, timeout=300)
    child = cluster.poll(f"{info.job_id}/child")  # type: ignore[arg-type]
    assert (child.status, child.name, child.parent_job_id) == (JobStatus.SUCCEEDED, "child", info.job_id)
    assert out.read_text().split(maxsplit=1) == [child.job_id, "passed on\n"]
    assert {job.name for job in cluster.list_jobs()} == {"parent", "child"}


def test_iris_11_children_end_with_their_parent(cluster: IrisCluster, flag: Flag) -> None:
    go = flag("never")

    def parent(path: str) -> None:
        from fray.cluster import Entrypoint, JobRequest, current_cluster

        script = f"touch {path}.started; until [ -e {path} ]; do sleep 0.05; done"
        for name, detached in (("child", False), ("free", True)):
            entrypoint = Entrypoint.from_command(["bash", "-c", script])
            current_cluster().launch(JobRequest(name, entrypoint, detached=detached))
        current_cluster().wait(current_cluster().list_jobs()[0].job_id)

    job_id = cluster.launch(JobRequest("parent", Entrypoint.from_callable(parent, [str(go)])))
    free = f"/{cluster.spec.user}/free"
    eventually(lambda: {f"{job_id}/child", free} <= {job.job_id for job in cluster.list_jobs()})
    cluster.terminate(job_id)
    assert cluster.wait(f"{job_id}/child", timeout=300).status is JobStatus.STOPPED  # type: ignore[call-overload]
    assert not cluster.poll(free).status.ended  # type: ignore[arg-type]


def test_iris_14_controller_restarted(cluster: IrisCluster, iris: Iris, flag: Flag) -> None:
    import threading

    go = flag("go")
    job_id = cluster.launch(JobRequest("long", waiting(go), max_retries_preemption=5))
    eventually(Path(f"{go}.started").exists)
    found: list[JobInfo] = []
    thread = threading.Thread(target=lambda: found.append(cluster.wait(job_id)))
    thread.start()
    iris.ask("restart")
    go.touch()
    thread.join(300)
    assert [info.status for info in found] == [JobStatus.SUCCEEDED]
    assert found[0].failures == 0


@pytest.mark.short
def test_iris_15_release(cluster: IrisCluster, iris: Iris) -> None:
    dialect = cluster._connection.dialect
    assert (not dialect.leases, dialect.wants_date) == (iris.is_june, iris.is_june)


def test_iris_15_date_gate(cluster: IrisCluster, iris: Iris) -> None:
    body = {
        "name": f"/{cluster.spec.user}/old",
        "entrypoint": {"runCommand": {"argv": ["true"]}},
        "environment": {},
        "resources": {"cpuMillicores": 1000},
        "clientRevisionDate": "2026-01-01",
    }
    with pytest.raises(RefusedError, match="client is too old"):
        iris.call("LaunchJob", body)
    cluster.launch(JobRequest("new", shell("true")))  # which gets through


def test_iris_commands_that_are_not_there(cluster: IrisCluster) -> None:
    info = cluster.wait(
        cluster.launch(JobRequest("none", Entrypoint(Command(("no-such-program",))))), timeout=300
    )
    assert info.tasks[0].exit_code == 127
    assert info.tasks[0].tail == ("fray: there is no program no-such-program in the task's image",)


def test_iris_wait_ends_in_time(cluster: IrisCluster, flag: Flag) -> None:
    job_id = cluster.launch(JobRequest("long", waiting(flag("never"))))
    began = time.monotonic()
    with pytest.raises(WaitTimeoutError):
        cluster.wait([job_id], timeout=0.5)
    assert time.monotonic() - began >= 0.5
    assert not cluster.poll(job_id).status.ended
