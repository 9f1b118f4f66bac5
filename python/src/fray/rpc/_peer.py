"""What a connection is made with, and what it gives back."""

from __future__ import annotations

import os
import secrets
import string
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol

from fray._pb import actor_pb2

_PEER_LENGTH: Final = 26


def process_peer() -> str:
    """Return the name that this process has as a caller: random, and another one after a fork."""
    return _peer_of(os.getpid())


@lru_cache(maxsize=1)
def _peer_of(_pid: int) -> str:
    return random_name()


def random_name() -> str:
    """Return letters and digits that nobody else has."""
    alphabet = string.ascii_lowercase + "234567"
    return "".join(secrets.choice(alphabet) for _ in range(_PEER_LENGTH))


@dataclass(frozen=True, slots=True)
class Settings:
    """How to connect. Times are in seconds."""

    peer: str = field(default_factory=process_peer)
    """Who calls, as Hello.peer."""
    namespace: str = ""
    identity: str = ""
    """Path of a PEM file with the namespace's certificate and its key; "" is plain text."""
    max_message_bytes: int = 64 << 20
    allow_pickle: bool = False
    keepalive: float = 10.0
    """How long the server may be silent before it is pinged."""
    patience: float = 20.0
    """How much longer it may be silent before it is taken for gone."""
    connect_timeout: float = 10.0


class Answer:
    """What became of a call: a reply with its buffers, or the reason why there will be none."""

    __slots__ = ("buffers", "lost", "reply")

    def __init__(
        self, reply: actor_pb2.Reply | None, buffers: Sequence[memoryview], lost: Exception | None
    ) -> None:
        self.reply = reply
        """None where the connection was lost."""
        self.buffers = buffers
        self.lost = lost
        """Why the connection ended before the reply, else None. `may_have_arrived` is certain by then."""


class Sent(Protocol):
    """A call that was handed to a connection."""

    answered: bool
    """Its reply has come."""
    attended: bool
    """A thread waits for it that would rather have received the reply itself."""

    @property
    def may_have_arrived(self) -> bool:
        """Whether the server may have it. Once the connection is lost, False means that it never had it."""
        ...


class _Sending:
    """Stands for a call that is being handed to a connection."""

    may_have_arrived = True
    answered = attended = False


SENDING: Final[Sent] = _Sending()
"""What such a call has been sent as, for who looks meanwhile."""


class Question:
    """A request that is no call, and its answer."""

    __slots__ = ("answer", "answered")

    def __init__(self) -> None:
        self.answered = threading.Lock()
        self.answered.acquire()
        self.answer: actor_pb2.Frame | None = None
