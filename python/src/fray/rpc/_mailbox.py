"""Where the calls of an actor wait, and what runs them.

A lane is for the methods of one concurrency group: so many of its calls run at once, begun in the order in
which they came. Its threads start with the first calls, so that an actor which nobody calls costs none.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from fray.rpc._lane import SingleLane, lane_context

if TYPE_CHECKING:
    from fray.rpc._call import ServerCall
    from fray.rpc._methods import Method

_log = logging.getLogger("fray.rpc")

ASYNC_CONCURRENCY: Final = 1000
"""Calls at once of a class with asynchronous methods, where nothing is said."""


class EventLoop:
    """The loop of a server on which all asynchronous methods run, in a thread of its own."""

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
        return asyncio.run_coroutine_threadsafe(coroutine, self.get()).result(seconds)

    def get(self) -> asyncio.AbstractEventLoop:
        """Return the loop, which runs."""
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


class _Runnable(Protocol):
    """What a thread wants of a call."""

    def run(self) -> Any:
        """Run it, and return the reply; None: there is nothing to answer."""
        ...

    def answer(self, reply: Any, later: bool) -> None:
        """Hand out the reply."""
        ...


class _ThreadLane:
    """Runs calls on threads."""

    def __init__(self, limit: int, name: str) -> None:
        self._limit, self._name = limit, name
        self._queue: SimpleQueue[_Runnable | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._open = 0  # calls that wait or run, where there may be more threads
        self._context = lane_context()

    def put(self, call: _Runnable) -> bool:
        if len(self._threads) < self._limit:
            self._maybe_start()
        self._queue.put(call)
        return False

    def _maybe_start(self) -> None:
        with self._lock:
            self._open += 1
            if self._open > len(self._threads) < self._limit:
                name = f"{self._name}-{len(self._threads)}"
                run = self._context.copy().run
                thread = threading.Thread(target=run, args=[self._work], name=name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    self._open -= 1
                    if not self._threads:
                        raise
                else:
                    self._threads.append(thread)

    def _work(self) -> None:
        get, empty = self._queue.get, self._queue.empty
        while (call := get()) is not None:
            try:
                reply = call.run()
                if reply is not None:
                    call.answer(reply, not empty())
            except Exception:
                _log.exception("a call could not be answered")
            call = reply = None  # while nothing comes they are nobody's
            if len(self._threads) < self._limit:
                with self._lock:
                    self._open -= 1

    def stop(self) -> None:
        for _ in range(self._limit if len(self._threads) else 0):
            self._queue.put(None)

    def join(self, seconds: float) -> None:
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(seconds)


class _LoopLane:
    """Runs calls of asynchronous methods on the loop and of others on threads."""

    def __init__(self, limit: int, loop: EventLoop, threads: _ThreadLane) -> None:
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
    """A call that a thread runs for a lane of the loop."""

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


Lane: TypeAlias = SingleLane | _ThreadLane | _LoopLane


class Mailbox:
    """The lanes of one object. Two names of the same object share it."""

    def __init__(
        self, name: str, asynchronous: bool, limit: int | None, groups: Mapping[str, int], loop: EventLoop
    ) -> None:
        """Make the lanes.

        Args:
            name: The actor's, for the names of threads.
            asynchronous: Whether the class has asynchronous methods.
            limit: Calls at once of methods without a group; None: 1, or ASYNC_CONCURRENCY for asynchronous
                ones.
            groups: The same for the named groups.
            loop: Of the server.
        """

        def lane(limit: int | None, suffix: str) -> Lane:
            of = f"fray-actor-{name}{suffix}"
            if asynchronous:
                threads = _ThreadLane(limit or 1, of)
                return _LoopLane(ASYNC_CONCURRENCY if limit is None else limit, loop, threads)
            return SingleLane(of) if (limit or 1) == 1 else _ThreadLane(limit or 1, of)

        self._asynchronous = asynchronous
        self._limits = {"": limit, **groups}
        self._default = lane(limit, "")
        self._groups = {group: lane(n, f"-{group}") for group, n in groups.items()}

    def lane(self, method: Method) -> Lane:
        """Return where the calls of a method wait."""
        group = method.marks.concurrency_group
        return self._groups[group] if group else self._default

    def slot(self, method: Method) -> object:
        """Return what only one of the calls that need it has at a time; None: many of the method's run."""
        group = method.marks.concurrency_group
        limit = self._limits[group]
        if limit == 1 or (limit is None and not self._asynchronous):
            return self, group
        if limit is None and not method.asynchronous:
            return self, group, "threads"
        return None

    def stop(self) -> None:
        """End the threads, each after the call that it runs and those that wait before."""
        for lane in (self._default, *self._groups.values()):
            lane.stop()

    def join(self, seconds: float) -> None:
        """Wait for the threads, for at most so long each."""
        for lane in (self._default, *self._groups.values()):
            lane.join(seconds)
