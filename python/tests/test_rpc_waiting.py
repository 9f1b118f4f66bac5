"""Waiting for several calls at a time."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from fray.cluster import LocalCluster
from fray.rpc import ActorHandle, ActorServer, FixedResolver, LocalResolver, as_completed, wait
from fray.rpc.errors import ApplicationError, SelfCallError
from gates import Gate

LIMIT = 300
NOT_FUTURES: Any = [7]


@pytest.fixture
def gate(server: ActorServer) -> ActorHandle:
    server.register("gate", Gate())
    return FixedResolver(server.address).handle("gate")


def test_wait_returns_what_has_ended_in_the_order_given(gate: ActorHandle) -> None:
    futures = [gate.passes.remote(i) for i in range(4)]
    gate.open(2)
    assert wait(futures) == ([futures[2]], [futures[0], futures[1], futures[3]])
    gate.open(0)
    futures[0].result(LIMIT)
    assert wait(futures, num_returns=2) == ([futures[0], futures[2]], [futures[1], futures[3]])
    assert wait(futures, num_returns=1)[0] == [futures[0]], "no more than was asked for"
    assert wait(futures, 3, timeout=0.01) == ([futures[0], futures[2]], [futures[1], futures[3]])
    gate.open(1)
    gate.open(3)
    assert wait(futures, num_returns=4, timeout=LIMIT) == (futures, [])


def test_wait_until_enough_end_meanwhile(gate: ActorHandle) -> None:
    futures = [gate.passes.remote(i) for i in range(5)]
    opening = threading.Thread(target=lambda: [gate.open(i) for i in (4, 1, 3)])
    opening.start()
    assert wait(futures, num_returns=3)[0] == [futures[1], futures[3], futures[4]]
    opening.join()
    assert all(not future._callbacks for future in (futures[0], futures[2])), "nothing is left behind"
    for i in (0, 2):
        gate.open(i)


def test_a_failed_call_has_ended(gate: ActorHandle) -> None:
    gate.open("why")
    future = gate.fails.remote("why")
    assert wait([future]) == ([future], [])
    with pytest.raises(ApplicationError, match="why"):
        future.result()


def test_wait_without_waiting(gate: ActorHandle) -> None:
    future = gate.passes.remote(1)
    assert wait([future], timeout=0) == ([], [future])
    assert wait([]) == ([], [])
    gate.open(1)
    future.result(LIMIT)
    assert wait([future], timeout=0) == ([future], [])


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        (lambda f: wait([f, f]), ValueError, "a future is given twice; give each once"),
        (lambda f: wait([f], 0), ValueError, "num_returns is 0; it must be 1 to 1, the number of futures"),
        (lambda f: wait([f], 2), ValueError, "num_returns is 2; it must be 1 to 1"),
        (lambda _: wait([], 0), ValueError, "num_returns is 0"),
        (lambda f: wait([f], timeout=-1), ValueError, "timeout is -1; it must not be negative"),
        (lambda f: wait(f), TypeError, "give a list of futures, not one"),
        (
            lambda f: wait([f, *NOT_FUTURES]),
            TypeError,
            r"7 is no future of a call; give what",
        ),
        (lambda f: as_completed(f), TypeError, "give a list of futures, not one"),
    ],
)
def test_mistakes(gate: ActorHandle, how: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        how(gate.open.remote(1))


def test_as_completed_yields_in_the_order_of_the_ends(gate: ActorHandle) -> None:
    futures = {i: gate.passes.remote(i) for i in range(3)}
    gate.open(2)
    futures[2].result(LIMIT)
    order = []
    for future in as_completed([*futures.values(), futures[1]]):
        order.append(future.result())
        gate.open(2 - len(order))
    assert order == [2, 1, 0]


def test_as_completed_is_over_in_time(gate: ActorHandle) -> None:
    futures = [gate.passes.remote(i) for i in range(2)]
    gate.open(0)
    futures[0].result(LIMIT)
    some = as_completed(futures, timeout=0.05)
    assert next(some) is futures[0]
    with pytest.raises(TimeoutError, match=r"1 of 2 calls had not ended after 0.05 s"):
        next(some)
    assert not futures[1]._callbacks
    gate.open(1)


def test_as_completed_that_is_left_early_leaves_nothing_behind(gate: ActorHandle) -> None:
    futures = [gate.passes.remote(i) for i in range(2)]
    gate.open(0)
    for future in as_completed(futures):
        assert future.result() == 0
        break
    assert not futures[1]._callbacks
    gate.open(1)


class Selfish:
    """Waits for calls of itself, which cannot begin before it returns."""

    def __init__(self) -> None:
        self.own: Any = None

    def waits(self) -> list[str]:
        done, _ = wait([self.own.nothing.remote(), self.own.nothing.remote()], 2)
        return [type(future.exception()).__name__ for future in done]

    def waits_in_turn(self) -> list[str]:
        futures = [self.own.nothing.remote(), self.own.nothing.remote()]
        return [type(future.exception()).__name__ for future in as_completed(futures)]

    def waits_behind_an_argument(self) -> str:
        return type(self.own.other.remote(self.own.nothing.remote()).exception()).__name__

    def nothing(self) -> None:
        return None

    def other(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize("how", ["waits", "waits_in_turn"])
def test_a_method_that_waits_for_its_own_actor_is_told(how: str) -> None:
    with LocalCluster() as cluster, ActorServer(cluster) as server:
        selfish = Selfish()
        server.register("selfish", selfish)
        handle = selfish.own = LocalResolver(cluster).lookup("selfish")
        assert handle[how]() == [SelfCallError.__name__] * 2
        assert handle.waits_behind_an_argument() == SelfCallError.__name__
