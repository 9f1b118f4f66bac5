"""Methods that are generators: a caller iterates over what they yield, and ends them by leaving the loop."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import grpc
import msgpack
import numpy as np
import pytest

from actors import PATIENCE
from fray.cluster import LocalCluster
from fray.rpc import ActorHandle, ActorServer, ActorStream, FixedResolver
from fray.rpc.errors import (
    ApplicationError,
    BadArgumentsError,
    CancelledError,
    Code,
    DeadlineError,
    EncodingError,
    TooLargeError,
)
from fray.v2 import LocalClient
from general import General
from streamed import collect
from waiting import eventually


class Feed:
    """Its methods stream. `left` counts the generators that were left or have ended."""

    def __init__(self) -> None:
        self.made = self.runs = 0
        self.left = threading.Semaphore(0)
        self.entered, self.gate = threading.Event(), threading.Event()

    def count(self, n: int) -> Iterator[int]:
        self.runs += 1
        try:
            for i in range(n):
                self.made += 1
                yield i
        finally:
            self.left.release()

    def broken(self, n: int) -> Iterator[int]:
        yield from range(n)
        raise ValueError("the well is dry")

    def returned(self, n: int) -> Iterator[int]:
        return iter(range(n))

    def arrays(self, n: int, size: int) -> Iterator[Any]:
        array = np.zeros(size, np.uint8)
        for i in range(n):
            self.made += 1
            array[0] = i  # what was yielded before is not changed by that
            yield array

    def odd(self) -> Iterator[Any]:
        yield 0
        yield object()

    def gated(self) -> Iterator[int]:
        try:
            yield 0
            self.entered.set()
            assert self.gate.wait(PATIENCE)
            yield 1
        finally:
            self.left.release()

    def stubborn(self) -> Iterator[int]:
        for i in itertools.count():
            try:
                yield i
            except GeneratorExit:
                self.left.release()
                yield -1  # as it must not

    def one(self) -> int:
        return 1


class AsyncFeed(Feed):
    async def acount(self, n: int) -> AsyncIterator[int]:
        try:
            for i in range(n):
                self.made += 1
                yield i
        finally:
            self.left.release()

    async def abroken(self, n: int) -> AsyncIterator[int]:
        for i in range(n):
            yield i
        raise ValueError("the well is dry")

    async def astuck(self) -> AsyncIterator[int]:
        try:
            yield 0
            await asyncio.Event().wait()
        finally:
            self.left.release()

    async def awaited(self, n: int) -> AsyncIterator[int]:
        return self.acount(n)


@pytest.fixture(params=[Feed, AsyncFeed])
def feed(request: pytest.FixtureRequest) -> Feed:
    made: Feed = request.param()
    return made


@pytest.fixture
def server(feed: Feed) -> Iterator[ActorServer]:
    with LocalCluster() as cluster:
        one = ActorServer(cluster, max_message_bytes=32 << 20)
        one.register("feed", feed)
        one.register("other", Feed())
        one.serve_background()
        yield one
        one.shutdown(0)


@pytest.fixture
def handle(server: ActorServer) -> ActorHandle:
    return FixedResolver(server.address).lookup("feed")


def ended(feed: Feed) -> None:
    assert feed.left.acquire(timeout=PATIENCE)


def test_a_generator_gives_its_items(feed: Feed, handle: ActorHandle) -> None:
    assert list(handle.count(5000)) == list(range(5000))
    assert list(handle.count(0)) == []
    assert list(handle.count.remote(3)) == [0, 1, 2]
    assert list(handle.returned(3)) == [0, 1, 2]
    stream = handle.count.remote(3).result()
    assert isinstance(stream, ActorStream)
    assert next(stream) == 0
    assert list(stream) == [1, 2]
    assert list(stream) == []
    if isinstance(feed, AsyncFeed):
        assert list(handle.acount(2500)) == list(range(2500))
        assert list(handle.awaited(3)) == [0, 1, 2]


def test_in_asyncio(feed: Feed, handle: ActorHandle) -> None:
    async def collect() -> None:
        assert [i async for i in handle.count.remote(1500)] == list(range(1500))
        assert [i async for i in await handle.count.remote(3)] == [0, 1, 2]
        with pytest.raises(TypeError, match="returned int and is no generator"):
            async for _ in handle.one.remote():
                pass
        if isinstance(feed, AsyncFeed):
            assert [i async for i in handle.acount.remote(3)] == [0, 1, 2]

    asyncio.run(collect())


def test_an_error_comes_after_the_items_before_it(feed: Feed, handle: ActorHandle) -> None:
    for method in ("broken", "abroken") if isinstance(feed, AsyncFeed) else ("broken",):
        for n in (0, 1, 1500):
            got, err = collect(handle[method](n))
            assert isinstance(err, ApplicationError)
            assert got == list(range(n))
            assert err.ran
            assert "broken" in err.traceback
            assert "_produced" not in err.traceback


def leave_by_break(handle: ActorHandle, method: str) -> None:
    for item in handle[method](1 << 60):
        if item == 10:
            break


def leave_by_an_exception(handle: ActorHandle, method: str) -> None:
    def loop() -> None:
        for item in handle[method](1 << 60):
            item / 0

    with pytest.raises(ZeroDivisionError):
        loop()


def leave_by_closing(handle: ActorHandle, method: str) -> None:
    with handle[method](1 << 60) as stream:
        assert next(stream) == 0
    assert list(stream) == []


def leave_as_garbage(handle: ActorHandle, method: str) -> None:
    ring: list[Any] = [handle[method](1 << 60)]
    ring.append(ring)
    del ring
    gc.collect()


def leave_by_cancelling(handle: ActorHandle, method: str) -> None:
    future = handle[method].remote(1 << 60)
    stream = iter(future)
    assert next(stream) == 0
    assert future.cancel()
    with pytest.raises(CancelledError):
        for _ in stream:
            pass


def leave_in_asyncio(handle: ActorHandle, method: str) -> None:
    async def leave() -> None:
        async for item in handle[method].remote(1 << 60):
            if item == 10:
                break

    asyncio.run(leave())


def leave_by_a_cancelled_task(handle: ActorHandle, method: str) -> None:
    async def leave() -> None:
        begun = asyncio.Event()

        async def loop() -> None:
            async for _ in handle[method].remote(1 << 60):
                begun.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(loop())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())


@pytest.mark.parametrize(
    "leave",
    [
        leave_by_break,
        leave_by_an_exception,
        leave_by_closing,
        leave_as_garbage,
        leave_by_cancelling,
        leave_in_asyncio,
        leave_by_a_cancelled_task,
    ],
)
def test_leaving_the_loop_ends_the_generator(feed: Feed, handle: ActorHandle, leave: Any) -> None:
    for method in ("count", "acount") if isinstance(feed, AsyncFeed) else ("count",):
        leave(handle, method)
        ended(feed)
        assert handle.one() == 1


def test_other_calls_wait_for_the_end_of_a_generator() -> None:
    feed = Feed()
    with LocalCluster() as cluster, ActorServer(cluster) as server:
        server.register("feed", feed)
        handle = FixedResolver(server.address).lookup("feed")
        stream = handle.gated()
        assert next(stream) == 0
        assert feed.entered.wait(PATIENCE)
        later = handle.one.remote()
        with pytest.raises(TimeoutError):
            later.result(0.05)
        feed.gate.set()
        assert next(stream) == 1
        assert later.result(PATIENCE) == 1


def test_a_generator_is_a_window_ahead_at_most(feed: Feed, server: ActorServer, handle: ActorHandle) -> None:
    other = FixedResolver(server.address).lookup("other")
    for window in (1, 4):
        feed.made = taken = 0
        for item in handle.options(stream_window=window).count(40):
            assert item == taken
            taken += 1
            assert other.one() == 1  # others are not held up
            assert feed.made <= taken + window
        assert taken == 40
    feed.made = taken = 0
    for array in handle.arrays(40, 1 << 20):
        assert array[0] == taken
        taken += 1
        assert feed.made <= taken + 9  # 8 MiB
    assert taken == 40
    with pytest.raises(ValueError, match="stream_window is -1"):
        handle.options(stream_window=-1)


def test_a_slow_loop_blocks_no_other_call(feed: Feed, handle: ActorHandle, server: ActorServer) -> None:
    streams = [
        iter(FixedResolver(server.address).lookup("other").arrays(1000, 1 << 20)),
        handle.count(1 << 60),
    ]
    for stream in streams:
        next(stream)
    other = AsyncFeed()
    server.register("third", other)
    third = FixedResolver(server.address).lookup("third")
    assert [third.one() for _ in range(100)] == [1] * 100
    del stream, streams
    ended(feed)


def test_items_that_cannot_be_carried(handle: ActorHandle) -> None:
    got, err = collect(handle.odd())
    assert got == [0]
    assert isinstance(err, EncodingError)
    with pytest.raises(TooLargeError, match="an item of the stream is"):
        list(handle.arrays(2, 33 << 20))
    assert handle.one() == 1


def test_the_deadline_is_that_of_the_whole_stream(feed: Feed, handle: ActorHandle) -> None:
    for begin in ("__call__", "remote"):
        got: list[int] = []
        timeout = 0.1
        while not got:  # on a busy machine it may not begin in time
            timeout *= 2
            with suppress(DeadlineError):
                got, err = collect(getattr(handle.options(timeout=timeout).count, begin)(1 << 60))
        assert isinstance(err, DeadlineError)
        assert got == list(range(len(got)))
        ended(feed)
    if isinstance(feed, AsyncFeed):
        with pytest.raises(DeadlineError):
            list(handle.options(timeout=0.2).astuck())


def test_a_generator_that_goes_on_when_it_is_closed(feed: Feed, handle: ActorHandle) -> None:
    for item in handle.stubborn():
        if item == 3:
            break
    ended(feed)
    assert handle.one() == 1


def test_a_stream_is_for_one_loop(handle: ActorHandle) -> None:
    future = handle.count.remote(1 << 60)
    assert next(iter(future)) == 0
    with pytest.raises(CancelledError, match="left before"):
        next(iter(future))
    with pytest.raises(TypeError, match="returned int and is no generator"):
        iter(handle.one.remote())


def pack(*values: Any) -> bytes:
    return bytes(msgpack.packb([list(values), {}]))


def test_general_grpc_clients(feed: Feed, server: ActorServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        general = General(channel)

        def stream(method: str, *values: Any) -> Iterator[Any]:
            replies: Iterator[Any] = general.stream(
                "InvokeStream", actor="feed", method=method, args=pack(*values)
            )
            return replies

        got = [msgpack.unpackb(reply.result) for reply in stream("count", 2500)]
        assert got == list(range(2500))
        replies = list(stream("broken", 2))
        assert [reply.streamed for reply in replies] == [True] * 3
        assert replies[2].error.code == Code.APPLICATION.number
        (only,) = stream("one")
        assert not only.streamed
        assert msgpack.unpackb(only.result) == 1
        arrays = list(stream("arrays", 3, 10_000))
        assert [len(reply.buffers[0]) for reply in arrays] == [10_000] * 3
        refused = general("Invoke", actor="feed", method="count", args=pack(1))
        assert refused.error.code == Code.BAD_ARGUMENTS.number
        assert not refused.error.ran
        feed.left = threading.Semaphore(0)
        endless = stream("count", 1 << 60)
        next(endless)
        endless.cancel()  # type: ignore[attr-defined] # a call of grpcio
        ended(feed)


def test_methods_are_listed(feed: Feed, server: ActorServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        methods = General(channel)("ListMethods", actor="feed").methods
    streaming = {method.name for method in methods if method.streams}
    own = {"acount", "abroken", "astuck"} if isinstance(feed, AsyncFeed) else set()
    assert streaming == {"count", "broken", "arrays", "odd", "gated", "stubborn"} | own


def test_arguments_of_generators_are_checked(handle: ActorHandle) -> None:
    with pytest.raises(BadArgumentsError):
        handle.count("three")


def test_a_caller_that_does_not_come_back(feed: Feed) -> None:
    with LocalCluster() as cluster:
        server = ActorServer(cluster, keepalive=0.2, patience=0.2)
        server.register("feed", feed)
        server.serve_background()
        stream = FixedResolver(server.address).lookup("feed").count(1 << 60)
        next(stream)
        channel = stream._call.channel
        channel._send_again = lambda *_: None  # as if the process were gone
        channel.close()
        ended(feed)
        eventually(lambda: not server._core._active)
        server.shutdown(0)


def test_created_actors_stream() -> None:
    with LocalClient() as client:
        handle = client.create_actor(Feed, name="feed")
        assert list(handle.count(3)) == [0, 1, 2]
        for item in handle.count(1 << 60):
            if item == 3:
                break
        assert handle.one() == 1  # which waits for the generator to be left
