"""Random names of processes, connections and incarnations of actors.

The names of actors, which their programs choose, are left to `server`.
"""

from __future__ import annotations

import os
import secrets
import string
from functools import lru_cache
from typing import Final

_PEER_LENGTH: Final = 26


def process_peer() -> str:
    """Return the name that this process has as a caller: random, and another one after a fork."""
    return _peer_of(os.getpid())


@lru_cache(maxsize=1)
def _peer_of(_pid: int) -> str:
    return random_name()


def random_name() -> str:
    """Return letters and digits that no other process has."""
    alphabet = string.ascii_lowercase + "234567"
    return "".join(secrets.choice(alphabet) for _ in range(_PEER_LENGTH))
