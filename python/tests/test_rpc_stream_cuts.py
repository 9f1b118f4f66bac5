"""Streams over connections that break, and of servers that are lost or do not keep to the protocol."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from actors import PATIENCE
from fray._pb import actor_pb2
from fray.cluster import LocalCluster
from fray.rpc import ActorServer, ConnectionSettings, FixedResolver, method, stream
from fray.rpc.codec import encode_result
from fray.rpc.errors import MaybeExecutedError
from identities import make_identity
from scripted import Scripted, packed
from streamed import Cutter, collect
from valued import Point


class Feed:
    def __init__(self) -> None:
        self.runs = 0
        self.left = threading.Semaphore(0)
        self.entered, self.gate = threading.Event(), threading.Event()

    def count(self, n: int) -> Iterator[int]:
        self.runs += 1
        yield from range(n)

    def points(self) -> Iterator[Point]:
        yield Point(1, 2)
        assert self.gate.wait(PATIENCE)

    def gated(self) -> Iterator[int]:
        self.runs += 1
        try:
            yield 0
            self.entered.set()
            assert self.gate.wait(PATIENCE)
            yield 1
        finally:
            self.left.release()

    @method(idempotent=True)
    def late(self) -> Iterator[int]:
        self.runs += 1
        self.entered.set()
        assert self.gate.wait(PATIENCE)
        yield 0


@pytest.fixture
def feed() -> Feed:
    return Feed()


@pytest.fixture
def server(feed: Feed) -> Iterator[ActorServer]:
    with LocalCluster() as cluster:
        one = ActorServer(cluster, keepalive=0.5, patience=0.5)
        one.register("feed", feed)
        one.serve_background()
        yield one
        feed.gate.set()
        one.shutdown(0)


@pytest.mark.parametrize("direction", ["toward", "back"])
def test_a_cut_anywhere_loses_and_doubles_no_item(feed: Feed, server: ActorServer, direction: str) -> None:
    for after in range(1, 10_000, 9):
        feed.runs = 0
        with Cutter(server.address, **{direction: after}) as network:
            handle = FixedResolver(network.address).lookup("feed").options(stream_window=2)
            assert list(handle.count(9)) == list(range(9)), after
            assert feed.runs == 1, after
            if not network.cuts:
                assert after > 100, "the test cut nothing"
                return
    raise AssertionError("a stream of nine items had 10,000 bytes")


def test_a_stream_goes_on_where_it_was(feed: Feed, server: ActorServer) -> None:
    with Cutter(server.address) as network:
        stream = FixedResolver(network.address).lookup("feed").count(5000)
        got = []
        for item in stream:
            got.append(item)
            if item % 500 == 0:
                network.cut()
        assert got == list(range(5000))
        assert feed.runs == 1


@pytest.mark.parametrize("begun", [True, False])
def test_a_server_that_is_lost(feed: Feed, server: ActorServer, begun: bool) -> None:
    other = Feed()
    other.gate.set()
    with LocalCluster() as cluster, ActorServer(cluster) as next_server, Cutter(server.address) as network:
        next_server.register("feed", other)
        handle = FixedResolver(network.address).lookup("feed").options(retries=3)

        def lose() -> None:
            network.target = next_server.address  # as if another process had come to the address
            network.cut()

        if begun:

            def lose_amid() -> None:
                assert feed.entered.wait(PATIENCE)
                lose()

            got, err = collect(handle.gated(), lose_amid)
            assert isinstance(err, MaybeExecutedError)
            assert got == [0]
            assert other.runs == 0
        else:
            future = handle.late.remote()
            assert feed.entered.wait(PATIENCE)
            lose()
            assert list(future) == [0]
            assert other.runs == 1


def test_pickled_items_that_have_come_are_read_after_their_server_is_lost(
    feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAY_ACTOR_IDENTITY", mine := make_identity(tmp_path, "mine"))
    settings = ConnectionSettings(identity=mine, allow_pickle=True)
    with (
        LocalCluster() as cluster,
        ActorServer(cluster, allow_pickle=True) as server,
        ActorServer(cluster) as next_server,
        Cutter(server.address) as network,
    ):
        server.register("feed", feed)
        next_server.register("feed", Feed())
        handle = FixedResolver(network.address, settings=settings).lookup("feed")
        stream = handle.points.remote().result()
        come = threading.Event()
        if stream._watch(come.set):
            assert come.wait(PATIENCE)
        network.target = next_server.address
        network.cut()
        assert list(handle.options(idempotent=True).count(2)) == [0, 1]
        assert next(stream) == Point(1, 2)
        with pytest.raises(MaybeExecutedError):
            next(stream)
        feed.gate.set()


def items(seq: int, first: int, *values: int) -> actor_pb2.Frame:
    results = [encode_result(1, value)[0] for value in values]
    return actor_pb2.Frame(items=actor_pb2.Items(seq=seq, first=first, results=results))


def gap(seq: int) -> list[actor_pb2.Frame]:
    return [items(seq, 1, 0), items(seq, 3, 2)]


def nought(seq: int) -> list[actor_pb2.Frame]:
    return [items(seq, 1, 0), items(seq, 0, 2)]


def too_many(seq: int) -> list[actor_pb2.Frame]:
    return [items(seq, 1, 0), items(seq, 2, *range(5000))]


def too_few(seq: int) -> list[actor_pb2.Frame]:
    return [items(seq, 1, 0), actor_pb2.Frame(reply=actor_pb2.Reply(seq=seq, streamed=True, items=2))]


def buffers(seq: int) -> list[actor_pb2.Frame]:
    frame = items(seq, 2, 1)
    frame.items.buffers.append(7)
    return [items(seq, 1, 0), frame]


@pytest.mark.parametrize("script", [gap, nought, too_many, too_few, buffers])
def test_a_server_that_breaks_the_protocol(script: Callable[[int], list[actor_pb2.Frame]]) -> None:
    def on_call(server: Scripted, call: actor_pb2.Call) -> None:
        server.restart()  # so that the call is not sent again
        server.connections[-1].sendall(b"".join(packed(frame) for frame in script(call.seq)))

    with Scripted(on_call) as server:
        handle = FixedResolver(server.address).lookup("feed")
        got, err = collect(handle.count())
        assert got == [0]
        assert err is not None
        assert err.code in ("maybe_executed", "malformed")
        assert len(server.calls) == 1


def test_items_of_no_call_are_ignored() -> None:
    def on_call(server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply:
        server.connections[-1].sendall(packed(items(call.seq + 1, 1, 0)))
        return server.run(call)

    with Scripted(on_call) as server:
        assert FixedResolver(server.address).lookup("counter").add(0) == 1


def test_a_process_without_streams_ends_where_no_thread_can_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """From Python 3.12 on none can at the end of a process."""

    def none() -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr("fray.rpc._transport.background.finalizers", none)
    stream._leave_all()
