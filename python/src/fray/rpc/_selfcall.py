"""Notices a method that waits for a call which cannot begin before the method itself has returned."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from fray.rpc.errors import SelfCallError

if TYPE_CHECKING:
    import asyncio

    from fray.rpc._call import ServerCall
    from fray.rpc.future import ActorFuture

LOOK: Final = 0.1
"""Seconds after which one who waits looks whether it is for itself; by then the call was sent."""


class _Here(threading.local):
    call: ServerCall | None = None


here: Final = _Here()
"""The call that this thread runs. Threads that a method starts run none: it may return before they do."""
task_call: Final[ContextVar[ServerCall | None]] = ContextVar("fray_actor_call", default=None)
"""The call whose coroutine this is, or that began this task."""


def running() -> ServerCall | None:
    """Return the call that the code answers which asks, if what it waits for holds that call up."""
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


def suspect(future: ActorFuture[Any]) -> ServerCall | None:
    """Return the running call that may wait for itself by waiting for another; None: it surely does not."""
    call = running()
    if call is None:
        return None
    own = call.actor.slot(call.method.name)
    return call if own is not None and own == call.actor.slot(future.call.method) else None


def held_up(call: ServerCall, future: ActorFuture[Any]) -> ServerCall | None:
    """Return the call that a future stands for, if it waits for the one that runs and waits for it."""
    channel = future.channel
    if channel is None or not call.runs:
        return None
    found = call.actor.waiting(channel.server, channel.settings.peer, future.call.seq)
    if found is None or found.actor.slot(found.method.name) != call.actor.slot(call.method.name):
        return None
    return found


def look_later(loop: asyncio.AbstractEventLoop, call: ServerCall, future: ActorFuture[Any]) -> None:
    """See to it that a coroutine which awaits a future does not wait for itself."""

    def look() -> None:
        if not future.done() and not future.is_stuck(call):
            look_later(loop, call, future)

    loop.call_later(LOOK, look)


def problem(call: ServerCall) -> SelfCallError:
    """Return the words for that."""
    return SelfCallError(
        f"the actor's own {call.method.name} waits for it, and one of the two runs at a time: call the "
        "method on self, do not wait for it, or register the actor with a max_concurrency of 2 or more, or "
        "give the method a concurrency_group of its own"
    )
