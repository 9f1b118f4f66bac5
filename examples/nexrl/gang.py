"""One computation over the processes of a gang: the leader sends each its part, and adds up what they return.

Process 0 listens at JAX_COORDINATOR_ADDRESS, which fray sets for gangs; the others connect to it. When a
process of the gang goes away the leader ends at once, so that callers find it gone instead of an error of
theirs, and fray starts the whole gang again.
"""

import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from fray.rl.wire import pack, unpack

CONNECT_SECONDS = 300  # processes start at different times on a busy machine
HELLO_SECONDS = 10  # in which a process that has connected sends its rank


class Peer(Protocol):
    """The connection to another process of the gang."""

    def read(self, size: int, /) -> bytes: ...
    def write(self, data: bytes, /) -> int: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


def end_process(reason: str) -> NoReturn:
    """End this process at once, without an answer to what it was asked."""
    sys.stderr.write(f"{reason}; this process ends, and the gang is started again\n")
    sys.stderr.flush()
    os._exit(1)


class Gang:
    """This process's place in the gang. Without the variables of one it is alone."""

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        server: socket.socket | None = None,
        lost: Callable[[str], NoReturn] = end_process,
    ):
        self.rank = int(environ.get("JAX_PROCESS_ID", 0))
        self.size = int(environ.get("JAX_NUM_PROCESSES", 1))
        self._lost = lost
        self._peers: list[Peer] = []
        if self.size > 1:
            host, port = environ["JAX_COORDINATOR_ADDRESS"].rsplit(":", 1)
            address = (host.strip("[]"), int(port))
            if self.rank == 0:
                self._peers = self._accept(server or socket.create_server(address))
            else:
                self._peers = [_connect(address, self.rank)]

    def each(self, parts: list[Any], compute: Callable[[Any], Any]) -> list[Any]:
        """At the leader: what compute returns for each process's part, in the order of ranks."""
        try:
            for peer, part in zip(self._peers, parts[1:], strict=True):
                _send(peer, part)
            own = compute(parts[0])
            return [own, *(_receive(peer) for peer in self._peers)]
        except OSError as error:
            self._lost(f"a process of the gang is gone ({error})")

    def follow(self, compute: Callable[[Any], Any]) -> None:
        """At the others: compute parts until the leader is gone."""
        while (part := _receive_or_end(self._peers[0])) is not None:
            _send(self._peers[0], compute(part))

    def close(self) -> None:
        for peer in self._peers:
            peer.close()

    def _accept(self, server: socket.socket) -> list[Peer]:
        ranked: dict[int, Peer] = {}
        with server:
            server.settimeout(CONNECT_SECONDS)
            while len(ranked) < self.size - 1:
                connection = server.accept()[0]
                connection.settimeout(HELLO_SECONDS)
                try:
                    rank = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
                except OSError:
                    rank = 0
                if 0 < rank < self.size:
                    ranked[rank] = _file(connection)
                else:
                    connection.close()  # it is none of the gang
        return [ranked[rank] for rank in sorted(ranked)]


def _connect(address: tuple[str, int], rank: int) -> Peer:
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            connection = socket.create_connection(address, timeout=CONNECT_SECONDS)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    connection.sendall(rank.to_bytes(4, "big"))
    return _file(connection)


def _file(connection: socket.socket) -> Peer:
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    with connection:  # what is made of it keeps it open
        return connection.makefile("rwb")


def _send(peer: Peer, value: Any) -> None:
    payload = pack(value)
    peer.write(len(payload).to_bytes(8, "big") + payload)
    peer.flush()


def _receive_or_end(peer: Peer) -> Any:
    """The next value, None if the peer has closed."""
    head = peer.read(8)
    size = int.from_bytes(head, "big")
    payload = peer.read(size) if len(head) == 8 else b""
    return unpack(payload) if len(head) == 8 and len(payload) == size else None


def _receive(peer: Peer) -> Any:
    value = _receive_or_end(peer)
    if value is None:
        raise ConnectionError("its connection is closed")
    return value
