"""Threads that a process has one of: for callbacks of futures, and for deadlines.

What a deadline or a callback means is left to futures.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import threading
import weakref
from collections.abc import Callable
from functools import lru_cache
from queue import SimpleQueue
from time import monotonic
from typing import Protocol

from fray._locks import Changes

_log = logging.getLogger("fray.rpc")


class Expiring(Protocol):
    """A call with a deadline."""

    def done(self) -> bool:
        """Return whether the deadline does not matter any more."""
        ...

    def expire(self) -> None:
        """End, as the deadline has passed."""
        ...


class Deadlines:
    """Ends calls whose deadline passes. It keeps none of them alive."""

    def __init__(self) -> None:
        self._changed = Changes()
        self._heap: list[tuple[float, int, weakref.ref[Expiring]]] = []
        self._numbers = itertools.count()
        threading.Thread(target=self._run, name="fray-deadlines", daemon=True).start()

    def add(self, when: float, what: Expiring) -> None:
        """End it at a time of time.monotonic, unless it is done or gone by then."""
        with self._changed.lock:
            heapq.heappush(self._heap, (when, next(self._numbers), weakref.ref(what)))
            if self._heap[0][0] >= when:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed.lock:
                while not self._heap or self._heap[0][0] > monotonic():
                    self._changed.wait(self._heap[0][0] - monotonic() if self._heap else None)
                what = heapq.heappop(self._heap)[2]()
            if what is not None and not what.done():
                what.expire()
            del what


class Callbacks:
    """Calls functions, one after the other."""

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self.put = self._queue.put
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def flush(self, seconds: float) -> None:
        """Wait until the functions that were put were called, for at most so long."""
        called = threading.Lock()
        called.acquire()
        self.put(called.release)
        called.acquire(timeout=seconds)

    def _run(self) -> None:
        while True:
            callback = self._queue.get()
            try:
                callback()
            except Exception:
                _log.exception("a callback of a future failed")
            del callback


def deadlines() -> Deadlines:
    """Return those of this process."""
    return _deadlines_of(os.getpid())


def callbacks() -> Callbacks:
    """Return those of this process."""
    return _callbacks_of(os.getpid())


def finalizers() -> Callbacks:
    """Return those of this process which finish what finalizers begin: these may not wait for a lock."""
    return _finalizers_of(os.getpid())


# Threads do not live on in a process that was forked, so that has its own.
@lru_cache(maxsize=1)
def _deadlines_of(_pid: int) -> Deadlines:
    return Deadlines()


@lru_cache(maxsize=1)
def _callbacks_of(_pid: int) -> Callbacks:
    return Callbacks("fray-callbacks")


@lru_cache(maxsize=1)
def _finalizers_of(_pid: int) -> Callbacks:
    return Callbacks("fray-finalizers")
