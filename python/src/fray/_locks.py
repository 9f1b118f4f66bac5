"""Conditions and threads whose locks a handler of a signal that raises cannot leave held.

CPython runs handlers of signals in the main thread only, and there only where a function begins, after a call
into C has returned, and where a loop goes round. So

    with lock:

is safe where the lock is one of C, as threading.Lock and threading.RLock are: there is no such place between
taking it and the body, nor between the body and letting go of it. A lock whose __enter__ or __exit__ are
written in Python, as those of threading.Condition, Event and Semaphore, is not: a handler that raises in them
leaves it held for ever. Nor is `lock.acquire()` before a `try`, or a `finally` that calls something before
`lock.release()`. In the main thread a lock is therefore taken by a `with` statement of a lock of C alone, and
fray._latch is there for what is set once.

Just after a condition released its lock to wait, what a handler raises comes out as the context of a
RuntimeError.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from fray._latch import Latch


class Changes:
    """A lock, `lock`, and a condition, whose methods are called while that is held."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        condition = threading.Condition(self.lock)
        self.notify, self.notify_all = condition.notify, condition.notify_all
        self.wait, self.wait_for = condition.wait, condition.wait_for


class Worker(threading.Thread):
    """A thread that goes on though its starter is interrupted while it waits for the beginning.

    A Thread sets an Event when it begins; an interrupted waiter may leave the lock of that Event held.
    """

    def __init__(self, target: Callable[[], object], name: str) -> None:
        super().__init__(target=target, name=name, daemon=True)
        vars(self)["_started"] = _Begun()


class _Begun(Latch):
    """Stands for the Event."""

    def _at_fork_reinit(self) -> None:
        vars(self).update(vars(_Begun()))

    def clear(self) -> None:
        """Begin anew, as after a fork."""
        self._at_fork_reinit()
