"""A network between a client and a server that cuts connections, and what became of a stream over it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

from fray.rpc.errors import ActorError


class Cutter:
    """Passes bytes on, `toward` the server and `back`; 0: without an end."""

    def __init__(self, target: str, toward: int = 0, back: int = 0) -> None:
        self.target = target
        self.limits = [(toward, back)]  # of the connections to come; then none have any
        self.cuts = 0
        self.open: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            limits = self.limits.pop() if self.limits else (0, 0)
            threading.Thread(target=self._join, args=[client, *limits], daemon=True).start()

    def _join(self, client: socket.socket, toward: int, back: int) -> None:
        host, _, port = self.target.rpartition(":")
        with client, contextlib.suppress(OSError), socket.create_connection((host, int(port))) as server:
            self.open += [client, server]
            other = threading.Thread(target=self._pass, args=[server, client, back])
            other.start()
            self._pass(client, server, toward)
            other.join()

    def _pass(self, one: socket.socket, other: socket.socket, limit: int) -> None:
        left = limit or 1 << 60
        with contextlib.suppress(OSError):
            while left > 0 and (data := one.recv(4096)):
                other.sendall(data[:left])
                left -= len(data)
            self.cuts += left <= 0
        for sock in (one, other):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """End the connections that there are."""
        for sock in self.open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self.open = []

    def close(self) -> None:
        """Take no more connections."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()

    def __enter__(self) -> Cutter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def collect(
    items: Iterable[Any], each: Callable[[], object] = lambda: None
) -> tuple[list[Any], ActorError | None]:
    """Iterate to the end; return the items and the error at the end, None if there is none."""
    got = []
    try:
        for item in items:
            got.append(item)
            each()
    except ActorError as err:
        return got, err
    return got, None
