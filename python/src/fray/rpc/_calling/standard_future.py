"""Futures that the standard library takes: concurrent.futures.wait and as_completed, asyncio.wrap_future.

What a future ends with is left to `future`.
"""

from __future__ import annotations

import concurrent.futures
import threading
from concurrent.futures import _base
from typing import TYPE_CHECKING, Any, TypeVar

from fray.rpc._calling.promise import Promise

T = TypeVar("T")


class _Shown:
    """A future as the standard library sees it, which is made when that first looks."""

    __slots__ = ("lock", "state", "waiters")

    def __init__(self) -> None:
        self.lock = threading.RLock()  # of C, see fray._locks; nothing waits for changes by it
        self.state: str = _base.PENDING
        self.waiters: list[Any] = []


class StandardFuture(Promise, concurrent.futures.Future[T]):
    """A Promise that is a concurrent.futures.Future, without the cost of one.

    The library's functions use private attributes of a future: its lock, its waiters, and its state, which
    changes under the lock only. Here these are made when they are first used.
    """

    __slots__ = ("_shown",)

    def __init__(self) -> None:
        super().__init__()  # of Promise, which does not call that of Future
        self._shown: _Shown | None = None

    if not TYPE_CHECKING:  # to which these are the attributes that a Future has

        @property
        def _condition(self) -> Any:
            return self._show().lock

        @property
        def _waiters(self) -> Any:
            return self._show().waiters

        @property
        def _state(self) -> Any:
            return self._show().state

        @property
        def _result(self) -> Any:
            return self.result() if self.done() and self.exception() is None else None

        @property
        def _exception(self) -> Any:
            return self.exception() if self.done() and not self.cancelled() else None

    def _show(self) -> _Shown:
        shown = self._shown
        if shown is None:
            with _showing:
                new = self._shown is None
                shown = self._shown = self._shown or _Shown()
            if new:
                self.on_done(self._publish)
        return shown

    def _publish(self) -> None:
        """Show that it has ended."""
        shown = self._show()
        with shown.lock:
            cancelled = self.cancelled()
            shown.state = _base.CANCELLED_AND_NOTIFIED if cancelled else _base.FINISHED
            for waiter in shown.waiters:
                if cancelled:
                    waiter.add_cancelled(self)
                elif self.failed:
                    waiter.add_exception(self)
                else:
                    waiter.add_result(self)

    @property
    def failed(self) -> bool:
        """Whether it ended with an error; that a result cannot be read is not known yet."""
        raise NotImplementedError


_showing = threading.Lock()
