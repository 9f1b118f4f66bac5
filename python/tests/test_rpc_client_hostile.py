"""Servers that mean harm, or are none."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fray._pb import actor_pb2
from fray.rpc import ConnectionSettings, FixedResolver
from fray.rpc.errors import (
    ActorError,
    DeniedError,
    EncodingError,
    MalformedError,
    VersionError,
    of_wire,
)
from scripted import Scripted, packed


def hostile(data: bytes) -> Callable[[], bytes]:
    return lambda: data


@pytest.mark.parametrize(
    ("name", "handshake", "kind"),
    [
        ("of another protocol", b"HTTP/1.1 400 Bad Request\r\n\r\n", MalformedError),
        ("giant lengths", struct.pack(">II", 0xFFFFFFFF, 0xFFFFFFFF), MalformedError),
        ("no message", struct.pack(">II", 4, 0) + b"\xff\xff\xff\xff", MalformedError),
        ("no handshake", packed(actor_pb2.Frame(pong=actor_pb2.Pong(id=1))), MalformedError),
        (
            "another version",
            packed(actor_pb2.Frame(handshake=actor_pb2.Handshake(version=2, peer="x"))),
            VersionError,
        ),
        (
            "denied",
            packed(
                actor_pb2.Frame(
                    close=actor_pb2.Close(error=DeniedError("peers of another namespace").to_wire())
                )
            ),
            DeniedError,
        ),
    ],
)
def test_what_is_no_server_of_ours(name: str, handshake: bytes, kind: type[ActorError]) -> None:
    with Scripted() as server:
        server.handshake = hostile(handshake)
        with pytest.raises(kind) as caught:
            FixedResolver(server.address).handle("counter").increment()
        assert not caught.value.ran, name
        assert (caught.value.actor, caught.value.method) == ("counter", "increment")


def test_pickle_is_not_decoded(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "ran",)

    def on_call(_server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply:
        return actor_pb2.Reply(seq=call.seq, codec=actor_pb2.CODEC_PICKLE, result=pickle.dumps(Evil()))

    with Scripted(on_call) as server:
        for settings in (None, ConnectionSettings(allow_pickle=True)):  # there is no identity
            handle = FixedResolver(server.address, settings=settings).handle("counter")
            with pytest.raises(DeniedError, match="pickle is refused"):
                handle.increment()
    assert not (tmp_path / "ran").exists()


def test_results_that_are_none() -> None:
    def on_call(_server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply:
        return actor_pb2.Reply(seq=call.seq, codec=actor_pb2.CODEC_MSGPACK, result=b"\xc1\xff")

    with Scripted(on_call) as server:
        with pytest.raises(EncodingError, match="the result cannot be read") as caught:
            FixedResolver(server.address).handle("counter").increment()
        assert caught.value.ran


def test_chains_of_causes_are_cut() -> None:
    wire = actor_pb2.Error(code=999, message="x" * 100)  # type: ignore[arg-type]
    deepest = wire
    for _ in range(60):
        deepest = deepest.cause
        deepest.code = actor_pb2.CODE_APPLICATION
    err: ActorError | None = of_wire(wire)
    depth = 0
    while err is not None:
        err, depth = err.cause, depth + 1
    assert depth == 32


def test_garbage_after_the_handshake_ends_the_connection_only() -> None:
    times = []

    def on_call(server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply | None:
        times.append(1)
        if len(times) == 1:
            server.connections[-1].sendall(struct.pack(">II", 0xFFFFFFF0, 0))
            return None
        return server.run(call)

    with Scripted(on_call) as server:
        assert FixedResolver(server.address).handle("counter").increment() == 1
