"""How calls end that may have run and are not sent again: whether their actor is dead for good.

Which calls these are is left to `route`, and what is known of the actor to `target`.
"""

from __future__ import annotations

import logging
import threading
from _thread import start_new_thread
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Any

from fray.rpc._calling.resolve import Fate
from fray.rpc.errors import ActorDiedError, cancelled

if TYPE_CHECKING:
    from fray.rpc._calling.ongoing import OngoingCall
    from fray.rpc._calling.target import Target

_log = logging.getLogger(__name__)

_LONGEST = 5.0  # seconds that a call waits: a cluster knows once the task's host has reported its end
_PAUSE = 0.1  # seconds between two questions


class Verdicts:
    """Ends calls of an actor that may have run, once it is known whether that is dead for good."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._calls: deque[tuple[OngoingCall[Any], float]] = deque()
        self._questions: dict[str, _Question] = {}
        self._deciding = False

    def await_verdict(self, future: OngoingCall[Any], lives: bool) -> None:
        """End a call soon, or at once where nothing will be known; never wait.

        `lives`: its server may live.
        """
        if lives or future.done() or not self._target.learns_fate:
            future.fail_maybe()
            return
        future.channel = None  # another call may get its number there; a cancellation ends it at once
        self._calls.append((future, monotonic() + _LONGEST))
        self._begin()

    def _begin(self) -> None:
        if self._deciding:
            return
        self._deciding = True  # no handler of a signal comes between this and the next
        try:
            start_new_thread(self._decide, ())
        except RuntimeError:  # there is no thread
            self._deciding = False
            self._end_all()

    def _end_all(self) -> None:
        while self._calls:
            self._calls.popleft()[0].fail_maybe()

    def _decide(self) -> None:
        try:
            while self._calls:
                self._decide_some()
                if self._calls:
                    self._target.wait(_PAUSE)
        except Exception:
            _log.exception("whether an actor is dead was not found out")
            self._end_all()
        self._deciding = False
        if self._calls:  # one came just now
            self._begin()

    def _decide_some(self) -> None:
        fates: dict[str, Fate] = {}
        for _ in range(len(self._calls)):
            future, until = self._calls.popleft()
            lost = future.call.incarnation
            try:
                if lost not in fates:
                    fates[lost] = self._fate(lost, until)
            except BaseException:
                future.fail_maybe()
                raise
            fate = fates[lost]
            if future.cancelled_by:
                future.give_up(cancelled)
            elif fate.undecided and monotonic() < until and not future.done():
                self._calls.append((future, until))
            elif fate.death:
                future.fail(ActorDiedError.of(fate.death))
            else:
                future.fail_maybe()

    def _fate(self, lost: str, until: float) -> Fate:
        """Return what is known by then; a question without an answer goes on, for later calls."""
        question = self._questions.get(lost)
        if question is None:
            question = self._questions[lost] = _Question(self._target, lost)
        if not question.answered.wait(max(0.0, until - monotonic())):
            return Fate(undecided=True)
        del self._questions[lost]
        return question.fate


class _Question:
    """A question for what became of an incarnation, which the cluster may answer late."""

    def __init__(self, target: Target, lost: str) -> None:
        self._target, self._lost = target, lost
        self.answered = threading.Event()
        self.fate = Fate()
        start_new_thread(self._ask, ())

    def _ask(self) -> None:
        try:
            self.fate = self._target.verdict(self._lost)
        except Exception:
            _log.debug("whether an actor is dead was not found out", exc_info=True)
        finally:
            self.answered.set()
