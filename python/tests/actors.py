"""Servers of actors in other processes, and clients that send exactly what a test wants."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fray
from fray._pb import actor_pb2
from fray.rpc._calling.connection import Connection
from fray.rpc._calling.outcome import Answer, Sent
from fray.rpc._transport import wire as _wire
from fray.rpc._transport.names import random_name
from fray.rpc._transport.reader import FrameReader
from fray.rpc._transport.settings import Settings
from fray.rpc._transport.wire import PlainStream, payload_of
from fray.rpc.codec import decode_result, encode_args
from fray.rpc.errors import of_wire

PATIENCE = 300.0
"""Seconds that a test waits for what is to come."""
SOURCES = str(Path(fray.__file__).parent)
"""Where the files of the package are, as tracebacks name them."""


class Caller:
    """A client process in little: numbers its calls, and waits for answers."""

    def __init__(self, address: str, *, codec: int = 1, connect: bool = True, **settings: Any) -> None:
        self.address, self.codec = address, codec
        self.settings = Settings(peer=random_name(), **settings)
        self.seq = 0
        if connect:
            self.connection = Connection.open(address, self.settings)

    def reconnect(self) -> None:
        self.connection.close()
        self.connection = Connection.open(self.address, self.settings)

    def send(self, actor: str, method: str, *args: Any, **fields: Any) -> Pending:
        kwargs = fields.pop("kwargs", {})
        data, buffers = encode_args(self.codec, args, kwargs)
        self.seq += 1
        fields = {"seq": self.seq, "codec": self.codec, **fields}
        call = actor_pb2.Call(actor=actor, method=method, args=fields.pop("args", data), **fields)
        return Pending(self.connection, call, buffers)

    def send_again(self, sent: Pending) -> Pending:
        """As a client does: what the broken connection still brings of the call is known to be older."""
        call = actor_pb2.Call()
        call.CopyFrom(sent.call)
        call.attempt += 1
        return Pending(self.connection, call, sent.buffers)

    def call(self, actor: str, method: str, *args: Any, **fields: Any) -> Any:
        return self.send(actor, method, *args, **fields).result()

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Pending:
    """A call that was sent."""

    def __init__(self, connection: Connection, call: actor_pb2.Call, buffers: Sequence[Any]) -> None:
        self.call, self.buffers = call, buffers
        self.answered = threading.Event()
        self.answers: list[Answer] = []
        self.sent: Sent = connection.call(call, buffers, self._done)

    def _done(self, answer: Answer) -> None:
        self.answers.append(answer)
        self.answered.set()

    def answer(self) -> Answer:
        assert self.answered.wait(PATIENCE), f"no answer to {self.call}"
        return self.answers[0]

    def reply(self) -> actor_pb2.Reply:
        answer = self.answer()
        assert answer.reply is not None, f"lost: {answer.lost}"
        return answer.reply

    def result(self) -> Any:
        reply = self.reply()
        if reply.HasField("error"):
            raise of_wire(reply.error)
        buffers = self.answer().buffers
        return decode_result(reply.codec, payload_of(buffers, reply.result), buffers)


class RawPeer:
    """A connection on which a test sends whatever bytes it likes."""

    def __init__(self, address: str, handshake: bool = True, **fields: Any) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), PATIENCE)
        self.stream = PlainStream(self.socket)
        self.reader = FrameReader(self.stream, PATIENCE)
        if handshake:
            self.socket.sendall(_wire.PREFACE)
            self.send(_wire.HANDSHAKE, actor_pb2.Handshake(**{"version": 1, "peer": random_name(), **fields}))
            first = self.receive()
            assert first.HasField("handshake"), first
            self.handshake = first.handshake
            self.reader.accepted(1 << 30, PATIENCE, PATIENCE, lambda: None)

    def send(self, field: int, message: Any, body: bytes = b"") -> None:
        self.socket.sendall(_wire.frame_bytes(field, message, len(body)) + body)

    def receive(self) -> actor_pb2.Frame:
        return self.reader.receive()[0]

    def ends(self) -> bool:
        """Whether the server closes, whatever it sends before."""
        try:
            while True:
                self.receive()
        except (EOFError, ConnectionResetError):
            return True

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> RawPeer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def head(size: int, body: int = 0) -> bytes:
    """The prefix of a frame."""
    return struct.pack(">II", size, body)


class Program:
    """Python code in a process of its own, which prints the address that it serves at first."""

    def __init__(self, code: str, environ: dict[str, str] | None = None) -> None:
        root = Path(__file__).parents[1]
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                "PYTHONPATH": f"{root / 'src'}:{root / 'tests'}",
                "PATH": "/usr/bin:/bin",
                **(environ or {}),
            },
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise AssertionError(self.process.communicate()[1])

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
