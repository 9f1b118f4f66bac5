"""Tests against a real Ray cluster: a head with two CPUs, and nodes that tests add."""

from __future__ import annotations

import importlib.util
import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engines.ray.helpers import WAIT, until
from engines.ray.ray_cluster import Nodes

__all__ = ["end_all", "until"]

collect_ignore_glob = [] if importlib.util.find_spec("ray") else ["test_*"]


@pytest.fixture(scope="session")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return the cluster, to which this process is not connected yet."""
    with socket.create_server(("", 0)) as free:
        port = free.getsockname()[1]
    made = Nodes(tmp_path_factory.mktemp("ray"), {"num_cpus": 2, "ray_client_server_port": port})
    made.client = f"ray://{made.address.rpartition(':')[0]}:{port}"
    before = dict(os.environ)
    os.environ.update(made.environ)
    try:
        yield made
    finally:
        import ray

        ray.shutdown()
        made.close()
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def cluster(nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a RayCluster in a namespace of the test's own, whose jobs end with it."""
    from fray.cluster.ray import RayCluster

    monkeypatch.chdir(tmp_path)  # where no project is, which would be shipped
    made = RayCluster(nodes.address, namespace=f"test-{uuid.uuid4().hex[:8]}")
    yield made
    end_all(made)


def end_all(cluster: Any) -> None:
    """End the jobs of a namespace, and its registry."""
    import ray

    jobs = [job.job_id for job in cluster.list_jobs()]
    for job_id in jobs:
        cluster.terminate(job_id)
    cluster.wait(jobs, timeout=WAIT)
    until(lambda: not supervisors(cluster), "the supervisors of jobs that have ended leave")
    cluster.close()  # or what goes on for it would make another registry
    ray.kill(ray.get_actor("fray-registry", namespace=cluster.namespace), no_restart=True)


def supervisors(cluster: Any) -> list[str]:
    """Return the names of supervisors that Ray runs or would start again."""
    import ray

    named = ray.util.list_named_actors(all_namespaces=True)
    return [
        each["name"]
        for each in named
        if each["namespace"] == cluster.namespace and each["name"].startswith("fray-job ")
    ]
