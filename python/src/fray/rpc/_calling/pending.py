"""The calls of a client's connection that are not answered: at most as many as the server takes.

Sending and receiving is left to `_calling.connection`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from fray._locks import Changes
from fray.rpc._calling.outcome import Answer
from fray.rpc._transport.writer import Outgoing

Pending: TypeAlias = tuple[Outgoing, Callable[[Answer], None]]
"""A call as it was sent, and what takes its answer."""


class PendingCalls:
    """By their seq. All methods may be used from any thread."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """How many there may be."""
        self._calls: dict[int, Pending] = {}
        self._room = Changes()
        self._waiting = 0

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def full(self) -> bool:
        """Whether there is no room for another one."""
        return len(self._calls) >= self.limit

    def add(self, seq: int, call: Pending) -> None:
        """Add a call that is about to be sent."""
        self._calls[seq] = call

    def get(self, seq: int) -> Pending | None:
        """Return a call; None: it is not here."""
        return self._calls.get(seq)

    def withdraw(self, seq: int) -> bool:
        """Remove a call that was not sent; return whether it was here."""
        return self._calls.pop(seq, None) is not None

    def take(self, seq: int) -> Pending | None:
        """Remove a call that is answered; None: it is not here."""
        found = self._calls.pop(seq, None)
        if found is not None and self._waiting:
            with self._room.lock:
                self._room.notify()
        return found

    def take_all(self) -> Iterator[Pending]:
        """Remove all calls, one after the other."""
        while self._calls:
            yield self._calls.popitem()[1]

    def sent(self) -> list[Outgoing]:
        """Return the calls as they were sent."""
        return [outgoing for outgoing, _ in list(self._calls.values())]

    def wait_for_room(self, over: Callable[[], bool]) -> None:
        """Wait until there is room for another call, or `over` returns True after `wake`."""
        with self._room.lock:
            self._waiting += 1
            self._room.wait_for(lambda: over() or not self.full)
            self._waiting -= 1

    def wake(self) -> None:
        """Let all that wait for room check again."""
        with self._room.lock:
            self._room.notify_all()
