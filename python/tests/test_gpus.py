"""GPUs in resources: their types, what a cluster is asked for, and what it answers."""

from pathlib import Path

import pytest

from controller import Controller
from fray._pb import cluster_pb2 as pb
from fray.cluster import (
    Entrypoint,
    FrayCluster,
    GpuConfig,
    InvalidRequestError,
    JobRequest,
    LocalCluster,
    ReservationConfig,
    ResourceConfig,
)
from fray.cluster.gpus import canonical_gpu, gpu_types

COMMAND = Entrypoint.from_command(["true"])


@pytest.fixture(autouse=True)
def _no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where there is no project to ship."""
    (tmp_path / "nowhere").mkdir()
    monkeypatch.chdir(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("h100", "h100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("nvidia-h100-80gb", "h100"),
        ("A100-SXM4-40GB", "a100"),
        ("A100-80G", "a100-80gb"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("RTX A6000", "a6000"),
        ("Tesla T4", "t4"),
        ("h100-40gb", ""),
        ("h10", ""),
        ("", ""),
    ],
)
def test_names_of_types(name: str, kind: str) -> None:
    assert canonical_gpu(name) == kind


def test_types_name_themselves() -> None:
    assert {name: canonical_gpu(name) for name in gpu_types()} == {name: name for name in gpu_types()}


def test_mistakes_name_their_fields() -> None:
    with LocalCluster() as cluster, pytest.raises(InvalidRequestError) as caught:
        cluster.launch(JobRequest("train", COMMAND, resources=ResourceConfig.with_gpu("h10", 0)))
    assert [(e.field, e.message.partition(";")[0]) for e in caught.value.fields] == [
        ("resources.gpu.type", 'there is no GPU type "h10"'),
        ("resources.gpu.count", "0 is no number of GPUs of a machine: want 1 to 64"),
    ]
    assert "did you mean" in caught.value.fields[0].message


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        (
            ResourceConfig.with_gpu("H100", 8, replicas=2),
            pb.Resources(gpu=pb.Gpu(type="H100", count=8), slices=2),
        ),
        (ResourceConfig.with_gpu(), pb.Resources(gpu=pb.Gpu(count=1))),
        (
            ResourceConfig.with_gpu("l4", cpu=4, ram="16g"),
            pb.Resources(gpu=pb.Gpu(type="l4", count=1), cpu=4, memory=16 << 30),
        ),
    ],
)
def test_cluster_is_asked(
    controller: Controller, remote: FrayCluster, asked: ResourceConfig, sent: pb.Resources
) -> None:
    remote.launch(JobRequest("train", COMMAND, resources=asked))
    (job,) = controller.jobs.values()
    sent.preemptible = True
    assert job.request.resources == sent


def test_reservation_of_gpus(controller: Controller, remote: FrayCluster) -> None:
    size = ResourceConfig.with_gpu("a100-80gb", 4, replicas=2)
    pool = remote.create_reservation(ReservationConfig(size, size.with_replicas(3), name="flex"))
    sent = controller.reservations[pool].config
    assert (sent.min.gpu, sent.max.gpu) == (pb.Gpu(type="a100-80gb", count=4),) * 2
    info = remote.get_reservation(pool)
    assert info.allocated_resources.gpu == GpuConfig("a100-80gb", 4)
    assert info.pending_resources == size.with_replicas(0)


def test_jobs_of_the_same_gpus_use_a_reservation() -> None:
    with LocalCluster() as cluster:
        size = ResourceConfig.with_gpu("h100", 8)
        pool = cluster.create_reservation(ReservationConfig(size, size.with_replicas(2)))
        wait = Entrypoint.from_command(["sleep", "600"])
        job = cluster.launch(JobRequest("train", wait, resources=size))
        other = cluster.launch(JobRequest("other", wait, resources=ResourceConfig.with_gpu("h100", 4)))
        assert cluster.get_reservation(pool).jobs == [job]
        for each in (job, other):
            cluster.terminate(each)
