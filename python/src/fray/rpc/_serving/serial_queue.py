"""Runs the calls of an actor one at a time, and saves their callers from waiting for two threads.

What a call does is left to `_serving.call`; groups whose calls run several at a time are left to
`_serving.mailbox`.
"""

from __future__ import annotations

import contextvars
import logging
import os
import threading
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Final

from fray.rpc._serving.idle import LEAVE, Leave, idle_threads
from fray.rpc._transport.call_chain import call_deadline
from fray.rpc._transport.trace import call_trace

if TYPE_CHECKING:
    from fray.rpc._serving.call import ServerCall, SharedConnection

_QUICK: Final = 0.002  # seconds that a call takes at most after which its thread receives the next
_PAUSE: Final = 0.1  # seconds without receiving after a call came by another connection
_log = logging.getLogger("fray.rpc")


class _Waker:
    """Interrupts a thread that receives on a connection, as a call waits in its queue."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: tuple[int, int] | None = None

    def __enter__(self) -> int:
        """Return a descriptor that can be read after `wake`."""
        self._ends = os.pipe()
        return self._ends[0]

    def __exit__(self, *_: object) -> None:
        with self._lock:
            ends, self._ends = self._ends, None
        for end in ends or ():
            os.close(end)

    def wake(self) -> None:
        """Interrupt the thread, if it receives."""
        if self._ends is None:
            return
        with self._lock:
            if self._ends is not None:
                os.write(self._ends[1], b"x")


class SerialQueue:
    """Runs one call at a time, on a thread.

    While its queue is empty the thread receives on the connection of the last call, so that a caller that
    makes one call after the other does not wait for two threads. While it runs a call no thread receives
    there; so it does this only as long as calls are quick, and the connection's own thread takes over when
    one is not.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[ServerCall | Leave | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None  # none before the first call, and after a long pause
        self.waiting: list[int] = []
        """See `_serving.idle`."""
        self._context = queue_context()
        self._waker = _Waker()
        self._receiver = 0  # the thread while it receives
        self._next: ServerCall | None = None  # what it received
        self._receives_from = 0.0  # by time.monotonic()
        self._quick = False  # the last call was

    def put(self, call: ServerCall) -> bool:
        """Let a call wait for its turn; return whether its thread receives on its connection afterwards."""
        if self._receiver and self._receiver == threading.get_ident() and self._queue.empty():
            self._next, call.connection = call, None
            return True
        receives = call.connection is not None and self._quick and monotonic() >= self._receives_from
        if not receives:
            call.connection = None
        self._queue.put(call)
        if self._thread is None:  # asked only now, as the thread leaves first and then checks the queue
            try:
                self._start()
            except RuntimeError:
                call.connection = None
                raise
        if self._receiver:
            self._receives_from = monotonic() + _PAUSE
            self._waker.wake()
        return receives

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._context = self._context.copy()  # a thread that leaves may be in the former one
                thread = threading.Thread(
                    target=self._context.run, args=[self._work], name=f"{self._name}-0", daemon=True
                )
                self._thread = thread
                try:
                    thread.start()
                except RuntimeError:
                    self._thread = None
                    raise

    def _get(self) -> ServerCall | None:
        """Return the next call, None: the thread is to end."""
        while True:
            try:
                call = self._queue.get_nowait()
            except Empty:
                idle_threads.enter(self)
                call = self._queue.get()
                if not isinstance(call, Leave):
                    idle_threads.leave(self)
            if not isinstance(call, Leave):
                return call
            if self._leaves():
                return None

    def dismiss(self) -> None:
        """Have the thread leave, unless a call comes, see `_serving.idle`."""
        self._queue.put(LEAVE)

    def _leaves(self) -> bool:
        """Give up being the thread, and report whether that is so: a call may have come meanwhile."""
        with self._lock:
            self._thread = None
        if self._queue.empty():
            return True
        with self._lock:
            if self._thread is None:
                self._thread = threading.current_thread()
                return False
            return True

    def _work(self) -> None:
        while (call := self._get()) is not None:
            connection, call.connection = call.connection, None
            self._run(call)
            call = None  # keep nothing alive while no call comes
            if connection is not None:
                self._receive_on(connection)
                connection = None

    def _run(self, call: ServerCall) -> None:
        began = monotonic()
        try:
            reply = call.run()
            if reply is not None:
                self._quick = monotonic() - began < _QUICK
                call.answer(reply, not self._queue.empty())
        except Exception:
            _log.exception("a call could not be answered")

    def _receive_on(self, connection: SharedConnection) -> None:
        came = False
        try:
            with self._waker as wake:
                while came := self._received(connection, wake):
                    call, self._next = self._next, None
                    if call is None:
                        break
                    self._run(call)
        except OSError:  # there are no descriptors
            pass
        finally:
            connection.give_back(shared=came)

    def _received(self, connection: SharedConnection, wake: int) -> bool:
        self._receiver = threading.get_ident()  # from here on `put` wakes it
        try:
            return self._queue.empty() and connection.receive_one(wake)
        finally:
            self._receiver = 0

    def stop(self) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._waker.wake()

    def join(self, seconds: float) -> None:
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)


def queue_context() -> contextvars.Context:
    """Return what the methods of an actor see: current_cluster and the like as where it is registered."""
    context = contextvars.copy_context()
    context.run(call_deadline.set, None)
    context.run(call_trace.set, "")
    return context
