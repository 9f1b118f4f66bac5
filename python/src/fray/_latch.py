"""What a main thread waits for whose signal handlers set it, or raise."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Final

_TICK: Final = 0.5  # seconds after which a signal is noticed that came just before the wait began


class Latch:
    """Is set once, also by a signal handler, and can be waited for.

    A handler runs between two instructions of the main thread. threading.Event has a lock that is written in
    Python: a handler that sets the event while the main thread holds it waits for ever, and one that raises
    there leaves it locked. This lock is taken by C code, and every wait for it has a timeout.
    """

    def __init__(self) -> None:
        self._set = False
        self._unset = threading.Lock()  # held until then
        self._unset.acquire()

    def set(self) -> None:
        """End all waits, present and future ones."""
        self._set = True
        self._pass_on()

    def is_set(self) -> bool:
        """Return whether it was set."""
        return self._set

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is set, for at most so long; None: without end. Return whether it is."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self._set:
            left = _TICK if until is None else min(_TICK, until - time.monotonic())
            if left <= 0:
                break
            if self._unset.acquire(timeout=left):
                self._pass_on()
        return self._set

    def _pass_on(self) -> None:
        """Release the lock for the next waiter. After an interruption waiters notice at their tick."""
        with contextlib.suppress(RuntimeError):  # another thread released it just now
            self._unset.release()
