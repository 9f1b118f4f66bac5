"""Nothing outlives its use: threads, sockets, timers, directories, streams."""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from actors import PATIENCE
from controller import TOKEN, Controller
from fray.cluster import (
    Entrypoint,
    FrayCluster,
    JobId,
    JobRequest,
    JobStatus,
    LocalCluster,
    ReservationConfig,
    ResourceConfig,
)
from fray.cluster.local.remote import Server, connect
from fray.cluster.watch import Watch
from fray.rpc import ActorServer, ClusterResolver
from fray.rpc._calling.resolve_cluster import directory_of
from fray.v2 import ActorOptions, LocalClient
from jobs import Adder, calls_an_actor
from waiting import eventually


def what_there_is() -> Counter[str]:
    """Return the threads by name, and how many descriptors and directories of clusters there are."""
    gc.collect()
    found = Counter(thread.name for thread in threading.enumerate())
    found["descriptors"] = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 # as a path one more
    found["directories"] = len(list(Path(tempfile.gettempdir()).glob("fray-*")))
    return found


def leaves_nothing(use: Callable[[], object], times: int = 20) -> None:
    """Use something so often; what there is then was there after the first two times."""
    use()
    use()
    before = what_there_is()
    for _ in range(times - 2):
        use()
    left = [what_there_is() - before]

    def is_nothing() -> bool:
        left[0] = what_there_is() - before
        return not left[0]

    with contextlib.suppress(AssertionError):  # which has no details
        eventually(is_nothing, PATIENCE)
    assert not left[0], left[0]


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have directories of clusters where no other test makes some."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def used(cluster: LocalCluster) -> None:
    request = JobRequest(
        "caller",
        Entrypoint.from_callable(calls_an_actor, args=["counter"]),
        timeout_seconds=3600,
        scheduling_timeout_seconds=3600,
    )
    with ActorServer(cluster) as server:
        server.register("counter", Adder())
        cluster.metadata.register("for a time", "127.0.0.1:1", JobId(""), ttl=3600)
        cluster.create_reservation(
            ReservationConfig(ResourceConfig.with_tpu("v5litepod-4"), ResourceConfig.with_tpu("v5litepod-4"))
        )
        assert ClusterResolver(cluster).lookup("counter").add(1) == 1
        assert cluster.wait(cluster.launch(request), timeout=PATIENCE).status is JobStatus.SUCCEEDED
        cluster.launch(JobRequest("waits", Entrypoint.from_command(["sleep", "3600"])))


@pytest.mark.parametrize(("processes", "times"), [(False, 20), (True, 3)], ids=["threads", "processes"])
def test_clusters_leave_nothing(processes: bool, times: int) -> None:
    def use() -> None:
        with LocalCluster(use_processes=processes) as cluster:
            used(cluster)

    leaves_nothing(use, times)


def test_a_cluster_is_used_again() -> None:
    cluster = LocalCluster(use_processes=True)

    def use() -> None:
        used(cluster)
        cluster.shutdown()

    leaves_nothing(use, 3)


def test_clients_leave_nothing() -> None:
    def use() -> None:
        client = LocalClient()
        assert client.create_actor(Adder, name="adder").add(2) == 2
        kept = client.create_actor(Adder, name="kept", options=ActorOptions(lifetime="detached"))
        client.shutdown()
        assert kept.add(1) == 1, "it is detached"
        client.cluster.shutdown()  # type: ignore[attr-defined] # of a LocalCluster

    leaves_nothing(use)


def watches() -> int:
    return sum(thread.name.startswith("fray-watch") for thread in threading.enumerate())


def test_no_thread_watches_for_a_cluster_that_is_gone() -> None:
    """It was not shut down: it was garbage collected, as were its resolvers."""
    before = watches()

    def use() -> weakref.ref[LocalCluster]:
        cluster = LocalCluster()
        assert ClusterResolver(cluster).resolve("missing") == []
        return weakref.ref(cluster)

    clusters = [use() for _ in range(20)]
    eventually(lambda: gc.collect() >= 0 and not any(cluster() for cluster in clusters), PATIENCE)
    eventually(lambda: watches() <= before, PATIENCE)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "gone"])
def test_no_stream_of_a_controller_outlives_its_cluster(controller: Controller, closed: bool) -> None:
    before = watches()
    clusters = [FrayCluster(controller.address, namespace="rl", token=TOKEN, timeout=10) for _ in range(5)]
    for cluster in clusters:
        directory = directory_of(cluster, None)
        assert directory.known("missing") == []
        eventually(partial(getattr, directory, "_live"), PATIENCE)
    assert watches() == before + 5
    if closed:
        for cluster in clusters:
            cluster.close()
    else:
        clusters.clear()
        del cluster, directory
    eventually(lambda: gc.collect() >= 0 and watches() <= before, PATIENCE)


def test_no_connection_of_a_process_outlives_its_watch() -> None:
    with LocalCluster() as cluster:
        server = Server(cluster, Path(tempfile.gettempdir()) / "cluster.sock")
        before = what_there_is()
        for _ in range(5):
            watch = connect(server.spec).metadata.watch()
            assert isinstance(watch, Watch)
            assert next(watch).reset
            watch.close()
            assert list(watch) == []
        del watch
        eventually(lambda: not what_there_is() - before, PATIENCE)
        server.close()
        eventually(lambda: "fray local cluster" not in what_there_is(), PATIENCE)
