"""TLS between the processes of one namespace: both sides show a certificate for it, and accept no other.

Issuing the certificates is left to the cluster.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from fray.rpc._transport.wire import Buffer, PlainStream

ALPN: Final = ("fray-actor/1", "h2", "http/1.1")
"""What is spoken within: frames, gRPC, probes."""

_CHUNK: Final = 64 << 10  # bytes that are encrypted at once
_RECEIVED: Final = 256 << 10  # bytes
_SERVER_NAME = "fray-actors"
_UNKNOWN_AUTHORITY: Final = frozenset({18, 19, 20, 21})
"""What OpenSSL reports where a certificate leads to no authority that is trusted (X509_V_ERR_...)."""


class IdentityError(Exception):
    """The peer is not of the namespace."""


class UnknownAuthorityError(OSError):
    """No leader that is known here has certified the peer. That may pass: leaders change."""


class Identity:
    """A member's key, its certificate for a namespace, and the authorities whose certificates it accepts.

    They are in one PEM file, in this order, which is replaced when authorities come and go.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stamp = _stamp(path)
        self._parts = _Parts(path)

    def _current(self) -> _Parts:
        """Return what is in the file now, or what was last read of it.

        A file that cannot be read any more is one of a task that is about to end.
        """
        with self._lock, contextlib.suppress(OSError, ValueError):
            stamp = _stamp(self._path)
            if stamp != self._stamp:
                self._parts, self._stamp = _Parts(self._path), stamp
        return self._parts

    def accept(self, sock: socket.socket, seconds: float) -> TlsStream:
        """Shake hands with a client.

        Raises:
            IdentityError: it is of another namespace, or shows no certificate.
            OSError: it does not answer, or its authority is not known.
        """
        return self._handshake(sock, seconds, server=True)

    def connect(self, sock: socket.socket, seconds: float) -> TlsStream:
        """Shake hands with a server. Raises as `accept` does. A rejection may show at the first receive."""
        return self._handshake(sock, seconds, server=False)

    def _handshake(self, sock: socket.socket, seconds: float, server: bool) -> TlsStream:
        parts = self._current()
        context = parts.server if server else parts.client
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        name = None if server else _SERVER_NAME
        secured = context.wrap_bio(incoming, outgoing, server_side=server, server_hostname=name)
        until = time.monotonic() + seconds
        try:
            while not _step(secured):
                sock.settimeout(max(0.001, until - time.monotonic()))
                sock.sendall(outgoing.read())
                received = sock.recv(_CHUNK)
                if not received:
                    raise ConnectionResetError("it was closed from there")
                incoming.write(received)
            sock.sendall(outgoing.read())
        except ssl.SSLError as err:
            with contextlib.suppress(OSError):
                sock.sendall(outgoing.read())  # what is wrong
            if is_unknown_authority(err):
                raise UnknownAuthorityError(err.reason or str(err)) from err
            raise IdentityError(err.reason or str(err)) from err
        if not parts.same_namespace(secured):
            raise IdentityError("its certificate is for another namespace")
        return TlsStream(PlainStream(sock), secured, incoming, outgoing)


def is_unknown_authority(err: ssl.SSLError) -> bool:
    """Return whether one side does not know the issuer of the other's certificate."""
    if isinstance(err, ssl.SSLCertVerificationError):
        return err.verify_code in _UNKNOWN_AUTHORITY
    return err.reason == "TLSV1_ALERT_UNKNOWN_CA"


class _Parts:
    """What was in an identity's file at one time."""

    def __init__(self, path: str) -> None:
        pem = Path(path).read_text()
        start = pem.index(ssl.PEM_HEADER)
        end = pem.index(ssl.PEM_FOOTER) + len(ssl.PEM_FOOTER)
        self._certificate = ssl.PEM_cert_to_DER_cert(pem[start:end])
        self.server = self._context(ssl.PROTOCOL_TLS_SERVER, path)
        self.client = self._context(ssl.PROTOCOL_TLS_CLIENT, path)
        self.server.set_alpn_protocols(list(ALPN))
        self.client.set_alpn_protocols([ALPN[0]])

    @staticmethod
    def _context(protocol: ssl._SSLMethod, path: str) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(path)
        context.load_cert_chain(path)
        return context

    def same_namespace(self, secured: ssl.SSLObject) -> bool:
        """Return whether a verified peer is of the same namespace, or shows the very same certificate."""
        if secured.getpeercert(binary_form=True) == self._certificate:
            return True
        space = _space(secured.getpeercert())
        return bool(space) and _encoded(space) in self._certificate


def _space(certificate: Any) -> str:
    """Return which namespace a certificate, as the library describes it, is for; "": it names none."""
    names = [value for kind, value in (certificate or {}).get("subjectAltName", ()) if kind == "URI"]
    return names[0] if len(names) == 1 else ""


def _encoded(space: str) -> bytes:
    """Return a namespace as certificates have it, in DER: a URI among their names (RFC 5280, 4.2.1.6).

    The library decodes certificates of peers only, so that one's own is searched for this.
    """
    name = space.encode()
    if len(name) < 0x80:
        return bytes([0x86, len(name)]) + name
    if len(name) <= 0xFF:
        return bytes([0x86, 0x81, len(name)]) + name
    return bytes([0x86, 0x82]) + len(name).to_bytes(2) + name


def _stamp(path: str) -> tuple[int, int, int]:
    """Return what differs between two contents of a file."""
    status = Path(path).stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _step(secured: ssl.SSLObject) -> bool:
    """Go on with the handshake; return whether it is done."""
    try:
        secured.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


@lru_cache(maxsize=16)
def identity_of(path: str) -> Identity:
    """Return the identity in a PEM file.

    Raises:
        OSError, ValueError: there is no such file, or it has no certificate.
    """
    return Identity(path)


class TlsStream:
    """A Stream within TLS.

    OpenSSL wants one thread at a time. It works on memory here, so that no thread waits for the network while
    holding the lock, and large parts are received and sent at once.
    """

    def __init__(
        self, stream: PlainStream, secured: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
    ) -> None:
        self._stream, self._secured, self.near = stream, secured, stream.near
        self._incoming, self._outgoing = incoming, outgoing
        self._lock = threading.Lock()
        self._received = memoryview(bytearray(_RECEIVED))
        self._more = False  # there may be more to decrypt
        self._rest = memoryview(b"")  # encrypted, and not sent
        self.in_doubt = 0

    def recv_into(self, view: memoryview) -> int:
        while True:
            got = self._decrypt(view)
            if got is not None:
                return got
            received = self._stream.recv_into(self._received)
            if not received:
                return 0
            with self._lock:
                self._incoming.write(self._received[:received])

    def recv_now(self, view: memoryview) -> int | None:
        got = self._decrypt(view)
        if got is not None:
            return got
        received = self._stream.recv_now(self._received)
        if not received:
            return received
        with self._lock:
            self._incoming.write(self._received[:received])
        return self._decrypt(view)

    def ended(self) -> bool:
        return self._stream.ended()

    def wait_readable(self, seconds: float, other: int) -> bool:
        return self._more or self._stream.wait_readable(seconds, other)

    def _decrypt(self, view: memoryview) -> int | None:
        """Return how many bytes were there, 0 at the end; None: more has to be received first."""
        got = 0
        with self._lock:
            while got < len(view) and (self._incoming.pending or self._secured.pending()):
                try:
                    count: Any = self._secured.read(len(view) - got, view[got:])
                    got += count
                except ssl.SSLWantReadError:
                    break
                except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                    return got
        self._more = got == len(view)
        return got or None

    def set_patience(self, seconds: float) -> None:
        self._stream.set_patience(seconds)

    def send(self, parts: Sequence[Buffer], size: int) -> int:  # noqa: ARG002
        if not self._flush():
            return 0
        sent, self.in_doubt = self.in_doubt, 0  # those of the last time, which come first now
        for chunk in _chunks(parts, sent):
            with self._lock:
                self._secured.write(chunk)
                self._rest = memoryview(self._outgoing.read())
            self.in_doubt = len(chunk)
            if not self._flush():
                return sent
            sent += len(chunk)
            self.in_doubt = 0
        return sent

    def _flush(self) -> bool:
        """Send what is encrypted; return whether all of it was."""
        while self._rest:
            sent = self._stream.send([self._rest], len(self._rest))
            if not sent:
                return False
            self._rest = self._rest[sent:]
        return True

    def wait_writable(self) -> None:
        self._stream.wait_writable()

    def finish(self) -> None:
        self._stream.finish()

    def close(self) -> None:
        self._stream.close()

    def release(self) -> None:
        self._stream.release()


def _chunks(parts: Sequence[Buffer], skipped: int) -> Iterator[Buffer]:
    """Yield what is in parts, after some bytes, in pieces that are encrypted at once."""
    gathered: list[memoryview] = []
    length = 0
    for part in parts:
        if skipped >= len(part):
            skipped -= len(part)
            continue
        view, skipped = memoryview(part)[skipped:], 0
        while length + len(view) >= _CHUNK:
            taken = _CHUNK - length
            yield _joined([*gathered, view[:taken]])
            gathered, length, view = [], 0, view[taken:]
        if view:
            gathered.append(view)
            length += len(view)
    if gathered:
        yield _joined(gathered)


def _joined(parts: list[memoryview]) -> Buffer:
    return parts[0] if len(parts) == 1 else b"".join(parts)
