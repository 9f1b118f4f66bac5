"""The lock of a LocalCluster."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager

from fray.cluster.context import scoped_guard


class ClusterLock(threading.Condition):
    """A condition whose holders are not stopped while they hold it: `with lock.held`.

    A stop is an exception that may be raised between any two instructions of a job's thread. One between
    taking the lock and the `with` statement would leave it locked for ever. What handlers of signals raise
    comes in the main thread alone, which is of no job: see fray._locks.
    """

    def __init__(self) -> None:
        self._plain = threading.RLock()
        super().__init__(self._plain)

    @property
    def held(self) -> AbstractContextManager[object]:
        """What a `with` statement takes, and releases at its end."""
        return self._plain if scoped_guard() is None else self

    def __enter__(self) -> bool:
        """Take the lock."""
        guard = scoped_guard()
        if guard is not None:
            guard.enter()
        return super().__enter__()

    def __exit__(self, *args: object) -> None:
        """Release the lock, and raise a stop that came meanwhile."""
        super().__exit__(None, None, None)
        guard = scoped_guard()
        if guard is not None:
            guard.leave()
