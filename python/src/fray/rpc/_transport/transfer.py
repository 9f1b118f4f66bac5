"""Payloads of calls and replies that are sent in parts, as they are too large for one frame.

What is sent when is left to `_transport.writer`, what is received to `_transport.reader`; what they mean
to `_calling.results`, `_serving.arguments` and `_serving.delivery`.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

from fray._pb import actor_pb2
from fray.rpc._transport import background as _background
from fray.rpc._transport import shared as _shared
from fray.rpc._transport import wire as _wire
from fray.rpc._transport.wire import MalformedFrameError, Pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    from fray.rpc._transport.wire import Buffer

PARTS_FROM: Final = 8 << 20
"""Bytes of a payload above which it is sent in parts, to peers that take these."""
PART: Final = 1 << 20
"""Bytes of a part at most: other frames wait as long as one takes."""
_AT_ONCE: Final = 4 << 20  # bytes
LEAST_PART: Final = 64 << 10
"""Bytes of a part at least, but for the last."""


def decoded_limit(limit: int, size: int) -> int:
    """Return how much memory the values of a message of `size` bytes may take where the limit is `limit`."""
    return min(limit, max(64 << 20, 8 * size))


def check(size: int, first: int, sizes: Sequence[int]) -> None:
    """Raise MalformedFrameError unless an announced payload consists of its first piece and buffers."""
    if first + sum(sizes) != size:
        raise MalformedFrameError(f"a transfer of {size} bytes carries {first + sum(sizes)}")


def split(payload: memoryview, first: int, sizes: Sequence[int]) -> Pieces:
    """Return the arguments or the result in a payload, and its buffers."""
    pieces, at = Pieces(payload[:first]), first
    for size in sizes:
        pieces.append(payload[at : at + size])
        at += size
    return pieces


def allocated(size: int) -> memoryview:
    """Return memory for a large payload.

    Pages of it are given when they are written to, large ones where the system has them, which takes a fifth
    of the time; and all are given back with the last view. Raises OSError.
    """
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)


def copied(data: Buffer) -> Buffer:
    """Return a copy of bytes that their owner may change."""
    size = len(data)
    if type(data) is bytes or size < PARTS_FROM:
        return bytes(data)
    copy, source = allocated(size), memoryview(data)
    for at in range(0, size, _AT_ONCE):  # other threads run in between
        copy[at : at + _AT_ONCE] = source[at : at + _AT_ONCE]
    return copy.toreadonly()


class Outbound:
    """A payload that is sent in parts. The writer's turn guards it."""

    __slots__ = ("_pieces", "cut", "seq")

    def __init__(self, seq: int, pieces: Sequence[Buffer]) -> None:
        self.seq = seq
        self._pieces = [memoryview(piece).cast("B") for piece in pieces if len(piece)]
        self._pieces.reverse()
        self.cut = False
        """No more of it is sent."""

    @property
    def over(self) -> bool:
        """Whether all of it was taken."""
        return not self._pieces

    def part_frame(self) -> tuple[bytes, list[memoryview]]:
        """Take the next part, as a frame."""
        pieces, size = self.part()
        return part_bytes(self.seq, size), pieces

    def end(self) -> None:
        """Give up what it holds."""

    def part(self, most: int = PART) -> tuple[list[memoryview], int]:
        """Take the next part, and its size."""
        taken, size = [], 0
        while size < most and self._pieces:
            piece = self._pieces.pop()
            if len(piece) > most - size:
                self._pieces.append(piece[most - size :])
                piece = piece[: most - size]
            taken.append(piece)
            size += len(piece)
        return taken, size


class Written(Outbound):
    """A payload that is written into memory of the receiver, and reported by a single frame."""

    __slots__ = ("_at", "_fd")

    def __init__(self, seq: int, pieces: Sequence[Buffer], fd: int) -> None:
        super().__init__(seq, pieces)
        self._fd, self._at = fd, 0

    def part_frame(self) -> tuple[bytes, list[memoryview]]:
        """Write some; the frame is empty until all is written."""
        pieces, size = self.part(_AT_ONCE)
        _shared.write(self._fd, pieces, self._at)
        self._at += size
        if not self.over:
            return b"", []
        self.end()
        return _wire.frame_bytes(_wire.PART, actor_pb2.Part(seq=self.seq, written=self._at), 0), []

    def end(self) -> None:
        """Close the descriptor."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


class Inbound:
    """A payload that is received in parts, into memory that is taken here."""

    def __init__(self, size: int, within: float, stalled: Callable[[], object], shared: bool = False) -> None:
        """Begin; `stalled` is called when no part has come for `within` seconds.

        `shared`: the sender may write it. Raises OSError.
        """
        self._offered = _shared.offer(size) if shared else None
        self.view = allocated(size) if self._offered is None else self._offered.begin()[:size]
        self.got = 0
        self._within, self._stalled = within, stalled
        self._over = False
        self._heard = monotonic()
        self._watch()

    @property
    def shared(self) -> bool:
        """Whether the sender may have written it."""
        return self._offered is not None

    def accept(self, seq: int) -> actor_pb2.Accept:
        """Return what asks the sender for it."""
        offered = self._offered
        if offered is None:
            return actor_pb2.Accept(seq=seq)
        return actor_pb2.Accept(seq=seq, pid=os.getpid(), fd=offered.fd, token=offered.token)

    def complete(self) -> None:
        """Note that all of it is here: its memory can be used again once no view of it is left."""
        if self._offered is not None:
            self._offered.complete = True

    def heard(self) -> None:
        """Note that a part has come."""
        self._heard = monotonic()

    def end(self) -> None:
        """Call `stalled` no more."""
        self._over = True

    def done(self) -> bool:
        """Return whether `expire` need not be called."""
        return self._over

    def expire(self) -> None:
        """Check whether it has got further."""
        if self._over:
            return
        if monotonic() - self._heard < self._within:
            self._watch()
            return
        self._over = True
        self._stalled()

    def _watch(self) -> None:
        _background.deadlines().add(self._heard + self._within, self)


def outbound(accept: actor_pb2.Accept, pieces: Sequence[Buffer]) -> Outbound:
    """Return a payload as its receiver accepts it."""
    fd = None
    if accept.pid and _shared.AVAILABLE:
        size = sum(len(piece) for piece in pieces)
        fd = _shared.reach(accept.pid, accept.fd, accept.token, size)
    return Outbound(accept.seq, pieces) if fd is None else Written(accept.seq, pieces, fd)


def announce_args(call: actor_pb2.Call, args: bytes, sizes: Sequence[int]) -> actor_pb2.Call:
    """Return the announcement of a call whose payload follows in parts."""
    out = actor_pb2.Call(
        actor=call.actor,
        incarnation=call.incarnation,
        method=call.method,
        seq=call.seq,
        acked=call.acked,
        attempt=call.attempt,
        codec=call.codec,
        timeout_ns=call.timeout_ns,
        trace=call.trace,
        transfer_bytes=len(args) + sum(sizes),
        args_bytes=len(args),
    )
    out.buffer_sizes.extend(sizes)
    if call.HasField("stream"):
        out.stream.CopyFrom(call.stream)
    return out


def announce_result(reply: actor_pb2.Reply, size: int, sizes: Sequence[int]) -> actor_pb2.Reply:
    """Return the announcement of a result, whose payload has a size in all, and buffers of these sizes."""
    out = actor_pb2.Reply(
        seq=reply.seq,
        codec=reply.codec,
        incarnation=reply.incarnation,
        transfer_bytes=size,
        result_bytes=size - sum(sizes),
    )
    out.buffer_sizes.extend(sizes)
    return out


def part_bytes(seq: int, size: int) -> bytes:
    """Return what comes before a part of so many bytes."""
    return _wire.frame_bytes(_wire.PART, actor_pb2.Part(seq=seq), size)
