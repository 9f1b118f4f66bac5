"""The tasks that a rollout worker has at once, one in each of its slots, and how slots come to them.

A slot is a thread. Slots that have ended their tasks at the same time end their leases, and get others, by
one call of the loader.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from fray.rl.combined import Combined, LongPoll
from fray.rl.wire import Exchange, Task, TaskOutcome

LINGER = 0.01
"""Seconds that a call waits for further slots of its worker, while any rolls out."""
LONG = 5.0
"""Seconds of one call that waits for a task."""
_IDLE = 0.05  # seconds between two questions that were answered at once

Reach = Callable[[Callable[[], Any]], Any]


class Ended(NamedTuple):
    """A task that has ended, and whose lease has not."""

    task: Task
    outcome: TaskOutcome | str


@dataclass
class Slot:
    """One task at a time."""

    task: Task | None = None
    since: float = 0.0
    """When it was begun, by the monotonic clock."""
    stored: bool = False
    """A trajectory of it was stored."""
    ended: Ended | None = None
    """The task before, while the loader does not know of its end."""

    def take(self, task: Task) -> None:
        """Begin a task."""
        self.task, self.since, self.stored = task, time.monotonic(), False

    def leave(self, outcome: TaskOutcome | str) -> None:
        """End the task, if there is one."""
        if self.task is not None:
            self.ended, self.task = Ended(self.task, outcome), None


class _Request(NamedTuple):
    slot: Slot
    loader: Any
    since: int  # interrupts before the loader was chosen


class Slots:
    """The slots of one worker."""

    def __init__(self, count: int, worker: Callable[[], str], incarnation: str, reach: Reach) -> None:
        """Make slots.

        Args:
            count: How many.
            worker: Returns the worker's name.
            incarnation: Of the worker.
            reach: Makes a call until its actor answers; None: the worker is to stop before.
        """
        self._worker, self._incarnation, self._reach = worker, incarnation, reach
        self.all = [Slot() for _ in range(count)]
        self._own = threading.local()
        self._lock = threading.Lock()
        self._held: dict[str, Any] = {}  # the loaders of leases
        self._requests: Combined[_Request, Task | None] = Combined(self._exchange, LINGER, self._others)
        self._poll = LongPoll()
        self._interrupted = threading.Event()

    @property
    def own(self) -> Slot:
        """The slot of this thread; in another thread that of a worker that has one only."""
        slot: Slot | None = getattr(self._own, "slot", None)
        return slot or (self.all[0] if len(self.all) == 1 else Slot())

    def begin(self, slot: Slot) -> None:
        """Have this thread be a slot's."""
        self._own.slot = slot

    @property
    def rolling(self) -> int:
        """How many slots have a task."""
        return sum(slot.task is not None for slot in self.all)

    def interrupt(self) -> None:
        """End waits for tasks."""
        self._poll.interrupt()
        self._interrupted.set()

    def next(self, slot: Slot, choose: Callable[[], Any]) -> Task | None:
        """End the lease of the slot's last task, and return another one; None: there is none yet.

        Args:
            slot: That of this thread.
            choose: Returns the loader. It is called again after `interrupt`, which ends a wait.
        """
        began, since = time.monotonic(), self._poll.interrupts
        task = self._requests.ask(_Request(slot, choose(), since))
        if task is None:
            self._interrupted.clear()
            if self._poll.interrupts == since and (left := began + _IDLE - time.monotonic()) > 0:
                self._interrupted.wait(left)
        return task

    def take(self, slot: Slot, choose: Callable[[], Any]) -> Task | None:
        """Do the same without a wait."""
        return self._requests.ask(_Request(slot, choose(), -1))

    def end(self, slot: Slot) -> None:
        """End the lease of the slot's last task."""
        if slot.ended is not None:
            self._requests.ask(_Request(slot, None, -1))

    def forget(self, task: Task) -> None:
        """Note that a lease has ended otherwise. If it has not, its task comes again."""
        with self._lock:
            self._held.pop(task.lease.id, None)

    def _others(self) -> int:
        return self.rolling if len(self.all) > 1 else 0

    def _exchange(self, requests: list[_Request]) -> list[Task | None]:
        """Make one call of each loader that requests are of."""
        ended = [r.slot.ended for r in requests if r.slot.ended is not None]
        of = {each.task.lease.id: self._held.get(each.task.lease.id) for each in ended}
        found: dict[int, Task] = {}
        try:
            for loader in _distinct([*of.values(), *(r.loader for r in requests)]):
                wanting = [r for r in requests if r.loader is loader]
                done = [each for each in ended if of[each.task.lease.id] is loader]
                for request, task in zip(wanting, self._asked(loader, done, wanting), strict=False):
                    found[id(request.slot)] = task
        except BaseException:
            for task in found.values():
                self.forget(task)
            raise
        for request in requests:
            request.slot.ended = None
        return [found.get(id(request.slot)) for request in requests]

    def _asked(self, loader: Any, done: list[Ended], wanting: list[_Request]) -> list[Task]:
        leases = {each.task.lease.id for each in done}
        with self._lock:
            held = [known for known, of in self._held.items() if of is loader and known not in leases]
        since = min((request.since for request in wanting), default=-1)
        exchange = Exchange(
            [(each.task.lease.id, each.outcome) for each in done],
            held,
            len(wanting),
            0.0 if since < 0 or self.rolling else LONG,
        )
        found: list[Task] | None = self._reach(
            lambda: loader.exchange(self._worker(), self._incarnation, exchange, self._poll, since)
        )
        with self._lock:
            for known in leases:
                self._held.pop(known, None)
            for task in found or ():
                self._held[task.lease.id] = loader
        return found or []


def _distinct(loaders: Iterable[Any]) -> Iterable[Any]:
    return {id(loader): loader for loader in loaders if loader is not None}.values()
