"""Actors of a LocalClient that fail: made again as those of a cluster are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fray.cluster import ActorNotFoundError, JobStatus
from fray.rpc.errors import MaybeExecutedError
from fray.v2 import ActorCreationError, ActorOptions, ActorStatus, LocalClient
from fray.v2._local import LocalActor
from waiting import eventually

PATIENCE = 300.0  # seconds
BEGUN, GATE = threading.Event(), threading.Event()


class Counter:
    def __init__(self, lessons: list[int], fail_if: str = "") -> None:
        if fail_if and Path(fail_if).exists():
            raise ValueError("no such lesson")
        lessons.append(0)  # of a copy, which each incarnation has
        self.value = len(lessons)

    def increment(self) -> int:
        self.value += 1
        return self.value

    def hold(self) -> int:
        BEGUN.set()
        assert GATE.wait(PATIENCE)
        return self.increment()


@pytest.fixture
def client() -> Iterator[LocalClient]:
    BEGUN.clear()
    GATE.clear()
    with LocalClient() as client:
        yield client
        GATE.set()


def counter_of(client: LocalClient) -> LocalActor:
    local = client._actors()._local
    assert local is not None
    found = local.find("counter")
    assert found is not None
    return found


def test_an_actor_that_fails_is_made_anew(client: LocalClient) -> None:
    counter = client.create_actor(Counter, [], name="counter")
    assert [counter.increment(), counter.increment()] == [2, 3]
    client.fail_actor(counter)
    assert counter.increment() == 2, "it has its state still, or another's arguments"  # 24
    assert client.actor_status(counter) is ActorStatus.READY


@pytest.mark.parametrize("repeated", [False, True])
def test_a_call_that_runs_may_have_run(client: LocalClient, repeated: bool) -> None:
    counter = client.create_actor(Counter, [], name="counter")
    running = counter.options(idempotent=repeated).hold.remote()
    assert BEGUN.wait(PATIENCE)
    waiting = counter.increment.remote()
    client.fail_actor("counter")
    if repeated:
        GATE.set()
        assert sorted([running.result(PATIENCE), waiting.result(PATIENCE)]) == [2, 3]
    else:
        with pytest.raises(MaybeExecutedError, match="the actor failed while the call ran"):
            running.result(PATIENCE)
        assert waiting.result(PATIENCE) == 2


def test_there_is_an_end_of_restarts(client: LocalClient) -> None:
    counter = client.create_actor(Counter, [], name="counter", options=ActorOptions(max_restarts=1))
    job = counter_of(client)
    client.fail_actor("counter")
    assert counter.increment() == 2
    client.fail_actor("counter")
    assert client.actor_status("counter") is ActorStatus.FAILED
    assert job.wait(PATIENCE, raise_on_failure=False) is JobStatus.FAILED
    with pytest.raises(ActorCreationError, match="failed 2 times, and was to be started again 1 times"):
        job.wait(PATIENCE)
    with pytest.raises(ActorNotFoundError, match="counter"):
        client.fail_actor("counter")
    assert client.create_actor(Counter, [], name="counter").increment() == 2
    assert client.actor_status("counter") is ActorStatus.READY


def test_a_constructor_that_raises_counts(client: LocalClient, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    counter = client.create_actor(
        Counter, [], str(flag), name="counter", options=ActorOptions(max_restarts=3)
    )
    flag.touch()
    client.fail_actor("counter")
    eventually(lambda: counter_of(client)._attempt >= 3, PATIENCE)
    assert client.actor_status("counter") is ActorStatus.RESTARTING
    flag.unlink()
    assert counter.increment() == 2


def test_one_that_was_deleted_is_not_made_again(client: LocalClient, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    client.create_actor(Counter, [], str(flag), name="counter")
    flag.touch()
    client.fail_actor("counter")
    client.delete_actor("counter")
    flag.unlink()
    with pytest.raises(ActorNotFoundError):
        client.actor_status("counter")
    assert client.create_actor(Counter, [], name="counter").increment() == 2
