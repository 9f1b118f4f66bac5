"""Futures: the result of a call that goes on, as its caller sees it.

The call on its way is left to `_calling.ongoing`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fray.cluster.context import scoped_guard
from fray.rpc._calling import selfcall as _selfcall
from fray.rpc._calling.ongoing import OngoingCall, end_stuck
from fray.rpc._calling.result import read_result
from fray.rpc._transport import background as _background
from fray.rpc._transport import raised as _raised
from fray.rpc._transport.wire import payload_of
from fray.rpc.errors import ActorError, CancelledError, cancelled
from fray.rpc.stream import ActorStream, AwaitedStream, stream_of

if TYPE_CHECKING:
    from fray._pb import actor_pb2
    from fray.rpc._calling.inbox import Arrival
    from fray.rpc._calling.ongoing import CallRoute
    from fray.rpc._transport.wire import Buffer
    from fray.rpc.options import RpcOptions

T = TypeVar("T")

_WAKE = 0.5  # seconds; a thread that is being stopped notices only between two waits


class ActorFuture(OngoingCall[T]):
    """The result of a call that goes on.

    It is a concurrent.futures.Future, which concurrent.futures.wait and asyncio.wrap_future take, and can be
    awaited in asyncio. As an argument of another call it stands for its result.
    """

    __slots__ = ("_stream",)

    def __init__(
        self, route: CallRoute, call: actor_pb2.Call, buffers: Sequence[Buffer], options: RpcOptions
    ) -> None:
        """Use a handle."""
        super().__init__(route, call, buffers, options)
        self._stream: weakref.ref[ActorStream[Any]] | None = None

    # For users

    def result(self, timeout: float | None = None) -> T:
        """Return what the method returned; of one that is a generator an ActorStream, once it has begun.

        Args:
            timeout: The longest wait in seconds; None: without end. The call goes on when it is over.

        Raises:
            TimeoutError: the wait was over.
            ActorError: the call failed; the subclass is the kind of failure.
        """
        if not self._finished and self.inbox is None:
            self._wait(timeout)
        if self.inbox is not None:
            return cast("T", self._items())
        if self._error is not None:
            raise self._caught(self._error)
        return self._decoded()

    def exception(self, timeout: float | None = None) -> ActorError | None:
        """Return the error of the call, None if it returned.

        Args:
            timeout: The longest wait in seconds; None: without end.

        Raises:
            TimeoutError: the wait was over before the call.
        """
        if not self._finished and self.inbox is None:
            self._wait(timeout)
        if self._error is None and self.inbox is None:
            try:
                self._decoded()
            except ActorError as err:
                return err
        return None if self._error is None else self._caught(self._error)

    def _caught(self, error: ActorError) -> ActorError:
        """Return the error as the caller gets it: of the class of what the method raised, if possible."""
        if error.packed is not None:
            self._error = error = _raised.caught(error, self.route.on_actor)
        return error

    def cancelled(self) -> bool:
        """Return whether it has ended by being cancelled."""
        return self._finished and isinstance(self._error, CancelledError)

    def running(self) -> bool:
        """Return whether it was sent and has not ended."""
        return self.sent is not None and not self._finished

    def cancel(self) -> bool:
        """Ask for the call not to begin, or to end if its language can; False if it has ended already.

        One that has not been sent ends at once. Else its server answers, with a result if that was too late.
        """
        if self._finished:
            return False
        self.cancelled_by = True
        channel = self.channel
        if self.inbox is not None or channel is None or not channel.cancel(self):
            self.give_up(cancelled)
        return True

    def add_done_callback(self, callback: Callable[[ActorFuture[T]], object]) -> None:
        """Call `callback` with the future when it has ended; at once if it has.

        Callbacks run one after the other on a thread of their own. Exceptions are logged.
        """

        def queue() -> None:
            _background.callbacks().put(lambda: callback(self))

        self.on_done(queue)

    def __await__(self) -> Generator[Any, None, T]:
        """Wait in asyncio. Cancelling the task that waits cancels the call."""
        import asyncio

        if self._finished or self.inbox is not None:
            return self.result()
        loop = asyncio.get_running_loop()
        changed: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not changed.done():
                changed.set_result(None)

        def finished() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(wake)

        self.on_answer(finished)
        if self.later:
            loop.call_soon(self._flush)  # once for all that are awaited in this turn
        suspects = list(self.suspects())
        if suspects:
            _selfcall.check_later(
                loop, lambda: self._finished or self.inbox is not None or end_stuck(suspects)
            )
        try:
            yield from changed
        except asyncio.CancelledError:
            self.cancel()
            raise
        return self.result()

    def __iter__(self) -> ActorStream[Any]:
        """Iterate over the items of a method that is a generator, see ActorStream.

        Raises:
            TypeError: the method is none.
            ActorError: as `result` does.
        """
        return stream_of(self.result())

    def __aiter__(self) -> AwaitedStream[Any]:
        """Do the same in asyncio."""
        return AwaitedStream(self)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a future stays in its process; pass it as an argument of its own, or its result")

    def __repr__(self) -> str:
        state = "pending" if not self._finished else "failed" if self._error else "done"
        return f"<ActorFuture {self.route.name}.{self.call.method} {state}>"

    # For routes and channels

    def _wait(self, timeout: float | None) -> None:
        if self.later:
            self._flush()
        limit = None if timeout is None else monotonic() + timeout
        suspects = list(self.suspects())
        if limit is None and not suspects and scoped_guard() is None:
            self._waiter.acquire()
            with suppress(RuntimeError):  # see Promise._begin
                self._waiter.release()
            return
        wake = _selfcall.CHECK_INTERVAL if suspects else _WAKE
        while True:
            left = wake if limit is None else min(wake, max(0.0, limit - monotonic()))
            if self._ends_within(left):
                return
            if end_stuck(suspects) and self._finished:
                return
            if limit is not None and monotonic() >= limit:
                raise TimeoutError(
                    f"{self.route.name}.{self.call.method} has not returned within {timeout} s"
                )

    def wait_out(self) -> T:
        """Return the result of a call that only the caller has: there is no timer for its deadline."""
        try:
            channel = self.channel
            if channel is not None and scoped_guard() is None and _selfcall.suspect(self.call.method) is None:
                channel.attend(self, inf if self.deadline is None else self.deadline - monotonic())
            if not self._finished and self.inbox is None:
                self._wait(None if self.deadline is None else max(0.0, self.deadline - monotonic()))
        except TimeoutError:
            self.expire()
        except BaseException:  # KeyboardInterrupt, or a job that is stopped
            self.cancel()
            raise
        if self.inbox is not None and self.deadline is not None:
            _background.deadlines().add(self.deadline, self)  # from here on no thread waits for all of it
        return self.result()

    def _items(self) -> ActorStream[Any]:
        """Return the stream, always the same one."""
        stream = None if self._stream is None else self._stream()
        if stream is None:
            if self._stream is not None:
                left = CancelledError("the stream was left before", ran=True)
                raise left.at(self.route.name, self.call.method)
            stream = ActorStream(self)
            self._stream = weakref.ref(stream)
        return stream

    # For streams

    def stream_error(self) -> ActorError | None:
        """Return why the call ended, None if the method came to its end."""
        return None if self._error is None else self._caught(self._error)

    def acknowledge(self, taken: int) -> None:
        """Report to the server how many items were taken."""
        channel = self.channel
        if channel is not None:
            channel.acknowledge(self, taken)

    def leave(self) -> None:
        """Cancel the call, if it has not ended."""
        self.cancelled_by = True
        self.give_up(cancelled)

    def read_item(self, item: Arrival) -> Any:
        """Decode an item. Raises ActorError."""
        return self._read(*item)

    def _decoded(self) -> T:
        value = self._value
        if value is None:
            value = self._value = [self._decode()]
            self._answer = None
        return value[0]

    def _decode(self) -> T:
        answer = self._answer
        if answer is None or answer.reply is None:  # another thread was quicker
            if self._error is not None:
                raise self._error
            return cast("list[T]", self._value)[0]
        reply = answer.reply
        try:
            return cast(
                "T",
                self._read(
                    reply.codec, payload_of(answer.buffers, reply.result), answer.buffers, answer.pickles
                ),
            )
        except ActorError as err:
            self._error = err
        answer.buffers = ()  # the error's traceback refers to it
        self._answer = None
        raise self._error

    def _read(self, codec: int, data: Buffer, buffers: Sequence[memoryview], pickles: bool) -> Any:
        """Decode a result. Raises ActorError."""
        try:
            return read_result(codec, data, buffers, self.route.settings, self.route.on_actor, pickles)
        except ActorError as err:
            data, buffers = b"", ()  # the traceback refers to them
            raise err.at(self.route.name, self.call.method) from err.__cause__
