"""How a client reaches a server, and the checks of the server's Handshake.

What is sent afterwards is left to `_calling.connection`.
"""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Final

from fray.rpc._transport import wire as _wire
from fray.rpc._transport.failure import clip
from fray.rpc._transport.tls import (
    Identity,
    IdentityError,
    UnknownAuthorityError,
    identity_of,
    is_unknown_authority,
)
from fray.rpc._transport.wire import PlainStream
from fray.rpc.errors import DeniedError, MalformedError, UnavailableError, VersionError, of_wire

if TYPE_CHECKING:
    from fray._pb import actor_pb2
    from fray.rpc._transport.reader import FrameReader
    from fray.rpc._transport.settings import Settings
    from fray.rpc._transport.wire import Stream

OTHER_NAMESPACE: Final = "peers of another namespace are not served"
"""The reason of a rejection."""

_MAX_PEER: Final = 64  # characters of a server's name


def dial(address: str, settings: Settings) -> Stream:
    """Connect to host:port. Raises as Connection.open does."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise UnavailableError(f'"{address}" is no address; it must be host:port')
    identity = _identity(settings)
    try:
        sock = socket.create_connection((host.strip("[]"), int(port)), settings.connect_timeout)
    except (OSError, OverflowError) as err:
        raise UnavailableError(f"no server answers at {address}: {err}") from err
    if identity is None:
        return PlainStream(sock)
    try:
        return identity.connect(sock, settings.connect_timeout)
    except IdentityError as err:
        sock.close()
        raise DeniedError(f"{OTHER_NAMESPACE}: {err}") from err
    except UnknownAuthorityError as err:
        sock.close()
        if settings.renew_identity is not None:
            settings.renew_identity()
        raise UnavailableError(f"{address} does not answer: {err}") from err
    except OSError as err:
        sock.close()
        raise UnavailableError(f"{address} does not answer: {err}") from err


def _identity(settings: Settings) -> Identity | None:
    if not settings.identity:
        return None
    try:
        return identity_of(settings.identity)
    except (OSError, ValueError) as err:
        raise DeniedError(f"the identity in {settings.identity} cannot be used: {err}") from err


def receive_handshake(reader: FrameReader, address: str) -> actor_pb2.Handshake:
    """Return the Handshake of the server at an address. Raises as Connection.open does."""
    try:
        frame, _ = reader.receive()
    except (_wire.MalformedFrameError, _wire.OversizeError) as err:
        raise MalformedError(f"{address} does not speak the actor protocol: {err}") from err
    except ssl.SSLError as err:
        if is_unknown_authority(err):  # as that of a new leader is, for a moment
            raise UnavailableError(f"{address} does not know the issuer of our certificate") from err
        raise DeniedError(OTHER_NAMESPACE) from err
    except (OSError, EOFError, _wire.SilentError) as err:
        raise UnavailableError(f"{address} does not answer: {describe(err)}") from err
    if frame.HasField("close"):
        raise of_wire(frame.close.error)
    if not frame.HasField("handshake"):
        raise MalformedError(f"{address} sent no handshake as its first frame")
    return frame.handshake


def check_handshake(handshake: actor_pb2.Handshake, address: str, namespace: str) -> None:
    """Raise as Connection.open does, unless a client of `namespace` can call the server of `handshake`."""
    if not 0 < len(handshake.peer) <= _MAX_PEER:
        raise MalformedError(
            f"{address} does not speak the actor protocol: Handshake.peer is empty or too long"
        )
    if handshake.version != _wire.VERSION:
        raise VersionError(_wire.version_problem(handshake.version, _wire.VERSION))
    theirs = handshake.namespace
    if namespace and theirs and namespace != theirs:
        raise DeniedError(f'{OTHER_NAMESPACE}: the server is of namespace "{clip(theirs)}"')


def describe(err: Exception) -> str:
    """Return why a connection broke, as text."""
    if isinstance(err, _wire.SilentError):
        return "it is silent"
    if isinstance(err, EOFError):
        return "it was closed from there"
    return str(err)
