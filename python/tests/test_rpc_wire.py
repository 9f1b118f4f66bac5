from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from actors import PATIENCE, head
from fray._pb import actor_pb2
from fray.rpc._transport import wire as _wire
from fray.rpc._transport.reader import FrameReader
from fray.rpc._transport.tls import Identity
from fray.rpc._transport.wire import MalformedFrameError, OversizeError, PlainStream, SilentError, Stream
from fray.rpc._transport.writer import FrameWriter, Outgoing
from identities import make_identity
from waiting import ended, eventually

LIMIT = 8 << 20


class Ends:
    """Both ends of a connection."""

    def __init__(self, identity: Identity | None = None) -> None:
        self.left, self.right = socket.socketpair()
        left: Stream = PlainStream(self.left)
        right: Stream = PlainStream(self.right)
        if identity is not None:
            with ThreadPoolExecutor(1) as pool:
                accepted = pool.submit(identity.accept, self.left, PATIENCE)
                right, left = identity.connect(self.right, PATIENCE), accepted.result()
        self.writer = FrameWriter(left, "test")
        self.reader = FrameReader(right, PATIENCE)
        self.reader.accepted(LIMIT, PATIENCE, PATIENCE, lambda: None)

    def close(self) -> None:
        self.writer.fail(OSError("the test is over"))
        self.writer.join()
        self.left.close()
        self.right.close()


@pytest.fixture
def ends() -> Iterator[Ends]:
    both = Ends()
    yield both
    both.close()


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Ends]:
    both = Ends(Identity(make_identity(tmp_path, "mine")))
    yield both
    both.close()


@pytest.fixture(params=["ends", "secured"], ids=["plain", "tls"])
def either(request: pytest.FixtureRequest) -> Ends:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Ends)
    return found


def call(seq: int, args: bytes = b"", *buffers: bytes) -> Outgoing:
    sizes = [len(b) for b in buffers]
    message = actor_pb2.Call(actor="a", method="m", seq=seq, args=args, buffer_sizes=sizes)
    return Outgoing(_wire.frame_bytes(_wire.CALL, message, sum(sizes)), buffers, sum(sizes))


@pytest.mark.parametrize(
    ("args", "buffers"),
    [
        (b"", ()),
        (b"x" * 126, ()),  # the length of the message takes another byte around here
        (b"x" * 127, ()),
        (b"x" * 70_000, ()),
        (b"x" * (300 << 10), ()),  # more than the read buffer holds
        (b"", (b"",)),
        (b"", (b"", b"ab", b"")),
        (b"x", (b"y" * 100_000, b"z" * (1 << 20))),
        (b"", tuple(bytes([i % 256]) * 3 for i in range(3000))),  # more than one write may gather
    ],
    ids=["empty", "126", "127", "70000", "large head", "empty buffer", "empty ones", "large", "many"],
)
def test_frames_arrive_as_they_were(either: Ends, args: bytes, buffers: tuple[bytes, ...]) -> None:
    either.writer.send(call(7, args, *buffers))
    either.writer.send(call(8))
    frame, got = either.reader.receive()
    carried = bytes(_wire.payload_of(got, frame.call.args))
    assert (frame.call.seq, carried, [bytes(b) for b in got]) == (7, args, list(buffers))
    assert all(b.readonly for b in got)
    assert either.reader.receive()[0].call.seq == 8


def test_the_head_is_what_protobuf_writes() -> None:
    for size in (0, 100, 200, 20_000, 3_000_000):
        message = actor_pb2.Reply(seq=3, result=b"r" * size)
        data = actor_pb2.Frame(reply=message).SerializeToString()
        assert _wire.frame_bytes(_wire.REPLY, message, 5) == head(len(data), 5) + data


def test_frames_that_arrive_byte_by_byte(ends: Ends) -> None:
    frame = call(1, b"args", b"buffer")
    data = (frame.head + b"buffer") * 2
    sender = threading.Thread(target=lambda: [ends.left.send(data[i : i + 1]) for i in range(len(data))])
    sender.start()
    for _ in range(2):
        got, buffers = ends.reader.receive()
        assert (got.call.args, bytes(buffers[0])) == (b"args", b"buffer")
    ended(sender)


def test_a_frame_across_the_end_of_the_read_buffer(ends: Ends) -> None:
    def send() -> None:
        for seq in range(1, 101):
            ends.writer.send(call(seq, b"x" * 9_000))

    sender = threading.Thread(target=send)
    sender.start()
    assert [ends.reader.receive()[0].call.seq for _ in range(100)] == list(range(1, 101))
    ended(sender)


def test_an_oversized_frame_is_skipped(either: Ends) -> None:
    either.writer.send(call(5, b"", b"x" * LIMIT))
    either.writer.send(call(6))
    with pytest.raises(OversizeError) as caught:
        either.reader.receive()
    assert caught.value.frame is not None
    assert (caught.value.frame.call.seq, caught.value.limit) == (5, LIMIT)
    assert either.reader.receive()[0].call.seq == 6


def test_a_head_over_the_limit_is_not_read(ends: Ends) -> None:
    ends.left.sendall(head(0xFFFFFFFF, 0xFFFFFFFF))
    with pytest.raises(OversizeError) as caught:
        ends.reader.receive()
    assert caught.value.frame is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (head(3) + b"\xff\xff\xff", "no Frame message"),
        (head(0, 5) + b"abcde", "belong to no buffer"),
        (call(1, b"", b"xyz").head[:-1] + b"\x04" + b"xyz", "more than the 3 bytes"),
        (call(1, b"", b"xyz").head[:-1] + b"\x02" + b"xyz", "1 of the 3 bytes"),
    ],
    ids=["garbage", "body without buffers", "sizes above the body", "sizes below the body"],
)
def test_malformed_frames(ends: Ends, data: bytes, problem: str) -> None:
    ends.left.sendall(data)
    with pytest.raises(MalformedFrameError, match=problem):
        ends.reader.receive()


@pytest.mark.parametrize("sent", [b"", b"\x00\x00", head(10) + b"abc", call(1, b"", b"xyz").head + b"x"])
def test_a_peer_that_closes(ends: Ends, sent: bytes) -> None:
    ends.left.sendall(sent)
    ends.left.shutdown(socket.SHUT_WR)
    with pytest.raises(EOFError):
        ends.reader.receive()


def test_many_senders_at_once(either: Ends) -> None:
    def send(thread: int) -> None:
        for i in range(500):
            size = 200_000 if i % 100 == 7 else 10
            either.writer.send(call(thread * 1000 + i, b"", bytes([thread]) * size), later=i % 3 == 0)
        either.writer.flush()

    threads = [threading.Thread(target=send, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    seen: dict[int, list[int]] = {n: [] for n in range(8)}
    for _ in range(8 * 500):
        frame, (buffer,) = either.reader.receive()
        sender, i = divmod(frame.call.seq, 1000)
        assert set(bytes(buffer)) == {sender}
        seen[sender].append(i)
    for n in range(8):
        assert seen[n] == list(range(500)), f"sender {n} is out of order"
    for thread in threads:
        ended(thread)


def test_frames_for_later_are_sent_without_a_flush(either: Ends) -> None:
    for seq in range(1, 1001):
        either.writer.send(call(seq), later=True)
    assert [either.reader.receive()[0].call.seq for _ in range(1000)] == list(range(1, 1001))


def test_who_sends_to_a_slow_peer_does_not_wait(either: Ends) -> None:
    for seq in range(1, 31):
        either.writer.send(call(seq, b"", b"x" * (4 << 20)))
    assert either.writer.full
    assert not either.writer.wait_for_room(0.01)
    waited = threading.Thread(target=either.writer.wait_for_room, args=(PATIENCE,))
    waited.start()
    for seq in range(1, 31):
        frame, (buffer,) = either.reader.receive()
        assert (frame.call.seq, len(buffer)) == (seq, 4 << 20)
    ended(waited)
    assert not either.writer.full
    eventually(lambda: either.writer.queued == 0, PATIENCE)


def test_what_may_have_arrived_when_a_stream_ends(ends: Ends) -> None:
    frames = [call(seq, b"", b"x" * (1 << 20)) for seq in range(1, 11)]
    for frame in frames:
        ends.writer.send(frame)
    whole = []
    for _ in range(3):
        whole.append(ends.reader.receive()[0].call.seq)
    ends.right.close()
    ends.writer.fail(OSError("over"))
    ends.writer.join()
    arrived = [f.may_have_arrived for f in frames]
    assert whole == [1, 2, 3]
    assert arrived == [True] * 3 + [False] * 7, "only whole frames may have arrived"
    late = call(11)
    ends.writer.send(late)
    assert not late.may_have_arrived


@pytest.mark.parametrize("size", [100, 20_000, 1 << 20])
def test_what_arrived_within_tls_may_have_arrived(secured: Ends, size: int) -> None:
    frames = [call(seq, b"", b"x" * size) for seq in range(1, 301)]
    for frame in frames:
        secured.writer.send(frame, later=True)
    secured.writer.flush()
    secured.writer.fail(OSError("over"))
    secured.writer.join()
    got = []
    with contextlib.suppress(EOFError):
        while True:
            got.append(secured.reader.receive()[0].call.seq)
    assert got == list(range(1, len(got) + 1))
    arrived = [f.may_have_arrived for f in frames]
    assert all(arrived[: len(got)]), f"{arrived.count(True)} of {len(got)} frames that arrived may have"
    assert size < 1 << 20 or not arrived[-1], "a frame that was never written may have arrived"


def test_a_silent_peer_is_pinged_then_given_up(ends: Ends) -> None:
    pings: list[int] = []
    ends.reader.accepted(LIMIT, 0.05, 0.05, lambda: pings.append(1))
    with pytest.raises(SilentError):
        ends.reader.receive()
    assert pings == [1]


def test_a_peer_that_answers_pings_is_kept(ends: Ends) -> None:
    frame = call(1).head
    pings: list[int] = []

    def ping() -> None:
        ends.left.sendall(frame[len(pings) : len(pings) + 1] if len(pings) < 3 else frame[3:])
        pings.append(1)

    ends.reader.accepted(LIMIT, 0.02, PATIENCE, ping)
    assert ends.reader.receive()[0].call.seq == 1
    assert len(pings) == 4
