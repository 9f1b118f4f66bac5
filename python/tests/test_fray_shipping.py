"""What is shipped with a job: callables and projects."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest

from controller import TOKEN, Controller
from fray._pb import cluster_pb2 as pb
from fray.cluster import (
    Entrypoint,
    EnvironmentConfig,
    FrayCluster,
    InvalidRequestError,
    JobRequest,
    PickleError,
)
from test_fray_cluster import COMMAND, launched


@pytest.fixture(autouse=True)
def _no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where there is no project to ship."""
    (tmp_path / "nowhere").mkdir()
    monkeypatch.chdir(tmp_path / "nowhere")


def add(a: int, b: int) -> int:
    return a + b


def test_a_callable_is_uploaded_once(controller: Controller, remote: FrayCluster) -> None:
    for i in range(2):
        remote.launch(JobRequest(f"job-{i}", Entrypoint.from_callable(add, args=(1, 2))))
    (sha256,) = controller.uploaded
    assert controller.outages.calls["Upload"] == 1
    jobs = list(controller.jobs.values())
    assert {job.request.entrypoint.callable.sha256 for job in jobs} == {sha256}
    assert jobs[0].request.entrypoint.callable.name == "test_fray_shipping:add"
    assert jobs[0].request.entrypoint.callable.python.startswith("3.")


def test_what_the_cluster_has_is_not_uploaded(controller: Controller, remote: FrayCluster) -> None:
    request = JobRequest("train", Entrypoint.from_callable(add, args=(b"x" * (9 << 20), 2)))
    controller.outages.after["Upload"] = 2  # and the second time it is there
    remote.launch(request)
    other = FrayCluster(controller.address, namespace="rl", token=TOKEN)
    other.launch(request)
    other.close()
    assert len(controller.uploaded) == 1
    assert controller.outages.calls["Upload"] == 3


def test_what_the_cluster_has_lost_is_uploaded_again(controller: Controller, remote: FrayCluster) -> None:
    request = JobRequest("train", Entrypoint.from_callable(add, args=(1, 2)))
    remote.launch(request)
    controller.blobs.clear()
    remote.launch(request)
    assert len(controller.uploaded) == 2
    assert len(controller.jobs) == 2


def test_what_cannot_be_pickled_is_named_before_anything_is_sent(
    controller: Controller, remote: FrayCluster
) -> None:
    with pytest.raises(PickleError, match=r"args\[0\], a lock"):
        remote.launch(JobRequest("train", Entrypoint.from_callable(add, args=(threading.Lock(), 1))))
    assert not controller.jobs
    assert not controller.uploaded


def project(directory: Path, locked: bool = True) -> Path:
    directory.mkdir(parents=True)
    (directory / "pyproject.toml").write_text('[project]\nname = "p"\n')
    if locked:
        (directory / "uv.lock").write_text("")
    return directory


def test_the_nearest_project_is_shipped(
    controller: Controller, remote: FrayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = project(tmp_path / "mine") / "deep" / "down"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    remote.launch(JobRequest("train", Entrypoint.from_callable(add, args=(1, 2))))
    environment = launched(controller).environment
    assert hashlib.sha256(controller.blobs[environment.bundle]).hexdigest() == environment.bundle
    assert environment.HasField("uv")
    assert environment.uv.python == launched(controller).entrypoint.callable.python
    assert not environment.inherit


def test_extras_are_uvs(controller: Controller, remote: FrayCluster, tmp_path: Path) -> None:
    environment = EnvironmentConfig.create(
        project=str(project(tmp_path / "mine")), extras=["tpu"], groups=["dev"], python="3.12"
    )
    remote.launch(JobRequest("train", COMMAND, environment=environment))
    assert launched(controller).environment.uv == pb.UV(extras=["tpu"], groups=["dev"], python="3.12")
    assert launched(controller).environment.bundle in controller.uploaded


def test_a_project_without_a_lock(controller: Controller, remote: FrayCluster, tmp_path: Path) -> None:
    mine = str(project(tmp_path / "mine", locked=False))
    with pytest.raises(InvalidRequestError, match=r"no uv\.lock"):
        remote.launch(
            JobRequest("train", COMMAND, environment=EnvironmentConfig.create(project=mine, extras=["tpu"]))
        )
    assert not controller.jobs
    remote.launch(JobRequest("train", COMMAND, environment=EnvironmentConfig.create(project=mine)))
    assert not launched(controller).environment.HasField("uv")


def test_extras_of_nothing_are_left_out(
    controller: Controller, remote: FrayCluster, caplog: pytest.LogCaptureFixture
) -> None:
    remote.launch(JobRequest("train", COMMAND, environment=EnvironmentConfig.create(extras=["tpu"])))
    remote.launch(JobRequest("other", COMMAND, environment=EnvironmentConfig.create(extras=["tpu"])))
    assert not any(job.request.environment.HasField("uv") for job in controller.jobs.values())
    assert caplog.text.count("no project is shipped") == 1


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (None, None),
        (
            EnvironmentConfig.create(extras=["tpu"], env_vars={"A": "b"}),
            pb.Environment(uv=pb.UV(extras=["tpu"]), env_vars={"A": "b"}, inherit=True),
        ),
        (EnvironmentConfig.create(inherit=False), pb.Environment()),
    ],
)
def test_children_start_from_the_environment_of_their_parent(
    controller: Controller,
    remote: FrayCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: EnvironmentConfig | None,
    want: pb.Environment | None,
) -> None:
    monkeypatch.chdir(project(tmp_path / "mine"))
    monkeypatch.setenv("FRAY_JOB_ID", "parent-1")
    monkeypatch.setenv("UV_PROJECT_ENVIRONMENT", "/somewhere")
    remote.launch(JobRequest("train", COMMAND, environment=given))
    got = launched(controller)
    assert (got.environment if got.HasField("environment") else None) == want
    assert not controller.uploaded


@pytest.mark.parametrize("other", ["fray", "marin-fray"])
def test_a_project_with_another_package_of_the_name(
    tmp_path: Path, controller: Controller, remote: FrayCluster, other: str
) -> None:
    lock = tmp_path / "uv.lock"
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "rl"\n')
    lock.write_text(f'[[package]]\nname = "{other}"\nversion = "1"\n')
    environment = EnvironmentConfig.create(project=str(tmp_path))
    with pytest.raises(InvalidRequestError, match=f"has {other}, which is another project's.*uv add fray-ml"):
        remote.launch(JobRequest("f", Entrypoint.from_callable(add, args=(1, 2)), environment=environment))
    remote.launch(JobRequest("program", COMMAND, environment=environment))
    lock.write_text(f'{lock.read_text()}\n[[package]]\nname = "fray-ml"\nversion = "1"\n')
    remote.launch(JobRequest("f", Entrypoint.from_callable(add, args=(1, 2)), environment=environment))
    assert sorted(job.info.name for job in controller.jobs.values()) == ["f", "program"]
