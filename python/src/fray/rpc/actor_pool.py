"""A pool of actors that share work: whichever is free gets the next call, as in ray.util.ActorPool.

Spreading calls over the actors of a name, without waiting until one is free, is left to `pool`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from fray.rpc.errors import ActorDeadError, Code, UnavailableError
from fray.rpc.future import ActorFuture
from fray.rpc.waiting import await_some

if TYPE_CHECKING:
    from fray.rpc.handle import ActorHandle

V = TypeVar("V")

_GONE: Final = frozenset({Code.UNKNOWN_ACTOR, Code.UNAVAILABLE, Code.STOPPING, "actor_dead"})
"""Codes of errors of a call whose actor is gone, or did not come while the call waited for it."""


class Group(Protocol):
    """Actors that were created together, such as an ActorGroup."""

    @property
    def handles(self) -> list[ActorHandle]:
        """All of them."""
        ...


class _Work:
    """A value that was submitted, and what became of it."""

    __slots__ = ("error", "function", "future", "value")

    def __init__(self, function: Callable[[Any, Any], ActorFuture[Any]], value: Any) -> None:
        self.function, self.value = function, value
        self.future: ActorFuture[Any] | None = None
        """The call, once an actor was free for it."""
        self.error: Exception | None = None
        """Why there is none."""

    @property
    def ended(self) -> bool:
        """Whether there is a result, or an error."""
        return self.error is not None or (self.future is not None and self.future.done())

    def result(self) -> Any:
        """Return what the method returned, or raise why it did not."""
        if self.error is not None:
            raise self.error
        assert self.future is not None
        return self.future.result()


class ActorPool:
    """Gives each of some actors one call at a time, and hands out the results.

        pool = ActorPool(client.create_actor_group(Worker, name="worker", count=8))
        for result in pool.map(lambda worker, shard: worker.process.remote(shard), shards):
            print(result)

    The function gets an actor that is free and a value, and returns the future of a call. It runs in the
    thread that uses the pool, of which there is one at a time. While that thread waits for a result, every
    actor that becomes free is given more work.

    No work is done twice, unless the options of a call allow it: if an actor dies, the result of its call is
    the error, such as MaybeExecutedError, and the actor stays, as it is started again. It leaves the pool
    when it is dead for good, or a call could not reach it at all. The rest of the work goes to the others.
    """

    def __init__(self, actors: Iterable[ActorHandle] | Group) -> None:
        """Make a pool of actors that were created, one by one or as a group, or looked up.

        Raises:
            ValueError: one is given twice.
        """
        self._idle: deque[ActorHandle] = deque()
        self._busy: dict[ActorFuture[Any], tuple[ActorHandle, int]] = {}  # with the numbers of their work
        self._work: dict[int, _Work] = {}  # by number, until the result is handed out
        self._queued: deque[int] = deque()  # for which no actor was free
        self._ended: deque[int] = deque()  # in the order in which that was noticed
        self._numbers = count()
        self._oldest = 0  # no older work is left
        for actor in actors if isinstance(actors, Iterable) else actors.handles:
            self.push(actor)

    @property
    def handles(self) -> list[ActorHandle]:
        """The actors of the pool, those that are free first."""
        self._advance()
        return [*self._idle, *(actor for actor, _ in self._busy.values())]

    def __len__(self) -> int:
        """Return how many actors there are."""
        return len(self.handles)

    # Actors

    def push(self, actor: ActorHandle) -> None:
        """Add an actor.

        Raises:
            ValueError: it is in the pool.
        """
        if actor in self.handles:
            raise ValueError(f"{actor!r} is in the pool already")
        self._idle.append(actor)
        self._advance()

    def pop_idle(self) -> ActorHandle | None:
        """Remove a free actor from the pool, and return it; None: none is free."""
        return self._idle.popleft() if self.has_free() else None

    def has_free(self) -> bool:
        """Return whether an actor has nothing to do."""
        self._advance()
        return bool(self._idle)

    # Work

    def map(self, function: Callable[[Any, V], ActorFuture[Any]], values: Iterable[V]) -> Iterator[Any]:
        """Submit all values, and return an iterator of the results in the order of the values.

        Results that nothing has asked for are dropped first, and so is work that no actor has begun. The
        iterator ends with the first error; `get_next` has what comes after.
        """
        return self._map(function, values, self.get_next)

    def map_unordered(
        self, function: Callable[[Any, V], ActorFuture[Any]], values: Iterable[V]
    ) -> Iterator[Any]:
        """Do as `map`, with the results in the order in which they come."""
        return self._map(function, values, self.get_next_unordered)

    def _map(
        self,
        function: Callable[[Any, V], ActorFuture[Any]],
        values: Iterable[V],
        following: Callable[[], Any],
    ) -> Iterator[Any]:
        self._work.clear()
        self._queued.clear()
        self._ended.clear()
        for value in values:
            self.submit(function, value)

        def results() -> Iterator[Any]:
            while self.has_next():
                yield following()

        return results()

    def submit(self, function: Callable[[Any, V], ActorFuture[Any]], value: V) -> None:
        """Call an actor with a value now, or when one is free.

        Raises:
            Exception: the function raised it, and the value is not submitted. If no actor is free now, the
                exception is what `get_next` raises.
        """
        self._advance()
        number, work = next(self._numbers), _Work(function, value)
        if self._idle:
            self._begin(number, work)
        else:
            self._queued.append(number)
        self._work[number] = work

    def has_next(self) -> bool:
        """Return whether there is a result to come, or to be handed out."""
        return bool(self._work)

    def get_next(self, timeout: float | None = None, ignore_if_timedout: bool = False) -> Any:
        """Wait for the result of the oldest work that was not handed out, and return it.

        Args:
            timeout: The longest wait in seconds; None: without end.
            ignore_if_timedout: Whether the result is to be forgotten if it has not come by then.

        Raises:
            StopIteration: there is no work.
            TimeoutError: the time was over.
            ActorError: the call failed.
            UnavailableError: no actor is left in the pool, so that the call was not made.
        """
        self._check_has_next()
        while self._oldest not in self._work:
            self._oldest += 1
        number = self._oldest
        work = self._work[number]
        came = self._wait(lambda: work.ended, timeout)
        return self._handed_out(number, timeout, came, ignore_if_timedout)

    def get_next_unordered(self, timeout: float | None = None, ignore_if_timedout: bool = False) -> Any:
        """Wait for the next result of any work, and return it; the rest is as in `get_next`."""
        self._check_has_next()

        def some_ended() -> bool:
            while self._ended and self._ended[0] not in self._work:  # it was handed out
                self._ended.popleft()
            return bool(self._ended)

        came = self._wait(some_ended, timeout)
        number = self._ended.popleft() if self._ended else next(iter(self._work))
        return self._handed_out(number, timeout, came, ignore_if_timedout)

    def _check_has_next(self) -> None:
        if not self.has_next():
            raise StopIteration("no work was submitted whose result was not handed out")

    def _handed_out(self, number: int, timeout: float | None, came: bool, forget: bool) -> Any:
        work = self._work[number]
        if not came:
            if forget:
                self._forget(number)
            raise TimeoutError(f"no result has come within {timeout} s")
        self._forget(number)
        if not work.ended:
            raise UnavailableError("no actor is left in the pool: the call was not made")
        return work.result()

    def _forget(self, number: int) -> None:
        del self._work[number]
        if number in self._queued:
            self._queued.remove(number)

    def _wait(self, ready: Callable[[], bool], timeout: float | None) -> bool:
        """Wait until something is so, or never can be; return False if the time was over before."""
        until = None if timeout is None else monotonic() + timeout
        while True:
            self._advance()
            if ready() or not self._busy:
                return True
            if not await_some(list(self._busy), 1, until):
                return False

    def _advance(self) -> None:
        """Take back the actors whose calls have ended, and give them work."""
        for future, (actor, number) in list(self._busy.items()):
            if future.done():
                del self._busy[future]
                self._ended.append(number)
                error = future.exception() if future.failed else None
                if error is None or (error.code not in _GONE and not isinstance(error, ActorDeadError)):
                    self._idle.append(actor)
        while self._idle and self._queued:
            number = self._queued.popleft()
            work = self._work[number]
            try:
                self._begin(number, work)
            except Exception as err:
                work.error = err
                self._ended.append(number)

    def _begin(self, number: int, work: _Work) -> None:
        actor = self._idle[0]
        future = work.function(actor, work.value)
        if not isinstance(future, ActorFuture):
            raise TypeError(f"the function returned {future!r}; it must return a future, of method.remote()")
        work.future = future
        self._idle.popleft()
        self._busy[future] = (actor, number)
