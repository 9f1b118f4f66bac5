"""Runs the calls of an actor one at a time, and saves their callers from waiting for two threads."""

from __future__ import annotations

import contextvars
import logging
import os
import threading
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Final

from fray.rpc._trace import call_trace
from fray.rpc.context import call_deadline

if TYPE_CHECKING:
    from fray.rpc._call import Host, ServerCall

_QUICK: Final = 0.002  # seconds that a call takes whose connection is visited
_HOME: Final = 0.1  # seconds for which a thread visits nobody after another connection had calls for it
_log = logging.getLogger("fray.rpc")


class _Door:
    """Tells a thread that visits a connection that there is something to do at home."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: tuple[int, int] | None = None

    def __enter__(self) -> int:
        """Return what can be read once somebody has knocked."""
        self._ends = os.pipe()
        return self._ends[0]

    def __exit__(self, *_: object) -> None:
        with self._lock:
            ends, self._ends = self._ends, None
        for end in ends or ():
            os.close(end)

    def knock(self) -> None:
        """Do so, if the thread is away."""
        if self._ends is None:
            return
        with self._lock:
            if self._ends is not None:
                os.write(self._ends[1], b"x")


class SingleLane:
    """Runs one call at a time, on a thread.

    Having nothing to do, the thread visits the connection of the last call and receives there, so that a
    caller who makes one call after the other does not wait for two threads. While it runs a call nobody
    receives there; so it does this only as long as calls are quick, and the connection's own thread looks
    after it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[ServerCall | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._context = lane_context()
        self._door = _Door()
        self._visitor = 0  # the thread while it receives
        self._next: ServerCall | None = None  # what it received
        self._visits_from = 0.0  # by time.monotonic()
        self._quick = False  # the last call was

    def put(self, call: ServerCall) -> bool:
        """Let a call wait for its turn; return whether its connection is visited after it."""
        if self._visitor and self._visitor == threading.get_ident() and self._queue.empty():
            self._next, call.host = call, None
            return True
        if self._thread is None:
            self._start()
        visits = call.host is not None and self._quick and monotonic() >= self._visits_from
        if not visits:
            call.host = None
        self._queue.put(call)
        if self._visitor:
            self._visits_from = monotonic() + _HOME
            self._door.knock()
        return visits

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(
                    target=self._context.run, args=[self._work], name=f"{self._name}-0", daemon=True
                )
                thread.start()
                self._thread = thread

    def _work(self) -> None:
        while (call := self._queue.get()) is not None:
            host, call.host = call.host, None
            self._run(call)
            call = None  # while nothing comes it is nobody's
            if host is not None:
                self._visit(host)
                host = None

    def _run(self, call: ServerCall) -> None:
        began = monotonic()
        try:
            reply = call.run()
            if reply is not None:
                self._quick = monotonic() - began < _QUICK
                call.answer(reply, not self._queue.empty())
        except Exception:
            _log.exception("a call could not be answered")

    def _visit(self, host: Host) -> None:
        came = False
        try:
            with self._door as wake:
                while came := self._receives(host, wake):
                    call, self._next = self._next, None
                    if call is None:
                        break
                    self._run(call)
        except OSError:  # there are no descriptors
            pass
        finally:
            host.part(shared=came)

    def _receives(self, host: Host, wake: int) -> bool:
        self._visitor = threading.get_ident()  # from here on who puts knocks
        try:
            return self._queue.empty() and host.visit(wake)
        finally:
            self._visitor = 0

    def stop(self) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._door.knock()

    def join(self, seconds: float) -> None:
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(seconds)


def lane_context() -> contextvars.Context:
    """Return what the methods of an actor see: current_cluster and the like as where it is registered."""
    context = contextvars.copy_context()
    context.run(call_deadline.set, None)
    context.run(call_trace.set, "")
    return context
