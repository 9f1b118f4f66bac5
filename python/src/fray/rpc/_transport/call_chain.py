"""The chain of calls that the running code belongs to: the call that it answers, if it answers one.

A method that calls other actors passes its deadline on, and may wait for itself; both need to know here
which call the method answers. How such a call runs and what it does to others is left to `_serving.call`
and `_calling.selfcall`.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import asyncio

    from fray.rpc.errors import ActorError

call_deadline: Final[ContextVar[float | None]] = ContextVar("fray_call_deadline", default=None)
"""When the call that this code answers is late, by time.monotonic(); None: never, or it answers none.

Calls that it makes inherit it.
"""


class ChainedCall(Protocol):
    """A call to an actor of this process, as seen by the calls that its method makes."""

    task: asyncio.Task[None] | None
    """Runs an asynchronous method."""

    @property
    def tag(self) -> str:
        """What the lines that it writes begin with, see `_serving.output`."""
        ...

    @property
    def method_name(self) -> str:
        """The name of the method."""
        ...

    @property
    def runs(self) -> bool:
        """Whether the method has begun and is not answered."""
        ...

    def slot(self, method: str) -> object:
        """Return what calls of a method of the same actor take turns for; None: they take none."""
        ...

    def waiting(self, server: str, caller: str, seq: int) -> ChainedCall | None:
        """Return a call that has not begun at this server; both processes are named as by Handshake.peer."""
        ...

    def drop(self, err: ActorError) -> bool:
        """Answer with an error if the method has not begun; return whether that was so."""
        ...


class _Here(threading.local):
    call: ChainedCall | None = None


here: Final = _Here()
"""The call that this thread runs. Threads that a method starts run none: it may return before they do."""
task_call: Final[ContextVar[ChainedCall | None]] = ContextVar("fray_actor_call", default=None)
"""The call whose coroutine this is, or that began this task."""


def running() -> ChainedCall | None:
    """Return the call that the running code answers, if that call waits for whatever the code waits for."""
    call = here.call
    if call is not None:
        return call
    call = task_call.get()
    if call is None or call.task is None:
        return None
    import asyncio

    try:
        return call if asyncio.current_task() is call.task else None
    except RuntimeError:
        return None  # another thread, with a copy of the context
