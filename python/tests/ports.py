"""Ports that can be taken later, or again."""

from __future__ import annotations

import contextlib
import random
import socket


def listen() -> socket.socket:
    """Listen at a port that no system gives to who asks for any: a moment later it might be another's."""
    for _ in range(100):
        with contextlib.suppress(OSError):
            return socket.create_server(("127.0.0.1", random.randrange(10_000, 20_000)))
    raise OSError("a hundred ports are in use")
