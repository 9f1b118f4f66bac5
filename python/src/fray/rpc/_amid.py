"""Detects that a handler of a signal, or a finalizer, interrupts its thread while that sends or receives.

What to do then is left to `_route`.
"""

from __future__ import annotations

import inspect
import threading
from _thread import get_ident
from typing import Final

_PARTS: Final = frozenset(f"fray.rpc.{name}" for name in ("_route", "_channel", "_connection", "_writer"))


def interrupts() -> bool:
    """Return whether the code that calls the caller interrupts this thread's work on other calls.

    What is half done then goes on only afterwards: locks that the thread holds stay held until then, and half
    of a frame stays half. Only handlers of signals may wait for others there, and only the main thread has
    them. This takes some microseconds.
    """
    if get_ident() != threading.main_thread().ident:
        return False
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame and frame.f_back
    while (frame := frame and frame.f_back) is not None:
        if frame.f_globals.get("__name__") in _PARTS:
            return True
    return False
