"""Watches of registries, which can be ended by another thread than the one that waits for the next change."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fray._latch import Latch
from fray.cluster.types import ActorChanges


class Ending:
    """Reports to the thread that waits for the next change that the watch was closed."""

    def __init__(self) -> None:
        self._over = Latch()
        self._wake: Callable[[], object] = lambda: None

    @property
    def over(self) -> bool:
        """Whether that is so."""
        return self._over.is_set()

    def wait(self, seconds: float) -> None:
        """Wait, unless it is over."""
        self._over.wait(seconds)

    def wakes(self, wake: Callable[[], object]) -> None:
        """Set what makes the waiting thread check whether the watch is over; it is called at once if so."""
        self._wake = wake
        if self.over:
            wake()

    def end(self) -> None:
        """Let it be over."""
        self._over.set()
        self._wake()


class Watch(Iterator[ActorChanges]):
    """Changes as they come."""

    def __init__(self, changes: Callable[[Ending], Iterator[ActorChanges]]) -> None:
        """Watch for what `changes` yields until the ending that it is given."""
        self._ending = Ending()
        self._changes = changes(self._ending)

    def __next__(self) -> ActorChanges:
        """Wait for the next change."""
        if self._ending.over:
            raise StopIteration
        return next(self._changes)

    def close(self) -> None:
        """End it, from any thread. A thread that waits for the next change gets StopIteration."""
        self._ending.end()
