"""The lock of a LocalCluster."""

from __future__ import annotations

import threading

from fray.cluster.context import scoped_guard


class ClusterLock(threading.Condition):
    """A condition whose holders are not stopped while they hold it.

    A stop is an exception that may be raised between any two instructions of a job's thread. One between
    taking the lock and the `with` statement would leave it locked for ever.
    """

    def __enter__(self) -> bool:
        """Take the lock."""
        guard = scoped_guard()
        if guard is not None:
            guard.enter()
        return super().__enter__()

    def __exit__(self, *args: object) -> None:
        """Let go of the lock, and be stopped if that was to be meanwhile."""
        super().__exit__(None, None, None)
        guard = scoped_guard()
        if guard is not None:
            guard.leave()
