"""Arguments and results that are sent in parts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from connection_cuts import cutting
from fray.cluster import LocalCluster
from fray.rpc import ConnectionSettings, FixedResolver
from fray.rpc._calling.channel import channels
from fray.rpc._transport import shared as _shared
from fray.rpc.errors import CancelledError, TooLargeError
from fray.rpc.server import ActorServer
from waiting import eventually

MIB = 1 << 20


@pytest.fixture(params=[True, False], ids=["shared", "parts"], autouse=True)
def shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Payloads are written into memory of their receiver, or sent in parts."""
    monkeypatch.setattr(_shared, "AVAILABLE", request.param)
    channels().close()
    return bool(request.param)


class Bookcase:
    """Takes and gives what is large."""

    def __init__(self) -> None:
        self.ran: list[int] = []
        self.open = threading.Event()

    def echo(self, value: object) -> object:
        """Return the value."""
        return value

    def take(self, book: bytes) -> int:
        """Return the size of a book."""
        self.ran.append(len(book))
        return len(book)

    def give(self, size: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        """Return as many numbers."""
        self.ran.append(size)
        return np.arange(size, dtype=np.uint32)


@contextmanager
def serving(max_message_bytes: int = 1 << 30) -> Iterator[tuple[ActorServer, Bookcase]]:
    bookcase = Bookcase()
    with LocalCluster() as cluster, ActorServer(cluster, max_message_bytes=max_message_bytes) as server:
        server.register("bookcase", bookcase)
        yield server, bookcase


def test_large_payloads() -> None:
    with serving() as (server, _):
        actor = FixedResolver(server.address).lookup("bookcase")
        books: list[Any] = [bytes(9 * MIB), b"x", np.arange(3 * MIB, dtype=np.int64), "text"]
        got = actor.echo(books)
        assert got[:2] == books[:2]
        assert np.array_equal(got[2], books[2])
        assert got[3] == "text"
        text = "a page, " * (2 * MIB)
        assert actor.echo(text) == text
        futures = [actor.give.remote(3 * MIB + n) for n in range(4)]
        for n, future in enumerate(futures):
            assert np.array_equal(future.result(300), np.arange(3 * MIB + n, dtype=np.uint32))
        eventually(lambda: not server._core.room.used)
        eventually(lambda: not server._core.kept.used)


def test_large_payloads_over_the_limit() -> None:
    with serving(max_message_bytes=20 * MIB) as (server, bookcase):
        actor = FixedResolver(server.address).lookup("bookcase")
        with pytest.raises(TooLargeError, match=r"at most 20 MiB are taken \(max_message_bytes\)") as caught:
            actor.take(bytes(20 * MIB + 1))
        assert not caught.value.ran
        with pytest.raises(TooLargeError, match=r"the result is 20\.1 MiB; at most 20 MiB are taken"):
            actor.give(5 * MIB + 1)
        settings = ConnectionSettings(max_message_bytes=10 * MIB)
        with pytest.raises(TooLargeError, match="at most 10 MiB"):
            FixedResolver(server.address, settings=settings).lookup("bookcase").give(4 * MIB)
        assert bookcase.ran == [5 * MIB + 1, 4 * MIB]


def test_large_payloads_that_are_given_up() -> None:
    with serving() as (server, _):
        actor = FixedResolver(server.address).lookup("bookcase")
        for _ in range(5):
            for future in (actor.take.remote(bytes(32 * MIB)), actor.give.remote(8 * MIB)):
                future.cancel()
                assert isinstance(future.exception(300), CancelledError | None)
        assert len(actor.give(3 * MIB)) == 3 * MIB
        eventually(lambda: not server._core.room.used)
        eventually(lambda: not server._core.kept.used)


def test_large_payloads_after_breaks() -> None:
    breaks = [(MIB, 0), (9 * MIB, 0), (0, 100 << 10), (0, 11 * MIB)]
    with serving() as (server, bookcase), cutting(server.address, breaks) as address:
        actor = FixedResolver(address).handle("bookcase")
        first = actor.take.remote(bytes(10 * MIB))
        second = actor.give.remote(3 * MIB)
        third = actor.take.remote(b"x")
        assert first.result(300) == 10 * MIB
        assert np.array_equal(second.result(300), np.arange(3 * MIB, dtype=np.uint32))
        assert third.result(300) == 1
        assert bookcase.ran == [10 * MIB, 3 * MIB, 1], "each ran once, in order"
        eventually(lambda: not server._core.room.used)
