"""Futures: the result of a call that goes on, as its caller sees it.

The call on its way is left to `_ongoing`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from math import inf
from time import monotonic
from typing import Any, TypeVar, cast

from fray.cluster.context import scoped_guard
from fray.rpc import _background, _selfcall
from fray.rpc._ongoing import OngoingCall, end_stuck
from fray.rpc._result import read_result
from fray.rpc.errors import ActorError, CancelledError, cancelled

T = TypeVar("T")

_WAKE = 0.5  # seconds; a thread that is being stopped notices only between two waits


class ActorFuture(OngoingCall[T]):
    """The result of a call that goes on.

    It is a concurrent.futures.Future, which concurrent.futures.wait and asyncio.wrap_future take, and can be
    awaited in asyncio. As an argument of another call it stands for its result.
    """

    __slots__ = ()

    # For users

    def result(self, timeout: float | None = None) -> T:
        """Return what the method returned.

        Args:
            timeout: The longest wait in seconds; None: without end. The call goes on when it is over.

        Raises:
            TimeoutError: the wait was over.
            ActorError: the call failed; the subclass is the kind of failure.
        """
        if not self._finished:
            self._wait(timeout)
        if self._error is not None:
            raise self._error
        return self._decoded()

    def exception(self, timeout: float | None = None) -> ActorError | None:
        """Return the error of the call, None if it returned.

        Args:
            timeout: The longest wait in seconds; None: without end.

        Raises:
            TimeoutError: the wait was over before the call.
        """
        if not self._finished:
            self._wait(timeout)
        if self._error is None:
            try:
                self._decoded()
            except ActorError as err:
                return err
        return self._error

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
        if channel is None or not channel.cancel(self):
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

        if self._finished:
            return self.result()
        loop = asyncio.get_running_loop()
        changed: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not changed.done():
                changed.set_result(None)

        def finished() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(wake)

        self.on_done(finished)
        if self.later:
            loop.call_soon(self._flush)  # once for all that are awaited in this turn
        suspects = list(self.suspects())
        if suspects:
            _selfcall.check_later(loop, lambda: self._finished or end_stuck(suspects))
        try:
            yield from changed
        except asyncio.CancelledError:
            self.cancel()
            raise
        return self.result()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a future stays in its process; pass its result, or make it an argument of its own")

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
            if not self._finished:
                self._wait(None if self.deadline is None else max(0.0, self.deadline - monotonic()))
        except TimeoutError:
            self.expire()
        except BaseException:  # KeyboardInterrupt, or a job that is stopped
            self.cancel()
            raise
        return self.result()

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
        route = self.route
        try:
            return cast("T", read_result(answer, route.settings, route.on_actor))
        except ActorError as err:
            self._error = err.at(route.name, self.call.method)
        self._answer = None
        raise self._error
