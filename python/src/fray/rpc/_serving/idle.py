"""Ends the threads of actors that have had nothing to do for the longest time, where there are many.

An actor keeps its thread from one call to the next, which saves time. A process with thousands of actors that
are called now and then does not keep a thread for each of them: the thread that has been idle for the longest
time leaves, and the actor's next call starts another one.
"""

from __future__ import annotations

import itertools
import threading
from typing import Final, Protocol

from fray.rpc._transport import fork as _fork

MOST_IDLE: Final = 64
"""Threads of actors that wait for a call at most."""


class Leave:
    """What a queue gets instead of a call for one of its threads to leave, unless calls wait."""


LEAVE: Final = Leave()


class Queue(Protocol):
    """Where a thread waits for calls."""

    waiting: list[int]
    """Numbers of its threads that wait and were not asked to leave; kept by IdleThreads."""

    def dismiss(self) -> None:
        """Put LEAVE behind the calls that wait."""
        ...


class IdleThreads:
    """The threads that wait for calls, in the order in which they began to wait."""

    def __init__(self, most: int = MOST_IDLE) -> None:
        self._most = most
        self.forget_parent()
        _fork.begins_anew(self)

    def forget_parent(self) -> None:
        """Begin anew, without threads."""
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._queues: dict[int, Queue] = {}  # by number, the longest idle first

    def enter(self, queue: Queue) -> None:
        """Note that a thread of a queue begins to wait; the one that has waited longest may leave for it."""
        longest: Queue | None = None
        with self._lock:
            number = next(self._numbers)
            self._queues[number] = queue
            queue.waiting.append(number)
            if len(self._queues) > self._most:
                first = next(iter(self._queues))
                longest = self._queues.pop(first)
                longest.waiting.remove(first)
        if longest is not None:
            longest.dismiss()

    def leave(self, queue: Queue) -> None:
        """Note that a thread of a queue got a call, which may be one that was asked to leave just now."""
        with self._lock:
            if queue.waiting:
                self._queues.pop(queue.waiting.pop(), None)

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._queues)


idle_threads: Final = IdleThreads()
"""Those of all servers in this process."""
