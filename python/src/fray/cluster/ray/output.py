"""What a task writes, on its way to the registry."""

from __future__ import annotations

import collections
import contextlib
import threading

from fray.cluster.errors import ClusterError
from fray.cluster.ray.calls import Calls
from fray.cluster.types import JobId

_PAUSE = 0.2  # seconds between two shipments
_PART = 256 << 10  # bytes of one
_MOST = 16 << 20  # bytes that wait; the oldest are dropped beyond that
_TAIL_LINES, _TAIL_BYTES = 20, 8 << 10


class Shipping:
    """Sends what is written, in order and soon."""

    def __init__(self, registry: Calls, job_id: JobId, attempt: int, task: int) -> None:
        self._registry = registry
        self._which = job_id, attempt, task
        self._waiting: collections.deque[bytes] = collections.deque()
        self._size = 0
        self._sent = 0  # bytes, and those that were dropped
        self._end = b""
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def write(self, data: bytes) -> None:
        """Take what was written."""
        with self._changed:
            self._end = (self._end + data)[-_TAIL_BYTES:]
            self._waiting.append(data)
            self._size += len(data)
            while self._size > _MOST and len(self._waiting) > 1:
                dropped = len(self._waiting.popleft())
                self._size -= dropped
                self._sent += dropped
            if self._thread is None:
                self._thread = threading.Thread(target=self._ship, daemon=True, name="fray log")
                self._thread.start()
            self._changed.notify_all()

    def _ship(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._closed:
                    self._changed.wait_for(lambda: self._closed or self._size >= _PART, _PAUSE)
                data = b"".join(self._waiting)
                self._waiting.clear()
                self._size = 0
                before, self._sent = self._sent, self._sent + len(data)
                closed = self._closed
            for start in range(0, len(data), _PART):
                with contextlib.suppress(ClusterError):  # what is lost of a log ends no job
                    part = data[start : start + _PART]
                    self._registry.call("write_log", *self._which, before + start, part)
            if closed:
                return

    def close(self) -> None:
        """Send the rest, and return when it is there."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def tail(self) -> tuple[str, ...]:
        """Return the last lines."""
        with self._changed:
            lines = self._end.decode(errors="replace").splitlines()
        return tuple(lines[-_TAIL_LINES:])
