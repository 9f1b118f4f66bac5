"""A proxy between a client and a server that breaks connections after so many bytes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fray.rpc._calling.channel import channels
from ports import listen


@contextmanager
def cutting(address: str, breaks: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Pass connections on to an address; yields another one.

    Args:
        address: host:port.
        breaks: After how many bytes from the client, and from the server, to break a connection, 0 for
            never: of one after the other, and none after these.
    """
    host, _, port = address.rpartition(":")
    left = list(breaks)
    passing: list[threading.Thread] = []

    def copy(source: socket.socket, to: socket.socket, limit: int) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(min(1 << 16, limit - passed) if limit else 1 << 16):
                to.sendall(data)
                passed += len(data)
                if passed == limit:
                    break
        for each in (source, to):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def pass_on(client: socket.socket, sent: int, received: int) -> None:
        with client, socket.create_connection((host, int(port))) as server:
            back = threading.Thread(target=copy, args=(server, client, received), daemon=True)
            back.start()
            copy(client, server, sent)
            back.join()

    def accept(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                limits = left.pop(0) if left else (0, 0)
                thread = threading.Thread(target=pass_on, args=(client, *limits), daemon=True)
                thread.start()
                passing.append(thread)

    with listen() as listener:
        accepting = threading.Thread(target=accept, args=[listener], daemon=True)
        accepting.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        accepting.join()
    channels().close()
    for thread in passing:
        thread.join(60)
