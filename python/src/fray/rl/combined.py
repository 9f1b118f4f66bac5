"""Calls that several threads of a module ask for at once, made as one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from fray.rpc.errors import CancelledError

E = TypeVar("E")
R = TypeVar("R")


class _Asked(Generic[E, R]):
    """What one thread asks for."""

    def __init__(self, entry: E) -> None:
        self.entry = entry
        self.called = threading.Event()
        self.leads = False
        self.error: BaseException | None = None
        self.answer: R | None = None


class Combined(Generic[E, R]):
    """Makes one call for all threads that ask while an earlier call is under way.

    One of these threads makes it. So a single thread makes each call at once, and many make few.
    """

    def __init__(
        self, call: Callable[[list[E]], Sequence[R]], linger: float = 0.0, more: Callable[[], int] = int
    ) -> None:
        """Combine calls.

        Args:
            call: Makes one for several entries, and returns an answer for each.
            linger: For how many seconds a call waits for further entries.
            more: How many threads may ask soon, besides those that wait already; 0: a call waits for none.
        """
        self._call, self._linger, self._more = call, linger, more
        self._lock = threading.Lock()
        self._waiting: list[_Asked[E, R]] = []
        self._leader: _Asked[E, R] | None = None

    def ask(self, entry: E) -> R:
        """Return the answer to an entry. An exception of the call is that of all of its entries."""
        asked: _Asked[E, R] = _Asked(entry)
        with self._lock:
            self._waiting.append(asked)
            if self._leader is None:
                self._leader, asked.leads = asked, True
            elif self._leader is not asked and not self._more():
                self._leader.called.set()
        if not asked.leads:
            asked.called.wait()
        if asked.leads:
            self._lead(asked)
        if asked.error is not None:
            raise asked.error
        return asked.answer  # type: ignore[return-value]

    def __len__(self) -> int:
        return len(self._waiting)

    def _lead(self, leader: _Asked[E, R]) -> None:
        leader.called.clear()
        if self._linger and self._more():
            leader.called.wait(self._linger)
        with self._lock:
            batch, self._waiting = self._waiting, []
        error: BaseException | None = None
        answers: Sequence[R] = ()
        try:
            answers = self._call([each.entry for each in batch])
        except BaseException as err:
            error = err
        with self._lock:
            self._leader = following = self._waiting[0] if self._waiting else None
            if following is not None:
                following.leads = True
        for place, each in enumerate(batch):
            each.error = error
            if error is None:
                each.answer = answers[place]
            if each is not leader:
                each.called.set()
        if following is not None:
            following.called.set()


class LongPoll:
    """Calls that an actor answers once something is there. `interrupt` ends the one under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: Any = None
        self._interrupts = 0

    @property
    def interrupts(self) -> int:
        """How often `interrupt` was called: a caller that decides on a call passes what it was before."""
        return self._interrupts

    def call(self, method: Any, *args: Any, since: int | None = None) -> Any:
        """Call a method of an actor; None: it was interrupted, since the count of interrupts was `since`."""
        future = method.remote(*args)
        with self._lock:
            if since is not None and self._interrupts != since:
                future.cancel()
            self._under_way = future
        try:
            return future.result()
        except CancelledError:
            return None
        finally:
            with self._lock:
                self._under_way = None

    def interrupt(self) -> None:
        """End the call under way, if there is one; from any thread."""
        with self._lock:
            self._interrupts += 1
            if self._under_way is not None:
                self._under_way.cancel()
