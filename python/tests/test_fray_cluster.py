"""FrayCluster against a controller with the real protocol, which fails in all the ways that one can."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from controller import TOKEN, Controller
from fray._pb import cluster_pb2 as pb
from fray.cluster import (
    ActorNotFoundError,
    AttemptInfo,
    Band,
    Cluster,
    ClusterUnavailableError,
    Entrypoint,
    EnvironmentConfig,
    FrayCluster,
    HealthCheck,
    JobFailedError,
    JobGroupConfig,
    JobId,
    JobInfo,
    JobRequest,
    JobStatus,
    Metadata,
    NameClash,
    Namespace,
    NotFoundError,
    ReservationConfig,
    ReservationId,
    ResourceConfig,
    TaskInfo,
    TaskState,
    WaitTimeoutError,
)
from fray.cluster.remote.failure import Patience
from waiting import ended, eventually

COMMAND = Entrypoint.from_command(["true"])


@pytest.fixture(autouse=True)
def _no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where there is no project to ship."""
    (tmp_path / "nowhere").mkdir()
    monkeypatch.chdir(tmp_path / "nowhere")


def launched(controller: Controller) -> pb.JobRequest:
    """Return the request of the only job."""
    (job,) = controller.jobs.values()
    return job.request


def test_all_of_a_request_arrives(controller: Controller, remote: FrayCluster) -> None:
    remote.launch(
        JobRequest(
            name="train/a",
            entrypoint=Entrypoint.from_command(["python", "main.py"]),
            resources=ResourceConfig.with_tpu(
                "v5litepod-16", slice_count=2, preemptible=False, regions=["us-west4"]
            ),
            environment=EnvironmentConfig.create(image="img", env_vars={"A": "b"}),
            namespace=Namespace("other"),
            num_tasks=8,
            max_retries_failure=1,
            max_retries_preemption=-1,
            band=Band.BATCH,
            priority=3,
            user="ada",
            name_clash=NameClash.RECREATE,
            detached=True,
            timeout_seconds=1.5,
            scheduling_timeout_seconds=60,
            stop_grace_seconds=20,
            labels={"team": "rl"},
            health_check=HealthCheck(http="/healthz", port="http", interval_seconds=2),
            reservation_id=ReservationId("rl/pool"),
            ports=["http"],
        )
    )
    want = pb.JobRequest(
        name="train/a",
        namespace="other",
        num_tasks=8,
        max_retries_failure=1,
        max_retries_preemption=-1,
        band=pb.BAND_BATCH,
        priority=3,
        user="ada",
        name_clash=pb.NAME_CLASH_RECREATE,
        detached=True,
        labels={"team": "rl"},
    )
    want.entrypoint.command.words.extend(["python", "main.py"])
    want.resources.CopyFrom(
        pb.Resources(
            tpu="v5litepod-16",
            slices=2,
            preemptible=False,
            regions=["us-west4"],
            reservation_id="rl/pool",
            ports=[pb.Port(name="http")],
        )
    )
    want.environment.CopyFrom(pb.Environment(image="img", env_vars={"A": "b"}))
    want.timeout.FromMilliseconds(1500)
    want.scheduling_timeout.FromSeconds(60)
    want.stop_grace.FromSeconds(20)
    want.health_check.CopyFrom(pb.HealthCheck(http="/healthz", port="http", threshold=3))
    want.health_check.interval.FromSeconds(2)
    want.health_check.timeout.FromSeconds(5)
    assert launched(controller) == want


def test_the_defaults_are_fray_zeros(controller: Controller, remote: FrayCluster) -> None:
    remote.launch(JobRequest("train", COMMAND))
    want = pb.JobRequest(name="train", namespace="rl", num_tasks=1, max_retries_preemption=100)
    want.name_clash = pb.NAME_CLASH_ERROR
    want.entrypoint.command.words.append("true")
    want.environment.SetInParent()
    want.resources.CopyFrom(pb.Resources(cpu=1, memory=128 << 20, disk=1 << 30, preemptible=True))
    assert launched(controller) == want


@pytest.mark.parametrize("method", ["Launch", "LaunchGroup"])
def test_a_launch_through_a_storm_happens_once(
    controller: Controller, remote: FrayCluster, method: str
) -> None:
    controller.outages.before[method] = 3
    controller.outages.after[method] = 2
    if method == "Launch":
        job_ids = [remote.launch(JobRequest("train", COMMAND))]
    else:
        job_ids = remote.launch_group([JobRequest("train", COMMAND)], JobGroupConfig("group"))
    assert controller.outages.calls[method] == 6
    assert list(controller.jobs) == job_ids
    assert len(controller.by_request) == 1


def test_all_of_an_answer_arrives(controller: Controller, remote: FrayCluster) -> None:
    job_id = remote.launch(JobRequest("train", COMMAND))
    sent = controller.jobs[job_id].info
    sent.reason, sent.parent_job_id, sent.user, sent.address = "why", "parent-1", "ada", "job.rl/train"
    sent.band, sent.ready, sent.failures, sent.preemptions = pb.BAND_PRODUCTION, True, 1, 2
    sent.pending_reasons.append("us-west4-a: stockout")
    sent.submitted_at.FromMilliseconds(1_500)
    sent.attempts.add(number=1, why="first start", outcome="failed", reason="exit status 1", slices=["s"])
    sent.attempts.add(number=2, started_at={"seconds": 3})
    del sent.tasks[:]
    sent.tasks.add(index=0, state="failed", slice="s", zone="z", exit_code=0, ports={"http": 80}, tail=["x"])
    sent.tasks.add(index=1)
    got = remote.poll(job_id)
    assert got == JobInfo(
        job_id=job_id,
        name="train",
        namespace=Namespace("rl"),
        status=JobStatus.RUNNING,
        reason="why",
        pending_reasons=("us-west4-a: stockout",),
        parent_job_id=JobId("parent-1"),
        user="ada",
        band=Band.PRODUCTION,
        ready=True,
        tasks=(
            TaskInfo(0, TaskState.FAILED, slice="s", zone="z", exit_code=0, ports={"http": 80}, tail=("x",)),
            TaskInfo(1, TaskState.PENDING),
        ),
        attempt=1,
        failures=1,
        preemptions=2,
        submitted_at=1.5,
        attempts=(
            AttemptInfo(1, "first start", None, None, TaskState.FAILED, "exit status 1", ("s",)),
            AttemptInfo(2, started_at=3.0),
        ),
        address="job.rl/train",
    )


def test_two_launches_are_two_jobs(controller: Controller, remote: FrayCluster) -> None:
    assert remote.launch(JobRequest("train", COMMAND)) != remote.launch(JobRequest("train", COMMAND))
    assert len(controller.jobs) == 2


def test_a_cluster_that_stays_away_is_reported(
    controller: Controller, caplog: pytest.LogCaptureFixture
) -> None:
    controller.outages.before["Poll"] = 1000
    cluster = FrayCluster(controller.address, token=TOKEN, timeout=3)
    with caplog.at_level(logging.WARNING), pytest.raises(ClusterUnavailableError) as caught:
        cluster.poll(JobId("train"))
    cluster.close()
    assert caught.value.tries >= controller.outages.calls["Poll"] >= 2  # the last one may come too late
    assert controller.address in str(caught.value)
    assert f"tried {caught.value.tries} times in" in str(caught.value)
    assert "the last error was: this one does not lead" in str(caught.value)
    assert len(caplog.records) == 1  # not one for each try
    assert isinstance(caught.value, ConnectionError)


class Failed(grpc.RpcError, grpc.Call):
    """What a call ends with that fails."""

    initial_metadata = trailing_metadata = is_active = time_remaining = cancel = add_callback = None  # type: ignore[assignment]

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        self._code, self._text = code, text

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._text


def test_a_last_try_that_is_cut_short_does_not_hide_why() -> None:
    patience = Patience("10.0.0.1:80", 300.0)
    patience.failed(Failed(grpc.StatusCode.UNAVAILABLE, "this one does not lead"))
    patience._seconds = 0.0
    with pytest.raises(ClusterUnavailableError, match="the last error was: this one does not lead"):
        patience.failed(Failed(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded"))


def test_no_server_listens() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))  # and is kept, so that it becomes no other's
        port = listener.getsockname()[1]
        cluster = FrayCluster(f"127.0.0.1:{port}", token=TOKEN, timeout=0.3)
        with pytest.raises(ClusterUnavailableError, match=f"127.0.0.1:{port} did not answer"):
            cluster.poll(JobId("train"))
        cluster.close()


def test_wait_asks_again(
    controller: Controller, remote: FrayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fray.cluster.remote.cluster._ASK_AGAIN", 0.05)
    job_id = remote.launch(JobRequest("train", COMMAND))
    controller.outages.before["Wait"] = 2
    waiter = threading.Thread(target=lambda: found.append(remote.wait(job_id)))
    found: list[object] = []
    waiter.start()
    eventually(lambda: controller.outages.calls["Wait"] > 5)
    assert waiter.is_alive()
    controller.finish(job_id, pb.JOB_STATUS_SUCCEEDED)
    ended(waiter)
    assert found == [remote.poll(job_id)]


def test_wait_for_several(controller: Controller, remote: FrayCluster) -> None:
    jobs = [remote.launch(JobRequest(f"job-{i}", COMMAND)) for i in range(3)]
    controller.finish(jobs[1], pb.JOB_STATUS_FAILED, "exit code 3")
    with pytest.raises(JobFailedError, match="exit code 3"):
        remote.wait(jobs, raise_on_failure=True)  # though others run
    with pytest.raises(WaitTimeoutError, match=f"{jobs[0]}, {jobs[2]} had not ended after 0.2 s"):
        remote.wait(jobs, timeout=0.2)
    controller.finish(jobs[0], pb.JOB_STATUS_STOPPED)
    controller.finish(jobs[2], pb.JOB_STATUS_SUCCEEDED)
    statuses = [job.status for job in remote.wait([*jobs, jobs[0]])]
    assert statuses == [JobStatus.STOPPED, JobStatus.FAILED, JobStatus.SUCCEEDED, JobStatus.STOPPED]
    assert remote.wait([]) == []


def test_monitor_goes_on_where_it_broke(
    controller: Controller, remote: FrayCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    job_id = remote.launch(JobRequest("train", COMMAND))
    lines = [f"line {i}\n".encode() for i in range(20)]
    for line in lines[:15]:
        controller.write(job_id, line)
    controller.break_monitor_after = [0, 5, 1]
    controller.outages.before["Monitor"] = 1
    found: list[object] = []
    reader = threading.Thread(target=lambda: found.append(remote.monitor(job_id)))
    reader.start()
    eventually(lambda: controller.outages.calls["Monitor"] == 5)
    for line in lines[15:]:
        controller.write(job_id, line)
    controller.write(job_id, b"caf\xc3\xa9 \xff, and no end of line")
    controller.finish(job_id, pb.JOB_STATUS_SUCCEEDED)
    ended(reader)
    assert found == [remote.poll(job_id)]
    assert capsys.readouterr().out == b"".join(lines).decode() + "café \ufffd, and no end of line"


def test_monitor_names_the_task_that_wrote(
    controller: Controller, remote: FrayCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    job_id = remote.launch(JobRequest("train", COMMAND))
    controller.jobs[job_id].info.tasks.add(index=1, state="running")
    controller.write(job_id, b"one\ntwo\n")
    controller.finish(job_id, pb.JOB_STATUS_SUCCEEDED)
    remote.monitor(job_id)
    assert capsys.readouterr().out == "0 | one\n0 | two\n"


def test_reservations(controller: Controller, remote: FrayCluster) -> None:
    tpu = ResourceConfig.with_tpu("v5litepod-16", slice_count=2)
    pool = remote.create_reservation(
        ReservationConfig(tpu, tpu.with_replicas(8), priority=1, name="flex", preemptible=False)
    )
    sent = controller.reservations[pool].config
    assert (sent.min.slices, sent.max.slices, sent.max.tpu, sent.priority) == (2, 8, "v5litepod-16", 1)
    assert (sent.namespace, sent.ttl.seconds, sent.preemptible) == ("rl", 3600, False)
    assert (sent.min.preemptible, sent.max.preemptible) == (False, False)
    controller.reservations[pool].job_ids.append("worker-1")
    controller.reservations[pool].pending_reasons.append("us-west4-a: stockout")
    controller.reservations[pool].expires_at.FromSeconds(1_700_000_000)
    info = remote.get_reservation(pool)
    tpu.preemptible = False
    assert info.allocated_resources == tpu
    assert info.pending_resources == tpu.with_replicas(0)
    assert (info.jobs, info.pending_reasons) == (["worker-1"], ("us-west4-a: stockout",))
    assert info.expires_at == 1_700_000_000
    remote.release_reservation(pool)
    remote.release_reservation(pool)
    assert remote.get_reservation(pool).released
    with pytest.raises(NotFoundError):
        remote.get_reservation(ReservationId("none"))


def test_actors(controller: Controller, remote: FrayCluster) -> None:
    job_id = remote.launch(JobRequest("train", COMMAND))
    metadata = remote.metadata
    controller.outages.after["Register"] = 1
    first = metadata.register("pool", "10.0.0.1:80", job_id, {"zone": "a"})
    second = metadata.register("pool", "10.0.0.2:80", job_id)
    assert metadata.lookup("pool").actor_id == second
    assert [e.address for e in metadata.lookup_all("pool")] == ["10.0.0.1:80", "10.0.0.2:80"]
    assert [e.metadata for e in metadata.list_actors("po")] == [{"zone": "a"}, {}]
    assert metadata.list_actors("x") == []
    metadata.unregister(second)
    assert metadata.lookup("pool").actor_id == first
    with pytest.raises(ActorNotFoundError, match="missing"):
        metadata.lookup("missing")


def test_watch_begins_anew_after_an_interruption(controller: Controller, remote: FrayCluster) -> None:
    job_id = remote.launch(JobRequest("train", COMMAND))
    first = remote.metadata.register("a", "10.0.0.1:80", job_id)
    controller.outages.before["Watch"] = 2
    controller.outages.after["Watch"] = 1
    changes = remote.metadata.watch(prefix="")
    seen = [next(changes), next(changes)]
    assert [(c.reset, [e.actor_id for e in c.added]) for c in seen] == [(True, [first])] * 2
    remote.metadata.unregister(first)
    assert next(changes).removed == (first,)


def test_streams_that_end_early_are_asked_for_again(
    controller: Controller,
    remote: FrayCluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module in ("monitor", "metadata"):
        monkeypatch.setattr(f"fray.cluster.remote.{module}.PAUSE", 0.01)
    job_id = remote.launch(JobRequest("train", COMMAND))
    first = remote.metadata.register("a", "10.0.0.1:80", job_id)
    controller.end_streams = 1
    changes = remote.metadata.watch()
    assert [[e.actor_id for e in next(changes).added] for _ in range(2)] == [[first]] * 2
    controller.write(job_id, b"line\n")
    controller.finish(job_id, pb.JOB_STATUS_SUCCEEDED)
    controller.end_streams = 2
    assert remote.monitor(job_id).status is JobStatus.SUCCEEDED
    assert capsys.readouterr().out == "line\n"


def launch_a_child(file: str) -> None:
    from fray.cluster import current_cluster

    cluster = current_cluster()
    assert isinstance(cluster, FrayCluster)
    request = JobRequest("child", Entrypoint.from_callable(lambda: Path(file).write_text("child")))
    cluster.wait(cluster.launch(request), raise_on_failure=True)
    print("the child is done in", cluster.namespace)


def test_jobs_run(
    serve: Callable[..., Controller], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From here to a process on the other side, and from there to another."""
    controller = serve(runs=True)
    cluster = FrayCluster(controller.address, namespace="rl", token=TOKEN)
    file = tmp_path / "file"
    job_id = cluster.launch(JobRequest("parent", Entrypoint.from_callable(launch_a_child, args=(str(file),))))
    job = cluster.monitor(job_id)
    assert job.status is JobStatus.SUCCEEDED, job
    assert [task.state for task in job.tasks] == [TaskState.SUCCEEDED]
    assert capsys.readouterr().out == "the child is done in rl\n"
    assert file.read_text() == "child"
    assert {j.name for j in cluster.list_jobs()} == {"parent", "child"}
    cluster.close()


def test_terminate(serve: Callable[..., Controller]) -> None:
    controller = serve(runs=True)
    cluster = FrayCluster(controller.address, namespace="rl", token=TOKEN)
    job_id = cluster.launch(JobRequest("train", Entrypoint.from_command(["sleep", "1000"])))
    cluster.terminate(job_id)
    assert cluster.wait(job_id).status is JobStatus.STOPPED
    with pytest.raises(NotFoundError):
        cluster.terminate(JobId("missing"))
    cluster.close()


def test_it_is_a_cluster(remote: FrayCluster) -> None:
    assert isinstance(remote, Cluster)
    assert isinstance(remote.metadata, Metadata)


def test_wait_without_time_asks_once(controller: Controller, remote: FrayCluster) -> None:
    job_id = remote.launch(JobRequest("train", COMMAND))
    with pytest.raises(WaitTimeoutError):
        remote.wait(job_id, timeout=0)
    assert controller.outages.calls["Wait"] == 1
