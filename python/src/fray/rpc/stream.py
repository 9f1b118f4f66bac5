"""Streams: the results of a method that is a generator, one after the other, as its caller sees them.

The call itself is left to futures.
"""

from __future__ import annotations

import atexit
import weakref
from _thread import allocate_lock
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, cast

from fray.cluster.context import scoped_guard
from fray.rpc._transport import background as _background

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fray.rpc._calling.inbox import Arrival, Inbox
    from fray.rpc.errors import ActorError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_LAST = 1.0  # seconds that the end of the process waits for streams that were left just before
_WAKE = 0.5  # seconds; a thread that is being stopped notices only between two waits


class StreamedCall(Protocol[T_co]):
    """A call that is answered by a stream, as the stream uses it."""

    inbox: Inbox | None

    def done(self) -> bool:
        """Return whether the call has ended. All of its items have arrived then."""
        ...

    def stream_error(self) -> ActorError | None:
        """Return why the call ended, None if the method came to its end."""
        ...

    def read_item(self, item: Arrival) -> T_co:
        """Decode an item. Raises ActorError."""
        ...

    def acknowledge(self, taken: int) -> None:
        """Report to the server how many items were taken."""
        ...

    def leave(self) -> None:
        """Cancel the call, if it has not ended. It may be called in a finalizer."""
        ...


class ActorStream(Generic[T]):
    """Iterates over the items of a stream, also asynchronously.

        for item in handle.generate(3): ...
        async for item in handle.generate.remote(3): ...

    The generator is at most the option `stream_window` items ahead. It is cancelled (GeneratorExit is raised
    in it) when the stream is closed or nothing refers to it any more, as when a loop is left. An error is the
    last of a stream: it is raised after all items that came before it.
    """

    def __init__(self, call: StreamedCall[T]) -> None:
        """Call a method that is a generator."""
        assert call.inbox is not None
        self._call, self._inbox = call, call.inbox
        self._closed = False
        _background.finalizers()  # its thread begins now, and not in a finalizer
        _live.add(self)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        """Return the next item, and wait for it.

        Raises:
            StopIteration: the generator has come to its end, or the stream was closed.
            ActorError: the call failed; the subclass is the kind of failure.
        """
        while True:
            found, value = self._advance()
            if found:
                return cast("T", value)
            if self._closed:
                raise StopIteration
            self._wait()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next item, and await it. Raises as __next__ does, but StopAsyncIteration."""
        import asyncio

        loop = asyncio.get_running_loop()
        while True:
            found, value = self._advance()
            if found:
                return cast("T", value)
            if self._closed:
                raise StopAsyncIteration
            changed: asyncio.Future[None] = loop.create_future()
            wake = partial(_wake_later, loop, changed)
            if self._watch(wake):
                try:
                    await changed
                finally:
                    self._inbox.off_change(wake)

    def close(self) -> None:
        """Cancel the generator, unless it has ended. Iterating ends."""
        self._closed = True
        self._call.leave()
        self._inbox.drop()

    async def aclose(self) -> None:
        """Do the same; it does not wait."""
        self.close()

    def __enter__(self) -> Self:
        """Return the stream, which is closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def __del__(self) -> None:
        if not self._closed and not self._call.done():
            _background.finalizers().put(self._call.leave)

    def _advance(self) -> tuple[bool, Any]:
        """Return whether there was an item, and the item. At the end close, and raise the error if any."""
        ended = self._call.done()  # before the last look for items
        item, ack = self._inbox.take()
        if item is not None:
            if ack:
                self._call.acknowledge(ack)
            try:
                return True, self._call.read_item(item)
            except BaseException:
                self.close()
                raise
        if ended and not self._closed:
            self._closed = True
            error = self._call.stream_error()
            if error is not None:
                raise error
        return False, None

    def _watch(self, callback: Callable[[], object]) -> bool:
        """Have `callback` called when something has changed; False: that is so already."""
        if not self._inbox.on_change(callback):
            return False
        if self._call.done() or self._closed:
            self._inbox.wake()
        return True

    def _wait(self) -> None:
        """Wait until something may have changed."""
        changed = allocate_lock()
        changed.acquire()
        wake = partial(_release, changed)
        if not self._watch(wake):
            return
        try:
            changed.acquire(timeout=-1 if scoped_guard() is None else _WAKE)
        finally:
            self._inbox.off_change(wake)


_live: weakref.WeakSet[ActorStream[Any]] = weakref.WeakSet()


def _leave_all() -> None:
    """Cancel the generators that this process iterates over, as it ends."""
    for stream in list(_live):
        with suppress(Exception):
            stream.close()
    with suppress(RuntimeError):  # without their thread so far none can be started now, and none is needed
        _background.finalizers().flush(_LAST)


atexit.register(_leave_all)


class AwaitedStream(Generic[T]):
    """Iterates asynchronously over the items of a call that goes on."""

    def __init__(self, future: Awaitable[Any]) -> None:
        self._future = future
        self._stream: ActorStream[T] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next item, and await it. Raises as ActorStream does."""
        if self._stream is None:
            self._stream = stream_of(await self._future)
        return await self._stream.__anext__()


def stream_of(result: Any) -> ActorStream[Any]:
    """Return a result that is a stream. Raises TypeError."""
    if isinstance(result, ActorStream):
        return result
    raise TypeError(f"the method returned {type(result).__name__} and is no generator; use result() or await")


def _release(lock: Any) -> None:
    with suppress(RuntimeError):
        lock.release()


def _wake_later(loop: Any, changed: Any) -> None:
    def wake() -> None:
        if not changed.done():
            changed.set_result(None)

    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(wake)
