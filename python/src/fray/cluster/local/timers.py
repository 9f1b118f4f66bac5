"""What a LocalCluster does later."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable
from functools import partial

from fray.cluster.local.lock import ClusterLock


class Timers:
    """Calls functions later, with the cluster's lock held. Callers of these methods hold it, too."""

    def __init__(self, lock: ClusterLock) -> None:
        self._lock = lock
        self._set: dict[Hashable, tuple[threading.Timer, Callable[[], object]]] = {}

    def set(self, key: Hashable, seconds: float, function: Callable[..., object], *args: object) -> None:
        """Call a function after so many seconds, in place of the one that was set under this key."""
        self.cancel(key)
        if seconds == math.inf:
            return
        timer = threading.Timer(seconds, self._ring, [key])
        timer.daemon, timer.name = True, "fray timer"
        self._set[key] = timer, partial(function, *args)
        timer.start()

    def _ring(self, key: Hashable) -> None:
        with self._lock.held:
            found = self._set.get(key)
            # Unless it was cancelled or set anew while this waited for the lock.
            if found is not None and found[0] is threading.current_thread():
                del self._set[key]
                found[1]()

    def cancel(self, key: Hashable) -> None:
        """Do not call what was set under a key, if anything was."""
        found = self._set.pop(key, None)
        if found is not None:
            found[0].cancel()

    def ring_all(self) -> None:
        """Call what was set at once."""
        while self._set:
            _, (timer, call) = self._set.popitem()
            timer.cancel()
            call()
