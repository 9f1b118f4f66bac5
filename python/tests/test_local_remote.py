"""What processes of a LocalCluster do when it is not there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from multiprocessing.connection import Listener
from pathlib import Path

import pytest

from fray.cluster import (
    ClusterUnavailableError,
    Entrypoint,
    JobFailedError,
    JobGroupConfig,
    JobRequest,
    LocalCluster,
    NotFoundError,
    PickleError,
    ReservationConfig,
    ResourceConfig,
)
from fray.cluster.local.remote import Server, connect
from fray.cluster.protocols import Cluster
from fray.cluster.types import JobId
from waiting import ended


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Cluster]:
    """A LocalCluster as its processes see it."""
    with LocalCluster() as cluster:
        server = Server(cluster, tmp_path / "cluster.sock")
        yield connect(server.spec)
        server.close()


def fail() -> None:
    raise ValueError("no such luck")


def test_all_calls_go_through(remote: Cluster) -> None:
    (job_id,) = remote.launch_group(
        [JobRequest("a", Entrypoint.from_command(["false"]))], JobGroupConfig("g")
    )
    with pytest.raises(JobFailedError, match="exit code 1"):
        remote.wait(job_id, raise_on_failure=True)
    assert remote.monitor(job_id) == remote.poll(job_id) == remote.wait([job_id])[0]
    assert [job.job_id for job in remote.list_jobs()] == [job_id]
    tpu = ResourceConfig.with_tpu("v5litepod-4")
    pool = remote.create_reservation(ReservationConfig(tpu, tpu))
    remote.release_reservation(pool)
    assert remote.get_reservation(pool).released
    endless = remote.launch(JobRequest("b", Entrypoint.from_command(["sleep", "1000"])))
    actor = remote.metadata.register("actor", "127.0.0.1:1", endless, {"a": "b"})
    assert remote.metadata.lookup("actor") == remote.metadata.lookup_all("actor")[0]
    assert next(remote.metadata.watch()).added == tuple(remote.metadata.list_actors())
    remote.metadata.unregister(actor)
    assert remote.metadata.list_actors() == []
    remote.terminate(endless)
    assert remote.namespace == "default"
    with pytest.raises(NotFoundError):
        remote.poll(JobId("missing"))
    request = JobRequest("c", Entrypoint.from_callable(fail, args=(threading.Lock(),)))
    for launch in (
        lambda: remote.launch(request),
        lambda: remote.launch_group([request], JobGroupConfig("g")),
    ):
        with pytest.raises(PickleError, match=r"args\[0\], a lock"):
            launch()


def test_a_cluster_that_has_ended_is_unavailable(tmp_path: Path) -> None:
    path = str(tmp_path / "cluster.sock")
    remote = connect(f"local:{path}")
    with pytest.raises(ClusterUnavailableError, match=path):
        remote.list_jobs()
    with Listener(path, family="AF_UNIX") as listener:
        hangs_up = threading.Thread(target=lambda: listener.accept().close())
        hangs_up.start()
        with pytest.raises(ClusterUnavailableError, match=path):
            remote.list_jobs()
        ended(hangs_up)
