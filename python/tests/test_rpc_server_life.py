"""From registering to shutting down."""

from __future__ import annotations

import threading

import pytest

from actors import PATIENCE, Caller
from fray.cluster import LocalCluster, RefusedError
from fray.rpc import ActorServer
from fray.rpc.errors import (
    ApplicationError,
    StoppingError,
    UnknownActorError,
)
from test_rpc_server import Async, Counter
from waiting import ended, eventually


def test_the_same_object_under_two_names_has_one_mailbox(
    server: ActorServer, counter: Counter, caller: Caller
) -> None:
    server.register("alias", counter)
    waits = caller.send("counter", "wait")
    assert counter.entered.acquire(timeout=PATIENCE)
    behind = caller.send("alias", "add", 1)
    assert not behind.answered.wait(0.05)
    server.unregister("counter")
    counter.gate.set()
    assert (waits.result(), behind.result()) == ("waited", 1)
    assert caller.call("alias", "add", 1) == 2


def test_unregistering_refuses_what_waits(server: ActorServer, counter: Counter, caller: Caller) -> None:
    runs = caller.send("counter", "wait")
    assert counter.entered.acquire(timeout=PATIENCE)
    waits = caller.send("counter", "add", 1)
    caller.connection.list_actors(timeout=PATIENCE)  # what was sent before has arrived
    server.unregister("counter")
    with pytest.raises(StoppingError) as caught:
        waits.result()
    assert not caught.value.ran
    counter.gate.set()
    assert runs.result() == "waited"
    assert counter.n == 0


def test_shutting_down_finishes_what_is_there(server: ActorServer, counter: Counter, caller: Caller) -> None:
    runs = caller.send("counter", "wait")
    waits = caller.send("counter", "add", 1)
    assert counter.entered.acquire(timeout=PATIENCE)
    caller.connection.list_actors(timeout=PATIENCE)
    ending = threading.Thread(target=server.shutdown, args=(PATIENCE,))
    ending.start()
    eventually(lambda: server._core.draining, PATIENCE)
    with pytest.raises(StoppingError) as caught:
        caller.call("counter", "add", 100)
    assert not caught.value.ran
    # Close means that calls without an answer did not run, and this one does.
    assert not caller.connection.stopping
    counter.gate.set()
    assert (runs.result(), waits.result()) == ("waited", 1)
    eventually(lambda: caller.connection.stopping, PATIENCE)
    assert server._core._idle.wait(PATIENCE / 2), "it waits for the end of its grace, though nothing is left"
    ended(ending)
    with pytest.raises(RefusedError, match="shutting down"):
        server.register("late", Counter())
    eventually(lambda: caller.connection.closed, PATIENCE)


def test_shutting_down_gives_up_on_what_does_not_end(
    server: ActorServer, counter: Counter, caller: Caller
) -> None:
    runs = caller.send("counter", "wait")
    waits = caller.send("counter", "add", 1)
    assert counter.entered.acquire(timeout=PATIENCE)
    caller.connection.list_actors(timeout=PATIENCE)
    server.shutdown(0.05)
    for one, ran in ((runs, True), (waits, False)):
        with pytest.raises(StoppingError) as caught:
            one.result()
        assert caught.value.ran is ran
    counter.gate.set()


def test_lists(server: ActorServer, counter: Counter, caller: Caller) -> None:
    incarnation = server._registry().lookup("counter").actor_id
    server.register("other", Async())
    caller.call("counter", "add", 1)
    with pytest.raises(ApplicationError):
        caller.call("counter", "fail", "x")
    waits = caller.send("counter", "wait")
    assert counter.entered.acquire(timeout=PATIENCE)
    (found,) = caller.connection.list_actors("coun", PATIENCE).actors
    assert (found.name, found.incarnation, found.pending, found.calls, found.errors) == (
        "counter",
        incarnation,
        1,
        2,
        1,
    )
    assert getattr(found, "class") == "test_rpc_server.Counter"
    assert [a.name for a in caller.connection.list_actors(timeout=PATIENCE).actors] == ["counter", "other"]
    counter.gate.set()
    waits.result()
    listed = caller.connection.list_methods("counter", PATIENCE)
    methods = {m.name: m for m in listed.methods}
    assert list(methods) == sorted(methods)
    assert listed.incarnation == incarnation
    assert (methods["add"].signature, methods["add"].doc) == (
        "add(n: int, by: int = 1) -> int",
        "Add to the count.",
    )
    assert list(methods["add"].params) == ["n", "by"]
    assert methods["wait"].idempotent
    assert not methods["add"].idempotent
    assert list(methods["about"].params) == ["x"], "the context is no argument"
    assert not {"_secret", "size", "kind"} & methods.keys()
    with pytest.raises(UnknownActorError) as caught:
        caller.connection.list_methods("countr", PATIENCE)
    assert caught.value.near == ("counter",)


def test_a_hundred_actors_in_one_process(server: ActorServer, caller: Caller) -> None:
    before = threading.active_count()
    for n in range(150):
        server.register(f"counter-{n}", Counter())
    assert threading.active_count() <= before, "an actor without calls has a thread"
    sent = [caller.send(f"counter-{n}", "add", n) for n in range(150)]
    assert [one.result() for one in sent] == list(range(150))


def test_what_the_cluster_refuses_is_not_served(
    server: ActorServer, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RefusedError("the job has ended")

    with monkeypatch.context() as patch:
        patch.setattr(type(server._registry()), "register", refuse)
        with pytest.raises(RefusedError, match="has ended"):
            server.register("counter", Counter())
    with pytest.raises(UnknownActorError):
        caller.call("counter", "add", 1)
    server.register("counter", Counter())
    assert caller.call("counter", "add", 1) == 1


def test_objects_that_cannot_be_actors(server: ActorServer) -> None:
    class Empty:
        pass

    for value in (object(), Empty()):
        with pytest.raises(ValueError, match="has no method"):
            server.register("x", value)
    with pytest.raises(ValueError, match="name"):
        server.register("", Counter())


def test_without_an_identity_only_this_machine_is_served() -> None:
    with LocalCluster() as cluster:
        with pytest.raises(ValueError, match="FRAY_ACTOR_IDENTITY"):
            ActorServer(cluster, "192.0.2.1")
        with ActorServer(cluster) as server:
            assert server._listener._socket.getsockname()[0] == "127.0.0.1"
        with ActorServer(cluster, insecure=True) as server:
            assert server._listener._socket.getsockname()[0] == "0.0.0.0"


@pytest.mark.parametrize("limit", [1, 2])
def test_the_threads_of_an_actor_end_with_its_server(limit: int) -> None:
    def threads() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name.startswith("fray-actor-mine")]

    with LocalCluster() as cluster, ActorServer(cluster) as server:
        server.register("mine", Counter(), max_concurrency=limit)
        with Caller(server.address) as caller:
            assert caller.call("mine", "add", 1) == 1
        assert threads()
    eventually(lambda: not threads(), PATIENCE)
