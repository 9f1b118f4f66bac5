"""Pools of actors that share work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fray.cluster import LocalCluster
from fray.rpc import ActorFuture, ActorHandle, ActorPool, ActorServer, FixedResolver, RpcOptions
from fray.rpc.errors import ApplicationError, EncodingError, MaybeExecutedError, UnavailableError
from fray.v2 import Client, LocalClient
from fray.v2.client import _ClusterClient
from gates import Fragile, Gate
from test_v2_actors import Elsewhere
from waiting import eventually

LIMIT = 300


class Pooled:
    """A pool of gates, and which of them has which value."""

    def __init__(self, server: ActorServer, count: int) -> None:
        for i in range(count):
            server.register(f"gate_{i}", Gate())
        resolver = FixedResolver(server.address)
        self.gates = [resolver.handle(f"gate_{i}") for i in range(count)]
        self.pool = ActorPool(self.gates)
        self.given: list[Any] = []
        self.at: dict[Any, ActorHandle] = {}
        self.futures: dict[Any, ActorFuture[Any]] = {}

    def passes(self, gate: ActorHandle, value: Any) -> ActorFuture[Any]:
        self.given.append(value)
        self.at[value] = gate
        future = self.futures[value] = gate.passes.remote(value)
        return future

    def open(self, *values: Any) -> None:
        """Let calls return, and wait until they have."""
        for value in values:
            self.at[value].open(value)
            self.futures[value].result(LIMIT)


@pytest.fixture
def pooled(server: ActorServer) -> Pooled:
    return Pooled(server, 2)


def opened(gate: ActorHandle, value: Any) -> ActorFuture[Any]:
    gate.open(value)
    return gate.passes.remote(value)


def test_map(pooled: Pooled) -> None:
    assert list(pooled.pool.map(opened, range(7))) == list(range(7))
    assert sorted(pooled.pool.map_unordered(opened, range(7))) == list(range(7))
    assert list(pooled.pool.map(opened, [])) == []
    assert not pooled.pool.has_next()


def test_results_in_order_though_they_come_in_another(pooled: Pooled) -> None:
    results = pooled.pool.map(pooled.passes, "abcd")
    assert pooled.given == ["a", "b"], "one call of each actor at a time"
    pooled.open("b")
    assert not pooled.pool.has_free(), "the actor has the next value as soon as that is noticed"
    assert pooled.given == ["a", "b", "c"]
    pooled.open("c")
    assert not pooled.pool.has_free()
    assert {pooled.at[value] for value in "bcd"} == {pooled.at["b"]}, "while the other is busy"
    pooled.open("a", "d")
    assert list(results) == ["a", "b", "c", "d"]


def test_results_as_they_come(pooled: Pooled) -> None:
    results = pooled.pool.map_unordered(pooled.passes, "abcd")
    pooled.open("b")
    assert next(results) == "b"
    pooled.open("c")
    assert next(results) == "c"
    pooled.open("a")
    assert next(results) == "a"
    pooled.open("d")
    assert list(results) == ["d"]


def test_submit_and_get_next(pooled: Pooled) -> None:
    pool = pooled.pool
    assert pool.has_free()
    assert not pool.has_next()
    for value in "abcde":
        pool.submit(pooled.passes, value)
    assert (pool.has_free(), pool.has_next(), pool.pop_idle(), len(pool)) == (False, True, None, 2)
    with pytest.raises(TimeoutError, match=r"no result has come within 0.01 s"):
        pool.get_next(timeout=0.01)
    with pytest.raises(TimeoutError):
        pool.get_next_unordered(timeout=0.01)
    pooled.open("b", "a")
    assert pool.get_next(LIMIT) == "a"
    assert pool.get_next_unordered(LIMIT) == "b"
    pooled.open("d")
    assert pool.get_next_unordered(LIMIT) == "d"
    pooled.open("c")
    assert pool.get_next() == "c", "the oldest that was not handed out"
    pooled.open("e")
    assert pool.get_next() == "e"
    for get in (pool.get_next, pool.get_next_unordered):
        with pytest.raises(StopIteration):
            get()
    assert pool.has_free()


def test_a_result_that_is_not_waited_for_is_forgotten_but_its_actor_is_busy(pooled: Pooled) -> None:
    pool = pooled.pool
    for value in "abc":
        pool.submit(pooled.passes, value)
    with pytest.raises(TimeoutError):
        pool.get_next(timeout=0, ignore_if_timedout=True)
    assert pooled.given == ["a", "b"]
    pooled.open("b")
    assert pool.get_next(LIMIT) == "b"
    assert pooled.at["c"] == pooled.at["b"]
    with pytest.raises(TimeoutError):
        pool.get_next_unordered(timeout=0, ignore_if_timedout=True)
    assert not pool.has_next()
    assert not pool.has_free()
    pooled.open("a")
    assert pool.has_free()
    pooled.open("c")


def test_map_drops_what_was_not_asked_for(pooled: Pooled) -> None:
    first = pooled.pool.map(pooled.passes, "abcd")
    second = pooled.pool.map(pooled.passes, "xy")
    pooled.open("a", "b")
    pooled.pool.has_free()
    pooled.open("x", "y")
    assert list(second) == ["x", "y"]
    assert list(first) == []
    assert pooled.given == ["a", "b", "x", "y"], "c and d were not begun, and nothing begins them now"


def test_push_and_pop(pooled: Pooled) -> None:
    pool, (first, second) = pooled.pool, pooled.gates
    with pytest.raises(ValueError, match="is in the pool already"):
        pool.push(first)
    taken = pool.pop_idle()
    assert taken == first
    assert pool.handles == [second]
    for value in "ab":
        pool.submit(pooled.passes, value)
    assert pooled.given == ["a"]
    pool.push(first)
    assert (pooled.given, pooled.at["b"]) == (["a", "b"], first), "what waits is begun at once"
    with pytest.raises(ValueError, match="is in the pool already"):
        pool.push(first)
    pooled.open("a", "b")
    assert [pool.get_next(), pool.get_next()] == ["a", "b"]
    with pytest.raises(ValueError, match="is in the pool already"):
        ActorPool([first, first])


def test_exceptions_of_methods_are_results(pooled: Pooled) -> None:
    def sometimes(gate: ActorHandle, value: int) -> ActorFuture[Any]:
        gate.open(value)
        return gate.fails.remote(value) if value == 1 else gate.passes.remote(value)

    results = pooled.pool.map(sometimes, range(5))
    assert next(results) == 0
    with pytest.raises(ApplicationError, match="ValueError: 1"):
        next(results)
    assert [pooled.pool.get_next() for _ in range(3)] == [2, 3, 4]
    assert len(pooled.pool) == 2


def test_mistakes_of_the_function(pooled: Pooled) -> None:
    pool = pooled.pool
    with pytest.raises(EncodingError, match="a set is carried by no codec"):
        pool.submit(lambda gate, value: gate.passes.remote(value), {1})
    with pytest.raises(TypeError, match=r"the function returned 7; it must return a future"):
        pool.submit(lambda _, value: value, 7)  # type: ignore[arg-type, return-value]
    assert not pool.has_next()
    for value in ("a", "b"):
        pool.submit(pooled.passes, value)
    pool.submit(lambda gate, value: gate.passes.remote(value), {1})
    pool.submit(pooled.passes, "c")
    pooled.open("a", "b")
    assert [pool.get_next(), pool.get_next()] == ["a", "b"]
    with pytest.raises(EncodingError, match="a set is carried by no codec"):
        pool.get_next()
    pooled.open("c")
    assert pool.get_next() == "c"


def test_a_pool_without_actors(pooled: Pooled) -> None:
    pool = ActorPool([])
    for value in "ab":
        pool.submit(pooled.passes, value)
    assert pool.has_next()
    for get in (pool.get_next, pool.get_next_unordered):
        with pytest.raises(UnavailableError, match="no actor is left in the pool: the call was not made"):
            get()
    assert not pool.has_next()
    assert pooled.given == []


def test_an_actor_that_cannot_be_reached_leaves_the_pool(pooled: Pooled, server: ActorServer) -> None:
    lost = FixedResolver(server.address, options=RpcOptions(resolve_timeout=0.05)).handle("nowhere")
    pool = pooled.pool
    pool.push(lost)
    outcomes: list[Any] = []
    for value in range(6):
        pool.submit(opened_remote, value)
    while pool.has_next():
        try:
            outcomes.append(pool.get_next())
        except Exception as err:
            outcomes.append(type(err).__name__)
    assert outcomes == [0, 1, "UnknownActorError", 3, 4, 5], "its work is told, and given to no other"
    assert set(pool.handles) == set(pooled.gates)


def opened_remote(gate: ActorHandle, value: Any) -> ActorFuture[Any]:
    gate.open.remote(value)
    return gate.passes.remote(value)


@pytest.fixture
def hosted() -> Iterator[Client]:
    """A client whose actors are in processes of their own."""
    with LocalCluster(use_processes=True) as cluster, _ClusterClient(Elsewhere(cluster)) as client:
        yield client


def test_actors_that_die_take_their_work_with_them(hosted: Client, tmp_path: Path) -> None:
    """Each value is begun once; that of an actor which dies fails, and the actor is started again."""
    notes = tmp_path / "notes"
    pool = ActorPool(hosted.create_actor_group(Fragile, str(notes), name="worker", count=2))
    for value in range(6):
        pool.submit(lambda worker, value: worker.work.remote(value, value == 2), value)
    outcomes: list[Any] = []
    while pool.has_next():
        try:
            outcomes.append(pool.get_next(LIMIT))
        except MaybeExecutedError:
            outcomes.append("maybe")
    assert outcomes == [0, 1, "maybe", 3, 4, 5]
    assert sorted(map(int, notes.read_text().split())) == list(range(6))
    assert len(pool) == 2


def test_actors_of_this_process_that_fail() -> None:
    with LocalClient() as client:
        group = client.create_actor_group(Gate, name="gate", count=2)
        pool = ActorPool(group)
        given: dict[int, ActorHandle] = {}

        def begin(gate: ActorHandle, value: int) -> ActorFuture[Any]:
            given[value] = gate
            return gate.passes.remote(value)

        for value in range(3):
            pool.submit(begin, value)
        eventually(lambda: given[0].waits(0))
        client.fail_actor(given[0])
        with pytest.raises(MaybeExecutedError):
            pool.get_next(LIMIT)
        given[1].open(1)
        given[2].open(2)
        assert [pool.get_next(LIMIT), pool.get_next(LIMIT)] == [1, 2]
        assert given[2] in (given[0], given[1])
        assert len(pool) == 2


def test_looked_up_actors(server: ActorServer) -> None:
    for i in range(2):
        server.register(f"gate_{i}", Gate())
    resolver = FixedResolver(server.address)
    pool = ActorPool([*resolver.lookup_all("gate_0"), resolver.lookup("gate_1")])
    assert list(pool.map(opened, "abc")) == ["a", "b", "c"]
