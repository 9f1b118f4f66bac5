"""The frames of actor.proto, and the streams that carry them; what a call means is not known here.

`_transport.reader.FrameReader` receives them and `_transport.writer.FrameWriter` sends them.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from google.protobuf.message import Message

from fray._pb import actor_pb2

VERSION: Final = 1
"""Of the protocol."""
PREFACE: Final = b"FRAYACT1"
"""What a client sends before its first frame."""
DEFAULT_MAX_MESSAGE: Final = 1 << 30
"""The limit on the payload of a call or a reply in bytes by default."""
MAX_FRAME: Final = 64 << 20
"""The size in bytes up to which a frame is taken, if no lower limit is set. What is larger comes in parts."""

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Bytes that follow a frame. They must not change until the frame is written."""

PREFIX_SIZE: Final = 8
"""Bytes before each frame."""
PREFIX = struct.Struct(">II")
_MAX_FIELD = 0xFFFFFFFF
_JOINED = 64 << 10  # batches up to here are cheaper copied together than gathered


class Pieces(list[memoryview]):
    """The buffers of a large message, and its arguments or result, which the message itself lacks then."""

    __slots__ = ("payload",)

    def __init__(self, payload: memoryview | None, buffers: Sequence[memoryview] = ()) -> None:
        super().__init__(buffers)
        self.payload = payload
        """None: it is in the message."""

    def __bool__(self) -> bool:
        return True


def payload_of(buffers: Sequence[Buffer], own: bytes) -> Buffer:
    """Return the arguments or the result of a message that came with such buffers; `own` is what it has."""
    if type(buffers) is Pieces and buffers.payload is not None:
        return buffers.payload
    return own


class MalformedFrameError(Exception):
    """Bytes are no frame. The connection cannot go on."""


class OversizeError(Exception):
    """A frame is larger than what is taken. With `frame` the connection goes on: its buffers were skipped."""

    def __init__(self, size: int, limit: int, frame: actor_pb2.Frame | None) -> None:
        super().__init__(f"a message of {size} bytes is over the limit of {limit}")
        self.size, self.limit, self.frame = size, limit, frame


class SilentError(Exception):
    """The peer sent nothing for as long as the stream waits."""


class Stream(Protocol):
    """Bytes to and from a peer. One thread receives while another sends."""

    in_doubt: int
    """Bytes that `send` did not count, but the peer may have."""
    near: bool
    """Whether the peer seems to be on the same machine."""

    def recv_into(self, view: memoryview) -> int:
        """Receive some bytes, 0 at the end. Raises SilentError when none came within the patience."""
        ...

    def recv_now(self, view: memoryview) -> int | None:
        """Receive what is there, 0 at the end; None: nothing is."""
        ...

    def ended(self) -> bool:
        """Return whether the peer is known to have closed, without receiving anything."""
        ...

    def wait_readable(self, seconds: float, other: int) -> bool:
        """Wait until `recv_now` may have something; False: it took too long, or `other` can be read.

        `other` is a descriptor, or -1.
        """
        ...

    def set_patience(self, seconds: float) -> None:
        """Set how long `recv_into` waits in seconds, 0 for without an end."""
        ...

    def send(self, parts: Sequence[Buffer], size: int) -> int:
        """Send what the peer takes of parts with `size` bytes in all, without waiting; return how much."""
        ...

    def wait_writable(self) -> None:
        """Wait until `send` may get further, or the stream is closed."""
        ...

    def finish(self) -> None:
        """Report that no more will be sent."""
        ...

    def close(self) -> None:
        """End both directions. Threads that receive, send or wait return."""
        ...

    def release(self) -> None:
        """Give up the descriptor. The stream must not be used any more."""
        ...


class PlainStream:
    """A Stream over a socket as it is."""

    in_doubt = 0

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.near = is_near(sock)
        sock.settimeout(None)  # else every receive is two system calls
        with contextlib.suppress(OSError):  # a unix socket has none
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def addresses(self, client: bool) -> str:
        """Return the addresses of both ends, as both see them; `client`: this end is the client's."""
        own, other = self._sock.getsockname()[:2], self._sock.getpeername()[:2]
        return f"{other} {own}" if client else f"{own} {other}"

    def recv_into(self, view: memoryview) -> int:
        try:
            return self._sock.recv_into(view)
        except BlockingIOError:
            raise SilentError from None

    def recv_now(self, view: memoryview) -> int | None:
        try:
            return self._sock.recv_into(view, 0, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None

    def ended(self) -> bool:
        try:
            return not self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def wait_readable(self, seconds: float, other: int) -> bool:
        poll = select.poll()  # one of its own: a handler of a signal may come here meanwhile
        poll.register(self._sock, select.POLLIN)
        if other < 0:
            return bool(poll.poll(seconds * 1000))
        poll.register(other, select.POLLIN)
        return any(found != other for found, _ in poll.poll(seconds * 1000))

    def set_patience(self, seconds: float) -> None:
        whole = int(seconds)
        least = 1 if seconds else 0  # without an end
        timeout = struct.pack("@ll", whole, max(least, int((seconds - whole) * 1e6)))
        with contextlib.suppress(OSError):  # closed
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)

    def send(self, parts: Sequence[Buffer], size: int) -> int:
        try:
            if len(parts) == 1:
                return self._sock.send(parts[0], socket.MSG_DONTWAIT)
            if size <= _JOINED:
                return self._sock.send(b"".join(parts), socket.MSG_DONTWAIT)
            return self._sock.sendmsg(parts, (), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0

    def wait_writable(self) -> None:
        poll = select.poll()
        poll.register(self._sock, select.POLLOUT)
        poll.poll()

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        self._sock.close()


def is_near(sock: socket.socket) -> bool:
    """Return whether a peer seems to be on the same machine."""
    try:
        return sock.family == socket.AF_UNIX or bool(sock.getpeername()[0] == sock.getsockname()[0])
    except OSError:
        return False


def _tag(field: int) -> bytes:
    """Return what comes before a message field, of a number below 2048."""
    tag = field << 3 | 2
    return bytes([tag]) if tag < 0x80 else bytes([tag & 0x7F | 0x80, tag >> 7])


_TAGS: Final = {field.number: _tag(field.number) for field in actor_pb2.Frame.DESCRIPTOR.fields}


def frame_bytes(field: int, message: Message, body: int) -> bytes:
    """Return the prefix and the head of the Frame whose `kind` is this message.

    It is written as protobuf does, with the field's tag and the message's length, to save that copy of it.
    """
    data = message.SerializeToString()
    size = len(data)
    length, left = [], size
    while left > 0x7F:
        length.append(left & 0x7F | 0x80)
        left >>= 7
    length.append(left)
    tag = _TAGS[field]
    head = len(tag) + len(length) + size
    if head > _MAX_FIELD or body > _MAX_FIELD:
        raise OversizeError(head + body, _MAX_FIELD, None)
    return b"%b%b%b%b" % (PREFIX.pack(head, body), tag, bytes(length), data)


def mebibytes(size: int) -> str:
    """Return a size for people."""
    if size < 1 << 20:
        return f"{size} bytes"
    unit, bits = ("GiB", 30) if size >= 1 << 30 else ("MiB", 20)
    whole, rest = divmod(size, 1 << bits)
    tenths = -(-size * 10 >> bits)  # up: it is more than the limit
    return f"{tenths // 10}.{tenths % 10} {unit}" if rest else f"{whole} {unit}"


def arguments_too_large(size: int, limit: int) -> str:
    """Return the message for arguments over the limit."""
    return f"the arguments are {mebibytes(size)}; at most {mebibytes(limit)} are taken (max_message_bytes)"


def result_too_large(size: int, limit: int) -> str:
    """Return the message for a result over the limit."""
    return f"the result is {mebibytes(size)}; at most {mebibytes(limit)} are taken (max_message_bytes)"


def item_too_large(size: int, limit: int) -> str:
    """Return the message for an item of a stream over the limit."""
    taken = f"at most {mebibytes(limit)} are taken (max_message_bytes)"
    return f"an item of the stream is {mebibytes(size)}; {taken}"


def version_problem(server: int, program: int) -> str:
    """Return the message for peers of two versions, as the caller reads it."""
    behind = "the server" if server < program else "this program"
    speaks = f"the server speaks version {server} of the actor protocol"
    return f"{speaks}, this program version {program}: update {behind}"


HANDSHAKE: Final = actor_pb2.Frame.HANDSHAKE_FIELD_NUMBER
CALL: Final = actor_pb2.Frame.CALL_FIELD_NUMBER
REPLY: Final = actor_pb2.Frame.REPLY_FIELD_NUMBER
CANCEL: Final = actor_pb2.Frame.CANCEL_FIELD_NUMBER
PING: Final = actor_pb2.Frame.PING_FIELD_NUMBER
PONG: Final = actor_pb2.Frame.PONG_FIELD_NUMBER
CLOSE: Final = actor_pb2.Frame.CLOSE_FIELD_NUMBER
PART: Final = actor_pb2.Frame.PART_FIELD_NUMBER
ACCEPT: Final = actor_pb2.Frame.ACCEPT_FIELD_NUMBER
RELEASE: Final = actor_pb2.Frame.RELEASE_FIELD_NUMBER
LIST_METHODS: Final = actor_pb2.Frame.LIST_METHODS_FIELD_NUMBER
METHODS: Final = actor_pb2.Frame.METHODS_FIELD_NUMBER
LIST_ACTORS: Final = actor_pb2.Frame.LIST_ACTORS_FIELD_NUMBER
ACTORS: Final = actor_pb2.Frame.ACTORS_FIELD_NUMBER
ITEMS: Final = actor_pb2.Frame.ITEMS_FIELD_NUMBER
STREAM_ACK: Final = actor_pb2.Frame.STREAM_ACK_FIELD_NUMBER
