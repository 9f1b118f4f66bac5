"""Methods that wait for calls of their own actor, which may never begin."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from fray.cluster import LocalCluster
from fray.rpc import ActorServer, ClusterResolver, FixedResolver, method
from fray.rpc._calling.channel import Channel
from fray.rpc.errors import ActorError, ApplicationError, BusyError, SelfCallError

PATIENCE = 300.0


class Node:
    def __init__(self) -> None:
        self.me: Any = None
        self.ran = 0

    def value(self) -> int:
        self.ran += 1
        return 7

    def sync(self) -> Any:
        return self.me.value()

    def result(self) -> Any:
        return self.me.value.remote().result(PATIENCE)

    def leave(self) -> str:
        self.me.value.remote()
        return "left"

    def in_thread(self) -> str:
        def call() -> None:
            with suppress(ActorError):  # the server may end before it is answered
                self.me.value()

        threading.Thread(target=call).start()
        return "begun"

    @method(concurrency_group="beside")
    def beside(self) -> int:
        return 8

    def calls_beside(self) -> Any:
        return self.me.beside()


class Mixed:
    """Has methods of both kinds, of which the others run one at a time."""

    def __init__(self) -> None:
        self.me: Any = None

    async def value(self) -> int:
        return 9

    def other(self) -> int:
        return 10

    def sync(self) -> Any:
        return self.me.other()

    def calls_async(self) -> Any:
        return self.me.value()

    async def awaits(self) -> Any:
        return await self.me.value.remote()


@pytest.fixture
def server() -> Iterator[ActorServer]:
    with LocalCluster() as cluster, ActorServer(cluster) as server:
        yield server


@pytest.fixture
def resolver(server: ActorServer) -> ClusterResolver:
    return ClusterResolver(server._core.surroundings.cluster)


def own_error(err: ApplicationError) -> str:
    assert err.type == "fray.rpc.errors.SelfCallError", err
    return err.message


@pytest.mark.parametrize("way", ["sync", "result"])
@pytest.mark.parametrize("known", ["by the cluster", "by its address", "by another name"])
def test_a_method_that_waits_for_its_own_actor(
    server: ActorServer, resolver: ClusterResolver, way: str, known: str
) -> None:
    node = Node()
    groups = {"beside": 1}
    server.register("node", node, concurrency_groups=groups)
    server.register("alias", node, concurrency_groups=groups)
    handles = {
        "by the cluster": lambda: resolver.lookup("node"),
        "by its address": lambda: FixedResolver(server.address).handle("node"),
        "by another name": lambda: resolver.lookup("alias"),
    }
    node.me = handles[known]()
    handle = resolver.lookup("node")
    with pytest.raises(ApplicationError) as caught:
        getattr(handle, way).remote().result(PATIENCE)
    assert f"own {way} waits for it" in own_error(caught.value)
    assert "max_concurrency of 2 or more" in caught.value.message
    assert handle.value.remote().result(PATIENCE) == 7
    assert node.ran == 1, "the call that was given up ran"


def test_the_error_says_what_to_do() -> None:
    assert issubclass(SelfCallError, BusyError)
    assert not SelfCallError("x").ran


@pytest.mark.parametrize(
    ("way", "limit", "want"),
    [
        ("sync", 2, 7),
        ("result", 2, 7),
        ("calls_beside", None, 8),
        ("leave", None, "left"),
        ("in_thread", None, "begun"),
    ],
)
def test_what_does_not_wait_for_itself(
    server: ActorServer, resolver: ClusterResolver, way: str, limit: int | None, want: object
) -> None:
    node = Node()
    server.register("node", node, concurrency_groups={"beside": 1}, max_concurrency=limit)
    node.me = resolver.lookup("node")
    handle = resolver.lookup("node")
    assert getattr(handle, way).remote().result(PATIENCE) == want


def test_another_actor_of_the_class_is_another(server: ActorServer, resolver: ClusterResolver) -> None:
    first, second = Node(), Node()
    for name, node in (("first", first), ("second", second)):
        server.register(name, node, concurrency_groups={"beside": 1})
    first.me = resolver.lookup("second")
    assert resolver.lookup("first").sync.remote().result(PATIENCE) == 7
    assert (first.ran, second.ran) == (0, 1)


@pytest.mark.parametrize(
    ("way", "limit", "stuck"),
    [
        ("sync", None, True),
        ("calls_async", None, False),
        ("awaits", None, False),
        ("awaits", 1, True),
        ("calls_async", 1, True),
        ("sync", 2, False),
    ],
)
def test_classes_with_coroutines(
    server: ActorServer, resolver: ClusterResolver, way: str, limit: int | None, stuck: bool
) -> None:
    mixed = Mixed()
    server.register("mixed", mixed, max_concurrency=limit)
    mixed.me = handle = resolver.lookup("mixed")
    future = getattr(handle, way).remote()
    if stuck:
        with pytest.raises(ApplicationError) as caught:
            future.result(PATIENCE)
        assert f"own {way} waits for it" in own_error(caught.value)
    else:
        assert future.result(PATIENCE) in (9, 10)
    assert handle.value.remote().result(PATIENCE) == 9


def test_a_call_that_was_given_up_never_begins(
    server: ActorServer, resolver: ClusterResolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Channel, "cancel", lambda *_: True)  # as one that arrives late
    node = Node()
    server.register("node", node, concurrency_groups={"beside": 1})
    node.me = handle = resolver.lookup("node")
    with pytest.raises(ApplicationError):
        handle.sync.remote().result(PATIENCE)
    assert handle.value.remote().result(PATIENCE) == 7
    assert node.ran == 1
