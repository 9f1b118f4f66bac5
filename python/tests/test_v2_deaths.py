"""Calls of actors that are gone for good end at once, with the cause."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controller import TOKEN, Controller
from created import PATIENCE, Counter
from fray.cluster import ActorEndpoint, ActorNotFoundError, LocalCluster
from fray.rpc import ClusterResolver, RpcOptions
from fray.rpc.errors import ActorDeadError
from fray.v2 import ActorHandle, ActorOptions, ActorStatus, FrayClient, LocalClient
from fray.v2.client import _ClusterClient
from test_v2_actors import Elsewhere
from waiting import eventually

FOREVER = 1e6  # seconds: who waits for the resolve timeout waits for ever


@pytest.fixture(params=["threads", "processes", "fray"])
def client(
    request: pytest.FixtureRequest, serve: Callable[..., Controller], monkeypatch: pytest.MonkeyPatch
) -> Iterator[_ClusterClient]:
    if request.param == "threads":
        with LocalClient() as local:
            yield local
    elif request.param == "processes":
        with LocalCluster(use_processes=True) as cluster, _ClusterClient(Elsewhere(cluster)) as elsewhere:
            yield elsewhere
    else:
        monkeypatch.setenv("FRAY_CLUSTER_TOKEN", TOKEN)
        with FrayClient(f"fray://{serve(runs=True).address}?namespace=rl") as remote:
            yield remote


def patient(handle: ActorHandle) -> ActorHandle:
    return handle.options(resolve_timeout=FOREVER)


def is_dead(actor: ActorHandle) -> bool:
    """Return whether a call ends as one that its actor certainly did not have.

    A connection that has broken at the actor's end may take a call still, which then may have run.
    """
    return type(actor.increment.remote().exception(PATIENCE)) is ActorDeadError


def test_deleted_actors(client: _ClusterClient) -> None:
    unused = client.create_actor(Counter, name="unused")
    counter = patient(client.create_actor(Counter, name="counter"))
    assert counter.increment() == 1
    client.delete_actor(counter)
    eventually(lambda: is_dead(counter), PATIENCE)
    with pytest.raises(ActorDeadError, match=r'counter.increment: actor "counter" was deleted') as caught:
        counter.increment()
    assert not caught.value.ran
    assert isinstance(counter.increment.remote().exception(PATIENCE), ActorDeadError)
    client.delete_actor(unused)
    eventually(lambda: is_dead(patient(unused)), PATIENCE)
    with pytest.raises(ActorDeadError, match='"unused" was deleted'):  # though it was never called
        patient(unused).increment()
    with pytest.raises(ActorNotFoundError, match="counter") as missing:
        ClusterResolver(client.cluster).lookup("counter")
    assert "was deleted" in missing.value.death
    again = client.create_actor(Counter, 10, name="counter")
    assert (again.increment(), counter.increment()) == (11, 12), "handles are of the name"


def test_calls_that_wait_when_it_is_deleted(client: _ClusterClient, tmp_path: Path) -> None:
    counter = patient(client.create_actor(Counter, name="counter"))
    (tmp_path / "barrier").mkdir()
    running = counter.meet.remote(str(tmp_path / "barrier"), 2)
    waiting = [counter.increment.remote() for _ in range(3)]
    eventually(lambda: any((tmp_path / "barrier").iterdir()), PATIENCE)
    (tmp_path / "barrier" / "other").touch()
    client.delete_actor("counter")
    running.exception(PATIENCE)  # it ran: with a result, or perhaps none
    for future in waiting:
        error = future.exception(PATIENCE)
        assert error is None or isinstance(error, ActorDeadError) or error.ran


def test_who_deleted_it() -> None:
    with LocalClient() as client:
        counter = client.create_actor(Counter, name="counter")
        client.delete_actor("counter")
        with pytest.raises(ActorDeadError, match=r"job actor-counter-1 was stopped by this program"):
            counter.increment()


def test_failed_for_good(tmp_path: Path) -> None:
    with LocalCluster(use_processes=True) as cluster, _ClusterClient(Elsewhere(cluster)) as client:
        counter = patient(client.create_actor(Counter, name="counter", options=ActorOptions(max_restarts=0)))
        assert counter.exit.remote(3).exception(PATIENCE) is not None
        with pytest.raises(ActorDeadError, match=r'"counter" has failed for good: job .*exit code 3'):
            counter.increment()
        assert client.actor_status("counter") is ActorStatus.FAILED
        bad = tmp_path / "bad"
        other = patient(
            client.create_actor(Counter, fail_if=str(bad), name="other", options=ActorOptions(max_restarts=1))
        )
        bad.touch()
        assert other.exit.remote(3).exception(PATIENCE) is not None
        with pytest.raises(ActorDeadError, match=r"its constructor raised ValueError: no such lesson"):
            other.increment()


def test_failed_for_good_in_this_process() -> None:
    with LocalClient() as client:
        counter = patient(client.create_actor(Counter, name="counter", options=ActorOptions(max_restarts=1)))
        client.fail_actor("counter")
        assert counter.increment() == 1, "it was made anew"
        client.fail_actor("counter")
        with pytest.raises(ActorDeadError, match=r'"counter" has failed for good: .*it was made to fail'):
            counter.increment()


class Counted(Elsewhere):
    """A cluster as another program sees it, which counts how often the actor was searched for."""

    asked = 0

    @property
    def metadata(self) -> Counted:
        return self

    @property
    def namespace(self) -> str:
        return str(self.local.namespace)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.local, name, None) or getattr(self.local.metadata, name)

    def lookup_all(self, name: str) -> list[ActorEndpoint]:
        self.asked += 1
        return list(self.local.metadata.lookup_all(name))


def test_one_that_may_be_yet_to_come_is_waited_for() -> None:
    with LocalClient() as client:
        client.create_actor(Counter, name="counter")
        client.delete_actor("counter")
        assert isinstance(client.cluster, LocalCluster)
        elsewhere = Counted(client.cluster)  # a program that has never seen it
        resolver = ClusterResolver(elsewhere, options=RpcOptions(resolve_timeout=FOREVER))  # type: ignore[arg-type]
        future = resolver.handle("counter").increment.remote()
        eventually(lambda: elsewhere.asked >= 3, PATIENCE)
        assert not future.done()
        client.create_actor(Counter, name="counter")
        assert future.result(PATIENCE) == 1


def test_a_deleted_actor_has_drained() -> None:
    with LocalCluster(use_processes=True) as cluster, _ClusterClient(Elsewhere(cluster)) as client:
        counter = client.create_actor(Counter, name="counter")
        pid = counter.pid()
        client.delete_actor("counter")
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
