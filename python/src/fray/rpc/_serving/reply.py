"""Replies to calls on the server's side, and the protocol of what takes them to their callers.

Keeping replies is left to `_serving.ledger`, and sending them to `_serving.session` and `_serving.grpc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from fray._pb import actor_pb2

if TYPE_CHECKING:
    from fray.rpc._transport.wire import Buffer
    from fray.rpc.errors import ActorError

Reply: TypeAlias = "tuple[actor_pb2.Reply, Sequence[Buffer]]"
"""A reply and the buffers beside it."""


class Answerer(Protocol):
    """Takes the reply to a call to its caller."""

    takes_streams: bool
    """The caller takes a stream as the answer to any call."""

    def answer(self, reply: actor_pb2.Reply, buffers: Sequence[Buffer], later: bool) -> None:
        """Send it; `later`: this thread is about to run another call."""
        ...


def payload_size(reply: Reply) -> int:
    """Return how many bytes a reply carries."""
    return len(reply[0].result) + sum(len(b) for b in reply[1])


def error_reply(seq: int, incarnation: str, err: ActorError) -> Reply:
    """Return the reply that carries an error."""
    return actor_pb2.Reply(seq=seq, incarnation=incarnation, error=err.to_wire()), ()
