"""Peers that send large payloads as no peer of ours does, slowly, or that take none."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from actors import PATIENCE, RawPeer
from fray._pb import actor_pb2
from fray.cluster import LocalCluster
from fray.rpc import ConnectionSettings, FixedResolver
from fray.rpc._serving.call import ServerCall
from fray.rpc._transport import wire as _wire
from fray.rpc.codec import encode_args
from fray.rpc.errors import ActorError, CancelledError, MaybeExecutedError, TooLargeError, UnavailableError
from fray.rpc.server import ActorServer
from scripted import Scripted, packed
from waiting import eventually

MIB = 1 << 20


class Books:
    """Takes and gives what is large."""

    def __init__(self) -> None:
        self.took: list[int] = []

    def take(self, book: bytes) -> int:
        """Return the size of a book."""
        self.took.append(len(book))
        return len(book)

    def give(self, size: int) -> bytes:
        """Return so many bytes."""
        self.took.append(size)
        return b"x" * size


@contextmanager
def serving(**options: float) -> Iterator[tuple[ActorServer, Books]]:
    books = Books()
    with LocalCluster() as cluster:
        server = ActorServer(cluster, **options)  # type: ignore[arg-type]
        with server:
            server.register("books", books)
            yield server, books


class Taker(RawPeer):
    """A client that takes large results in parts."""

    def __init__(self, address: str, **fields: Any) -> None:
        super().__init__(address, **{"max_transfer_bytes": 1 << 30, **fields})

    def __enter__(self) -> Taker:
        return self

    def announce(self, number: int, size: int, **fields: int) -> bytes:
        """Announce a call with an argument of a size; return its payload."""
        args, buffers = encode_args(1, (bytes(size),), {})
        payload = b"".join([args, *buffers])
        call = actor_pb2.Call(
            actor="books",
            method="take",
            seq=number,
            codec=actor_pb2.CODEC_MSGPACK,
            buffer_sizes=[len(b) for b in buffers],
            transfer_bytes=len(payload),
            args_bytes=len(args),
        )
        for name, value in fields.items():
            setattr(call, name, value)
        self.send(_wire.CALL, call)
        return payload

    def call(self, seq: int, method: str, *values: object, attempt: int = 1) -> None:
        """Make a call."""
        args, _ = encode_args(1, values, {})
        call = actor_pb2.Call(
            actor="books", method=method, seq=seq, codec=actor_pb2.CODEC_MSGPACK, args=args, attempt=attempt
        )
        self.send(_wire.CALL, call)

    def part(self, seq: int, payload: bytes) -> None:
        """Send some of a payload."""
        self.send(_wire.PART, actor_pb2.Part(seq=seq), payload)

    def next(self, kind: Any) -> actor_pb2.Frame:
        """Return the next frame, which is of a kind."""
        while True:
            frame = self.receive()
            if frame.HasField("ping"):
                self.send(_wire.PONG, actor_pb2.Pong(id=frame.ping.id))
                continue
            if frame.HasField("pong") and kind != "pong":
                continue
            assert frame.HasField(kind), frame
            return frame

    @contextmanager
    def staying(self) -> Iterator[None]:
        """Send pings meanwhile: it is slow, but not silent."""
        over = threading.Event()

        def ping() -> None:
            while not over.wait(0.05):
                self.send(_wire.PING, actor_pb2.Ping(id=1))

        thread = threading.Thread(target=ping)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def quiet(self) -> None:
        """Assert that the server sends nothing."""
        self.send(_wire.PING, actor_pb2.Ping(id=7))
        self.next("pong")


def test_a_call_waits_for_its_arguments_and_later_ones_for_it() -> None:
    with serving() as (server, books), Taker(server.address) as peer, Taker(server.address) as other:
        payload = peer.announce(1, 9 * MIB)
        assert peer.next("accept").accept.seq == 1
        peer.call(2, "take", b"x")
        other.call(1, "take", b"xx")
        assert other.next("reply").reply.seq == 1
        peer.quiet()
        for at in range(0, len(payload), 2 * MIB):
            peer.part(1, payload[at : at + 2 * MIB])
        assert [peer.next("reply").reply.seq for _ in range(2)] == [1, 2]
        assert books.took == [2, 9 * MIB, 1]
        assert not server._core.room.used


@pytest.mark.parametrize("cancelled", [True, False])
def test_arguments_that_do_not_come(cancelled: bool) -> None:
    with serving(keepalive=1, patience=1) as (server, books), Taker(server.address) as peer:
        payload = peer.announce(1, 9 * MIB)
        peer.next("accept")
        peer.part(1, payload[:MIB])
        peer.call(2, "take", b"x")
        if cancelled:
            peer.send(_wire.CANCEL, actor_pb2.Cancel(seq=1))
        reply = peer.next("reply").reply
        assert (reply.seq, reply.error.ran) == (1, False)
        code = actor_pb2.CODE_CANCELLED if cancelled else actor_pb2.CODE_BUSY
        assert reply.error.code == code
        assert peer.next("reply").reply.seq == 2
        peer.part(1, payload[MIB : 2 * MIB])  # it was on its way, and is skipped
        peer.quiet()
        assert books.took == [1]
        assert not server._core.room.used


def test_arguments_are_taken_so_many_at_once() -> None:
    with (
        serving(transfer_memory=20 * MIB) as (server, _),
        Taker(server.address) as peer,
        Taker(server.address) as other,
    ):
        first = peer.announce(1, 15 * MIB)
        peer.next("accept")
        second = other.announce(1, 30 * MIB)  # more than all of it
        other.quiet()
        peer.part(1, first)
        peer.next("reply")
        other.next("accept")
        other.part(1, second)
        assert not other.next("reply").reply.HasField("error")


def test_results_are_kept_until_they_are_taken_or_others_need_the_room() -> None:
    with (
        serving(transfer_memory=20 * MIB, keepalive=1, patience=1) as (server, books),
        Taker(server.address) as peer,
        Taker(server.address) as other,
    ):
        peer.call(1, "give", 15 * MIB)
        assert peer.next("reply").reply.transfer_bytes > 15 * MIB
        other.call(1, "give", 9 * MIB)
        with peer.staying():
            assert other.next("reply").reply.transfer_bytes > 9 * MIB  # once the first has had long enough
        peer.send(_wire.ACCEPT, actor_pb2.Accept(seq=1))
        lost = peer.next("reply").reply.error
        assert (lost.code, lost.ran) == (actor_pb2.CODE_MAYBE_EXECUTED, True)
        other.send(_wire.ACCEPT, actor_pb2.Accept(seq=1))
        for _ in range(10):  # of a MiB each, but for the last
            other.next("part")
        other.send(_wire.RELEASE, actor_pb2.Release(seq=1))
        other.quiet()
        assert not server._core.kept.used
        assert books.took == [15 * MIB, 9 * MIB]


def test_a_client_that_takes_no_parts() -> None:
    with serving() as (server, _), RawPeer(server.address, max_message_bytes=64 * MIB) as peer:
        for seq, size in ((1, 20 * MIB), (2, 65 * MIB)):
            args, _ = encode_args(1, (size,), {})
            call = actor_pb2.Call(
                actor="books", method="give", seq=seq, codec=actor_pb2.CODEC_MSGPACK, args=args
            )
            peer.send(_wire.CALL, call)
        first, buffers = peer.reader.receive()
        assert first.reply.seq == 1
        assert len(buffers[0]) == 20 * MIB
        assert peer.receive().reply.error.code == actor_pb2.CODE_TOO_LARGE


@pytest.mark.parametrize(
    "fields",
    [{"args_bytes": 100 * MIB}, {"transfer_bytes": 9 * MIB}, {"seq": 0}, {"transfer_bytes": 1 << 63}],
)
def test_announcements_that_are_none(fields: dict[str, int]) -> None:
    with serving() as (server, _), Taker(server.address) as peer:
        peer.announce(1, 10 * MIB, **fields)
        assert peer.next("close").close.error.code == actor_pb2.CODE_MALFORMED
        assert not server._core.room.used


@pytest.mark.parametrize("size", [10 * MIB, 100, 1])
def test_parts_that_are_more_than_was_announced_or_would_never_end(size: int) -> None:
    with serving() as (server, books), Taker(server.address) as peer:
        peer.announce(1, 9 * MIB)
        peer.next("accept")
        with contextlib.suppress(OSError):  # it does not take all
            peer.part(1, bytes(size))
        assert peer.ends()
        assert not books.took
        eventually(lambda: not server._core.room.used)


def test_arguments_over_the_limit() -> None:
    with serving(max_message_bytes=20 * MIB) as (server, _), Taker(server.address) as peer:
        peer.announce(1, 21 * MIB)
        error = peer.next("reply").reply.error
        assert (error.code, error.ran) == (actor_pb2.CODE_TOO_LARGE, False)


# Servers.


def _announced(size: int, result: int) -> actor_pb2.Reply:
    return actor_pb2.Reply(codec=actor_pb2.CODEC_MSGPACK, transfer_bytes=size, result_bytes=result)


def test_a_result_over_the_limit_of_the_client() -> None:
    def on_call(_server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply:
        reply = _announced(11 * MIB, 11 * MIB)
        reply.seq = call.seq
        return reply

    with Scripted(on_call=on_call) as server:
        settings = ConnectionSettings(max_message_bytes=10 * MIB)
        with pytest.raises(TooLargeError, match="at most 10 MiB") as caught:
            FixedResolver(server.address, settings=settings).handle("counter").increment(1)
        assert caught.value.ran


def test_a_server_that_stops_within_a_result_did_run_the_call() -> None:
    def on_call(server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply:
        reply = _announced(9 * MIB, 9 * MIB)
        reply.seq = call.seq
        close = actor_pb2.Close(error=actor_pb2.Error(code=actor_pb2.CODE_STOPPING))
        server.connections[-1].sendall(packed(actor_pb2.Frame(reply=reply)))
        server.connections[-1].sendall(packed(actor_pb2.Frame(close=close)))
        server.restart()
        server.on_call = Scripted.run
        raise EOFError

    with Scripted(on_call=on_call) as server:
        with pytest.raises(MaybeExecutedError):
            FixedResolver(server.address).handle("counter").increment(1)
        assert not server.runs, "the call ran twice"


def test_a_result_that_is_cancelled_within() -> None:
    def on_call(_server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply:
        reply = _announced(9 * MIB, 9 * MIB)
        reply.seq = call.seq
        return reply

    with Scripted(on_call=on_call) as server:
        server.deaf = True
        future = FixedResolver(server.address).handle("counter").increment.remote(1)
        connection = _connection(server)
        eventually(lambda: connection._results)
        future.cancel()
        assert isinstance(future.exception(300), CancelledError)
        assert not connection._results


def _connection(server: Scripted):  # type: ignore[no-untyped-def]
    from fray.rpc._calling.channel import channels

    server.wait(lambda: server.calls)
    return next(c._connection for (a, _), c in channels()._channels.items() if a == server.address)


def test_calls_of_a_broken_connection_that_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are new, and the end of the earlier ones is no answer to them."""
    withdrawn, answered = threading.Event(), threading.Event()
    reject = ServerCall.reject

    def reject_late(call: ServerCall, err: ActorError) -> None:
        if isinstance(err, UnavailableError):
            withdrawn.set()
            assert answered.wait(PATIENCE)
        reject(call, err)

    monkeypatch.setattr(ServerCall, "reject", reject_late)
    with serving() as (server, books):
        with Taker(server.address, peer="a-peer-that-comes-back") as broken:
            broken.announce(1, 9 * MIB)
            broken.next("accept")
            broken.call(2, "take", b"1")
            broken.send(_wire.PING, actor_pb2.Ping(id=1))
            broken.next("pong")  # the call has come
        assert withdrawn.wait(PATIENCE)
        with Taker(server.address, peer="a-peer-that-comes-back") as again:
            again.call(2, "take", b"1", attempt=2)
            again.send(_wire.PING, actor_pb2.Ping(id=1))
            again.next("pong")
            answered.set()
            assert not again.next("reply").reply.HasField("error")
    assert books.took == [1]
