"""A server of actors on a raw socket that follows the script of a test, and counts what it ran."""

from __future__ import annotations

import contextlib
import secrets
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from fray._pb import actor_pb2
from fray.rpc.codec import decode_args, encode_result
from fray.rpc.errors import ActorError, CancelledError, StaleError, UnknownActorError
from ports import listen

INCARNATION = "actor-" + 25 * "a"


def receive(sock: socket.socket) -> tuple[actor_pb2.Frame, bytes]:
    head, body = struct.unpack(">II", exactly(sock, 8))
    frame = actor_pb2.Frame.FromString(exactly(sock, head))
    return frame, exactly(sock, body)


def exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def packed(frame: actor_pb2.Frame, body: bytes = b"") -> bytes:
    head = frame.SerializeToString()
    return struct.pack(">II", len(head), len(body)) + head + body


class Break(Exception):  # noqa: N818
    """Close the connection now."""


class Scripted:
    """One server process, as far as clients can see. `on_call` may raise Break before or after `run`."""

    def __init__(
        self,
        on_call: Callable[[Scripted, actor_pb2.Call], actor_pb2.Reply | None] | None = None,
        port: int = 0,
        incarnation: str = INCARNATION + "a",
    ) -> None:
        self.peer = secrets.token_hex(13)
        self.incarnation = incarnation
        self.on_call = on_call or Scripted.run
        self.handshake: Callable[[], bytes] = self._handshake
        self.idempotent: tuple[str, ...] = ()
        self.methods: list[actor_pb2.Method] = []
        self.calls: list[actor_pb2.Call] = []  # received
        self.runs: list[list[Any]] = []  # arguments of those that ran
        self.connections: list[socket.socket] = []
        self.replies: dict[tuple[str, int], actor_pb2.Reply] = {}
        self.highest: dict[str, int] = {}
        self.cancelled: list[int] = []
        self.asked = 0  # for the methods
        self.silent = False  # answers no pings
        self.deaf = False  # does not cancel
        self.changed = threading.Condition()
        self.local = threading.local()
        self.open(port)

    def open(self, port: int) -> None:
        self.listener = socket.create_server(("127.0.0.1", port)) if port else listen()
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, args=[self.listener], daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def restart(self) -> None:
        """Be another process from now on, as far as clients can see."""
        self.peer = secrets.token_hex(13)
        self.incarnation = "actor-" + secrets.token_hex(13)
        self.replies, self.highest = {}, {}

    def refuse(self) -> None:
        """Take no connections any more."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def close(self) -> None:
        self.refuse()
        self.drop()

    def drop(self) -> None:
        """Break all connections."""
        for sock in list(self.connections):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def wait(self, what: Callable[[], object], seconds: float = 300) -> None:
        with self.changed:
            assert self.changed.wait_for(what, seconds), "not in time"

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            self.connections.append(sock)
            threading.Thread(target=self._serve, args=[sock], daemon=True).start()

    def _handshake(self) -> bytes:
        handshake = actor_pb2.Handshake(
            version=1, peer=self.peer, max_message_bytes=64 << 20, max_pending=10_000
        )
        return packed(actor_pb2.Frame(handshake=handshake))

    def _serve(self, sock: socket.socket) -> None:
        try:
            exactly(sock, 8)
            self.local.caller = receive(sock)[0].handshake.peer
            sock.sendall(self.handshake())
            while True:
                frame, body = receive(sock)
                answer = self._frame(frame, body)
                if answer is not None:
                    sock.sendall(packed(answer))
        except (Break, EOFError, OSError):
            pass
        finally:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _frame(self, frame: actor_pb2.Frame, body: bytes) -> actor_pb2.Frame | None:
        if frame.HasField("list_methods"):
            methods = [actor_pb2.Method(name=name, idempotent=True) for name in self.idempotent]
            methods += self.methods
            response = actor_pb2.ListMethodsResponse(id=frame.list_methods.id, methods=methods)
            with self.changed:
                self.asked += 1
                self.changed.notify_all()
            return actor_pb2.Frame(methods=response)
        if frame.HasField("list_actors"):
            return actor_pb2.Frame(actors=actor_pb2.ListActorsResponse(id=frame.list_actors.id))
        if frame.HasField("ping"):
            if self.silent:
                return None
            return actor_pb2.Frame(pong=actor_pb2.Pong(id=frame.ping.id))
        if frame.HasField("cancel"):
            with self.changed:
                self.cancelled.append(frame.cancel.seq)
                self.changed.notify_all()
            if self.deaf:
                return None
            error = CancelledError("the call was cancelled", ran=True).to_wire()
            return actor_pb2.Frame(reply=actor_pb2.Reply(seq=frame.cancel.seq, error=error))
        if not frame.HasField("call"):
            return None
        call = frame.call
        del body
        with self.changed:
            self.calls.append(call)
            self.changed.notify_all()
        reply = self.on_call(self, call)
        return None if reply is None else actor_pb2.Frame(reply=reply)

    def run(self, call: actor_pb2.Call) -> actor_pb2.Reply:
        """Do what a server does: run the call once, and return how many have run."""
        caller = self.local.caller
        if (caller, call.seq) in self.replies:
            return self.replies[caller, call.seq]
        if call.seq <= self.highest.get(caller, 0):
            raise AssertionError(f"call {call.seq} came after {self.highest[caller]}")
        self.highest[caller] = call.seq
        reply = self.replies[caller, call.seq] = self.carry_out(call)
        return reply

    def carry_out(self, call: actor_pb2.Call) -> actor_pb2.Reply:
        if call.incarnation not in ("", self.incarnation):
            return self.rejection(call, StaleError("another incarnation is here"))
        if call.actor == "missing":
            return self.rejection(call, UnknownActorError('no actor "missing" is here', near=["counter"]))
        args, _ = decode_args(call.codec, call.args)
        with self.changed:
            self.runs.append(args)
            self.changed.notify_all()
        data, _ = encode_result(call.codec, len(self.runs))
        codec = actor_pb2.CODEC_MSGPACK
        return actor_pb2.Reply(seq=call.seq, codec=codec, result=data, incarnation=self.incarnation)

    def rejection(self, call: actor_pb2.Call, error: ActorError) -> actor_pb2.Reply:
        return actor_pb2.Reply(seq=call.seq, error=error.to_wire(), incarnation=self.incarnation)
