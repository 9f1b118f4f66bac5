"""Handles of actors, whose calls raise what the method raised."""

from __future__ import annotations

from typing import Any

from fray.actor import ActorUnavailableError
from fray.rpc.errors import ActorError, ApplicationError, UnavailableError, UnknownActorError
from fray.rpc.future import ActorFuture
from fray.rpc.handle import ActorHandle, ActorMethod


class Handle:
    """An actor, see fray.actor.ActorHandle. It may be pickled."""

    def __init__(self, inner: ActorHandle[Any]) -> None:
        """Call by fray's own handle."""
        self._inner = inner

    def __getattr__(self, method_name: str) -> Method:
        if method_name.startswith("_"):
            raise AttributeError(method_name)
        return Method(self._inner[method_name])

    def __reduce__(self) -> tuple[Any, ...]:
        return Handle, (self._inner,)

    def __eq__(self, other: object) -> bool:
        return self._inner == other._inner if isinstance(other, Handle) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._inner)

    def __repr__(self) -> str:
        return repr(self._inner)


class Method:
    """One method, see fray.actor.ActorMethod."""

    def __init__(self, inner: ActorMethod[..., Any]) -> None:
        """Call fray's own."""
        self._inner = inner

    def remote(self, *args: Any, **kwargs: Any) -> Future:
        """Call it and return at once."""
        return Future(self._inner.remote(*args, **kwargs))

    def submit(self, *args: Any, **kwargs: Any) -> Future:
        """Do the same."""
        return self.remote(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it and wait for the result."""
        return self.remote(*args, **kwargs).result()


class Future:
    """A result, see fray.actor.ActorFuture."""

    def __init__(self, inner: ActorFuture[Any]) -> None:
        """Wait for fray's own."""
        self._inner = inner

    def result(self, timeout: float | None = None) -> Any:
        """Return what the method returned, or raise what it raised."""
        try:
            return self._inner.result(timeout)
        except ActorError as err:
            raised = _exception_of(err)
            if raised is err:
                raise
            cause = err.__cause__ or err  # before it refers to itself
        raise raised from cause

    def done(self) -> bool:
        """Return whether the call has ended."""
        return self._inner.done()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what `result` raises, None if it returns."""
        found = self._inner.exception(timeout)
        return _exception_of(found) if isinstance(found, ActorError) else found


def _exception_of(err: ActorError) -> Exception:
    """Return what a caller gets of a failed call: the exception of the method itself, where it can be had."""
    if isinstance(err, ApplicationError) and err.raised is not None:
        return err.raised
    if isinstance(err, (UnavailableError, UnknownActorError)):
        return ActorUnavailableError(str(err))
    return err
