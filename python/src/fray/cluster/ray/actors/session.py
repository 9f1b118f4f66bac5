"""The session of this process at a Ray cluster, with which the actors end that it created."""

from __future__ import annotations

import atexit
import contextlib
import threading
import uuid

from fray.cluster.errors import ClusterError
from fray.cluster.ray.calls import Calls

_LAST = 5.0  # seconds for which a program that ends waits; later the registry finds out itself
_RENEW = 5.0  # seconds; the registry ends a session after 30 s without a call


class RaySession:
    """Held until the process ends. After a SIGKILL the registry ends what belongs to it, a while later."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self.id = uuid.uuid4().hex
        self._over = threading.Event()
        threading.Thread(target=self._hold, name="fray session", daemon=True).start()
        atexit.register(self.close)

    @property
    def busy(self) -> bool:
        """See Attachment."""
        return False

    def _hold(self) -> None:
        while not self._over.is_set() and self._connected():
            with contextlib.suppress(ClusterError):
                self._calls.call("actors", "hold", self.id)
            self._over.wait(_RENEW)

    def _connected(self) -> bool:
        """Return whether this process is connected to Ray still: calls wait for a registry that is away."""
        import ray

        return bool(ray.is_initialized())

    def close(self) -> None:
        """End it, and what belongs to it."""
        atexit.unregister(self.close)
        if self._over.is_set():
            return
        self._over.set()
        if not self._connected():
            return
        with contextlib.suppress(ClusterError):
            self._calls.call("actors", "end_session", self.id, within=_LAST)
