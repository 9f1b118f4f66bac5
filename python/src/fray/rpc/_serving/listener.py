"""The port of a server: one for frames, gRPC and HTTP, which the first bytes distinguish.

Serving a connection is left to `_serving.session`, `_serving.grpc` and `_transport.http`.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fray._pb import actor_pb2
from fray.rpc._serving.session import Session
from fray.rpc._transport import http as _http
from fray.rpc._transport import wire as _wire
from fray.rpc._transport.reader import FrameReader
from fray.rpc._transport.tls import Identity, IdentityError
from fray.rpc._transport.wire import PlainStream, SilentError, Stream
from fray.rpc.errors import DeniedError

if TYPE_CHECKING:
    from fray.rpc._serving.core import Core
    from fray.rpc._serving.grpc import GrpcSide

_BACKLOG: Final = 512
_TLS_RECORD: Final = b"\x16"
_TLS_ALERT: Final = b"\x15\x03\x03\x00\x02\x02\x28"  # a fatal alert: no handshake
_ACCEPTING: Final = 5.0  # seconds that the last connection may take to be accepted
_PAUSE: Final = 0.1  # seconds before the next try to accept, where descriptors have run out
_log = logging.getLogger("fray.rpc")


class Listener:
    """Accepts connections, each in a thread of its own."""

    def __init__(
        self,
        core: Core,
        identity: Identity | None,
        address: tuple[str, int],
        page: Callable[[str], _http.Page],
    ) -> None:
        """Bind to host and port at once; connections wait until `start`.

        Raises:
            OSError: the address cannot be bound to.
        """
        self._core, self._identity, self._page = core, identity, page
        self._socket = _bound(address)
        self.port: int = self._socket.getsockname()[1]
        self._wake, self._waker = socket.socketpair()
        self._lock = threading.Lock()
        self._connections: dict[threading.Thread, Session | Stream | socket.socket] = {}
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._grpc: GrpcSide | None = None
        self._grpc_lock = threading.Lock()

    def start(self) -> None:
        """Begin to accept."""
        with self._lock:
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._accept, name="fray-actor-accept", daemon=True)
                self._thread.start()

    @property
    def sessions(self) -> list[Session]:
        """The connections of clients that speak frames."""
        with self._lock:
            return [c for c in self._connections.values() if isinstance(c, Session)]

    def stop_accepting(self) -> None:
        """Accept no more connections."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
        self._waker.send(b"x")
        if self._thread is not None:
            self._thread.join(_ACCEPTING)
        self._socket.close()
        self._wake.close()
        self._waker.close()

    def close(self, seconds: float) -> None:
        """After `stop_accepting`: end all connections, and wait until they have."""
        until = time.monotonic() + seconds
        for session in self.sessions:
            session.stop(max(0.0, until - time.monotonic()))
        if self._grpc is not None:
            self._grpc.stop(max(0.0, until - time.monotonic()))
        self._join(until)
        with self._lock:
            left = list(self._connections.values())
        for connection in left:
            if isinstance(connection, socket.socket):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            else:
                connection.close()
        self._join(time.monotonic() + 5)

    def _join(self, until: float) -> None:
        with self._lock:
            threads = list(self._connections)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))

    def _accept(self) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while not self._stopped:
            poll.poll()
            if self._stopped:
                return
            try:
                sock, _ = self._socket.accept()
            except BlockingIOError:
                continue
            except OSError as err:
                _log.warning("a connection could not be accepted: %s", err)
                time.sleep(_PAUSE)
                continue
            thread = threading.Thread(
                target=self._connected, args=(sock,), name="fray-actor-receive", daemon=True
            )
            with self._lock:
                self._connections[thread] = sock
            try:
                thread.start()
            except RuntimeError as err:  # there are too many
                _log.warning("a connection could not be served: %s", err)
                self._forget(thread)
                sock.close()

    def _connected(self, sock: socket.socket) -> None:
        try:
            self._detect_tls(sock)
        except (OSError, EOFError, SilentError, IdentityError) as err:
            _log.debug("a connection ended: %s", err)
        except Exception:
            _log.exception("a connection failed")
        finally:
            sock.close()
            self._forget(threading.current_thread())

    def _detect_tls(self, sock: socket.socket) -> None:
        seconds = self._core.limits.handshake
        sock.settimeout(seconds)
        first = sock.recv(1, socket.MSG_PEEK)
        if not first:
            return
        if first == _TLS_RECORD:
            if self._identity is None:
                sock.sendall(_TLS_ALERT)
                return
            self._detect_protocol(self._identity.accept(sock, seconds), secure=True)
        else:
            near = _is_of_this_machine(sock)
            stream = PlainStream(sock)
            if self._identity is None or near:
                self._detect_protocol(stream, secure=False)
            else:
                self._deny(FrameReader(stream, seconds), stream)

    def _detect_protocol(self, stream: Stream, secure: bool) -> None:
        self._track(stream)
        seconds = self._core.limits.handshake
        reader = FrameReader(stream, seconds)
        try:
            first = reader.skip(len(_wire.PREFACE))
            plain = self._identity is not None and not secure
            if first[:4] == b"GET " or first[:5] == b"HEAD ":
                _http.answer(stream, first + reader.rest(), self._page, seconds)
            elif plain:
                self._deny(reader, stream)
            elif first == _wire.PREFACE:
                session = Session(self._core, stream, reader, secure)
                self._track(session)
                session.serve()
            elif first == b"PRI * HT":
                stream.set_patience(0)
                self._grpc_side().serve(stream, first + reader.rest())
        finally:
            stream.close()
            stream.release()

    def _deny(self, reader: FrameReader, stream: Stream) -> None:
        """Reject a client that came without TLS, with a reason if it speaks frames."""
        denied = DeniedError(
            "peers of another namespace are not served: this server takes TLS with its namespace's identity"
        )
        close = actor_pb2.Close(error=denied.to_wire())
        _http.send_all(stream, _wire.frame_bytes(_wire.CLOSE, close, 0))
        stream.finish()
        with contextlib.suppress(EOFError, OSError, SilentError):
            stream.set_patience(1)
            reader.discard(1 << 16)

    def _grpc_side(self) -> GrpcSide:
        with self._grpc_lock:
            if self._grpc is None:
                from fray.rpc._serving.grpc import GrpcSide

                self._grpc = GrpcSide(self._core)
            return self._grpc

    def _track(self, connection: Session | Stream) -> None:
        with self._lock:
            self._connections[threading.current_thread()] = connection

    def _forget(self, thread: threading.Thread) -> None:
        with self._lock:
            self._connections.pop(thread, None)


def _bound(address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    sock = socket.socket(family)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def _is_of_this_machine(sock: socket.socket) -> bool:
    peer = sock.getpeername()[0]
    return peer == sock.getsockname()[0] or ipaddress.ip_address(peer.partition("%")[0]).is_loopback
