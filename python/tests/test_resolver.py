"""Finding actors: by a cluster's registry, at an address, in this process; pools of them."""

from __future__ import annotations

import threading
from collections import Counter as Tally
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import pytest

import fray.cluster
import fray.rpc
from fray.cluster import (
    ActorChanges,
    ActorEndpoint,
    ActorId,
    AlreadyExistsError,
    ClusterError,
    Entrypoint,
    JobId,
    JobRequest,
    LocalCluster,
    Namespace,
    RefusedError,
    WaitTimeoutError,
)
from fray.rpc import (
    ActorServer,
    ClusterResolver,
    FixedResolver,
    LeastLoaded,
    LocalResolver,
    Resolver,
    RoundRobin,
    broadcast,
)
from fray.rpc._calling.resolve_cluster import ClusterDirectory, directory_of
from fray.rpc.errors import UnknownActorError
from scripted import Scripted
from waiting import ended, eventually


class Named:
    def __init__(self, name: str) -> None:
        self.name = name
        self.held = threading.Event()
        self.held.set()

    def who(self) -> str:
        return self.name

    def held_up(self) -> str:
        assert self.held.wait(300)
        return self.name


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as cluster:
        yield cluster


@pytest.fixture
def servers(cluster: LocalCluster) -> Iterator[list[ActorServer]]:
    started = [ActorServer(cluster) for _ in range(3)]
    for server in started:
        server.serve_background()
    yield started
    for server in started:
        server.shutdown(0)


# The registry


def test_unique_names(cluster: LocalCluster) -> None:
    metadata = cluster.metadata
    first = metadata.register("one", "127.0.0.1:1", JobId(""), unique=True)
    with pytest.raises(
        AlreadyExistsError, match=r'actor "one" of namespace default is at 127.0.0.1:1; unreg'
    ):
        metadata.register("one", "127.0.0.1:2", JobId(""), task=1)
    metadata.register("many", "127.0.0.1:1", JobId(""))
    metadata.register("many", "127.0.0.1:2", JobId(""))
    with pytest.raises(AlreadyExistsError):
        metadata.register("many", "127.0.0.1:3", JobId(""), unique=True, task=1)
    cluster.metadata_of("other").register("one", "127.0.0.1:3", JobId(""), unique=True)
    metadata.unregister(first)
    metadata.register("one", "127.0.0.1:2", JobId(""), task=1)


def test_registering_again(cluster: LocalCluster) -> None:
    metadata = cluster.metadata
    chosen = ActorId("actor-" + 26 * "q")
    assert metadata.register("a", "127.0.0.1:1", JobId(""), actor_id=chosen) == chosen
    assert metadata.register("a", "127.0.0.1:2", JobId(""), {"k": "v"}, actor_id=chosen) == chosen
    (found,) = metadata.lookup_all("a")
    assert (found.actor_id, found.address, found.metadata) == (chosen, "127.0.0.1:2", {"k": "v"})
    another = metadata.register("a", "127.0.0.1:2", JobId(""))
    assert [each.actor_id for each in metadata.lookup_all("a")] == [another], (
        "the same place, so the same actor"
    )
    assert another.startswith("actor-")
    assert len(another) == len(chosen)


def test_endpoints_that_expire(cluster: LocalCluster) -> None:
    metadata = cluster.metadata
    lasting = metadata.register("a", "127.0.0.1:1", JobId(""), ttl=3600)
    renewed = metadata.register("b", "127.0.0.1:1", JobId(""), ttl=1)
    metadata.register("b", "127.0.0.1:1", JobId(""), ttl=3600, actor_id=renewed)
    metadata.register("c", "127.0.0.1:1", JobId(""), ttl=1.2)
    eventually(lambda: not metadata.lookup_all("c"), 300)
    assert [each.actor_id for each in metadata.list_actors()] == [lasting, renewed]
    metadata.unregister(lasting)
    metadata.unregister(renewed)


def test_an_endpoint_that_is_renewed_at_its_last_moment(cluster: LocalCluster) -> None:
    metadata = cluster.metadata
    with cluster._changed:  # so that its time is over, but no reader can see that yet
        actor_id = metadata.register("a", "127.0.0.1:1", JobId(""), ttl=0.01)
        threading.Event().wait(0.3)
        metadata.register("a", "127.0.0.1:1", JobId(""), ttl=3600, actor_id=actor_id)
    threading.Event().wait(0.1)
    assert [each.actor_id for each in metadata.list_actors()] == [actor_id]
    metadata.unregister(actor_id)


def test_watching_until_a_job_has_ended(cluster: LocalCluster) -> None:
    ends = threading.Event()
    job = cluster.launch(
        JobRequest(name="j", entrypoint=Entrypoint.from_callable(lambda: ends.wait(300) and None))
    )
    changes = cluster.metadata.watch(name="a", job_id=job)
    assert next(changes).reset
    ends.set()
    with pytest.raises(RefusedError, match=f"job {job} has ended: it is succeeded"):
        next(changes)


# Resolvers


def test_lookup(cluster: LocalCluster, servers: list[ActorServer]) -> None:
    resolver: Resolver = ClusterResolver(cluster)
    for i, server in enumerate(servers):
        server.register("pool", Named(f"pool {i}"))
    servers[0].register("one", Named("one"))
    assert resolver.lookup("one").who() == "one"
    assert resolver.lookup("pool").who() == "pool 2", "the newest"
    assert [each.who() for each in resolver.lookup_all("pool")] == ["pool 0", "pool 1", "pool 2"]
    assert resolver.lookup_all("missing") == []
    assert resolver.resolve("pool") == [f"actor://{server.address}/pool" for server in servers]
    with pytest.raises(LookupError, match="did you mean one"):
        resolver.lookup("oen")


def test_namespaces(cluster: LocalCluster) -> None:  # 23
    server = ActorServer(cluster)
    server.register("one", Named("one"))
    server.serve_background()
    try:
        assert ClusterResolver(cluster).lookup("one").namespace == "default"
        with pytest.raises(LookupError, match="in namespace other"):
            ClusterResolver(cluster, namespace="other").lookup("one")
    finally:
        server.shutdown(0)


def test_lookups_are_answered_from_memory(
    cluster: LocalCluster, servers: list[ActorServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    servers[0].register("one", Named("one"))
    resolver = ClusterResolver(cluster)
    eventually(lambda: resolver.directory.known("one"), 300)
    asked: list[str] = []

    def lookup_all(_self: object, name: str) -> list[object]:
        asked.append(name)
        return []

    monkeypatch.setattr(type(cluster.metadata), "lookup_all", lookup_all)
    for _ in range(10):
        assert resolver.lookup("one").who() == "one"
    assert asked == []
    servers[0].unregister("one")
    servers[1].register("one", Named("moved"))
    eventually(lambda: resolver.resolve("one") == [f"actor://{servers[1].address}/one"], 300)
    assert resolver.lookup("one").who() == "moved"


class Unsteady:
    """A registry of another maker, which cannot be watched at first, and whose watches cannot be ended."""

    def __init__(self) -> None:
        self.asked = 0
        self.gone = threading.Event()
        self.changes: SimpleQueue[ActorChanges] = SimpleQueue()

    def watch(self) -> Iterator[ActorChanges]:
        self.asked += 1
        if self.asked == 1:
            raise ClusterError("it is not there yet")
        return self._changes()

    def _changes(self) -> Iterator[ActorChanges]:
        try:
            while True:
                yield self.changes.get()
        finally:
            self.gone.set()

    def lookup_all(self, _name: str) -> list[ActorEndpoint]:
        return []


def test_a_registry_that_cannot_be_watched_is_watched_later() -> None:
    registry: Any = Unsteady()
    one = ActorEndpoint(ActorId("a-1"), "one", "127.0.0.1:1", JobId("j"), Namespace("n"))
    registry.changes.put(ActorChanges(reset=True, added=(one,)))
    directory = ClusterDirectory(LocalCluster(), registry, "n")
    eventually(lambda: directory.known("one"), 300)
    directory.close()
    registry.changes.put(ActorChanges(reset=False))
    assert registry.gone.wait(300), "it is watched still"


def test_a_handle_follows_its_actor(cluster: LocalCluster, servers: list[ActorServer]) -> None:  # 30
    servers[0].register("one", Named("first"))
    handle = ClusterResolver(cluster).lookup("one")
    assert handle.who() == "first"
    first = handle.actor_id
    servers[0].unregister("one")
    waiting = handle.who.remote()
    assert not waiting.done()
    servers[1].register("one", Named("second"))
    assert waiting.result(300) == "second"
    assert handle.actor_id != first
    assert handle.address == servers[1].address
    servers[1].shutdown(0)
    servers[2].register("one", Named("third"))
    assert handle.who() == "third"


def test_a_stale_handle_is_resolved_again(cluster: LocalCluster, servers: list[ActorServer]) -> None:
    servers[0].register("one", Named("first"))
    handle = ClusterResolver(cluster).lookup("one")
    assert handle.who() == "first"
    servers[0].unregister("one")
    servers[0].register("one", Named("again"))  # in the same place
    assert handle.who() == "again"


def test_a_change_wakes_who_waits_for_it(cluster: LocalCluster, servers: list[ActorServer]) -> None:
    directory = directory_of(cluster, None)
    assert directory.endpoints("late") == []
    eventually(lambda: directory._live)
    seen_at: list[float] = []

    def wait() -> None:
        directory.wait("late", 3600)
        seen_at.append(len(directory.known("late")))

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    servers[0].register("late", Named("late"))
    ended(thread)
    assert seen_at == [1]


def test_waiting_for_an_actor(cluster: LocalCluster, servers: list[ActorServer]) -> None:  # 33
    resolver = ClusterResolver(cluster)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(resolver.wait_for_actor("late").who()))
    thread.start()
    servers[0].register("late", Named("late"))
    ended(thread)
    assert found == ["late"]
    with pytest.raises(WaitTimeoutError, match=r'no actor "never" .*: waited 0.1 s'):
        resolver.wait_for_actor("never", 0.1)

    def fails() -> None:
        raise ValueError("its model does not load")

    job = cluster.launch(JobRequest(name="j", entrypoint=Entrypoint.from_callable(fails)))
    with pytest.raises(RefusedError, match=f"job {job} has ended, it is failed: .*its model does not load"):
        resolver.wait_for_actor("never", 3600, job)


def test_fixed(servers: list[ActorServer]) -> None:
    servers[0].register("one", Named("one"))
    address = servers[0].address
    for target in (address, f"actor://{address}", f"grpc://{address}/one", f"actor://{address}/"):
        assert FixedResolver(target).lookup("one").who() == "one"
    resolver = FixedResolver(address)
    assert resolver.wait_for_actor("one", 300).actor_id == resolver.lookup("one").actor_id != ""
    assert resolver.lookup("one") == FixedResolver(f"actor://{address}").lookup("one")
    assert resolver.resolve("x") == [f"actor://{address}/x"]
    with pytest.raises(UnknownActorError, match="did you mean one"):
        resolver.lookup("on").who()
    with pytest.raises(WaitTimeoutError):
        resolver.wait_for_actor("two", 0.1)


@pytest.mark.parametrize("target", ["", "host", "host:", ":80", "host:port", "http://host:80", "host:99999"])
def test_what_is_no_address(target: str) -> None:
    with pytest.raises(
        ValueError, match="is no address of actors; give host:port, or actor://host:port/name"
    ):
        FixedResolver(target)


def test_standing_alone() -> None:
    with LocalResolver() as resolver:
        resolver.register("one", Named("one"))
        assert resolver.lookup("one").who() == "one"


def test_where_they_are_imported_from() -> None:
    for name in ("ClusterResolver", "FixedResolver", "LocalResolver", "Resolver"):
        assert getattr(fray.cluster, name) is getattr(fray.rpc, name)
    for name in fray.rpc.__all__:
        assert getattr(fray.rpc, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        fray.rpc.nothing  # noqa: B018


# Pools


def test_round_robin_follows_changes(cluster: LocalCluster, servers: list[ActorServer]) -> None:
    for i, server in enumerate(servers[:2]):
        server.register("pool", Named(str(i)))
    resolver = ClusterResolver(cluster)
    pool = RoundRobin(resolver, "pool")
    assert Tally(pool.who() for _ in range(10)) == {"0": 5, "1": 5}
    servers[2].register("pool", Named("2"))
    eventually(lambda: len(pool.handles) == 3, 300)
    assert Tally(pool.who.remote().result(300) for _ in range(9)) == {"0": 3, "1": 3, "2": 3}
    servers[0].unregister("pool")
    assert "0" not in {pool.who() for _ in range(9)}, "what is gone is done by another"
    servers[1].unregister("pool")
    servers[2].unregister("pool")
    eventually(lambda: not resolver.resolve("pool"), 300)
    with pytest.raises(LookupError, match='no actor "pool"'):
        pool.who()


def test_least_loaded(cluster: LocalCluster, servers: list[ActorServer]) -> None:
    actors = [Named(str(i)) for i in range(3)]
    for actor, server in zip(actors, servers, strict=True):
        server.register("pool", actor)
    pool = LeastLoaded(ClusterResolver(cluster).lookup_all("pool"))
    for actor in actors:
        actor.held.clear()
    futures = [pool.held_up.remote() for _ in range(6)]
    actors[1].held.set()
    eventually(lambda: sum(future.done() for future in futures) == 2, 300)
    more = [pool.held_up.remote().result(300) for _ in range(4)]
    assert more == ["1"] * 4
    for actor in actors:
        actor.held.set()
    assert Tally(future.result(300) for future in futures) == {"0": 2, "1": 2, "2": 2}
    with pytest.raises(TypeError):
        pool.held_up.remote({1, 2})
    assert not pool._loads, "a call that was not made does not count"


def test_broadcast(cluster: LocalCluster, servers: list[ActorServer]) -> None:
    for i, server in enumerate(servers):
        server.register("pool", Named(str(i)))
    resolver = ClusterResolver(cluster)
    for actors in ((resolver, "pool"), resolver.lookup_all("pool")):
        assert [future.result(300) for future in broadcast(actors, "who")] == ["0", "1", "2"]


def test_pools_of_nothing() -> None:
    with pytest.raises(ValueError, match="there are no actors"):
        RoundRobin([])
    with Scripted() as server, pytest.raises(ValueError, match="give the name"):
        LeastLoaded(FixedResolver(server.address))
