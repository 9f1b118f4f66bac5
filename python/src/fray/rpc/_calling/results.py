"""Results that a client receives in parts. Which call they answer is left to `_calling.connection`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from google.protobuf.message import Message

from fray._pb import actor_pb2
from fray.rpc._transport import transfer as _transfer
from fray.rpc._transport import wire as _wire
from fray.rpc._transport.wire import MalformedFrameError, Pieces

if TYPE_CHECKING:
    from fray.rpc._transport.memory import Memory, Reservation
    from fray.rpc._transport.reader import FrameReader


class _Incoming:
    __slots__ = ("dropped", "reply", "room")

    def __init__(self, reply: actor_pb2.Reply) -> None:
        self.reply = reply
        self.room: Reservation | None = None
        self.dropped = False

    def drop(self) -> None:
        self.dropped = True
        if self.room is not None:
            self.room.release()


class Results:
    """By the number of their call. `drop` may be used from any thread, others by the one that receives."""

    def __init__(
        self,
        reader: FrameReader,
        memory: Memory,
        within: float,
        report: Callable[[int, Message], None],
        stalled: Callable[[], object],
    ) -> None:
        """Begin without any.

        Args:
            reader: Receives the parts.
            memory: They take.
            within: Seconds that a result may get no further.
            report: Sends a frame.
            stalled: Called when one gets no further.
        """
        self._reader, self._memory, self._within = reader, memory, within
        self._report, self._stalled = report, stalled
        self.shared = False
        """Whether the server may write results into memory of this process."""
        self._lock = threading.Lock()
        self._incoming: dict[int, _Incoming] = {}

    def __bool__(self) -> bool:
        return bool(self._incoming)

    def announced(self, reply: actor_pb2.Reply) -> None:
        """Ask for a result once there is memory for it.

        Raises:
            MalformedFrameError: it cannot be.
        """
        _transfer.check(reply.transfer_bytes, reply.result_bytes, reply.buffer_sizes)
        incoming = _Incoming(reply)
        with self._lock:
            if reply.seq in self._incoming or reply.result:
                raise MalformedFrameError(f"two results of call {reply.seq}")
            self._incoming[reply.seq] = incoming
        room = self._memory.reserve(reply.transfer_bytes, lambda: self._accept(incoming))
        with self._lock:
            incoming.room = room
            dropped = incoming.dropped
        if dropped:
            room.release()

    def _accept(self, incoming: _Incoming) -> None:
        seq = incoming.reply.seq
        try:
            size = incoming.reply.transfer_bytes
            inbound = _transfer.Inbound(size, self._within, self._stalled, self.shared)
        except OSError:  # there is no memory
            self._stalled()
            return
        with self._lock:
            if incoming.dropped:
                inbound.end()
                return
            self._reader.expect(seq, inbound)
        self._report(_wire.ACCEPT, inbound.accept(seq))

    def complete(self, seq: int, payload: memoryview) -> tuple[actor_pb2.Reply, Pieces] | None:
        """Return a result whose last part has come; None: it was dropped just now."""
        reply = self.drop(seq)
        if reply is None:
            return None
        return reply, _transfer.split(payload, reply.result_bytes, reply.buffer_sizes)

    def drop(self, seq: int) -> actor_pb2.Reply | None:
        """Receive no more of a result, which the server need not keep; return its announcement."""
        with self._lock:
            incoming = self._incoming.pop(seq, None)
            if incoming is None:
                return None
            self._reader.forget(seq)
            incoming.dropped = True
        incoming.drop()
        self.release(seq)
        return incoming.reply

    def release(self, seq: int) -> None:
        """Tell the server that it need not keep a result."""
        self._report(_wire.RELEASE, actor_pb2.Release(seq=seq))

    def end(self) -> None:
        """Give up what has not come, as the connection is over."""
        with self._lock:
            left, self._incoming = list(self._incoming.values()), {}
            for incoming in left:
                incoming.dropped = True
                self._reader.forget(incoming.reply.seq)
        for incoming in left:
            incoming.drop()
