"""Proofs that both ends of a connection are of one namespace, and whether it carries pickle.

With an identity TLS proves it. Processes of a LocalCluster have none, but a secret that only processes of
that cluster know. It is never sent: the client sends a code that takes the secret to make, of the addresses
of the connection and of the time. So a server that was sent one cannot use it elsewhere or later. The server
answers with a code of that code.
"""

from __future__ import annotations

import hmac
from time import monotonic_ns
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fray._pb import actor_pb2

_TIME: Final = 8  # bytes


def make(secret: bytes, addresses: str) -> bytes:
    """Return the proof that a client sends over a connection with these addresses; b"" without a secret."""
    if not secret:
        return b""
    now = monotonic_ns().to_bytes(_TIME)
    return now + _code(secret, b"client", now, addresses.encode())


def check(secret: bytes, proof: bytes, addresses: str, since: int) -> bool:
    """Return whether the peer that sent a proof knows the secret, and made it for this server.

    Args:
        secret: Of the namespace; b"": there is none.
        proof: What was sent.
        addresses: Those of the connection, see PlainStream.addresses.
        since: When the server began to listen, by time.monotonic_ns: a process that listened at its address
            before may have been sent others.
    """
    now, code = proof[:_TIME], proof[_TIME:]
    if not secret or int.from_bytes(now) < since:
        return False
    return hmac.compare_digest(code, _code(secret, b"client", now, addresses.encode()))


def answer(secret: bytes, proof: bytes) -> bytes:
    """Return the proof of the server that was sent one."""
    return _code(secret, b"server", proof)


def check_answer(secret: bytes, proof: bytes, answered: bytes) -> bool:
    """Return whether the server knows the secret."""
    return bool(secret) and hmac.compare_digest(answered, answer(secret, proof))


def _code(secret: bytes, *parts: bytes) -> bytes:
    return hmac.digest(secret, b"\0".join(parts), "sha256")


def agreed(own: actor_pb2.Handshake, other: actor_pb2.Handshake) -> bool:
    """Return whether pickle is the fallback between two ends that have proven one namespace."""
    return (own.pickle_created and other.pickle_created) or (own.pickle and other.pickle)
