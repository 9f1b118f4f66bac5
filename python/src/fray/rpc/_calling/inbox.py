"""The items of a stream that have arrived and that no loop has taken, on the caller's side.

Reading items is left to `stream`, and acknowledging them to `_calling.channel`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from fray.rpc._transport.wire import MalformedFrameError

if TYPE_CHECKING:
    from fray._pb import actor_pb2

WINDOW_ITEMS: Final = 1000
"""How far the method may be ahead of the loop, where the options ask for nothing else."""
WINDOW_BYTES: Final = 8 << 20


class Arrival(NamedTuple):
    """One item."""

    codec: int
    data: bytes
    buffers: Sequence[memoryview]
    pickles: bool
    """It may be unpickled: the server that sent it has proven the namespace."""


class Inbox:
    """Items of one stream. All methods may be used from any thread."""

    def __init__(self, window: int) -> None:
        """Make it for a stream whose method may be `window` items ahead; 0: WINDOW_ITEMS."""
        self._items = window or WINDOW_ITEMS
        self._lock = threading.RLock()  # which a finalizer may take while its thread holds it
        self._arrived: deque[Arrival] = deque()
        self._waiters: list[Callable[[], object]] = []
        self._queued = 0  # bytes of `_arrived`
        self._unacked = 0  # bytes that were taken since the last acknowledgement
        self._acked = 0  # how many items the server was told of
        self.received = 0
        """How many items have arrived."""
        self.taken = 0
        """How many a loop took."""

    def add(self, items: actor_pb2.Items, buffers: Sequence[memoryview], pickles: bool) -> None:
        """Add items that arrived; some may have before, by another connection.

        Args:
            items: The items.
            buffers: All of theirs.
            pickles: Whether they may be unpickled.

        Raises:
            MalformedFrameError: they do not follow those that came, or are more than are taken.
        """
        first, codec, results, own = items.first, items.codec, items.results, items.buffers
        with self._lock:
            if not 0 < first <= self.received + 1:
                raise MalformedFrameError(f"item {first} of a stream of which {self.received} had come")
            skipped = self.received + 1 - first
            if own:
                arrivals = []
                at = 0
                if len(own) != len(results):
                    raise MalformedFrameError("items of a stream have other buffers than came")
                for data, count in zip(results, own, strict=True):
                    arrivals.append(Arrival(codec, data, buffers[at : at + count], pickles))
                    at += count
                if at != len(buffers):
                    raise MalformedFrameError("items of a stream have other buffers than came")
            else:
                arrivals = [Arrival(codec, data, (), pickles) for data in results]
            if skipped:
                del arrivals[:skipped]
            room = self._items - (self.received - self._acked)
            if len(arrivals) > room or (arrivals and self._queued > 2 * WINDOW_BYTES):
                raise MalformedFrameError("more of a stream came than its caller takes")
            self._arrived.extend(arrivals)
            self.received += len(arrivals)
            self._queued += sum(map(_size, arrivals)) if own else sum(len(a.data) for a in arrivals)
            self._wake()

    def take(self) -> tuple[Arrival | None, int]:
        """Take the next item, if there is one; and how many the server is to be told of, 0: of none now."""
        with self._lock:
            if not self._arrived:
                return None, 0
            item = self._arrived.popleft()
            size = _size(item)
            self._queued -= size
            self._unacked += size
            self.taken += 1
            ahead = self.taken - self._acked
            if ahead < max(1, self._items // 2) and self._unacked < WINDOW_BYTES // 2:
                return item, 0
            self._acked, self._unacked = self.taken, 0
            return item, self.taken

    def ask(self, request: actor_pb2.StreamRequest) -> None:
        """Write into a call that is sent again how far the stream is."""
        with self._lock:
            self._acked, self._unacked = self.taken, 0
            request.received, request.taken = self.received, self.taken

    def on_change(self, callback: Callable[[], object]) -> bool:
        """Call something quick, once, when items arrive or the stream ends; False: there are items."""
        with self._lock:
            if self._arrived:
                return False
            self._waiters.append(callback)
            return True

    def off_change(self, callback: Callable[[], object]) -> None:
        """Take back what `on_change` was given, if it was not called."""
        with self._lock:
            if callback in self._waiters:
                self._waiters.remove(callback)

    def wake(self) -> None:
        """Have waiting loops check again."""
        with self._lock:
            self._wake()

    def drop(self) -> None:
        """Forget what has arrived."""
        with self._lock:
            self._arrived.clear()
            self._queued = 0
            self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for callback in waiters:
            callback()


def _size(item: Arrival) -> int:
    return len(item.data) + (sum(map(len, item.buffers)) if item.buffers else 0)
