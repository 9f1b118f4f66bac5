"""Detects that a handler of a signal, or a finalizer, interrupts its thread while that sends or receives.

Which modules send and receive, and what to do then, is left to `_calling.route`.
"""

from __future__ import annotations

import inspect
import threading
from _thread import get_ident
from types import ModuleType


class Interruptions:
    """Detects code that interrupts some modules.

    It is given the modules, not their names, so that one that moves is not missed.
    """

    def __init__(self, *modules: ModuleType) -> None:
        self._parts = frozenset(id(vars(module)) for module in modules)

    def here(self) -> bool:
        """Return whether the code that calls the caller interrupts this thread's work on other calls.

        What is half done then goes on only afterwards: locks that the thread holds stay held until then, and
        half of a frame stays half. Only handlers of signals may wait for others there, and only the main
        thread has them. This takes some microseconds.
        """
        if get_ident() != threading.main_thread().ident:
            return False
        frame = inspect.currentframe()
        for _ in range(2):
            frame = frame and frame.f_back
        while (frame := frame and frame.f_back) is not None:
            if id(frame.f_globals) in self._parts:
                return True
        return False
