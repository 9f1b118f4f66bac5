"""The items of a call that its caller has not acknowledged, so that a connection that breaks loses none.

The method waits while they are as many as the caller takes. Running it is left to `_serving.call`, and
carrying items to `_serving.session` and `_serving.grpc`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Protocol

from fray._pb import actor_pb2
from fray.rpc.errors import ActorError, CancelledError, DeadlineError

if TYPE_CHECKING:
    import asyncio

    from fray.rpc._serving.reply import Reply
    from fray.rpc._transport.wire import Buffer

WINDOW_ITEMS: Final = 1000
"""Items that a method may be ahead of its caller, where the call asks for nothing else."""
WINDOW_BYTES: Final = 8 << 20
_MOST_ITEMS, _MOST_BYTES = 100_000, 64 << 20  # that a call can ask for
_BATCH_ITEMS, _BATCH_BYTES = 1024, 256 << 10  # of one frame
_OVERHEAD = 64  # about what an item takes beside its bytes

_Item = tuple[bytes, Sequence[bytes], int]


class StoppedError(Exception):
    """No more items of a stream are wanted."""

    def __init__(self, why: ActorError) -> None:
        super().__init__(why)
        self.why = why


class Sink(Protocol):
    """Takes the items of a stream to its caller, and the reply after them."""

    left: bool
    """It has ended."""

    def wake(self, stream: ServerStream) -> None:
        """Have `stream.hand` called soon, on another thread."""
        ...

    def items(self, items: actor_pb2.Items, buffers: Sequence[Buffer]) -> None:
        """Send items. It does not wait."""
        ...

    def answer(self, reply: actor_pb2.Reply, buffers: Sequence[Buffer], later: bool) -> None:
        """Send the reply."""
        ...


class ServerStream:
    """The stream of one call. All methods may be used from any thread."""

    def __init__(self, message: actor_pb2.Call, on_stop: Callable[[ActorError], object]) -> None:
        """Make the stream of a call; `on_stop` is called once when no more is wanted, and must be quick."""
        asked = message.stream
        self._seq, self._codec = message.seq, message.codec
        self._items = min(asked.window_items or WINDOW_ITEMS, _MOST_ITEMS)
        self._bytes = min(asked.window_bytes or WINDOW_BYTES, _MOST_BYTES)
        self._on_stop = on_stop
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._to: Sink | None = None
        self._kept: deque[_Item] = deque()
        self._size = 0  # of them
        self._taken = 0  # how many the caller has acknowledged: `_kept` begins after them
        self._sent = 0  # how many were handed to the sink
        self._announce = True  # the sink is to get a frame, though there are no items
        self._awake = False  # the sink is about to take items
        self._room: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None
        self.stopped: ActorError | None = None
        """Why no more is wanted."""
        self._final: Reply | None = None
        self._replied = False

    # The method's side.

    def put(self, data: bytes, buffers: Sequence[bytes], deadline: float | None) -> None:
        """Add an item, and wait until there is room for another. Raises StoppedError."""
        with self._lock:
            self._add(data, buffers)
            while self.stopped is None and self._full:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    break
                self._changed.wait(left)
            if self.stopped is None and deadline is not None and time.monotonic() >= deadline:
                self.stopped = DeadlineError("the deadline passed while the method ran", ran=True)
            if self.stopped is not None:
                raise StoppedError(self.stopped)

    async def put_async(self, data: bytes, buffers: Sequence[bytes]) -> None:
        """Do the same on an event loop. Raises StoppedError."""
        import asyncio  # see _serving.event_loop

        with self._lock:
            self._add(data, buffers)
        while True:
            with self._lock:
                if self.stopped is not None:
                    raise StoppedError(self.stopped)
                if not self._full:
                    return
                loop = asyncio.get_running_loop()
                room: asyncio.Future[None] = loop.create_future()
                self._room = (loop, room)
            await room

    def _add(self, data: bytes, buffers: Sequence[bytes]) -> None:
        if self.stopped is not None:
            raise StoppedError(self.stopped)
        size = _OVERHEAD + len(data)
        if buffers:
            size += sum(map(len, buffers))
        self._kept.append((data, buffers, size))
        self._size += size
        if not self._awake and self._to is not None:
            self._awake = True
            self._to.wake(self)

    @property
    def _full(self) -> bool:
        return len(self._kept) >= self._items or self._size >= self._bytes

    def _wake_method(self) -> None:
        self._changed.notify_all()
        room, self._room = self._room, None
        if room is not None:
            room[0].call_soon_threadsafe(_settle, room[1])

    # The caller's side.

    def hand(self) -> None:
        """Give the sink what it has not got."""
        with self._lock:
            self._awake = False
            self._hand()

    def _hand(self) -> None:
        to = self._to
        if to is None:
            return
        while self._announce or self._sent - self._taken < len(self._kept):
            items, buffers = self._frame()
            self._announce = False
            to.items(items, buffers)
        if self._final is not None and not self._replied:
            self._replied = True
            to.answer(self._final[0], self._final[1], later=False)

    def _frame(self) -> tuple[actor_pb2.Items, list[bytes]]:
        """Return as many items as go into one frame."""
        results: list[bytes] = []
        beside: list[int] = []
        buffers: list[bytes] = []
        size = 0
        start = self._sent - self._taken
        unsent = self._kept if not start else islice(self._kept, start, None)
        for data, own, weight in unsent:
            size += weight
            if len(results) == _BATCH_ITEMS or (results and size > _BATCH_BYTES):
                break
            results.append(data)
            beside.append(len(own))
            buffers.extend(own)
        items = actor_pb2.Items(seq=self._seq, first=self._sent + 1, codec=self._codec, results=results)
        if buffers:
            items.buffers.extend(beside)
            items.buffer_sizes.extend(map(len, buffers))
        self._sent += len(results)
        return items, buffers

    def ack(self, taken: int) -> None:
        """Forget items that the caller has taken."""
        with self._lock:
            self._forget(taken)

    def _forget(self, taken: int) -> None:
        taken = min(taken, self._sent)
        if taken <= self._taken:
            return
        for _ in range(taken - self._taken):
            self._size -= self._kept.popleft()[2]
        self._taken = taken
        self._wake_method()

    def attach(self, to: Sink, asked: actor_pb2.StreamRequest) -> None:
        """Go on over another sink, after the items that the caller has."""
        with self._lock:
            if self._to is to:  # as the method has just begun
                return
            self._to, self._replied = to, False
            self._sent = min(max(asked.received, self._taken), self._taken + len(self._kept))
            self._announce = not asked.received
            self._forget(asked.taken)
            self._awake = True
            to.wake(self)

    def stop(self, why: ActorError) -> None:
        """End the stream: nothing more is taken from the method."""
        with self._lock:
            if self.stopped is not None:
                return
            self.stopped = why
            self._wake_method()
        self._on_stop(why)

    # The end.

    def seal(self, reply: actor_pb2.Reply) -> int:
        """Complete the reply, and return about how many bytes the items are.

        Those of a stream that its caller gave up are dropped.
        """
        with self._lock:
            if self.stopped is None:
                self.stopped = CancelledError("the stream has ended", ran=True)
            reply.streamed, reply.items = True, self._taken + len(self._kept)
            if reply.error.code in (actor_pb2.CODE_CANCELLED, actor_pb2.CODE_MAYBE_EXECUTED):
                self._kept.clear()
                self._size, self._sent = 0, self._taken
            self._wake_method()
            return self._size

    def finish(self, reply: Reply) -> None:
        """Send the reply after all items."""
        with self._lock:
            self._final = reply
            self._hand()


def _settle(room: asyncio.Future[None]) -> None:
    if not room.done():
        room.set_result(None)


class StreamSender:
    """A thread that hands items over, so that what a method makes meanwhile goes out together."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[ServerStream | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, stream: ServerStream) -> None:
        """Have `stream.hand` called soon."""
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                    self._thread.start()
        self._queue.put(stream)

    def _run(self) -> None:
        while (stream := self._queue.get()) is not None:
            stream.hand()
            del stream

    def stop(self, seconds: float) -> None:
        """End the thread."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(seconds)


_ORDINARY: Final = frozenset({type(None), bool, int, float, str, bytes, list, dict, tuple})


def iterates(result: Any) -> bool:
    """Return whether a result is an iterator, whose items are streamed."""
    kind = type(result)
    return kind not in _ORDINARY and hasattr(kind, "__next__") and hasattr(kind, "__iter__")


def iterates_async(result: Any) -> bool:
    """Return whether a result is an asynchronous iterator."""
    kind = type(result)
    return kind not in _ORDINARY and hasattr(kind, "__anext__") and hasattr(kind, "__aiter__")
