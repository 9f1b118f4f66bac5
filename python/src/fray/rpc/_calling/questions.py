"""Requests of a connection that are no calls, such as for an actor's methods, and their answers.

Sending them is left to `_calling.connection`.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fray._pb import actor_pb2


class Question:
    """A request that is no call, and its answer."""

    __slots__ = ("answer", "answered")

    def __init__(self) -> None:
        self.answered = threading.Lock()
        """Held until the answer has come, or none will."""
        self.answered.acquire()
        self.answer: actor_pb2.Frame | None = None


class Questions:
    """The questions of one connection that are not answered, by their ids."""

    def __init__(self) -> None:
        self._open: dict[int, Question] = {}
        self._ids = itertools.count(1)

    def new_id(self) -> int:
        """Return an id that no other question or ping of the connection has."""
        return next(self._ids)

    def ask(self, number: int) -> Question:
        """Open a question."""
        question = self._open[number] = Question()
        return question

    def withdraw(self, number: int) -> bool:
        """Expect no answer any more; return whether there was none."""
        return self._open.pop(number, None) is not None

    def answer(self, number: int, frame: actor_pb2.Frame) -> None:
        """Record an answer. One that no caller waits for is dropped."""
        question = self._open.pop(number, None)
        if question is not None:
            question.answer = frame
            question.answered.release()

    def end(self) -> None:
        """Release all that wait: there will be no answers."""
        while self._open:
            _, question = self._open.popitem()
            question.answered.release()
