"""Where the calls of an actor wait, and what runs them.

A queue is for the methods of one concurrency group: a limited number of its calls run at once, begun in the
order in which they came. Its threads start with the first calls, so that an idle actor costs none. Running a
call is left to `_serving.call`.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from fray.rpc._serving.idle import LEAVE, Leave, idle_threads
from fray.rpc._serving.serial_queue import SerialQueue, queue_context

if TYPE_CHECKING:
    from fray.rpc._serving.call import ServerCall
    from fray.rpc._serving.event_loop import EventLoop
    from fray.rpc._serving.methods import Method

_log = logging.getLogger("fray.rpc")

ASYNC_CONCURRENCY: Final = 1000
"""Calls at once of a class with asynchronous methods, by default."""


class _Runnable(Protocol):
    """A call, as a thread runs it."""

    def run(self) -> Any:
        """Run it, and return the reply; None: there is nothing to answer."""
        ...

    def answer(self, reply: Any, later: bool) -> None:
        """Hand out the reply."""
        ...


class _ThreadQueue:
    """Runs calls on threads."""

    def __init__(self, limit: int, name: str) -> None:
        self._limit, self._name = limit, name
        self._queue: SimpleQueue[_Runnable | Leave | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._unserved = 0  # calls that no thread has taken
        self._free = 0  # threads that wait for a call
        self._numbers = itertools.count()
        self._context = queue_context()
        self.waiting: list[int] = []
        """See `_serving.idle`."""

    def put(self, call: _Runnable) -> bool:
        with self._lock:
            self._unserved += 1
            if self._unserved > self._free and len(self._threads) < self._limit:
                try:
                    self._start()
                except RuntimeError:
                    if not self._threads:
                        self._unserved -= 1
                        raise
        self._queue.put(call)
        return False

    def _start(self) -> None:
        name = f"{self._name}-{next(self._numbers)}"
        run = self._context.copy().run
        thread = threading.Thread(target=run, args=[self._work], name=name, daemon=True)
        thread.start()
        self._threads.append(thread)
        self._free += 1

    def _get(self) -> _Runnable | None:
        """Return the next call, None: the thread is to end."""
        while True:
            try:
                call = self._queue.get_nowait()
            except Empty:
                idle_threads.enter(self)
                call = self._queue.get()
                if not isinstance(call, Leave):
                    idle_threads.leave(self)
            with self._lock:
                if not isinstance(call, Leave):
                    self._free -= 1
                    self._unserved -= call is not None
                    return call
                if not self._unserved:
                    self._free -= 1
                    self._threads.remove(threading.current_thread())
                    return None

    def dismiss(self) -> None:
        """Have a thread leave, unless calls wait, see `_serving.idle`."""
        self._queue.put(LEAVE)

    def _work(self) -> None:
        get, empty = self._get, self._queue.empty
        while (call := get()) is not None:
            try:
                reply = call.run()
                if reply is not None:
                    call.answer(reply, not empty())
            except Exception:
                _log.exception("a call could not be answered")
            call = reply = None  # keep nothing alive while no call comes
            with self._lock:
                self._free += 1

    def stop(self) -> None:
        for _ in list(self._threads):
            self._queue.put(None)

    def join(self, seconds: float) -> None:
        for thread in list(self._threads):
            if thread is not threading.current_thread():
                thread.join(seconds)


class _LoopQueue:
    """Runs calls of asynchronous methods on the loop and of others on threads."""

    def __init__(self, limit: int, loop: EventLoop, threads: _ThreadQueue) -> None:
        self._limit, self._loop, self._threads = limit, loop, threads
        self._lock = threading.Lock()
        self._waiting: deque[ServerCall] = deque()
        self._running = 0

    def put(self, call: ServerCall) -> bool:
        with self._lock:
            if self._running >= self._limit:
                self._waiting.append(call)
                return False
            self._running += 1
        self._begin(call)
        return False

    def _begin(self, call: ServerCall) -> None:
        if call.method.asynchronous:
            self._loop.submit(lambda: self._task(call))
        else:
            self._threads.put(_Lent(call, self._ended))

    def _task(self, call: ServerCall) -> None:
        call.task = task = self._loop.get().create_task(call.run_async())
        task.add_done_callback(lambda _: self._ended())

    def _ended(self) -> None:
        with self._lock:
            if not self._waiting:
                self._running -= 1
                return
            call = self._waiting.popleft()
        self._begin(call)

    def stop(self) -> None:
        self._threads.stop()

    def join(self, seconds: float) -> None:
        self._threads.join(seconds)


class _Lent:
    """A call that a thread runs for a queue of the loop."""

    __slots__ = ("_call", "_ended")

    def __init__(self, call: ServerCall, ended: Callable[[], None]) -> None:
        self._call, self._ended = call, ended

    def run(self) -> Any:
        """Run the call; there is always something to answer, so that `answer` follows."""
        return (self._call.run(),)

    def answer(self, reply: Any, later: bool) -> None:
        """Answer, and let the next one begin."""
        self._call.answer(reply[0], later)
        self._ended()


CallQueue: TypeAlias = SerialQueue | _ThreadQueue | _LoopQueue


class Mailbox:
    """The queues of one object. Two names of the same object share it."""

    def __init__(
        self, name: str, asynchronous: bool, limit: int | None, groups: Mapping[str, int], loop: EventLoop
    ) -> None:
        """Make the queues.

        Args:
            name: The actor's, for the names of threads.
            asynchronous: Whether the class has asynchronous methods.
            limit: Calls at once of methods without a group; None: 1, or ASYNC_CONCURRENCY for asynchronous
                ones.
            groups: The same for the named groups.
            loop: Of the server.
        """

        def queue(limit: int | None, suffix: str) -> CallQueue:
            of = f"fray-actor-{name}{suffix}"
            if asynchronous:
                threads = _ThreadQueue(limit or 1, of)
                return _LoopQueue(ASYNC_CONCURRENCY if limit is None else limit, loop, threads)
            return SerialQueue(of) if (limit or 1) == 1 else _ThreadQueue(limit or 1, of)

        self.name = name
        """The first name of the object."""
        self._asynchronous = asynchronous
        self._limits = {"": limit, **groups}
        self._default = queue(limit, "")
        self._groups = {group: queue(n, f"-{group}") for group, n in groups.items()}

    def queue(self, method: Method) -> CallQueue:
        """Return where the calls of a method wait."""
        group = method.marks.concurrency_group
        return self._groups[group] if group else self._default

    def slot(self, method: Method) -> object:
        """Return what calls of a method take turns for, one at a time; None: many run at once."""
        group = method.marks.concurrency_group
        limit = self._limits[group]
        if limit == 1 or (limit is None and not self._asynchronous):
            return self, group
        if limit is None and not method.asynchronous:
            return self, group, "threads"
        return None

    def stop(self) -> None:
        """End the threads, each after the call that it runs and the calls that wait now."""
        for queue in (self._default, *self._groups.values()):
            queue.stop()

    def join(self, seconds: float) -> None:
        """Wait for the threads, for at most so long each."""
        for queue in (self._default, *self._groups.values()):
            queue.join(seconds)
