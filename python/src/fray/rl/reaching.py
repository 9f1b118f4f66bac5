"""Calls of actors that are made again until they answer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from fray.rl.references import UNREACHABLE

_T = TypeVar("_T")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between two tries
_log = logging.getLogger("fray.rl")


def reach(call: Callable[[], _T], stopping: threading.Event, caller: str) -> _T | None:
    """Make a call that may be repeated until its actor answers; None: the caller is to stop before."""
    pause = _FIRST_PAUSE
    while True:
        try:
            return call()
        except UNREACHABLE as err:
            _log.warning("%s: %s", caller, err)
            if stopping.wait(pause):
                return None
            pause = min(_LONGEST_PAUSE, pause * 2)
