"""Check 17 of GPUs: how many, of which type, and which each task sees. The nodes only claim to have any."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engines.ray.helpers import WAIT, command, held, until
from engines.ray.ray_actors import Devices
from engines.ray.test_ray_gangs import added, shell
from fray.cluster import JobStatus, ResourceConfig
from fray.v2.client import _ClusterClient

SHOW = (
    "echo $CUDA_VISIBLE_DEVICES > @/part-$FRAY_TASK_INDEX; mv @/part-$FRAY_TASK_INDEX @/saw-$FRAY_TASK_INDEX"
)
NONE = ResourceConfig(cpu=0.1, ram="8m")
gpus_of = functools.partial(ResourceConfig.with_gpu, cpu=0.1, ram="8m")


@pytest.fixture
def gpus(nodes: Any) -> Iterator[None]:
    """Add a node of four H100."""
    with added(nodes, 1, num_cpus=1, num_gpus=4, resources={"accelerator_type:H100": 1}):
        yield


def saw(tmp_path: Path, task: int = 0) -> set[str]:
    return set((tmp_path / f"saw-{task}").read_text().strip().split(",")) - {""}


@pytest.mark.usefixtures("gpus")
def test_ray_17_gpus(cluster: Any, tmp_path: Path) -> None:
    three = gpus_of("NVIDIA H100 80GB HBM3", 3)
    holds, _, gate = held(cluster, tmp_path, resources=three)
    waits = cluster.launch(command("waits", *shell(tmp_path, SHOW), resources=gpus_of("h100", 2)))
    until(lambda: "2 GPU and GPUs of type H100" in cluster.poll(waits).reason)
    assert "and 1 GPU and GPUs of type H100 free" in cluster.poll(waits).reason
    gate.open()
    assert cluster.wait(waits, timeout=WAIT).status is JobStatus.SUCCEEDED
    assert len(saw(tmp_path)) == 2
    cluster.wait(holds, timeout=WAIT)
    none = command("none", *shell(tmp_path, SHOW), resources=NONE)
    cluster.wait(cluster.launch(none), timeout=WAIT, raise_on_failure=True)
    assert saw(tmp_path) == set()


@pytest.mark.usefixtures("gpus")
def test_ray_17_tasks_of_a_gang_see_different_gpus(cluster: Any, tmp_path: Path) -> None:
    pair = gpus_of("auto", 2, replicas=2)
    job = cluster.launch(command("gang", *shell(tmp_path, SHOW), resources=pair))
    cluster.wait(job, timeout=WAIT, raise_on_failure=True)
    assert saw(tmp_path, 0) | saw(tmp_path, 1) == {"0", "1", "2", "3"}
    assert not saw(tmp_path, 0) & saw(tmp_path, 1)


@pytest.mark.usefixtures("gpus")
def test_ray_17_the_first_accelerators_that_are_there(cluster: Any, tmp_path: Path) -> None:
    other = cluster.launch(command("other", "true", resources=gpus_of("a100")))
    until(lambda: "no node has GPUs of type A100" in cluster.poll(other).reason)
    wanted = ResourceConfig.with_accelerators(["v5p-8", "a100:1", "h100:2"])
    job = cluster.launch(command("any", *shell(tmp_path, SHOW), resources=wanted))
    cluster.wait(job, timeout=WAIT, raise_on_failure=True)
    assert len(saw(tmp_path)) == 2


@pytest.mark.usefixtures("gpus")
def test_ray_17_an_actor_has_gpus(cluster: Any) -> None:
    with _ClusterClient(cluster) as client:
        one = client.create_actor(Devices, name="one", resources=gpus_of("h100"))
        assert one.visible() in ("0", "1", "2", "3")
