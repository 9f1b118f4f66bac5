"""How calls end that may have run and are not sent again: whether their actor is dead for good.

Which calls these are is left to `route`, and what is known of the actor to `target`.
"""

from __future__ import annotations

from _thread import start_new_thread
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Any

from fray.rpc._calling.resolve import Fate
from fray.rpc.errors import ActorDiedError

if TYPE_CHECKING:
    from fray.rpc._calling.ongoing import OngoingCall
    from fray.rpc._calling.target import Target

_LONGEST = 5.0  # seconds that a call waits: a cluster knows once the task's host has reported its end
_PAUSE = 0.1  # seconds between two questions


class Verdicts:
    """Ends calls of an actor that may have run, once it is known whether that is dead for good."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._calls: deque[tuple[OngoingCall[Any], float]] = deque()
        self._deciding = False

    def await_verdict(self, future: OngoingCall[Any], silent: bool) -> None:
        """End a call soon, or at once where nothing will be known; never wait.

        `silent`: its server need not be dead.
        """
        if silent or not self._target.learns_fate:
            future.fail_maybe()
            return
        self._calls.append((future, monotonic() + _LONGEST))
        if not self._deciding:
            self._deciding = True  # no handler of a signal comes between this and the next
            start_new_thread(self._decide, ())

    def _decide(self) -> None:
        fates: dict[str, Fate] = {}
        while self._calls:
            for _ in range(len(self._calls)):
                future, until = self._calls.popleft()
                lost = future.call.incarnation
                if lost not in fates:
                    fates[lost] = self._target.verdict(lost)
                fate = fates[lost]
                if fate.undecided and monotonic() < until and not future.done():
                    self._calls.append((future, until))
                elif fate.death:
                    future.fail(ActorDiedError.of(fate.death))
                else:
                    future.fail_maybe()
            if self._calls:
                self._target.wait(_PAUSE)
            fates.clear()
        self._deciding = False
        if self._calls and not self._deciding:  # one came just now
            self._deciding = True
            start_new_thread(self._decide, ())
