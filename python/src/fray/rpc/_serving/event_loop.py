"""An asyncio loop on a thread of its own, which starts when it is first needed.

Importing asyncio takes 10 ms, and many actors do without: it is imported here, and by code that runs on the
loop. What that is is left to `_serving.mailbox` and `_serving.grpc`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


class EventLoop:
    """The loop and its thread. A server runs all asynchronous methods on one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._incoming: deque[Callable[[], object]] = deque()
        self._scheduled = False

    def submit(self, function: Callable[[], object]) -> None:
        """Call a function there, soon. Those that come together wake the loop once."""
        self._incoming.append(function)
        if not self._scheduled:
            self._scheduled = True
            self.get().call_soon_threadsafe(self._drain)

    def run(self, coroutine: Coroutine[Any, Any, Any], seconds: float | None = None) -> Any:
        """Await a coroutine there, and wait for it. Raises TimeoutError after so many seconds."""
        import asyncio

        return asyncio.run_coroutine_threadsafe(coroutine, self.get()).result(seconds)

    def get(self) -> asyncio.AbstractEventLoop:
        """Return the loop, which runs."""
        import asyncio

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._run, args=(self._loop,), name=self._name, daemon=True
                )
                self._thread.start()
            return self._loop

    def stop(self, seconds: float) -> None:
        """Cancel what runs there and end the thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
        if loop is None or thread is None or thread is threading.current_thread() or loop.is_closed():
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(seconds)

    def _drain(self) -> None:
        self._scheduled = False
        while self._incoming:
            self._incoming.popleft()()

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        import asyncio

        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()
