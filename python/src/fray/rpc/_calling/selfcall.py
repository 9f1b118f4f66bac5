"""Detects a method that waits for a call which cannot begin before the method itself has returned.

It compares the call that the running code answers with the one that it waits for. Waiting, and ending the two
calls, is left to futures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fray.rpc._transport.call_chain import ChainedCall, running
from fray.rpc.errors import SelfCallError

if TYPE_CHECKING:
    import asyncio

CHECK_INTERVAL: Final = 0.1
"""Seconds after which a waiting method checks whether it waits for itself; by then the call was sent."""


def suspect(method: str) -> ChainedCall | None:
    """Return the running call that may wait for itself by waiting for a call of a method of that name.

    None: it certainly does not.
    """
    call = running()
    if call is None:
        return None
    own = call.slot(call.method_name)
    return call if own is not None and own == call.slot(method) else None


def held_up(call: ChainedCall, server: str, caller: str, seq: int) -> ChainedCall | None:
    """Return the call with this number if it waits for the running one, which waits for it.

    Args:
        call: The running one.
        server: The process that the other one was sent to, as Handshake.peer.
        caller: The process that sent it, as Handshake.peer.
        seq: Its number among the calls of that caller.
    """
    if not call.runs:
        return None
    found = call.waiting(server, caller, seq)
    if found is None or found.slot(found.method_name) != call.slot(call.method_name):
        return None
    return found


def check_later(loop: asyncio.AbstractEventLoop, over: Callable[[], bool]) -> None:
    """Call `over` on the loop at intervals, until it returns True."""

    def check() -> None:
        if not over():
            check_later(loop, over)

    loop.call_later(CHECK_INTERVAL, check)


def problem(call: ChainedCall) -> SelfCallError:
    """Return the error for that."""
    return SelfCallError(
        f"the actor's own {call.method_name} waits for it, and one of the two runs at a time: call the "
        "method on self, do not wait for it, or register the actor with a max_concurrency of 2 or more, or "
        "give the method a concurrency_group of its own"
    )
