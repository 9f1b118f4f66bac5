"""How many bytes the large messages of a process may take at once; others wait."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Final

DEFAULT_MEMORY: Final = 2 << 30
"""Bytes, where no other limit is set."""


class Memory:
    """What is larger than all of it gets it alone. All methods may be used from any thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._waiting: deque[Reservation] = deque()
        self.used = 0
        """Bytes that are reserved."""

    def reserve(self, size: int, granted: Callable[[], object]) -> Reservation:
        """Ask for memory; `granted` is called once it is there, perhaps before this returns.

        It must not wait. It is not called after the reservation was released.
        """
        reservation = Reservation(self, size, granted)
        with self._lock:
            self._waiting.append(reservation)
        self._grant()
        return reservation

    def _grant(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    return
                first = self._waiting[0]
                if self.used and self.used + first.size > self._limit:
                    return
                self._waiting.popleft()
                self.used += first.size
                first.held = True
            first.granted()

    def release(self, reservation: Reservation) -> None:
        """Give memory back, or end the wait for it."""
        with self._lock:
            if reservation.held:
                reservation.held = False
                self.used -= reservation.size
            elif reservation in self._waiting:
                self._waiting.remove(reservation)
            else:
                return
        self._grant()


class Reservation:
    """The share of one message."""

    __slots__ = ("_of", "granted", "held", "size")

    def __init__(self, of: Memory, size: int, granted: Callable[[], object]) -> None:
        self._of, self.size, self.granted = of, size, granted
        self.held = False

    def release(self) -> None:
        """Give it back. Releasing it again changes nothing."""
        self._of.release(self)


def of_process(limit: int) -> Memory:
    """Return the memory for the results that clients of this process receive, of those with such a limit."""
    return _of_process(os.getpid(), limit)


@lru_cache(maxsize=8)
def _of_process(_pid: int, limit: int) -> Memory:
    return Memory(limit)
