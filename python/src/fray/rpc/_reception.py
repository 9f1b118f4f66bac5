"""Who receives on a connection.

Handing what came from one thread to another costs more than most calls. So whoever waits for it anyway
receives it as a guest, while the thread that is there for it, its host, stays aside and only looks now and
then whether it is needed.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident
from collections.abc import Callable
from contextlib import suppress
from threading import RLock
from time import monotonic
from typing import Final

TICK: Final = 0.01
"""Seconds that a guest waits at most before the host is called back, and between two looks of the host."""

_PAUSE: Final = 0.1  # seconds


class Reception:
    """One thread at a time receives: the host, or while it is aside a guest.

    The host alone calls `begin`, `open` and `close`; guests call `enter` and then `leave`; `recall` is for
    anyone.
    """

    def __init__(self) -> None:
        # Held by who receives. It knows by whom, also where a handler of a signal raised just then.
        self._turn = RLock()
        self._bell = allocate_lock()  # rings when it is released
        self._bell.acquire()
        self._aside = False
        self._visits = 0
        self._guest = 0
        self._from = 0.0  # by time.monotonic()
        self.failure: Exception | None = None
        """What a guest came upon, and the host has to deal with."""

    def begin(self) -> None:
        """Receive as the host, from now on."""
        self._turn.acquire()

    def open(self) -> None:
        """Let a guest receive, until `close`."""
        self._aside = True
        self._turn.release()

    def close(self, wanted: Callable[[], bool]) -> None:
        """Wait aside and receive again: at once if `wanted`, when called back, or when no guest comes.

        Raises:
            Exception: the `failure` of a guest.
        """
        if self._guest or not wanted():
            self._wait()
        self._turn.acquire()
        self._aside = False
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def _wait(self) -> None:
        seen = self._visits
        while not self._bell.acquire(timeout=TICK):
            if seen == self._visits and not self._guest:
                return
            seen = self._visits

    def recall(self) -> None:
        """Call the host back, if it is aside. One that comes back for nothing does no harm."""
        if self._aside:
            self._aside = False
            with suppress(RuntimeError):  # it rings already
                self._bell.release()

    @property
    def aside(self) -> bool:
        """Whether nobody may be receiving, so that an end of the stream goes unnoticed for a moment."""
        return self._aside

    @property
    def welcoming(self) -> bool:
        """Whether guests save time, as far as that shows."""
        return monotonic() >= self._from

    def pause(self) -> None:
        """Say that a guest met what was not for guests, so that none come for a while."""
        self._from = monotonic() + _PAUSE

    def enter(self) -> bool:
        """Begin to receive as a guest; False: somebody else does, or will before long."""
        if not self._turn.acquire(False):
            return False
        if self.failure is not None:
            self._turn.release()
            return False
        self._visits += 1
        self._guest = get_ident()
        return True

    def visit(self, receive: Callable[[], object]) -> bool:
        """Receive as a guest, unless somebody else does, whatever handlers of signals raise meanwhile."""
        try:
            entered = self.enter()
            if entered:
                receive()
                self.leave()
            return entered
        except BaseException:
            self.leave()
            self.recall()
            raise

    def leave(self) -> None:
        """End what `enter` began, or may have, where an exception came meanwhile."""
        if self.mine:
            self._guest = 0
        with suppress(RuntimeError):  # it had not begun, or has ended
            self._turn.release()

    @property
    def mine(self) -> bool:
        """Whether this thread is the guest, as in a handler of a signal that came meanwhile."""
        return self._guest == get_ident()
