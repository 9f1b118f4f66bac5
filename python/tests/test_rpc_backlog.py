"""Calls that wait until their actor is found: not without end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from actors import PATIENCE
from fray.cluster import FixedResolver
from fray.rpc import ActorHandle
from fray.rpc.errors import CancelledError, DeadlineError, UnavailableError
from scripted import Scripted
from waiting import ended, eventually


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted() as server:
        yield server


class Making:
    """Calls that a thread makes one after the other."""

    def __init__(self, handle: ActorHandle, arguments: list[Any]) -> None:
        self.futures: list[Any] = []
        self._handle, self._arguments = handle, arguments
        self.thread = threading.Thread(target=self._make, daemon=True)
        self.thread.start()

    def _make(self) -> None:
        for argument in self._arguments:
            self.futures.append(self._handle.increment.remote(argument))

    @property
    def queued(self) -> int:
        return len(self._handle._route._backlog.calls)


def waits(making: Making, made: int) -> None:
    """Wait until so many calls were made, and the next one is queued and waits for room."""
    eventually(lambda: (len(making.futures), making.queued) == (made, made + 1), PATIENCE)
    making.thread.join(0.2)
    assert len(making.futures) == made


def test_who_makes_calls_waits_until_the_actor_is_found(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fray.rpc._calling.backlog._MAX_CALLS", 3)
    port = server.port
    server.refuse()
    making = Making(FixedResolver(server.address).handle("counter"), list(range(9)))
    waits(making, 3)
    server.open(port)
    ended(making.thread)
    for future in making.futures:
        future.result(PATIENCE)
    assert server.runs == [[n] for n in range(9)], "in order"
    assert making.queued == 0


def test_large_arguments_count(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fray.rpc._calling.backlog._MAX_BYTES", 100_000)
    port = server.port
    server.refuse()
    making = Making(FixedResolver(server.address).handle("counter"), ["x" * 40_000] * 6)
    waits(making, 2)
    server.open(port)
    ended(making.thread)
    for future in making.futures:
        future.result(PATIENCE)
    assert making._handle._route._backlog.bytes == 0


@pytest.mark.parametrize("argument", [b"x" * 50_000, bytearray(50_000), "x" * 50_000])
def test_the_size_of_a_call_is_that_of_its_arguments(argument: Any) -> None:
    future = FixedResolver("127.0.0.1:1").handle("counter").increment.remote(argument)
    assert 50_000 <= future.size < 51_000
    future.cancel()


def test_who_waits_for_room_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fray.rpc._calling.backlog._MAX_CALLS", 0)
    handle = FixedResolver("127.0.0.1:1").handle("counter")
    for _ in range(2):
        future = handle.options(timeout=0.1).increment.remote(1)
        assert isinstance(future.exception(PATIENCE), DeadlineError)
        with pytest.raises(DeadlineError):
            handle.options(timeout=0.1).increment(1)
    with pytest.raises(UnavailableError):
        handle.options(resolve_timeout=0.1).increment.remote(1).result(PATIENCE)


def test_calls_that_are_given_up_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fray.rpc._calling.backlog._MAX_CALLS", 1)
    making = Making(FixedResolver("127.0.0.1:1").handle("counter"), [1, 2])
    waits(making, 1)
    making.futures[0].cancel()
    ended(making.thread)
    making.futures[1].cancel()
    for future in making.futures:
        assert isinstance(future.exception(PATIENCE), CancelledError)
