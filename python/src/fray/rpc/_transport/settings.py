"""The settings of a client's connections.

What a connection does with them is left to `_calling.connection`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fray.rpc._transport.names import process_peer


@dataclass(frozen=True, slots=True)
class Settings:
    """How to connect. Times are in seconds."""

    peer: str = field(default_factory=process_peer)
    """The name of the calling process, as Handshake.peer."""
    namespace: str = ""
    """The scope of the actors' names; servers of another one reject the connection. "": of any."""
    identity: str = ""
    """Path of a PEM file with the namespace's certificate and its key; "" is plain text."""
    secret: bytes = field(default=b"", repr=False)
    """What proves the namespace where there is no identity: of a LocalCluster's, see `_transport.proof`."""
    max_message_bytes: int = 1 << 30
    """The largest result that is received, in bytes; decoding one takes at most as much memory again."""
    transfer_memory: int = 2 << 30
    """Bytes of large results that are received at once, by all clients of the process with this limit; others
    wait."""
    allow_pickle: bool = False
    """Take pickled results, which run code that the server names, also of actors that create_actor did not
    make. It takes effect with an identity only."""
    keepalive: float = 10.0
    """How long the server may be silent before it is pinged."""
    patience: float = 20.0
    """How much longer it may be silent before it is taken for gone."""
    connect_timeout: float = 10.0
    renew_identity: Callable[[], None] | None = field(default=None, compare=False, repr=False)
    """Brings the identity up to date; called when it lacks the authority of a server. None: another process
    does that."""
