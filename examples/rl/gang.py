"""Sums and broadcasts over the tasks of one gang, through its process 0.

Process 0 listens where JAX_COORDINATOR_ADDRESS says; the others connect to it.
Every collective is one message up and one down for each of them. A peer that
goes away or stays silent ends the collective with an error.
"""

import json
import os
import socket
import time
from typing import Any

CONNECT_SECONDS = 300  # peers start at different times on a busy machine
SILENCE_SECONDS = 120


class Gang:
    """One process's place in the gang."""

    def __init__(self):
        self.rank = int(os.environ["JAX_PROCESS_ID"])
        self.size = int(os.environ["JAX_NUM_PROCESSES"])
        host, port = os.environ["JAX_COORDINATOR_ADDRESS"].rsplit(":", 1)
        address = (host.strip("[]"), int(port))
        self._peers = self._accept(address) if self.rank == 0 else [self._connect(address)]

    def sum(self, numbers: list[float]) -> list[float]:
        """Add up everybody's numbers, place by place, in the order of ranks."""
        if self.rank != 0:
            return self._ask(numbers)
        everybody = [numbers, *(_receive(peer) for peer in self._peers)]
        return self._tell([sum(column) for column in zip(*everybody, strict=True)])

    def broadcast(self, value: Any) -> Any:
        """Give everybody process 0's value."""
        if self.rank != 0:
            return self._ask(None)
        for peer in self._peers:
            _receive(peer)
        return self._tell(value)

    def _ask(self, value: Any) -> Any:
        _send(self._peers[0], value)
        return _receive(self._peers[0])

    def _tell(self, value: Any) -> Any:
        for peer in self._peers:
            _send(peer, value)
        return value

    def _accept(self, address: tuple[str, int]) -> list:
        ranked = {}
        with socket.create_server(address) as server:
            server.settimeout(CONNECT_SECONDS)
            while len(ranked) < self.size - 1:
                peer = _file(server.accept()[0])
                ranked[_receive(peer)] = peer
        return [ranked[rank] for rank in sorted(ranked)]

    def _connect(self, address: tuple[str, int]):
        deadline = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                peer = _file(socket.create_connection(address, timeout=SILENCE_SECONDS))
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        _send(peer, self.rank)
        return peer


def _file(connection: socket.socket):
    connection.settimeout(SILENCE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection.makefile("rwb")


def _send(peer, value: Any) -> None:
    peer.write(json.dumps(value).encode() + b"\n")
    peer.flush()


def _receive(peer) -> Any:
    line = peer.readline()
    if not line:
        raise ConnectionError("a peer of the gang is gone")
    return json.loads(line)
