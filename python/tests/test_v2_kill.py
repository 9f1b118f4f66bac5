"""Actors that are killed, and actors that are found by their names."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from controller import TOKEN, Controller
from created import PATIENCE, Counter
from fray.cluster import ActorNotFoundError, JobId, JobStatus, LocalCluster, RefusedError
from fray.rpc import ActorServer
from fray.rpc.errors import ActorDeadError, MaybeExecutedError, UnknownMethodError
from fray.v2 import (
    ActorOptions,
    ActorStatus,
    Client,
    FrayClient,
    LocalClient,
    get_actor,
    kill,
    set_current_client,
)
from fray.v2.client import _ClusterClient
from test_v2_actors import Elsewhere, status_of
from waiting import eventually

RELEASED = threading.Event()


class Keeper(Counter):
    """Counts how often it was made."""

    def __init__(self, made: str) -> None:
        super().__init__()
        self.path = Path(made)
        with self.path.open("a") as file:
            file.write("x")

    def hold(self, begun: str) -> None:
        Path(begun).touch()
        RELEASED.wait(PATIENCE)


@pytest.fixture(params=["threads", "processes", "fray"])
def client(
    request: pytest.FixtureRequest,
    serve: Callable[..., Controller],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Client]:
    RELEASED.clear()
    if request.param == "threads":
        with LocalClient() as local:
            yield local
            RELEASED.set()
    elif request.param == "processes":
        with LocalCluster(use_processes=True) as cluster, _ClusterClient(Elsewhere(cluster)) as elsewhere:
            yield elsewhere
    else:
        monkeypatch.setenv("FRAY_CLUSTER_TOKEN", TOKEN)
        with FrayClient(f"fray://{serve(runs=True).address}?namespace=rl") as remote:
            yield remote


def test_a_killed_actor_ends_amid_its_call(client: Client, tmp_path: Path) -> None:
    made, begun = tmp_path / "made", tmp_path / "begun"
    keeper = client.create_actor(Keeper, str(made), name="keeper")
    running = keeper.hold.remote(str(begun))
    eventually(begun.exists, PATIENCE)
    client.kill(keeper)
    with pytest.raises(ActorDeadError, match=r'"keeper" .*; the call may have run') as caught:
        running.result(PATIENCE)
    assert isinstance(caught.value, MaybeExecutedError)
    assert caught.value.ran
    assert isinstance(caught.value.cause, ActorDeadError)
    assert status_of(client, "keeper") is None
    assert made.read_text() == "x", "it was made again"
    with pytest.raises(ActorNotFoundError, match="keeper"):
        client.kill("keeper")
    assert client.create_actor(Keeper, str(made), name="keeper").increment() == 1
    assert made.read_text() == "xx"


class Deaf(Elsewhere):
    """One that is asked to end jobs in vain."""

    def terminate(self, job_id: JobId) -> None:
        self.local.poll(job_id)

    def wait(self, job_id: Any, *_: Any, **__: Any) -> Any:
        return self.local.wait(job_id, False, timeout=PATIENCE)


def test_a_kill_does_not_depend_on_the_grace_of_the_job(tmp_path: Path) -> None:
    with LocalCluster(use_processes=True) as cluster:
        client = _ClusterClient(Deaf(cluster))
        keeper = client.create_actor(Keeper, str(tmp_path / "made"), options=ActorOptions(max_restarts=0))
        running = keeper.hold.remote(str(tmp_path / "begun"))
        eventually((tmp_path / "begun").exists, PATIENCE)
        client.kill(keeper)
        with pytest.raises(MaybeExecutedError):
            running.result(PATIENCE)
        (job,) = cluster.list_jobs()
        assert (job.status, job.tasks[0].exit_code) == (JobStatus.FAILED, 128 + signal.SIGKILL)


def test_no_method_kills_what_is_not_created(server: ActorServer) -> None:
    server.register("counter", Counter())
    handle = server._core.surroundings.resolver.handle("counter")
    with pytest.raises(UnknownMethodError):
        handle["__fray_kill__"]()
    assert handle.increment() == 1


@pytest.mark.parametrize("processes", [False, True])
def test_a_kill_may_be_a_failure(processes: bool, tmp_path: Path) -> None:
    made = tmp_path / "made"
    local = LocalClient() if not processes else _ClusterClient(Elsewhere(LocalCluster(use_processes=True)))
    with local as client:
        options = ActorOptions(max_restarts=1)
        keeper = client.create_actor(Keeper, str(made), name="keeper", options=options)
        assert keeper.increment() == 1
        client.kill(keeper, no_restart=False)
        assert keeper.increment() == 1, "it has its state still"
        assert made.read_text() == "xx"
        client.kill("keeper", no_restart=False)
        eventually(lambda: status_of(client, "keeper") is ActorStatus.FAILED, PATIENCE)
        with pytest.raises(ActorNotFoundError, match="failed for good"):
            client.get_actor("keeper")
        assert made.read_text() == "xx"


def test_one_that_is_being_created_is_killed(client: Client, tmp_path: Path) -> None:
    group = client.create_actor_group(Counter, gate=str(tmp_path / "never"), name="pool", count=1)
    assert client.get_actor("pool_0") == group.handles[0]
    with ThreadPoolExecutor(1) as pool:  # a thread that makes an actor here is not stopped
        pool.submit(client.kill, "pool_0").result(PATIENCE)
    assert status_of(client, "pool_0") is None
    (tmp_path / "never").touch()


def test_actors_are_found_by_name(client: Client) -> None:
    with pytest.raises(ActorNotFoundError, match="counter"):
        client.get_actor("counter")
    client.create_actor(Counter, 2, name="counter")
    found = client.get_actor("counter", Counter)
    assert found.increment() == 3
    with set_current_client(client):
        assert get_actor("counter").increment() == 4
        kill(found)
        with pytest.raises(ActorNotFoundError, match="counter"):
            get_actor("counter")


def test_actors_of_others_are_not_killed() -> None:
    with LocalClient() as client, ActorServer(client.cluster) as server:
        server.register("theirs", Counter())
        assert client.get_actor("theirs").increment() == 1
        for no_restart in (False, True):
            with pytest.raises(RefusedError, match='"theirs" was not created by create_actor'):
                client.kill("theirs", no_restart)
