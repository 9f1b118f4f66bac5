"""One computation over the processes of a gang: the leader sends each its part, and adds up what they return.

Process 0 listens where JAX_COORDINATOR_ADDRESS says, as fray sets it for gangs; the others connect to it. A
process that goes away ends the computation with an error, and fray starts the whole gang again.
"""

import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from fray.rl.wire import pack, unpack

CONNECT_SECONDS = 300  # processes start at different times on a busy machine


class Gang:
    """This process's place in the gang. Without the variables of one it is alone."""

    def __init__(self, environ: Mapping[str, str] = os.environ, server: socket.socket | None = None):
        self.rank = int(environ.get("JAX_PROCESS_ID", 0))
        self.size = int(environ.get("JAX_NUM_PROCESSES", 1))
        self._peers: list[Any] = []
        if self.size > 1:
            host, port = environ["JAX_COORDINATOR_ADDRESS"].rsplit(":", 1)
            address = (host.strip("[]"), int(port))
            if self.rank == 0:
                self._peers = self._accept(server or socket.create_server(address))
            else:
                self._peers = [_connect(address, self.rank)]

    def each(self, parts: list[Any], compute: Callable[[Any], Any]) -> list[Any]:
        """At the leader: what compute returns for each process's part, in the order of ranks."""
        for peer, part in zip(self._peers, parts[1:]):
            _send(peer, part)
        return [compute(parts[0]), *(_receive(peer) for peer in self._peers)]

    def follow(self, compute: Callable[[Any], Any]) -> None:
        """At the others: compute parts until the leader is gone."""
        while (part := _receive_or_end(self._peers[0])) is not None:
            _send(self._peers[0], compute(part))

    def close(self) -> None:
        for peer in self._peers:
            peer.close()

    def _accept(self, server: socket.socket) -> list[Any]:
        ranked: dict[int, Any] = {}
        with server:
            server.settimeout(CONNECT_SECONDS)
            while len(ranked) < self.size - 1:
                peer = _file(server.accept()[0])
                ranked[_receive(peer)] = peer
        return [ranked[rank] for rank in sorted(ranked)]


def _connect(address: tuple[str, int], rank: int):
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            peer = _file(socket.create_connection(address, timeout=CONNECT_SECONDS))
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    _send(peer, rank)
    return peer


def _file(connection: socket.socket):
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    with connection:  # what is made of it keeps it open
        return connection.makefile("rwb")


def _send(peer, value: Any) -> None:
    payload = pack(value)
    peer.write(len(payload).to_bytes(8, "big") + payload)
    peer.flush()


def _receive_or_end(peer) -> Any:
    """The next value, None if the peer has closed."""
    head = peer.read(8)
    if len(head) < 8:
        return None
    return unpack(peer.read(int.from_bytes(head, "big")))


def _receive(peer) -> Any:
    value = _receive_or_end(peer)
    if value is None:
        raise ConnectionError("a process of the gang is gone")
    return value
