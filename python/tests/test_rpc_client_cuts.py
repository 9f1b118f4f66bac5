"""A real server behind a network that cuts connections, at any byte and in either direction."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Iterator

import pytest

from fray.cluster import LocalCluster
from fray.rpc import ActorServer, FixedResolver
from fray.rpc.errors import UnavailableError


class Network:
    """Passes bytes on to a server, and cuts a connection after so many."""

    def __init__(self, target: str, seed: int, after: range = range(200, 20_000)) -> None:
        host, _, port = target.rpartition(":")
        self.target = (host, int(port))
        self.rng, self.after = random.Random(seed), after
        self.cuts = 0
        self.clients: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.clients.append(client)
            threading.Thread(target=self._join, args=[client], daemon=True).start()

    def _join(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(self.target) as server:
            back = threading.Thread(target=self._pass, args=[server, client])
            back.start()
            self._pass(client, server)
            back.join()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        left = self.rng.choice(self.after)
        with contextlib.suppress(OSError):
            while left > 0 and (data := one.recv(4096)):
                other.sendall(data[:left])
                left -= len(data)
            self.cuts += left <= 0
        for sock in (one, other):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def cut(self) -> None:
        """End every connection, and take no more."""
        self.close()
        for client in self.clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)


class Log:
    def __init__(self) -> None:
        self.entries: list[list[int]] = []

    def add(self, caller: int, number: int) -> int:
        self.entries.append([caller, number])
        return number


@pytest.fixture
def log() -> Iterator[tuple[Log, ActorServer]]:
    with LocalCluster() as cluster:
        server, log = ActorServer(cluster), Log()
        server.register("log", log)
        server.serve_background()
        yield log, server
        server.shutdown(0)


@pytest.mark.parametrize("seed", range(3))
def test_every_call_runs_once_and_in_order(log: tuple[Log, ActorServer], seed: int) -> None:
    actor, server = log
    network = Network(server.address, seed)
    failures: list[object] = []

    def call(caller: int) -> None:
        handle = FixedResolver(network.address).handle("log")
        numbers = iter(range(300))
        for number in numbers:
            if number % 3 == 0:
                batch = [number, *[next(numbers) for _ in range(2)]]
                futures = [handle.add.remote(caller, each) for each in batch]
                got = [future.result(300) for future in futures]
            else:
                batch, got = [number], [handle.add(caller, number)]
            if got != batch:
                failures.append((got, batch))

    threads = [threading.Thread(target=call, args=[caller]) for caller in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
        assert not thread.is_alive()
    network.close()
    assert failures == []
    assert network.cuts > 5, "the test cut nothing"
    for caller in range(4):
        assert [number for who, number in actor.entries if who == caller] == list(range(300))


def test_one_server_by_two_addresses(log: tuple[Log, ActorServer]) -> None:
    # Calls are numbered for each address, so a server must not take those of one for those of the other.
    actor, server = log
    network = Network(server.address, 0)
    handles = [FixedResolver(address).handle("log") for address in (server.address, network.address)]
    assert [handle.add(0, number) for number in range(3) for handle in handles] == [0, 0, 1, 1, 2, 2]
    network.close()
    assert len(actor.entries) == 6


def test_an_end_is_noticed_before_the_next_call(
    log: tuple[Log, ActorServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fray.rpc._transport.receive_turn.TICK", 60.0)  # no thread receives between two calls
    entries, server = log
    network = Network(server.address, 0, range(1 << 30, 1 << 31))
    actor = FixedResolver(network.address).lookup("log")
    for number in range(5):
        actor.add(0, number)
    network.cut()
    with pytest.raises(UnavailableError) as caught:
        actor.options(resolve_timeout=0.1).add(0, 5)
    assert not caught.value.ran
    assert len(entries.entries) == 5
