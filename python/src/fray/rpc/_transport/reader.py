"""Receives the frames of a connection, for one thread. What a frame means is left to its caller."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from google.protobuf.message import DecodeError

from fray._pb import actor_pb2
from fray.rpc._transport import large as _large
from fray.rpc._transport.transfer import LEAST_PART, Inbound
from fray.rpc._transport.wire import (
    MAX_FRAME,
    PREFIX,
    Buffer,
    MalformedFrameError,
    OversizeError,
    Pieces,
    SilentError,
    Stream,
)

_READ_BUFFER: Final = 256 << 10
_FIRST_LIMIT: Final = 64 << 10  # bytes of a frame before the peer is known


class FrameReader:
    """Receives frames, for one thread."""

    def __init__(self, stream: Stream, first: float) -> None:
        """Wait at most `first` seconds for all that comes before `accepted`."""
        self._limit = _FIRST_LIMIT
        self._deadline: float | None = time.monotonic() + first
        self._stream = stream
        self._ping: Callable[[], None] | None = None
        self._pinged = False
        self._keepalive = self._patience = 0.0
        stream.set_patience(first)
        self._bytes = bytearray(_READ_BUFFER)
        self._view = memoryview(self._bytes)
        self._start = self._end = 0
        self._expected: dict[int, Inbound] = {}
        self.idle = False
        """Whether `comes` waits, and nothing is half done."""

    def accepted(self, limit: int, keepalive: float, patience: float, ping: Callable[[], None]) -> None:
        """Go on, now that the handshake is done.

        Args:
            limit: Bytes of a frame that are taken.
            keepalive: Seconds of silence after which `ping` is called.
            patience: Seconds of silence after that, which end in a SilentError.
            ping: Makes the peer send something.
        """
        self._limit, self._deadline = min(limit, MAX_FRAME), None
        self._keepalive, self._patience, self._ping = keepalive, patience, ping
        self._stream.set_patience(keepalive)

    def skip(self, size: int) -> bytes:
        """Receive a few bytes that are no frame."""
        self._fill(size)
        start = self._start
        self._start += size
        return bytes(self._view[start : start + size])

    def rest(self) -> bytes:
        """Take what was received and waits."""
        start, self._start = self._start, self._end
        return bytes(self._view[start : self._end])

    def expect(self, seq: int, inbound: Inbound) -> None:
        """Take a payload in parts. What comes of others is skipped."""
        self._expected[seq] = inbound

    def written(self, seq: int, size: int) -> memoryview | None:
        """Return a payload that the peer has written into its memory; None: it is not expected.

        Raises:
            MalformedFrameError: it is not all of it.
        """
        inbound = self._expected.get(seq)
        if inbound is None:
            return None
        if size != len(inbound.view) or not inbound.shared:
            raise MalformedFrameError(f"{size} bytes were written of a message of {len(inbound.view)}")
        inbound.complete()
        self.forget(seq)
        return inbound.view.toreadonly()

    def forget(self, seq: int) -> None:
        """Take no more parts of a payload."""
        inbound = self._expected.pop(seq, None)
        if inbound is not None:
            inbound.end()

    @property
    def waiting(self) -> bool:
        """Whether bytes were received that no frame was made of."""
        return self._start < self._end

    def receive(self) -> tuple[actor_pb2.Frame, Sequence[memoryview]]:
        """Receive the next frame and its buffers; with the last part of an expected payload all of that.

        Raises:
            EOFError: the peer closed.
            OversizeError, MalformedFrameError: see there.
            SilentError: the peer was silent for too long.
            OSError: of the stream.
        """
        if self._end - self._start < 8:
            self._fill(8)
        head, body = PREFIX.unpack_from(self._bytes, self._start)
        if head > self._limit:
            raise OversizeError(head + body, self._limit, None)
        if 8 + head > _READ_BUFFER:
            return self._large(head, body)
        if self._end - self._start < 8 + head:
            self._fill(8 + head)
        start = self._start + 8
        self._start = end = start + head
        data: Buffer = self._view[start:end]
        try:
            frame = actor_pb2.Frame.FromString(data)  # type: ignore[arg-type] # takes any bytes
        except DecodeError:
            raise MalformedFrameError("its head is no Frame message") from None
        if not body and not _sizes(frame):
            return frame, ()
        if frame.HasField("part"):
            return frame, self._part(frame.part.seq, body)
        return frame, self._body(frame, head, body)

    @property
    def large(self) -> bool:
        """Whether a frame comes that `comes` does not wait for."""
        return self._needed() > _READ_BUFFER

    def comes(self, seconds: float, other: int = -1) -> bool:
        """Wait until a whole frame is here, so that `receive` does not wait.

        False: it took too long, `other` can be read, or the frame is too large to be kept here. After
        an exception `idle` is whether it came while no frame did.

        Raises:
            EOFError, OSError: as `receive`.
        """
        until = 0.0
        while True:
            needed = self._needed()
            if self._end - self._start >= needed:
                return True
            if needed > _READ_BUFFER:
                return False
            if until:
                seconds = until - time.monotonic()
            elif self._end > self._start:
                until = time.monotonic() + seconds
            self._make_room(needed)
            self.idle = True
            ready = seconds > 0 and self._stream.wait_readable(seconds, other)
            self.idle = False
            if not ready:
                return False
            got = self._stream.recv_now(self._view[self._end :])
            if got is None:
                until = until or time.monotonic() + seconds
            else:
                self._heard(got)
                self._end += got

    def _needed(self) -> int:
        """Return how many bytes there have to be for a whole frame, as far as that is known."""
        if self._end - self._start < 8:
            return 8
        head, body = PREFIX.unpack_from(self._bytes, self._start)
        return 8 + int(head) + int(body)

    def _body(self, frame: actor_pb2.Frame, head: int, body: int) -> Sequence[memoryview]:
        if head + body > self._limit:
            self.discard(body)
            raise OversizeError(head + body, self._limit, frame)
        sizes = _sizes(frame)
        _check_sizes(sizes, body)
        everything = memoryview(self._exactly(body)).toreadonly()
        buffers, at = [], 0
        for size in sizes:
            buffers.append(everything[at : at + size])
            at += size
        return buffers

    def _part(self, seq: int, body: int) -> Sequence[memoryview]:
        inbound = self._expected.get(seq)
        if inbound is None:
            self.discard(body)
            return ()
        left = len(inbound.view) - inbound.got
        if not min(left, LEAST_PART) <= body <= left:
            raise MalformedFrameError(f"a part of {body} bytes, where {left} are left of its message")
        inbound.heard()
        self._receive_into(inbound.view[inbound.got : inbound.got + body])
        inbound.got += body
        if inbound.got < len(inbound.view) or self._expected.get(seq) is not inbound:
            return ()
        inbound.complete()
        self.forget(seq)
        return (inbound.view.toreadonly(),)

    def _large(self, head: int, body: int) -> tuple[actor_pb2.Frame, Sequence[memoryview]]:
        """Receive a frame whose head the read buffer does not hold."""
        self._start += 8
        data = memoryview(self._exactly(head)).toreadonly()
        try:
            frame, pieces = _large.frame(data, self._limit // 2)
        except DecodeError:
            raise MalformedFrameError("its head is no Frame message") from None
        if body or _sizes(frame):
            pieces = Pieces(pieces.payload, self._body(frame, head, body))
        return frame, pieces

    def _exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        self._receive_into(memoryview(data))
        return data

    def _receive_into(self, view: memoryview) -> None:
        size = len(view)
        got = min(size, self._end - self._start)
        view[:got] = self._view[self._start : self._start + got]
        self._start += got
        while got < size:
            got += self._some(view[got:])

    def discard(self, size: int) -> None:
        """Receive so many bytes and drop them."""
        while size > 0:
            if self._start == self._end:
                self._fill(1)
            taken = min(size, self._end - self._start)
            self._start += taken
            size -= taken

    def _fill(self, size: int) -> None:
        """Have at least `size` bytes in the read buffer."""
        self._make_room(size)
        while self._end - self._start < size:
            self._end += self._some(self._view[self._end :])

    def _make_room(self, size: int) -> None:
        """Have room for `size` bytes from `_start` on."""
        if self._start == self._end:
            self._start = self._end = 0
        elif self._start + size > _READ_BUFFER:
            left = self._end - self._start
            self._view[:left] = bytes(self._view[self._start : self._end])
            self._start, self._end = 0, left

    def _some(self, view: memoryview) -> int:
        while True:
            try:
                got = self._stream.recv_into(view)
            except SilentError:
                if self._ping is None or self._pinged:
                    raise
                self._pinged = True
                self._stream.set_patience(self._patience)
                self._ping()
                continue
            self._heard(got)
            if self._deadline is not None and time.monotonic() > self._deadline:
                raise SilentError
            return got

    def _heard(self, got: int) -> None:
        """Note that the peer is not silent, or that it closed."""
        if not got:
            raise EOFError
        if self._pinged:
            self._pinged = False
            self._stream.set_patience(self._keepalive)


def _sizes(frame: actor_pb2.Frame) -> Sequence[int]:
    kind = frame.WhichOneof("kind")
    if kind == "call" and not frame.call.transfer_bytes:
        return frame.call.buffer_sizes
    if kind == "reply" and not frame.reply.transfer_bytes:
        return frame.reply.buffer_sizes
    if kind == "items":
        return frame.items.buffer_sizes
    return ()


def _check_sizes(sizes: Sequence[int], body: int) -> None:
    total = sum(sizes)
    if total > body:
        raise MalformedFrameError(f"its buffer_sizes add up to more than the {body} bytes of its body")
    if total < body:
        raise MalformedFrameError(f"{body - total} of the {body} bytes of its body belong to no buffer")
