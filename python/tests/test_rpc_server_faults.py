"""Peers that a server has to bear: of other protocols, malformed, slow, silent, strange; and its end."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest

from actors import PATIENCE, Caller, RawPeer, head
from fray._pb import actor_pb2
from fray.cluster import LocalCluster
from fray.rpc import ActorServer
from fray.rpc._transport import wire as _wire
from fray.rpc.errors import (
    ApplicationError,
    Code,
    UnavailableError,
)
from waiting import ended, eventually

EMPTY = msgpack.packb([[], {}])


class Echo:
    def __init__(self) -> None:
        self.calls = 0

    def echo(self, value: Any) -> Any:
        self.calls += 1
        return value

    def blob(self, size: int) -> bytes:
        return b"x" * size

    def fail(self) -> None:
        raise ValueError("no")


@contextlib.contextmanager
def serving(**settings: Any) -> Iterator[ActorServer]:
    with LocalCluster() as cluster, ActorServer(cluster, **settings) as server:
        server.register("echo", Echo())
        yield server


@pytest.fixture
def server() -> Iterator[ActorServer]:
    with serving() as one:
        yield one


def lives(server: ActorServer, **settings: Any) -> None:
    """Fail unless the server goes on."""
    with Caller(server.address, **settings) as caller:
        assert caller.call("echo", "echo", 5) == 5


def reply_frame() -> bytes:
    return _wire.frame_bytes(_wire.REPLY, actor_pb2.Reply(seq=1), 0)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (head(3) + b"\xff\xff\xff", Code.MALFORMED),
        (head(0, 5) + b"abcde", Code.MALFORMED),
        (head(0xFFFFFFFF), Code.MALFORMED),
        (head(70_000), Code.MALFORMED),
        (_wire.frame_bytes(_wire.CALL, actor_pb2.Call(seq=1), 0), Code.MALFORMED),
        (_wire.frame_bytes(_wire.HANDSHAKE, actor_pb2.Handshake(version=1), 0), Code.MALFORMED),
        (
            _wire.frame_bytes(_wire.HANDSHAKE, actor_pb2.Handshake(version=1, peer="p" * 65), 0),
            Code.MALFORMED,
        ),
        (_wire.frame_bytes(_wire.HANDSHAKE, actor_pb2.Handshake(version=2, peer="p"), 0), Code.VERSION),
        (
            _wire.frame_bytes(
                _wire.HANDSHAKE, actor_pb2.Handshake(version=1, peer="p", namespace="other"), 0
            ),
            Code.DENIED,
        ),
    ],
    ids=[
        "garbage",
        "body",
        "huge head",
        "large head",
        "call first",
        "no peer",
        "long peer",
        "version",
        "namespace",
    ],
)
def test_handshakes_that_are_rejected(data: bytes, code: Code) -> None:
    with serving(namespace="mine") as server, RawPeer(server.address, handshake=False) as peer:
        peer.socket.sendall(_wire.PREFACE + data)
        close = peer.receive()
        assert close.close.error.code == code.number, close
        assert peer.ends()
        lives(server)


@pytest.mark.parametrize(
    "data",
    [
        head(3) + b"\xff\xff\xff",
        head(0, 1 << 20) + b"x" * (1 << 20),
        head(0xFFFFFFFF, 0xFFFFFFFF),
        _wire.frame_bytes(_wire.CALL, actor_pb2.Call(seq=1, buffer_sizes=[5]), 3) + b"abc",
        _wire.frame_bytes(_wire.CALL, actor_pb2.Call(seq=1, buffer_sizes=[(1 << 64) - 1, 1]), 3) + b"abc",
        _wire.frame_bytes(_wire.HANDSHAKE, actor_pb2.Handshake(version=1, peer="p"), 0),
    ],
    ids=["garbage", "body", "huge", "sizes", "sizes that overflow", "a second handshake"],
)
def test_malformed_frames_end_the_connection_only(server: ActorServer, data: bytes) -> None:
    with Caller(server.address) as other, RawPeer(server.address) as peer:
        peer.socket.sendall(data)
        close = peer.receive()
        assert close.close.error.code == Code.MALFORMED.number, close
        assert peer.ends()
        assert other.call("echo", "echo", 1) == 1


def test_frames_that_change_nothing(server: ActorServer) -> None:
    with RawPeer(server.address) as peer:
        peer.socket.sendall(head(0))
        peer.socket.sendall(reply_frame())
        peer.send(_wire.CANCEL, actor_pb2.Cancel(seq=99))
        peer.send(_wire.PONG, actor_pb2.Pong(id=3))
        peer.send(_wire.PING, actor_pb2.Ping(id=4, acked=1 << 63))
        assert peer.receive().pong.id == 4
        peer.send(_wire.CALL, actor_pb2.Call(actor="echo", method="blob", args=msgpack.packb([[3], {}])))
        assert peer.receive().reply.result == msgpack.packb(b"xxx")


@pytest.mark.parametrize("seed", range(20))
def test_frames_of_random_bytes(server: ActorServer, seed: int) -> None:
    rng = random.Random(seed)
    call = actor_pb2.Call(actor="echo", method="echo", seq=1, args=msgpack.packb([[1], {}]))
    valid = _wire.frame_bytes(_wire.CALL, call, 0)
    with RawPeer(server.address) as peer:
        for _ in range(30):
            data = bytearray(valid)
            for _ in range(rng.randint(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            with contextlib.suppress(OSError):
                peer.socket.sendall(data)
    lives(server)


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"FRAYACT2" * 10, b"\x16\x03\x01\x00\xa5", os.urandom(100), b"SSH-2.0-x\r\n"]
)
def test_other_protocols(server: ActorServer, data: bytes) -> None:
    with RawPeer(server.address, handshake=False) as peer:
        peer.socket.sendall(data)
        with contextlib.suppress(OSError):
            peer.socket.shutdown(socket.SHUT_WR)
            while peer.socket.recv(1000):
                pass
    lives(server)


def test_peers_without_a_handshake_are_closed() -> None:
    with LocalCluster() as cluster:
        server = ActorServer(cluster)
        object.__setattr__(server._core.limits, "handshake", 0.1)
        with (
            server,
            RawPeer(server.address, handshake=False) as silent,
            RawPeer(server.address, handshake=False) as half,
        ):
            half.socket.sendall(_wire.PREFACE + head(10) + b"x")
            for peer in (silent, half):
                peer.socket.settimeout(PATIENCE)
                with contextlib.suppress(ConnectionResetError):  # it sent what came too late
                    assert peer.socket.recv(100) == b""


def test_a_peer_that_trickles_its_handshake_is_closed() -> None:
    with LocalCluster() as cluster:
        server = ActorServer(cluster)
        object.__setattr__(server._core.limits, "handshake", 0.3)
        with server, RawPeer(server.address, handshake=False) as peer:
            peer.socket.sendall(_wire.PREFACE + head(60_000))
            with pytest.raises(OSError, match=r"(?i)reset|broken|pipe"):
                trickle(peer.socket)


def trickle(sock: socket.socket) -> None:
    for _ in range(int(PATIENCE * 100)):
        sock.sendall(b"x")
        time.sleep(0.01)


def test_a_silent_peer_is_pinged_and_closed() -> None:
    with serving(keepalive=0.05, patience=0.2) as server, RawPeer(server.address) as peer:
        assert peer.receive().HasField("ping")
        assert peer.ends()
        eventually(lambda: not server._listener.sessions, PATIENCE)


def test_a_peer_that_answers_pings_is_kept() -> None:
    with serving(keepalive=0.02, patience=PATIENCE) as server, Caller(server.address) as caller:
        session = server._listener.sessions[0]
        assert caller.call("echo", "echo", 1) == 1  # by now it pings
        pings: list[int] = []
        ping = session._reader._ping
        assert ping is not None

        def counted() -> None:
            pings.append(1)
            ping()

        session._reader._ping = counted
        eventually(lambda: len(pings) > 3, PATIENCE)
        assert caller.call("echo", "echo", 1) == 1


def test_a_server_that_is_silent_is_given_up() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{listener.getsockname()[1]}"

    def serve() -> None:
        sock, _ = listener.accept()
        handshake = actor_pb2.Handshake(version=1, peer="s", max_pending=10)
        sock.sendall(_wire.frame_bytes(_wire.HANDSHAKE, handshake, 0))
        while sock.recv(1000):
            pass
        sock.close()

    thread = threading.Thread(target=serve)
    thread.start()
    with listener, Caller(address, keepalive=0.05, patience=0.05) as caller:
        answer = caller.send("echo", "echo", 1).answer()
        assert isinstance(answer.lost, UnavailableError)
        assert "silent" in str(answer.lost)
    ended(thread)


def test_a_peer_that_does_not_read_blocks_no_other_peer(server: ActorServer) -> None:
    with RawPeer(server.address) as slow, Caller(server.address) as other:
        for seq in range(1, 200):
            args = msgpack.packb([[1 << 20], {}])
            slow.send(_wire.CALL, actor_pb2.Call(actor="echo", method="blob", seq=seq, args=args))
        for n in range(100):
            assert other.call("echo", "echo", n) == n
        for seq in range(1, 200):
            frame, buffers = slow.reader.receive()
            assert (frame.reply.seq, [len(b) for b in buffers]) == (seq, [1 << 20])


def test_too_many_calls_wait(server: ActorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fray.rpc._serving.session.MAX_PENDING", 5)
    gate, entered = threading.Event(), threading.Event()

    class Gate:
        def wait(self) -> None:
            entered.set()
            assert gate.wait(PATIENCE)

    server.register("gate", Gate())
    with RawPeer(server.address) as peer:
        for seq in range(1, 11):
            peer.send(_wire.CALL, actor_pb2.Call(actor="gate", method="wait", seq=seq, args=EMPTY))
        for seq in range(6, 11):
            reply = peer.receive().reply
            assert (reply.seq, reply.error.code, reply.error.ran) == (seq, Code.BUSY.number, False)
        gate.set()
        assert [peer.receive().reply.seq for _ in range(5)] == [1, 2, 3, 4, 5]


def test_a_client_blocks_at_max_pending(server: ActorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fray.rpc._serving.session.MAX_PENDING", 5)
    with Caller(server.address) as caller:
        sent = [caller.send("echo", "echo", n) for n in range(500)]
        assert [one.result() for one in sent] == list(range(500))


# HTTP


def get(server: ActorServer, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection(server.address, timeout=PATIENCE)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_readyz(server: ActorServer) -> None:
    assert get(server, "/readyz") == (200, "ready\n")
    assert get(server, "/readyz?verbose", "HEAD") == (200, "")
    assert get(server, "/other")[0] == 404
    server.unregister("echo")
    assert get(server, "/readyz")[0] == 503, "a server without actors is ready"


def test_metrics(server: ActorServer) -> None:
    with Caller(server.address) as caller:
        for n in range(3):
            caller.call("echo", "echo", n)
        with pytest.raises(ApplicationError):
            caller.call("echo", "fail")
        caller.send("missing", "x").reply()
        status, text = get(server, "/metrics")
    assert status == 200
    for line in (
        'fray_actor_calls_total{actor="echo",method="echo"} 3',
        'fray_actor_errors_total{actor="echo",method="fail",code="application"} 1',
        'fray_actor_errors_total{actor="",method="",code="unknown_actor"} 1',
        'fray_actor_call_duration_seconds_bucket{actor="echo",method="echo",le="+Inf"} 3',
        'fray_actor_call_duration_seconds_count{actor="echo",method="echo"} 3',
        'fray_actor_calls_pending{actor="echo"} 0',
        "fray_actor_connections 1",
    ):
        assert line in text.splitlines(), text


# TLS


# What a client finds


# The end
