"""Servers within TLS, and who is served without."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from actors import Caller
from fray.rpc import ActorServer
from fray.rpc._calling.connection import Connection
from fray.rpc._transport.settings import Settings
from fray.rpc.errors import (
    DeniedError,
    UnavailableError,
)
from identities import default_authority, make_identity
from test_rpc_server_faults import get, lives, serving
from waiting import ended


@pytest.fixture
def server() -> Iterator[ActorServer]:
    with serving() as one:
        yield one


@pytest.fixture
def identity(tmp_path: Path) -> str:
    return make_identity(tmp_path, "mine")


@pytest.fixture
def secured(identity: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ActorServer]:
    monkeypatch.setenv("FRAY_ACTOR_IDENTITY", identity)
    with serving(allow_pickle=True) as one:
        yield one


def test_within_tls(secured: ActorServer, identity: str) -> None:
    with Caller(secured.address, identity=identity) as caller:
        assert caller.call("echo", "echo", 5) == 5
        big = os.urandom(5 << 20)
        assert caller.call("echo", "echo", big) == big
        sent = [caller.send("echo", "echo", n) for n in range(2000)]
        assert [one.result() for one in sent] == list(range(2000))


def test_many_threads_within_tls(secured: ActorServer, identity: str) -> None:
    with Caller(secured.address, identity=identity) as caller:
        lock, results = threading.Lock(), []

        def run() -> None:
            for n in range(100):
                with lock:
                    sent = caller.send("echo", "echo", b"x" * (n * 3000))
                results.append(len(sent.result()) == n * 3000)

        threads = [threading.Thread(target=run) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            ended(thread)
        assert results == [True] * 600


def test_fact23_only_the_same_identity_is_served(secured: ActorServer, identity: str, tmp_path: Path) -> None:
    for other in (make_identity(tmp_path, "other"), ""):
        with pytest.raises(DeniedError):
            Connection.open(secured.address, Settings(identity=other))
    lives(secured, identity=identity)


def test_an_identity_against_a_server_without(server: ActorServer, identity: str) -> None:
    with pytest.raises(DeniedError):
        Connection.open(server.address, Settings(identity=identity))
    lives(server)


def test_probes_of_this_machine_need_no_tls(secured: ActorServer) -> None:
    assert get(secured, "/readyz") == (200, "ready\n")


def test_probes_by_the_address_of_this_machine_need_no_tls(
    identity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 1))  # sends nothing
        except OSError:
            pytest.skip("this machine has no address but loopback")
        host = sock.getsockname()[0]
    monkeypatch.setenv("FRAY_ACTOR_IDENTITY", identity)
    with serving(host=host) as server:
        assert server.address.startswith(f"{host}:")
        assert get(server, "/readyz") == (200, "ready\n")


def test_pickle_needs_both_sides_leave(
    secured: ActorServer, identity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Caller(secured.address, identity=identity, allow_pickle=True, codec=3) as caller:
        assert caller.connection.peer.pickle
        reply = caller.send("echo", "echo", {1, 2}).reply()
        assert (reply.codec, reply.HasField("error")) == (3, False)
    monkeypatch.delenv("FRAY_ACTOR_IDENTITY")
    with serving(allow_pickle=True) as server, Caller(server.address, allow_pickle=True, codec=3) as caller:
        assert not caller.connection.peer.pickle
        with pytest.raises(DeniedError, match="pickle is refused"):
            caller.call("echo", "echo", {1, 2})


def test_a_new_authority_is_taken_without_a_restart(
    secured: ActorServer, identity: str, tmp_path: Path
) -> None:
    """Another leader certifies the client: it is served once the server's file has that authority."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    first, second = default_authority(), ec.generate_private_key(ec.SECP256R1())
    client = make_identity(elsewhere, "mine", authority=second, trusted=(first, second))
    with pytest.raises(UnavailableError):  # which is tried again
        Connection.open(secured.address, Settings(identity=client))
    assert make_identity(tmp_path, "mine", trusted=(first, second)) == identity
    lives(secured, identity=client)
    # The same the other way around: what the client does not trust any more it does not call.
    make_identity(elsewhere, "mine", authority=second, trusted=(second,))
    with pytest.raises(UnavailableError):
        Connection.open(secured.address, Settings(identity=client))


def test_a_certificate_is_no_authority(secured: ActorServer, identity: str, tmp_path: Path) -> None:
    """A member cannot make others members: what its own key has signed counts for nothing."""
    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "x").mkdir()
    forged = make_identity(tmp_path / "x", "mine", authority=key, trusted=(default_authority(), key))
    with pytest.raises((UnavailableError, DeniedError)):
        Connection.open(secured.address, Settings(identity=forged))
    lives(secured, identity=identity)
