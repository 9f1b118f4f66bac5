"""Calls to the registry: of supervisors, and of clients."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fray.cluster.errors import ClusterUnavailableError
from fray.cluster.ray.host import payload_of, value_of

_PAUSE, _LONGEST = 0.1, 2.0  # seconds between two tries
_MARGIN = 15.0  # seconds that a call may take beyond those for which it waits


class Calls:
    """Calls methods of the registry, again where Ray restarts it: they may all be made again.

    `find` returns the handle of the registry, which raises ValueError where there is none yet.
    """

    def __init__(self, find: Callable[[], Any], target: str, timeout: float) -> None:
        self._find, self._target, self._timeout = find, target, timeout
        self._handle: Any = None

    def handle(self) -> Any:
        """Return the handle of the registry's Ray actor."""
        if self._handle is None:
            self._handle = self._find()
        return self._handle

    def call(self, method: str, *args: Any, waits: float = 0.0, within: float | None = None) -> Any:
        """Return what a method returned, which may wait for `waits` seconds itself.

        `within` are the seconds for which it is tried, None: those of this object.

        Raises:
            ClusterUnavailableError: the registry did not answer in time.
        """
        import ray

        began, tries, payload = time.monotonic(), 0, payload_of(*args)
        patience, margin = (self._timeout, _MARGIN) if within is None else (within, 0.0)
        while True:
            tries += 1
            try:
                if self._handle is None:
                    self._handle = self._find()
                reference = self._handle.call.remote(method, payload)
                reply = ray.get(reference, timeout=patience + waits + margin)
                break
            except (
                ray.exceptions.RayActorError,
                ray.exceptions.GetTimeoutError,
                ray.exceptions.RaySystemError,
                ray.exceptions.RpcError,
                ConnectionError,
                ValueError,
            ) as err:
                self._handle = None
                elapsed = time.monotonic() - began
                if elapsed >= patience:
                    last = str(err).strip().partition("\n")[0]
                    raise ClusterUnavailableError(self._target, tries, elapsed, last) from err
                time.sleep(min(_LONGEST, _PAUSE * 2 ** min(tries - 1, 8)))
        return value_of(reply)
