"""Checks 32 to 42 of actors, on a real Ray cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from engines.ray.conftest import end_all
from engines.ray.helpers import until
from engines.ray.ray_actors import PATIENCE, Counter, use
from fray.cluster import (
    ActorNotFoundError,
    AlreadyExistsError,
    Entrypoint,
    JobStatus,
    ResourceConfig,
    TaskState,
    WaitTimeoutError,
)
from fray.cluster.ray import RayCluster
from fray.rpc import errors
from fray.v2 import ActorCreationError, ActorOptions, ActorStatus, JobRequest
from fray.v2.client import _ClusterClient

SMALL = ResourceConfig(cpu=0.1, ram="8m")
Create = Callable[..., Any]


@pytest.fixture
def client(cluster: RayCluster) -> Iterator[_ClusterClient]:
    with _ClusterClient(cluster) as client:
        yield client


@pytest.fixture
def create(client: _ClusterClient) -> Create:
    """Create a counter."""

    def create(*args: Any, name: str = "counter", resources: ResourceConfig = SMALL, **options: Any) -> Any:
        given = ActorOptions(**options)
        return client.create_actor(Counter, *args, name=name, resources=resources, options=given)

    return create


def job_of(cluster: RayCluster, name: str = "counter") -> Any:
    return max(
        (j for j in cluster.list_jobs() if j.name == f"actor-{name}"), key=lambda j: j.submitted_at or 0
    )


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_ray_32_calls(create: Create, client: _ClusterClient, tmp_path: Path) -> None:
    counter = create(40)
    assert counter.increment() == 41
    future = counter.increment.remote(by=2)
    assert future.result(PATIENCE) == 43
    with pytest.raises(errors.ApplicationError) as caught:
        counter.fail()
    assert isinstance(caught.value, KeyError)
    assert "no such lesson" in str(caught.value)
    with pytest.raises(TimeoutError):
        counter.hold.remote(str(tmp_path / "held")).result(0.05)
    assert client.actor_status(counter) is ActorStatus.READY
    job = job_of(client.cluster)  # type: ignore[arg-type]
    assert (job.status, job.attempt, job.tasks[0].state) == (JobStatus.RUNNING, 1, TaskState.RUNNING)


_CREATE = """
import sys
sys.path.insert(0, {here!r})
import ray_actors
from fray.cluster.ray import RayCluster
from fray.v2 import ActorOptions, ResourceConfig
from fray.v2.client import _ClusterClient
client = _ClusterClient(RayCluster({address!r}, namespace={namespace!r}))
sys.stdin.readline()
options = ActorOptions(get_if_exists=True, lifetime="detached")
small = ResourceConfig(cpu=0.1, ram="8m")
counter = client.create_actor(ray_actors.Counter, name="one", resources=small, options=options)
print(counter.increment(), flush=True)
"""


def test_ray_33_eight_drivers_get_one_actor(cluster: RayCluster, nodes: Any) -> None:
    program = _CREATE.format(
        here=str(Path(__file__).parent), address=nodes.address, namespace=cluster.namespace
    )
    drivers = [
        subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(8)
    ]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda driver: driver.communicate("\n", PATIENCE)[0].split()[-1], drivers))
    assert sorted(map(int, found)) == list(range(1, 9)), "it was made more than once, or a call was lost"
    assert len([job for job in cluster.list_jobs() if job.name == "actor-one"]) == 1


def test_ray_33_threads_of_one_driver_get_one_actor(create: Create) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda _: create(get_if_exists=True).increment(), range(8))
        assert sorted(found) == list(range(1, 9))
    with pytest.raises(AlreadyExistsError, match='"counter" lives in namespace'):
        create()


def test_ray_34_names_are_of_a_namespace(create: Create, nodes: Any, cluster: RayCluster) -> None:
    create()
    other = RayCluster(nodes.address, namespace=f"{cluster.namespace}-other")
    try:
        with pytest.raises(ActorNotFoundError, match=f'"counter".* {other.namespace}'):
            _ClusterClient(other).get_actor("counter")
    finally:
        end_all(other)


def test_ray_35_a_constructor_that_raises(create: Create, cluster: RayCluster, tmp_path: Path) -> None:
    with pytest.raises(ActorCreationError) as caught:
        create(0, str(tmp_path))
    assert (caught.value.type, caught.value.message) == ("ValueError", f"no such lesson: {tmp_path}")
    assert "in __init__" in caught.value.traceback
    assert "_host" not in caught.value.traceback, "frames of fray itself"
    assert job_of(cluster).status.ended
    assert create().increment() == 1, "the one that failed has the name still"


@pytest.mark.short
def test_ray_36_a_killed_process_loses_its_state_and_no_call_runs_twice(
    create: Create, client: _ClusterClient, tmp_path: Path
) -> None:
    counter, ran = create(), tmp_path / "ran"
    assert counter.increment() == 1
    flight = counter.hold.remote(str(ran))
    until(ran.exists)
    os.kill(_pid(client), signal.SIGKILL)
    with pytest.raises(errors.MaybeExecutedError, match="may have run") as caught:
        flight.result(PATIENCE)
    assert caught.value.ran
    assert not isinstance(caught.value, errors.ActorDeadError)
    assert counter.increment() == 1, "its state survived, or the call was made of the dead one"
    assert read(ran) == "ran\n", "the call ran again"
    job = job_of(client.cluster)  # type: ignore[arg-type]
    assert (job.attempt, job.failures, job.preemptions) == (2, 1, 0)
    assert job.attempts[0].outcome is TaskState.FAILED


def _pid(client: _ClusterClient) -> int:
    """Return the process of the counter, which is busy: that of its port."""
    (endpoint,) = client.cluster.metadata.lookup_all("counter")
    port = int(endpoint.address.rpartition(":")[2])
    return process_at(port)


def process_at(port: int) -> int:
    """Return the process that listens at a port."""
    wanted = f"{port:04X}"
    lines = [n for kind in ("tcp", "tcp6") for n in Path("/proc/net", kind).read_text().splitlines()[1:]]
    inodes = {c[9] for c in map(str.split, lines) if c[1].endswith(f":{wanted}") and c[3] == "0A"}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            links = [str(link.readlink()) for link in (entry / "fd").iterdir()]
        except OSError:
            continue
        if any(link == f"socket:[{inode}]" for link in links for inode in inodes):
            return int(entry.name)
    raise AssertionError(f"no process listens at port {port}")


def test_ray_36_an_idempotent_call_runs_again(create: Create, client: _ClusterClient, tmp_path: Path) -> None:
    counter, ran = create(), tmp_path / "ran"
    flight = counter.hold_once.remote(str(ran))
    until(ran.exists)
    os.kill(_pid(client), signal.SIGKILL)
    assert flight.result(PATIENCE) == 1
    assert read(ran) == "ran\n" * 2


def test_ray_36_an_actor_that_a_client_kills(create: Create, client: _ClusterClient, tmp_path: Path) -> None:
    counter, ran = create(), tmp_path / "ran"
    flight = counter.hold.remote(str(ran))
    until(ran.exists)
    client.kill(counter, no_restart=False)
    with pytest.raises(errors.MaybeExecutedError):
        flight.result(PATIENCE)
    assert counter.increment() == 1, "it has its state still"
    flight = counter.hold.remote(str(ran))
    until(lambda: read(ran) == "ran\n" * 2)
    client.kill(counter)
    with pytest.raises(errors.ActorDiedError, match=r'"counter" was deleted: .*; the call may have run'):
        flight.result(PATIENCE)
    with pytest.raises(ActorNotFoundError, match="counter"):
        client.kill("counter")
    assert read(ran) == "ran\n" * 2


@pytest.mark.parametrize("restarts", [0, 2])
def test_ray_37_the_budget_of_restarts(create: Create, client: _ClusterClient, restarts: int) -> None:
    counter = create(max_restarts=restarts)
    for attempt in range(restarts + 1):
        assert counter.increment() == 1
        with pytest.raises(errors.MaybeExecutedError) as caught:
            counter.exit(3)
        assert isinstance(caught.value, errors.ActorDeadError) == (attempt == restarts)
    with pytest.raises(errors.ActorDeadError, match=r'"counter" has failed for good: job .*exit status 3'):
        counter.increment()
    assert client.actor_status(counter) is ActorStatus.FAILED
    job = job_of(client.cluster)  # type: ignore[arg-type]
    assert (job.status, job.attempt, job.failures) == (JobStatus.FAILED, restarts + 1, restarts + 1)


def test_ray_37_an_exit_with_status_0_is_the_end(create: Create, client: _ClusterClient) -> None:
    counter = create()
    with pytest.raises(errors.ActorDiedError, match=r'"counter" has ended: .*; the call may have run'):
        counter.exit(0)
    assert job_of(client.cluster).status is JobStatus.SUCCEEDED  # type: ignore[arg-type]


def test_ray_39_a_group(client: _ClusterClient, tmp_path: Path) -> None:
    group = client.create_actor_group(Counter, 10, name="pool", count=3, resources=SMALL)
    handles = group.wait_ready(timeout=PATIENCE)
    assert [handle.increment(i) for i, handle in enumerate(handles)] == [10, 11, 12]
    assert len(client.cluster.metadata.lookup_all("pool")) == 3
    bad = client.create_actor_group(Counter, 0, str(tmp_path), name="bad", count=2, resources=SMALL)
    with pytest.raises(ActorCreationError, match="no such lesson"):
        bad.wait_ready()
    endless = client.create_actor_group(
        Counter, name="endless", count=1, resources=ResourceConfig(cpu=1000, ram="8m")
    )
    with pytest.raises(WaitTimeoutError, match="0 of 1 actors were ready"):
        endless.wait_ready(timeout=0.3)
    until(lambda: _why(client))
    client.shutdown()
    assert client.cluster.metadata.list_actors() == []
    assert hosts_of(client.cluster) == []


def _why(client: _ClusterClient) -> bool:
    job = job_of(client.cluster, "endless_0")  # type: ignore[arg-type]
    return any("no node has 1000 CPU" in reason for reason in job.pending_reasons)


def hosts_of(cluster: Any) -> list[str]:
    """Return the Ray actors that host actors of a namespace."""
    import ray

    named = ray.util.list_named_actors(all_namespaces=True)
    return [n["name"] for n in named if n["namespace"] == cluster.namespace and "fray-actor" in n["name"]]


def test_ray_39_what_ended_leaves_nothing(create: Create, client: _ClusterClient) -> None:
    for n in range(3):
        counter = create(name=f"counter{n}")
        assert counter.increment() == 1
        client.delete_actor(counter) if n else client.kill(counter)
        with pytest.raises(errors.ActorDeadError):
            counter.increment()
    until(lambda: hosts_of(client.cluster) == [])


def test_ray_41_a_handle_works_in_a_job(create: Create, client: _ClusterClient) -> None:
    counter = create()
    job = client.submit(
        JobRequest("user", Entrypoint.from_callable(use, args=(counter, 21)), resources=SMALL)
    )
    assert job.wait(PATIENCE) is JobStatus.SUCCEEDED
    assert counter.increment(0) == 21


def test_ray_42_max_concurrency(create: Create, tmp_path: Path) -> None:
    counter = create(max_concurrency=3)
    calls = [counter.meet.remote(str(tmp_path), 3) for _ in range(3)]
    assert all(call.result(PATIENCE) for call in calls)
