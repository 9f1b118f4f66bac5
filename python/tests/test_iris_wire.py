"""What is sent to an Iris controller and what its answers mean, by bodies that were recorded of real ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fray.cluster import (
    AlreadyExistsError,
    Entrypoint,
    JobRequest,
    JobStatus,
    NotFoundError,
    RefusedError,
    ResourceConfig,
    TaskState,
    UnsupportedError,
)
from fray.cluster.iris import IrisCluster
from fray.cluster.iris.dialect import JUNE, OCTOBER
from iris_replay import RELEASES, Answer, call_of, controller, replay

pytestmark = pytest.mark.parametrize("release", RELEASES)


@pytest.fixture(autouse=True)
def _outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("FRAY_NAMESPACE", "FRAY_JOB_ID", "IRIS_TASK_ID", "FRAY_CLUSTER_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def replayed(release: str, step: str) -> Iterator[tuple[IrisCluster, list[tuple[str, dict[str, Any]]]]]:
    with controller(replay(release, step)) as (address, calls):
        cluster = IrisCluster(address, user="alice")
        yield cluster, calls
        cluster.close()


def shell(script: str) -> Entrypoint:
    return Entrypoint.from_command(["bash", "-c", script])


def test_dialect(release: str) -> None:
    with replayed(release, "succeeded") as (cluster, _):
        assert cluster._connection.dialect == (JUNE if release == "june" else OCTOBER)


_VARIABLE = ("bundleBlob", "bundleId", "clientRevisionDate")


@pytest.mark.parametrize(
    ("step", "request_"),
    [
        ("failed", JobRequest("failed", shell("echo before; exit 7"), max_retries_failure=1)),
        (
            "gang",
            JobRequest(
                "gang", shell("sleep 600"), ResourceConfig.with_tpu("v4-16"), max_retries_preemption=0
            ),
        ),
        ("pending", JobRequest("pending", shell("true"), ResourceConfig(cpu=16, preemptible=False))),
    ],
)
def test_launch_is_sent_as_recorded(release: str, step: str, request_: JobRequest) -> None:
    with replayed(release, step) as (cluster, calls):
        assert cluster.launch(request_) == f"/alice/{step}"
    sent = next(body for path, body in calls if path.endswith("/LaunchJob"))
    assert ("clientRevisionDate" in sent) == (release == "june")
    key = '"EXISTING_JOB_POLICY_UNSPECIFIED"'
    want = call_of(release, step, "LaunchJob", key if step != "gang" else "coscheduling")["request"]
    for body in (sent, want):
        for name in _VARIABLE:
            body.pop(name, None)
        for name in ("FRAY_IRIS_LAUNCH", "FRAY_IRIS_SETUP"):
            body["environment"]["envVars"].pop(name)
        body["environment"].pop("setupScripts", None)
        body["entrypoint"].pop("setupCommands", None)
        body["entrypoint"].pop("workdirFiles")
    assert sent == want


def test_failed(release: str) -> None:
    with replayed(release, "failed") as (cluster, _):
        info = cluster.wait("/alice/failed")  # type: ignore[call-overload]
    assert (info.name, info.status, info.failures, info.preemptions) == ("failed", JobStatus.FAILED, 2, 0)
    assert info.reason.startswith("Exit code: 7")
    (task,) = info.tasks
    assert (task.state, task.exit_code, task.tail) == (TaskState.FAILED, 7, ("before",))
    assert [(a.number, a.outcome) for a in info.attempts] == [(1, TaskState.FAILED), (2, TaskState.FAILED)]
    assert info.attempt == 2


def test_succeeded(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    with replayed(release, "succeeded") as (cluster, _):
        info = cluster.monitor("/alice/succeeded")  # type: ignore[arg-type]
    assert (info.status, info.tasks[0].exit_code, info.attempt) == (JobStatus.SUCCEEDED, 0, 1)
    assert info.started_at is not None
    assert info.ended_at is not None
    assert info.started_at <= info.ended_at
    assert capsys.readouterr().out == "fine\n"


def test_name_taken(release: str) -> None:
    def answer(path: str, request: dict[str, Any]) -> Answer:
        if path.endswith("/LaunchJob"):
            return 409, call_of(release, "gang", "LaunchJob", '"true"')["response"]
        return replay(release, "gang")(path, request)  # type: ignore[return-value]

    with controller(answer) as (address, _):
        cluster = IrisCluster(address, user="alice")
        with pytest.raises(AlreadyExistsError, match="/alice/gang lives"):
            cluster.launch(JobRequest("gang", shell("true")))
        cluster.close()


def test_preempted(release: str) -> None:
    with replayed(release, "preempted") as (cluster, _):
        info = cluster.wait("/alice/gang")  # type: ignore[call-overload]
    assert (info.status, info.failures) == (JobStatus.FAILED, 0)
    assert info.preemptions >= 1
    assert [task.exit_code for task in info.tasks] == [None, None]
    assert TaskState.FAILED not in [task.state for task in info.tasks]


def test_pending(release: str) -> None:
    with replayed(release, "pending") as (cluster, _):
        info = cluster.poll("/alice/pending")  # type: ignore[arg-type]
    assert (info.status, info.attempt, info.ended_at) == (JobStatus.PENDING, 0, None)
    assert any("cpu" in reason.lower() for reason in info.pending_reasons)
    assert info.reason == "; ".join(info.pending_reasons)


def test_stopped(release: str) -> None:
    with replayed(release, "stopped") as (cluster, _):
        info = cluster.wait("/alice/pending")  # type: ignore[call-overload]
    assert (info.status, info.reason) == (JobStatus.STOPPED, "Terminated by user")


def test_unknown(release: str) -> None:
    with replayed(release, "unknown") as (cluster, _):
        with pytest.raises(NotFoundError, match="there is no job /alice/unknown"):
            cluster.poll("/alice/unknown")  # type: ignore[arg-type]
        with pytest.raises(NotFoundError, match="there is no job /alice/unknown"):
            cluster.wait("/alice/unknown")  # type: ignore[call-overload]


def test_actor(release: str) -> None:
    with replayed(release, "actor") as (cluster, _):
        endpoint = cluster.metadata.lookup("counter")
        assert (endpoint.name, endpoint.job_id, endpoint.task) == ("counter", "/alice/actor-counter", 0)
        assert endpoint.actor_id.startswith("actor-")
        assert endpoint.metadata["protocol"] == "fray-actor/1"
        changes = next(iter(cluster.metadata.watch()))
        assert changes.reset
        assert [each.name for each in changes.added] == ["counter"]


def test_only_tasks_register(release: str) -> None:
    with replayed(release, "actor") as (cluster, calls):
        with pytest.raises(RefusedError, match="this process is none; host it in a job"):
            cluster.metadata.register("mine", "127.0.0.1:1", "")  # type: ignore[arg-type]
        assert calls == []


def test_what_iris_has_not(release: str) -> None:
    from fray.cluster import JobGroupConfig, ReservationConfig

    tpu = ResourceConfig.with_tpu("v4-8")
    with replayed(release, "actor") as (cluster, calls):
        with pytest.raises(UnsupportedError, match="no reservations"):
            cluster.create_reservation(ReservationConfig(tpu, tpu))
        requests = [JobRequest(name, shell("true"), tpu) for name in ("a", "b")]
        with pytest.raises(UnsupportedError, match="cannot place several jobs with accelerators together"):
            cluster.launch_group(requests, JobGroupConfig("both"))
        assert calls == []
