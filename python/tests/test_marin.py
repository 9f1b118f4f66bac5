"""Programs that were written for marin-fray: its names, over each kind of cluster that can be had here."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest

import fray
from fray import (
    ActorConfig,
    Entrypoint,
    JobAlreadyExists,
    JobFailed,
    JobRequest,
    JobStatus,
    LocalClient,
    ResourceConfig,
    create_environment,
    current_actor,
    get_tpu_topology,
    wait_all,
)
from fray._marin import convert
from fray.actor import ActorUnavailableError
from fray.client import Client
from fray.cluster import GpuConfig, InvalidRequestError, LocalCluster, NameClash
from fray.current_client import current_client, set_current_client
from fray.local_backend import LocalActorHandle
from fray.v2 import ActorCreationError
from fray.v2._local import LocalActor, LocalActors

PROGRAM = Path(__file__).with_name("marin_program.py")
RUN_IN_PROCESSES = """
import sys
from fray.cluster import Entrypoint, JobRequest, LocalCluster
sys.path.insert(0, sys.argv[1])
import marin_program
cluster = LocalCluster(use_processes=True)
job = cluster.launch(JobRequest("program", Entrypoint.from_callable(marin_program.main)))
print(cluster.wait(job, raise_on_failure=True).status)
cluster.shutdown()
"""


def test_actors_end_themselves(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", RUN_IN_PROCESSES, str(PROGRAM.parent)],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "succeeded" in done.stdout


class Worker:
    def __init__(self, start: int) -> None:
        self.context, self.value = current_actor(), start

    def who(self) -> tuple[str, int, int]:
        return self.context.group_name, self.context.index, self.value

    def me(self) -> Any:
        return self.context.handle

    def fail(self) -> None:
        raise KeyError("lessons")

    def set_group(self, group: Any) -> tuple[bool, int, int]:
        return group.is_done(), group.ready_count, len(group.discover_new())


class Unmade:
    def __init__(self) -> None:
        raise OSError("no disk")


@pytest.fixture
def client() -> Any:
    with LocalCluster() as cluster:
        client = LocalClient(cluster=cluster)
        yield client
        client.shutdown()


def test_a_group(client: LocalClient) -> None:
    group = client.create_actor_group(
        Worker, 5, name="w", count=3, actor_config=ActorConfig(max_concurrency=2)
    )
    (first,) = group.wait_ready(1)
    others = group.discover_new()
    assert [handle.who() for handle in (first, *others)] == [("w", 0, 5), ("w", 1, 5), ("w", 2, 5)]
    assert first.who.submit().result(300) == first.me().who() == ("w", 0, 5)
    assert group.discover_new() == []
    assert not group.is_done()
    group.shutdown()
    assert group.is_done()
    assert group.ready_count == 0


def test_a_group_travels() -> None:
    client = LocalClient()  # of the process, which what arrives anywhere in it belongs to
    group = client.create_actor_group(Worker, 5, name="travels", count=2)
    first = group.wait_ready()[0]
    assert first.set_group(group) == (False, 2, 2)
    assert pickle.loads(pickle.dumps(first)) == first
    group.shutdown()
    assert pickle.loads(pickle.dumps(group)).is_done()
    client.shutdown()


def test_what_a_method_raises(client: LocalClient) -> None:
    worker = client.create_actor(Worker, 1, name="w")
    assert worker.who() == ("w", 0, 1)
    with pytest.raises(KeyError) as raised:
        worker.fail()
    assert type(raised.value) is KeyError
    assert "lessons" in str(raised.value.__cause__)
    assert isinstance(worker, LocalActorHandle)
    assert type(worker.fail.remote().exception(300)) is KeyError


def test_an_actor_that_cannot_be_made(client: LocalClient) -> None:
    with pytest.raises(ActorCreationError, match="no disk"):
        client.create_actor_group(Unmade, name="u", count=2)
    assert client.create_actor_group(Worker, 1, name="u", count=2).ready_count == 2  # the names are free


def test_the_name_is_free_once_a_creation_has_failed(
    client: LocalClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised = threading.Event()
    forget = LocalActors.forget

    def forget_late(self: LocalActors, actor: LocalActor, failed: bool) -> None:
        raised.wait(0.1)  # for as long if the error is raised after it, as it has to be
        forget(self, actor, failed)

    monkeypatch.setattr(LocalActors, "forget", forget_late)
    with pytest.raises(ActorCreationError, match="no disk"):
        client.create_actor_group(Unmade, name="u", count=1)
    assert client.create_actor_group(Worker, 1, name="u", count=1).ready_count == 1
    raised.set()


def test_a_hosted_actor(client: LocalClient) -> None:
    with pytest.raises(RuntimeError, match="constructors of actors"):
        current_actor()
    hosted = client.host_actor(Worker, 2, name="here")
    assert hosted.handle.who() == ("here", 0, 2)
    hosted.shutdown()
    hosted.shutdown()
    unreachable = LocalActorHandle(cast(LocalActorHandle, hosted.handle)._inner.options(resolve_timeout=0.01))
    with pytest.raises(ActorUnavailableError, match="here"):
        unreachable.who()


def _answer() -> None:
    print("42")


def _fail() -> None:
    raise ValueError("no data")


def test_jobs(client: LocalClient) -> None:
    job = client.submit(JobRequest("answer", Entrypoint.from_callable(_answer)))
    assert job.wait() is JobStatus.SUCCEEDED
    assert JobStatus.finished(job.status())
    failed = client.submit(JobRequest("fail", Entrypoint.from_callable(_fail)))
    with pytest.raises(JobFailed, match="ValueError: no data"):
        failed.wait(300)
    assert failed.wait(300, raise_on_failure=False) is JobStatus.FAILED
    program = client.submit(JobRequest("true", Entrypoint.from_binary("true", [])))
    assert wait_all([job, program]) == [JobStatus.SUCCEEDED, JobStatus.SUCCEEDED]
    with pytest.raises(JobFailed, match=f"job {failed.job_id} finished with status failed"):
        wait_all([job, failed])
    assert wait_all([job, failed], raise_on_failure=False) == [JobStatus.SUCCEEDED, JobStatus.FAILED]


def test_a_name_that_is_taken(client: LocalClient) -> None:
    request = JobRequest("wait", Entrypoint.from_binary("sleep", ["600"]))
    job = client.submit(request)
    assert client.submit(request).job_id == job.job_id
    with pytest.raises(JobAlreadyExists) as raised:
        client.submit(request, adopt_existing=False)
    assert raised.value.handle is not None
    assert raised.value.handle.job_id == job.job_id
    with pytest.raises(TimeoutError):
        wait_all([job], timeout=0)
    job.terminate()
    assert job.wait(raise_on_failure=False) is JobStatus.STOPPED


def test_the_current_client(client: LocalClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with set_current_client(client) as current:
        assert current_client() is current is client
    found: Client = current_client()
    assert isinstance(found, LocalClient)
    assert found.cluster is not client.cluster
    monkeypatch.setenv("FRAY_CLIENT_SPEC", "slurm://head")
    with pytest.raises(ValueError, match="slurm"):
        current_client()


def _kind_of_client() -> None:
    assert isinstance(current_client(), LocalClient), current_client()


def test_the_client_in_a_job(client: LocalClient) -> None:
    assert (
        client.submit(JobRequest("in", Entrypoint.from_callable(_kind_of_client))).wait(300)
        is JobStatus.SUCCEEDED
    )


def test_the_names_of_the_package() -> None:
    for names in fray._MARIN.values():
        assert all(getattr(fray, name) is not None for name in names.split())
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        fray.Nothing  # noqa: B018


def test_importing_the_package_imports_little() -> None:
    program = (
        "import sys, fray; sys.exit(bool({'fray.types', 'fray.cluster', 'ray', 'iris'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_slices() -> None:
    assert get_tpu_topology("v4-16").chips_per_vm == 4
    assert (get_tpu_topology("v5litepod-16").chip_count, get_tpu_topology("v5litepod-16").vm_count) == (16, 4)
    two = ResourceConfig.with_tpu("v4-16", slice_count=2)
    assert (two.replicas, two.chip_count()) == (4, 16)
    assert (convert.resources(two).tpu, convert.resources(two).replicas) == ("v4-16", 2)
    with pytest.raises(ValueError, match="v4-7"):
        ResourceConfig.with_tpu("v4-7")
    with pytest.raises(ValueError, match="v4-8, v4-16 differ"):
        ResourceConfig.with_tpu(["v4-8", "v4-16"])
    with pytest.raises(InvalidRequestError, match="3 replicas are no whole number of slices"):
        convert.resources(two, 3)


def test_amounts() -> None:
    half = ResourceConfig(cpu=4, ram="3g", disk="1g").scale(0.5)
    assert (half.cpu, half.ram, half.disk) == (2, "1536m", "512m")
    assert ResourceConfig(ram="1g").scale(ram=2).ram == "2g"
    with pytest.raises(ValueError, match="not both"):
        ResourceConfig().scale(2, cpu=1)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (ResourceConfig(zone="us-east5-a", image="x"), "resources: fray has no zone"),
        (ResourceConfig(target_cluster="b", container_profile="p"), "no container_profile, target_cluster"),
    ],
)
def test_resources_that_fray_lacks(given: ResourceConfig, want: str) -> None:
    with pytest.raises(InvalidRequestError, match=want):
        convert.resources(given)


def test_accelerators() -> None:
    slices = convert.resources(ResourceConfig.with_tpu(["v4-16", "v5p-16"], slice_count=2))
    assert list(slices.accelerators) == ["v4-16", "v5p-16"]
    assert slices.replicas == 2
    gpus = ResourceConfig.with_gpu("H100", 8, replicas=3, ram="64g", device_alternatives=["H200"])
    machines = convert.resources(gpus)
    assert list(machines.accelerators) == ["H100:8", "H200:8"]
    assert (machines.replicas, machines.ram, machines.gpu) == (3, "64g", GpuConfig("H100", 8))


def test_a_request() -> None:
    environment = create_environment(extras=["tpu"], env_vars={"A": "1"})
    request = JobRequest(
        "train",
        Entrypoint.from_binary("python", ["train.py"]),
        ResourceConfig(cpu=2, ram="1g", regions=["us-east5"], preemptible=False),
        environment,
        max_retries_failure=2,
        timeout=60,
    )
    made = convert.job_request(request, adopt_existing=True)
    assert (made.timeout_seconds, made.max_retries_failure, made.name_clash) == (60, 2, NameClash.KEEP)
    assert (made.resources.cpu, made.resources.regions, made.resources.preemptible) == (
        2,
        ["us-east5"],
        False,
    )
    assert made.environment is not None
    assert (made.environment.project, made.environment.env_vars["A"]) == (str(Path.cwd()), "1")
    with pytest.raises(InvalidRequestError, match="environment: fray has no pip_packages, setup_scripts"):
        convert.environment(create_environment(pip_packages=["numpy"], setup_scripts=["true"]), None)
    with pytest.raises(ValueError, match="has a space"):
        JobRequest("a b", Entrypoint())
    with pytest.raises(InvalidRequestError, match="neither a function nor a program"):
        convert.entrypoint(Entrypoint())
    assert convert.actor_options(ActorConfig(max_restarts=3), None, None).max_restarts == 3
    assert (
        convert.actor_options(ActorConfig(max_restarts=3, max_task_retries=1), None, None).max_restarts == 1
    )
