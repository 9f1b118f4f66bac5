from __future__ import annotations

from collections.abc import Callable

import pytest

from controller import TOKEN, Controller
from created import request, submit_a_child, wait_for
from fray.cluster import LocalCluster
from fray.v2 import (
    Client,
    Entrypoint,
    EnvironmentConfig,
    FrayClient,
    JobFailedError,
    JobHandle,
    JobRequest,
    JobStatus,
    LocalClient,
    ResourceConfig,
    WaitTimeoutError,
    current_client,
    set_current_client,
)
from jobs import fail, succeed, until_stopped


@pytest.fixture(params=["threads", "processes", "fray"])
def client(
    request: pytest.FixtureRequest,
    serve: Callable[..., Controller],
    monkeypatch: pytest.MonkeyPatch,
) -> Client:
    if request.param == "fray":
        monkeypatch.setenv("FRAY_CLUSTER_TOKEN", TOKEN)
        return FrayClient(f"fray://{serve(runs=True).address}?namespace=rl")
    return LocalClient(use_processes=request.param == "processes")


def test_the_defaults_are_fray_lites() -> None:
    made = request(succeed)
    assert (made.num_tasks, made.max_retries_failure, made.max_retries_preemption) == (1, 0, 100)
    assert (made.resources, made.environment) == (ResourceConfig(), None)
    default = ResourceConfig()
    assert (default.cpu, default.ram, default.disk, default.replicas) == (1, "128m", "1g", 1)
    assert (default.preemptible, default.regions, default.tpu) == (True, None, "")
    assert [status.value for status in JobStatus] == ["pending", "running", "succeeded", "failed", "stopped"]


def test_the_life_of_a_job(client: Client) -> None:
    good, bad = client.submit(request(succeed, "good")), client.submit(request(fail, "bad"))
    assert isinstance(good, JobHandle)
    assert good.wait() is JobStatus.SUCCEEDED
    assert bad.wait(raise_on_failure=False) is JobStatus.FAILED
    assert bad.status() is JobStatus.FAILED
    with pytest.raises(JobFailedError, match="no such luck"):
        bad.wait()
    endless = client.submit(request(until_stopped, "endless"))
    with pytest.raises(WaitTimeoutError):
        endless.wait(timeout=0.05)
    endless.terminate()
    assert endless.wait(raise_on_failure=False) is JobStatus.STOPPED
    client.shutdown()


def test_jobs_submit_jobs(client: Client) -> None:
    assert client.submit(request(submit_a_child)).wait(timeout=240) is JobStatus.SUCCEEDED
    client.shutdown()


def test_semantics_32_handles_work_in_other_processes(client: Client) -> None:
    first = client.submit(request(succeed, "first"))
    second = client.submit(JobRequest("second", Entrypoint.from_callable(wait_for, args=[first])))
    assert second.wait(timeout=240) is JobStatus.SUCCEEDED
    client.shutdown()


def test_shutdown_ends_what_was_submitted(client: Client) -> None:
    jobs = [client.submit(request(until_stopped, f"job-{i}")) for i in range(2)]
    client.shutdown()
    assert [job.status() for job in jobs] == [JobStatus.STOPPED] * 2
    with pytest.raises(RuntimeError, match="shut down"):
        client.submit(request(succeed))


def test_all_fields_are_passed_on() -> None:
    resources = ResourceConfig(cpu=4)
    environment = EnvironmentConfig.create(extras=["tpu"])
    passed = JobRequest(
        "train", Entrypoint.from_callable(succeed), resources, environment, 2, 3, 4
    ).for_cluster()
    assert (passed.name, passed.resources, passed.environment) == ("train", resources, environment)
    assert (passed.num_tasks, passed.max_retries_failure, passed.max_retries_preemption) == (2, 3, 4)


def test_the_current_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAY_CLIENT_SPEC", "local")
    default = current_client()
    assert isinstance(default, LocalClient)
    assert current_client() is default
    mine, other = LocalClient(), LocalClient()
    with set_current_client(mine):
        assert current_client() is mine
        with other as same:
            assert current_client() is same is other
        assert current_client() is mine
    assert current_client() is default
    setting = set_current_client(mine)  # for good
    assert current_client() is mine
    with setting:
        pass
    monkeypatch.setenv("FRAY_CLIENT_SPEC", "ray")
    with pytest.raises(ValueError, match='"ray" names no cluster'):
        current_client()


def test_the_variables_name_a_client(
    serve: Callable[..., Controller], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = serve(), serve()
    monkeypatch.setenv("FRAY_CLUSTER_SPEC", f"fray://{first.address}")
    monkeypatch.setenv("FRAY_CLUSTER_TOKEN", TOKEN)
    current_client().submit(JobRequest("first", Entrypoint.from_command(["true"])))
    monkeypatch.setenv("FRAY_CLIENT_SPEC", f"fray://{second.address}")
    current_client().submit(JobRequest("second", Entrypoint.from_command(["true"])))
    assert [list(c.jobs) for c in (first, second)] == [["first-1"], ["second-1"]]


def test_jobs_of_a_local_cluster_use_it() -> None:
    with LocalCluster() as cluster:
        parent = cluster.launch(request(submit_a_child, "parent").for_cluster())
        cluster.wait(parent, raise_on_failure=True)
        assert {job.name for job in cluster.list_jobs()} == {"parent", "child"}
