"""Futures as the standard library's functions take them."""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from fray.rpc import ActorFuture, ActorHandle, ActorServer, FixedResolver
from fray.rpc.errors import ApplicationError, CancelledError
from gates import Gate, Log
from scripted import Scripted
from waiting import ended

LIMIT = 300
"""Seconds."""


@pytest.fixture
def gate(server: ActorServer) -> ActorHandle:
    server.register("gate", Gate())
    return FixedResolver(server.address).handle("gate")


def test_a_future_is_one_of_the_library(gate: ActorHandle) -> None:
    future = gate.passes.remote(1)
    assert isinstance(future, cf.Future)
    assert not future.done()
    gate.open(1)
    assert future.result(LIMIT) == 1
    assert (future.done(), future.cancelled(), future.running()) == (True, False, False)


@pytest.mark.parametrize(
    ("mode", "opened", "fail", "done"),
    [
        (cf.ALL_COMPLETED, (0, 1, 2), (), {0, 1, 2}),
        (cf.FIRST_COMPLETED, (1,), (), {1}),
        (cf.FIRST_EXCEPTION, (1,), (1,), {1}),
    ],
)
@pytest.mark.parametrize("before", [True, False], ids=["they have ended", "they go on"])
def test_wait_of_the_library(
    gate: ActorHandle, mode: str, opened: tuple[int, ...], fail: tuple[int, ...], done: set[int], before: bool
) -> None:
    futures = [(gate.fails if i in fail else gate.passes).remote(i) for i in range(3)]
    found: list[Any] = []

    def wait() -> None:
        found.append(cf.wait(futures, LIMIT, mode))

    def open_all() -> None:
        for i in opened:
            gate.open(i)
            futures[i].exception(LIMIT)

    if before:
        open_all()
    waiting = threading.Thread(target=wait)
    waiting.start()
    open_all()
    ended(waiting)
    assert found[0].done == {futures[i] for i in done}
    assert found[0].not_done == set(futures) - found[0].done
    for i in range(3):
        gate.open(i)


def test_wait_of_the_library_is_over_in_time(gate: ActorHandle) -> None:
    future = gate.passes.remote(1)
    assert cf.wait([future], 0.01).not_done == {future}
    gate.open(1)
    assert cf.wait([future], LIMIT).done == {future}


def test_futures_of_executors_may_be_among_them(gate: ActorHandle) -> None:
    with cf.ThreadPoolExecutor(1) as executor:
        of_actor = gate.passes.remote(1)
        of_executor: cf.Future[None] = executor.submit(gate.open, 1)
        assert cf.wait([of_actor, of_executor], LIMIT).done == {of_actor, of_executor}


def test_as_completed_of_the_library(gate: ActorHandle) -> None:
    futures = {i: gate.passes.remote(i) for i in range(3)}
    gate.open(2)
    assert futures[2].result(LIMIT) == 2
    order = []
    for future in cf.as_completed(futures.values(), LIMIT):
        order.append(future.result())
        gate.open(2 - len(order))
    assert order == [2, 1, 0]


def test_many_threads_wait_while_calls_end(gate: ActorHandle) -> None:
    """A future's state changes under its lock only, or `wait` would count one that ends meanwhile twice."""
    futures = [gate.passes.remote(i % 7) for i in range(100)]
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(cf.wait(futures, LIMIT).not_done)) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for i in range(7):
        gate.open(i)
    for thread in threads:
        ended(thread)
    assert found == [set()] * 5


def test_a_future_that_ends_while_the_library_counts_is_counted_once() -> None:
    """Under its lock it stays pending, and its end is reported once that is released."""
    with Scripted() as server:
        answers = threading.Event()
        server.on_call = lambda server, call: server.run(call) if answers.wait(LIMIT) else None
        future = FixedResolver(server.address).handle("counter").increment.remote(1)
        told: list[ActorFuture[Any]] = []

        class Waiter:
            def add_result(self, future: ActorFuture[Any]) -> None:
                told.append(future)

        with future._condition:
            answers.set()
            future._ends_within(LIMIT)
            assert future.done()
            assert future._state == "PENDING"
            waiter: Any = Waiter()
            future._waiters.append(waiter)
        assert cf.wait([future], LIMIT).done == {future}
        assert (told, future._state) == ([future], "FINISHED")


def test_wrap_future(gate: ActorHandle) -> None:
    async def main() -> None:
        wrapped = asyncio.wrap_future(gate.passes.remote(1))
        failing = asyncio.wrap_future(gate.fails.remote(2))
        await asyncio.gather(gate.open.remote(1), gate.open.remote(2))
        assert await wrapped == 1
        with pytest.raises(ApplicationError, match="ValueError: 2"):
            await failing

    asyncio.run(main())


def test_gather_takes_futures_as_they_are(gate: ActorHandle) -> None:
    async def main() -> tuple[Any, ...]:
        return await asyncio.gather(
            gate.passes.remote(1), gate.passes.remote(2), gate.open.remote(2), gate.open.remote(1)
        )

    assert list(asyncio.run(main())) == [1, 2, None, None]


def test_cancelling_what_asyncio_waits_for_cancels_the_call(gate: ActorHandle) -> None:
    async def main(futures: list[ActorFuture[Any]]) -> None:
        wrapped = asyncio.wrap_future(futures[0])
        awaited = asyncio.ensure_future(_result(futures[1]))
        await asyncio.sleep(0)
        wrapped.cancel()
        awaited.cancel()
        for each in (wrapped, awaited):
            with pytest.raises(asyncio.CancelledError):
                await each

    futures = [gate.passes.remote(i) for i in range(2)]
    asyncio.run(main(futures))
    assert [type(future.exception(LIMIT)) for future in futures] == [CancelledError] * 2
    assert all(future.cancelled() for future in futures)
    assert cf.wait(futures, LIMIT, cf.FIRST_EXCEPTION).done == set(futures)


async def _result(future: ActorFuture[Any]) -> Any:
    return await future


def test_cancel_before_the_call_is_sent() -> None:
    with Scripted() as server:
        server.refuse()
        future = FixedResolver(server.address).handle("counter").increment.remote(1)
        assert not future.running()
        assert future.cancel()
        assert future.cancelled()
        assert not future.cancel()
        with pytest.raises(cf.CancelledError, match="cancelled before it was sent") as caught:
            future.result(LIMIT)
        assert isinstance(caught.value, CancelledError)
        assert not caught.value.ran
        assert cf.wait([future], LIMIT).done == {future}
        assert server.calls == []


def test_cancel_of_a_call_that_waits_its_turn(server: ActorServer) -> None:
    log = Log()
    server.register("log", log)
    entered, leave = threading.Event(), threading.Event()

    def busy() -> None:
        entered.set()
        leave.wait(LIMIT)

    log.noted = busy  # type: ignore[method-assign, assignment]
    handle = FixedResolver(server.address).handle("log")
    runs = handle.noted.remote()
    assert entered.wait(LIMIT)
    waits = handle.note.remote("never")
    assert waits.cancel()
    with pytest.raises(CancelledError) as caught:
        waits.result(LIMIT)
    assert not caught.value.ran
    leave.set()
    runs.exception(LIMIT)
    handle.note("after")
    assert log._noted == ["after"]


@pytest.mark.parametrize("copies", [copy.copy, pickle.dumps])
def test_a_future_does_not_travel(gate: ActorHandle, copies: Callable[[Any], Any]) -> None:
    future = gate.open.remote(1)
    with pytest.raises(TypeError, match="a future stays in its process"):
        copies(future)
    future.result(LIMIT)


def test_what_the_library_reads_of_a_future_that_ended(gate: ActorHandle) -> None:
    """Later versions of asyncio read them together."""
    gate.open(1)
    well, badly, cancelled = gate.passes.remote(1), gate.fails.remote(1), gate.passes.remote(2)
    assert (cancelled._result, cancelled._exception) == (None, None)
    cancelled.cancel()
    cf.wait([well, badly, cancelled], LIMIT)
    assert (well._state, well._result, well._exception) == ("FINISHED", 1, None)
    assert (badly._state, badly._result) == ("FINISHED", None)
    assert isinstance(badly._exception, ApplicationError)
    assert (cancelled._state, cancelled._exception) == ("CANCELLED_AND_NOTIFIED", None)
