"""What a scenario asks of an engine, which is fray or Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

LOST = "lost"
"""The call may have run, and its actor's process has gone."""
DEAD = "dead"
"""The actor is gone for good."""
TIMEOUT = "timeout"
CANCELLED = "cancelled"
TAKEN = "the name is taken"
UNKNOWN = "there is no such actor"
UNMADE = "the actor could not be created"
INVALID = "invalid"


class Engine(Protocol):
    """Creates actors and calls them. Handles and futures have the names that both engines share."""

    scratch: Path
    """An empty directory."""

    def create(self, actor_class: Any, *args: Any, name: str | None = None, **options: Any) -> Any:
        """Create an actor and return its handle.

        Options are max_restarts, max_concurrency, concurrency_groups, get_if_exists and detached, as in both
        engines, and retries and retry_exceptions, which hold for the calls of the handle.
        """
        ...

    def grouped(self, group: str) -> Callable[[Any], Any]:
        """Return what puts a method into a concurrency group."""
        ...

    def get(self, futures: Any, timeout: float | None = None) -> Any:
        """Return the result of a future, or of each of a list."""
        ...

    def getter(self) -> Callable[[Any], Any]:
        """Return what an actor gets a result with."""
        ...

    def wait(
        self, futures: Sequence[Any], num_returns: int = 1, timeout: float | None = None
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Wait for some futures; return those that have ended, and the others."""
        ...

    def stream(self, method: Any, *args: Any) -> Iterator[Any]:
        """Call a method that is a generator, and return its items."""
        ...

    def stop_stream(self, stream: Iterator[Any]) -> None:
        """Leave a stream."""
        ...

    def cancel(self, future: Any) -> None:
        """Ask that a call ends."""
        ...

    def kill(self, handle: Any, no_restart: bool = True) -> None:
        """End an actor at once."""
        ...

    def find(self, name: str) -> Any:
        """Return the handle of a named actor."""
        ...

    def pool(self, handles: Sequence[Any]) -> Any:
        """Return an ActorPool."""
        ...

    def driver(self) -> AbstractContextManager[Any]:
        """Return a program that creates actors, as an engine of its own; leaving the context ends it."""
        ...

    def named(self, error: BaseException) -> str:
        """Return the word for an error, or its class if it has none."""
        ...


def ends(engine: Engine, act: Callable[[], Any]) -> Any:
    """Return what happens: the result, or the word for the error."""
    try:
        return act()
    except BaseException as err:
        return engine.named(err)
