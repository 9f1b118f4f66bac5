from __future__ import annotations

import threading
import time
from collections.abc import Callable


def eventually(what: Callable[[], object], seconds: float = 300) -> None:
    """Wait until something is true."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, f"not within {seconds} s"
        time.sleep(0.01)


def ended(thread: threading.Thread, seconds: float = 300) -> None:
    """Wait until a thread has ended."""
    thread.join(seconds)
    assert not thread.is_alive(), f"{thread.name} runs after {seconds} s"
