"""What a connection returns of a call: proof of sending at first, and what became of it at last.

Sending is left to `_calling.connection`, and what a lost call means to `_calling.channel` and
`_calling.route`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from fray._pb import actor_pb2


class Answer:
    """What became of a call: a reply with its buffers, or the reason why there will be none."""

    __slots__ = ("buffers", "items", "lost", "pickles", "reply")

    def __init__(
        self,
        reply: actor_pb2.Reply | None,
        buffers: Sequence[memoryview],
        lost: Exception | None,
        pickles: bool = False,
        items: actor_pb2.Items | None = None,
    ) -> None:
        self.pickles = pickles
        """Pickle may be read: its server has proven to be of this namespace, and both sides allow it."""
        self.reply = reply
        """None where the connection was lost."""
        self.buffers = buffers
        self.items = items
        """Of a stream, with its buffers: then what became of the call is still to come."""
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
"""Stands for the `sent` of a call while it is being sent."""
