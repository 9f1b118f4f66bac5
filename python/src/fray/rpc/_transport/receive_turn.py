"""Which thread receives on a connection: the one that owns it, or one that borrows its turn.

Handing what came from one thread to another costs more than most calls. So a thread that waits for it anyway
borrows the turn and receives by itself, while the owner stands aside and only checks now and then whether it
is needed. What is received, and how, is left to `_calling.connection` and `_serving.session`.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident
from collections.abc import Callable
from contextlib import suppress
from threading import RLock
from time import monotonic
from typing import Final

TICK: Final = 0.01
"""Seconds that a borrower waits at most before the owner is recalled, and between two checks of the owner."""

_PAUSE: Final = 0.1  # seconds


class ReceiveTurn:
    """One thread at a time receives: the owner, or while the turn is lent a borrower.

    The owner alone calls `begin`, `lend` and `take_back`; borrowers call `borrow` and then `give_back`; any
    thread may call `recall`.
    """

    def __init__(self) -> None:
        # Held by the thread that receives. It knows by which, also if a handler of a signal raised then.
        self._held = RLock()
        self._recalled = allocate_lock()  # released to recall the owner
        self._recalled.acquire()
        self._lent = False
        self._loans = 0
        self._borrower = 0
        self._from = 0.0  # by time.monotonic()
        self.failure: Exception | None = None
        """What went wrong for a borrower, and the owner has to deal with."""

    def begin(self) -> None:
        """Receive as the owner, from now on."""
        self._held.acquire()

    def lend(self) -> None:
        """Let a borrower receive, until `take_back`."""
        self._lent = True
        self._held.release()

    def take_back(self, wanted: Callable[[], bool]) -> None:
        """Stand aside and receive again: at once if `wanted`, when recalled, or when no borrower comes.

        Raises:
            Exception: the `failure` of a borrower.
        """
        if self._borrower or not wanted():
            self._wait()
        self._held.acquire()
        self._lent = False
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def _wait(self) -> None:
        seen = self._loans
        while not self._recalled.acquire(timeout=TICK):
            if seen == self._loans and not self._borrower:
                return
            seen = self._loans

    def recall(self) -> None:
        """Have the owner take the turn back, if it is lent. Recalling it for nothing does no harm."""
        if self._lent:
            self._lent = False
            with suppress(RuntimeError):  # it is recalled already
                self._recalled.release()

    @property
    def lent(self) -> bool:
        """Whether perhaps no thread receives, so that an end of the stream goes unnoticed for a moment."""
        return self._lent

    @property
    def lendable(self) -> bool:
        """Whether borrowing saves time, as far as that shows."""
        return monotonic() >= self._from

    def pause(self) -> None:
        """Note that a borrower met what only the owner can receive, so that none borrows for a while."""
        self._from = monotonic() + _PAUSE

    def borrow(self) -> bool:
        """Begin to receive as a borrower; False: another thread does, or will before long."""
        if not self._held.acquire(False):
            return False
        if self.failure is not None:
            self._held.release()
            return False
        self._loans += 1
        self._borrower = get_ident()
        return True

    def borrow_for(self, receive: Callable[[], object]) -> bool:
        """Receive as a borrower, unless another thread does, whatever handlers of signals raise meanwhile."""
        try:
            borrowed = self.borrow()
            if borrowed:
                receive()
                self.give_back()
            return borrowed
        except BaseException:
            self.give_back()
            self.recall()
            raise

    def give_back(self) -> None:
        """End what `borrow` began, or may have, where an exception came meanwhile."""
        if self.mine:
            self._borrower = 0
        with suppress(RuntimeError):  # it had not begun, or has ended
            self._held.release()

    @property
    def mine(self) -> bool:
        """Whether this thread is the borrower, as in a handler of a signal that came meanwhile."""
        return self._borrower == get_ident()
