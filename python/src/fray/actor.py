"""Actors in the words of marin-fray's `fray.actor`: what a handle is, and which actor this code is.

For programs that were written for marin-fray. New ones use `fray.v2`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Any, Protocol


class ActorUnavailableError(RuntimeError):
    """The actor cannot be reached now. The method did not run."""


class ActorFuture(Protocol):
    """The result of a call that goes on."""

    def result(self, timeout: float | None = None) -> Any:
        """Return what the method returned, or raise what it raised.

        Raises:
            TimeoutError: the seconds were over before. The call goes on.
            ActorUnavailableError: the actor cannot be reached.
            fray.rpc.errors.ActorError: the call failed otherwise.
        """
        ...


class ActorMethod(Protocol):
    """One method of an actor."""

    def remote(self, *args: Any, **kwargs: Any) -> ActorFuture:
        """Call it and return at once."""
        ...

    def submit(self, *args: Any, **kwargs: Any) -> ActorFuture:
        """Do the same: calls of any length survive broken connections."""
        ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it and wait for the result."""
        ...


class ActorHandle(Protocol):
    """An actor, wherever it is. Its attributes are the methods."""

    def __getattr__(self, method_name: str) -> ActorMethod:
        """Return a method."""
        ...


class ActorGroup(Protocol):
    """Actors that were created together."""

    @property
    def ready_count(self) -> int:
        """How many can be called."""
        ...

    def wait_ready(self, count: int | None = None, timeout: float = 300.0) -> list[ActorHandle]:
        """Block until `count` of them can be called, all by default, and return the handles of so many.

        Raises:
            TimeoutError: the seconds were over before.
            ActorCreationError: so many failed for good that `count` cannot be reached.
        """
        ...

    def discover_new(self) -> list[ActorHandle]:
        """Return the handles of those that can be called and were not returned before."""
        ...

    def is_done(self) -> bool:
        """Return whether none of them is there, or will be."""
        ...

    def shutdown(self) -> None:
        """End all of them."""
        ...


@dataclass(frozen=True)
class ActorContext:
    """What an actor knows of itself."""

    handle: ActorHandle
    """Of itself, to be passed to others."""
    index: int
    """Of it in its group, from 0 on."""
    group_name: str
    shutdown_event: threading.Event | None = None
    """Set by the actor when it has done its work: its process ends then. None: it is an object of the process
    that created it, and ends with its group."""
    _errors: list[BaseException] = field(default_factory=list, repr=False)

    def fail(self, exc: BaseException) -> None:
        """Have the actor fail, and be started again as its retries allow."""
        self._errors.append(exc)
        if self.shutdown_event is not None:
            self.shutdown_event.set()


class HostedActor:
    """An actor that this process hosts."""

    def __init__(self, handle: ActorHandle, stop: Callable[[], None] | None = None) -> None:
        self.handle, self._stop = handle, stop

    def shutdown(self) -> None:
        """End it."""
        stop, self._stop = self._stop, None
        if stop is not None:
            stop()


_current: ContextVar[ActorContext | None] = ContextVar("fray_marin_actor", default=None)


def current_actor() -> ActorContext:
    """Return what the actor knows of itself whose constructor calls this.

    Raises:
        RuntimeError: no constructor of an actor does.
    """
    context = _current.get()
    if context is None:
        raise RuntimeError("current_actor() is for constructors of actors, which keep what they need of it")
    return context


def _set_current_actor(context: ActorContext) -> Token[ActorContext | None]:
    return _current.set(context)


def _reset_current_actor(token: Token[ActorContext | None]) -> None:
    _current.reset(token)
