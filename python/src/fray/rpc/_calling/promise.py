"""The end of a call on the caller's side: it comes once, and threads and functions wait for it.

What the end is, a result or an error, is left to `future`.
"""

from __future__ import annotations

import threading
from _thread import allocate_lock
from collections.abc import Callable
from contextlib import suppress


class Promise:
    """Ends once: `claim` decides which thread ends it, and `end` makes that known."""

    __slots__ = ("_begun", "_callbacks", "_claim", "_early", "_finished", "_waiter")

    def __init__(self) -> None:
        self._waiter = allocate_lock()  # held until the end
        self._waiter.acquire()
        self._claim = allocate_lock()  # taken by the thread that ends it
        self._finished = self._begun = False
        self._early: list[Callable[[], None]] | None = None
        self._callbacks: list[Callable[[], None]] | None = None

    def done(self) -> bool:
        """Return whether it has ended, in whatever way."""
        return self._finished

    @property
    def claimed(self) -> bool:
        """Whether it has ended, or is about to."""
        return self._claim.locked()

    def on_done(self, callback: Callable[[], None]) -> None:
        """Call something quick when it has ended, on whatever thread that happens; at once if it has."""
        if self._callbacks is None:
            with _callbacks_lock:
                if self._callbacks is None:
                    self._callbacks = []
        self._callbacks.append(callback)
        if self._finished:
            self._call_back()

    def off_done(self, callback: Callable[[], None]) -> None:
        """Take back what `on_done` was given, if it was not called."""
        with suppress(ValueError):
            (self._callbacks or []).remove(callback)

    def on_answer(self, callback: Callable[[], None]) -> None:
        """Do as on_done does, and also when a stream begins: `callback` may be called twice."""
        if self._early is None:
            with _callbacks_lock:
                if self._early is None:
                    self._early = []
        self._early.append(callback)
        if self._begun:
            callback()
        self.on_done(callback)

    def _end(self) -> None:
        """Make known that it has ended, by the thread that claimed it."""
        self._finished = True
        if not self._begun:
            self._waiter.release()
        if self._callbacks:
            self._call_back()

    def _ends_within(self, seconds: float) -> bool:
        """Wait for the end; return whether it has come."""
        if not self._waiter.acquire(timeout=seconds):
            return False
        with suppress(RuntimeError):  # see _begin
            self._waiter.release()
        return True

    def _begin(self) -> None:
        """End the waits and call what waits for an answer, though the end is still to come. Do so once."""
        self._begun = True
        with suppress(RuntimeError):  # it ends just now
            self._waiter.release()
        for callback in self._early or ():
            callback()

    def _call_back(self) -> None:
        callbacks = self._callbacks
        while callbacks:
            try:
                callback = callbacks.pop(0)
            except IndexError:
                return  # another thread took the last
            callback()


_callbacks_lock = threading.Lock()
