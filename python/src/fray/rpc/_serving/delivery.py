"""Results of a connection that its client takes in parts.

They are kept by the ledger, which may have to forget them while they are on their way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from google.protobuf.message import Message

from fray.rpc._serving.reply import error_reply
from fray.rpc._transport import transfer as _transfer
from fray.rpc._transport import wire as _wire
from fray.rpc.errors import MaybeExecutedError

if TYPE_CHECKING:
    from fray._pb import actor_pb2
    from fray.rpc._serving.reply import Reply
    from fray.rpc._transport.wire import Buffer
    from fray.rpc._transport.writer import FrameWriter


class Keeper(Protocol):
    """What keeps the results of the caller."""

    def lend(self, seq: int, evicted: Callable[[], object]) -> Reply | None:
        """Return a result; None: it was forgotten. `evicted` is called if that happens later."""
        ...

    def free(self, seq: int) -> None:
        """Forget a result that the caller has."""
        ...

    def sending(self, change: int) -> None:
        """Note how many more results are on their way."""
        ...


class Delivery:
    """All methods may be used from any thread."""

    def __init__(
        self, writer: FrameWriter, keeper: Keeper, limit: int, report: Callable[[int, Message], None]
    ) -> None:
        """Begin without any; `limit` is what the client takes in bytes, 0: nothing in parts."""
        self._writer, self._keeper, self.limit, self._report = writer, keeper, limit, report
        self._lock = threading.Lock()
        self._announced: dict[int, bool] = {}  # whether it was accepted, by the number of the call
        self._ended = False

    def __bool__(self) -> bool:
        return bool(self._announced)

    def takes(self, seq: int, size: int) -> bool:
        """Return whether a result is sent in parts."""
        return bool(self.limit and seq and size > _transfer.PARTS_FROM)

    def announce(self, reply: actor_pb2.Reply, buffers: Sequence[Buffer], size: int) -> None:
        """Offer a result."""
        with self._lock:
            new = reply.seq not in self._announced and not self._ended
            if new:
                self._announced[reply.seq] = False
        if new:
            self._keeper.sending(1)
        announcement = _transfer.announce_result(reply, size, [len(b) for b in buffers])
        self._report(_wire.REPLY, announcement)

    def accepted(self, accept: actor_pb2.Accept) -> None:
        """Send a result that the client asks for."""
        seq = accept.seq
        with self._lock:
            if self._announced.get(seq, True):
                return
            self._announced[seq] = True
        kept = self._keeper.lend(seq, lambda: self._forgotten(seq))
        if kept is None:
            self._forgotten(seq)
        else:
            self._writer.transfer(_transfer.outbound(accept, [kept[0].result, *kept[1]]))

    def _forgotten(self, seq: int) -> None:
        self._writer.cut(seq)
        if self._remove(seq):
            lost = MaybeExecutedError(
                "the call was answered, and its reply forgotten as the caller read too slowly", ran=True
            )
            self._report(_wire.REPLY, error_reply(seq, "", lost)[0])

    def released(self, seq: int) -> None:
        """Note that the client needs no more of a result."""
        if self._remove(seq):
            self._writer.cut(seq)
            self._keeper.free(seq)

    def _remove(self, seq: int) -> bool:
        with self._lock:
            if seq not in self._announced:
                return False
            del self._announced[seq]
        self._keeper.sending(-1)
        return True

    def end(self) -> None:
        """Note that the connection is over."""
        with self._lock:
            self._ended = True
            left, self._announced = len(self._announced), {}
        self._keeper.sending(-left)
