"""Pickle is read only of peers that have proven to be of the namespace, and never of others."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator
from pathlib import Path
from time import monotonic_ns
from typing import Any

import pytest

from actors import Caller
from fray._pb import actor_pb2
from fray.cluster import LocalCluster
from fray.rpc import ActorServer, ConnectionSettings, FixedResolver
from fray.rpc._calling.connection import Connection
from fray.rpc._transport import proof as _proof
from fray.rpc._transport import wire as _wire
from fray.rpc._transport.settings import Settings
from fray.rpc._transport.wire import PlainStream
from fray.rpc.errors import ApplicationError, DeniedError
from identities import make_identity
from ports import listen
from scripted import Scripted, packed, receive
from valued import Echo


class Evil:
    """Touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    return tmp_path / "ran"


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as cluster:
        yield cluster


@pytest.fixture
def created(cluster: LocalCluster) -> Iterator[ActorServer]:
    """A server such as create_actor makes."""
    with ActorServer(cluster, created=True) as server:
        server.register("echo", Echo())
        yield server


def reads(address: str, ran: Path, **settings: Any) -> bool:
    """Whether a server reads the pickle of a client with these settings."""
    with Caller(address, codec=3, **settings) as caller:
        reply = caller.send("echo", "one", Evil(ran)).reply()
        if reply.HasField("error"):
            assert reply.error.code == actor_pb2.CODE_DENIED
            assert not reply.error.ran
            assert not ran.exists()
            return False
        assert ran.exists()
        ran.unlink()
        return True


def test_who_has_proven_the_namespace_may_send_pickle(
    cluster: LocalCluster, created: ActorServer, ran: Path
) -> None:
    assert reads(created.address, ran, secret=cluster.actor_secret("default"))
    assert not reads(created.address, ran)
    assert not reads(created.address, ran, secret=cluster.actor_secret("other"))
    assert not reads(created.address, ran, secret=LocalCluster().actor_secret("default"))
    assert not reads(created.address, ran, allow_pickle=True)


def test_servers_that_others_made_take_none(cluster: LocalCluster, ran: Path) -> None:
    with ActorServer(cluster) as server:
        server.register("echo", Echo())
        assert not reads(server.address, ran, secret=cluster.actor_secret("default"))
        assert not reads(server.address, ran, secret=cluster.actor_secret("default"), allow_pickle=True)
    with ActorServer(cluster, allow_pickle=True) as server:
        server.register("echo", Echo())
        assert reads(server.address, ran, secret=cluster.actor_secret("default"), allow_pickle=True)
        assert not reads(server.address, ran, allow_pickle=True)


def test_other_namespaces_of_a_fray_cluster_are_not_heard(
    cluster: LocalCluster, tmp_path: Path, ran: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAY_ACTOR_IDENTITY", mine := make_identity(tmp_path, "mine"))
    with ActorServer(cluster, created=True) as server:
        server.register("echo", Echo())
        assert reads(server.address, ran, identity=mine)
        for other in (make_identity(tmp_path, "other"), ""):
            with pytest.raises(DeniedError):
                Connection.open(server.address, Settings(identity=other))
            with pytest.raises(DeniedError):  # nor is the secret of a LocalCluster a substitute
                Connection.open(
                    server.address, Settings(identity=other, secret=cluster.actor_secret("default"))
                )


def test_a_proof_is_of_one_connection(cluster: LocalCluster, created: ActorServer, ran: Path) -> None:
    """A server that was sent a proof cannot use it with another server."""
    secret = cluster.actor_secret("default")
    with listen() as thief:
        sock = socket.create_connection(thief.getsockname())
        stream = PlainStream(sock)
        stolen = _proof.make(secret, stream.addresses(client=True))  # what Connection sends
        stream.release()
    assert stolen
    for proof in (stolen, stolen[:8] + bytes(32), b"", b"x"):
        sock = socket.create_connection(("127.0.0.1", int(created.address.rpartition(":")[2])))
        with sock:
            own = actor_pb2.Handshake(version=1, peer="thief", pickle_created=True, proof=proof)
            sock.sendall(_wire.PREFACE + packed(actor_pb2.Frame(handshake=own)))
            answer = receive(sock)[0].handshake
            assert not answer.pickle_created
            assert not answer.proof
            data = pickle.dumps([[Evil(ran)], {}])
            call = actor_pb2.Call(actor="echo", method="one", seq=1, codec=actor_pb2.CODEC_PICKLE, args=data)
            sock.sendall(packed(actor_pb2.Frame(call=call)))
            assert receive(sock)[0].reply.error.code == actor_pb2.CODE_DENIED
    assert not ran.exists()


@pytest.mark.parametrize("proof", [b"", b"made up", bytes(32)])
def test_results_and_exceptions_of_servers_without_a_proof_are_not_read(ran: Path, proof: bytes) -> None:
    evil = pickle.dumps(Evil(ran))

    def on_call(_server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply:
        if call.method == "fail":
            error = actor_pb2.Error(
                code=actor_pb2.CODE_APPLICATION, message="it failed", ran=True, exception=evil, type="Evil"
            )
            return actor_pb2.Reply(seq=call.seq, error=error)
        return actor_pb2.Reply(seq=call.seq, codec=actor_pb2.CODEC_PICKLE, result=evil)

    with Scripted(on_call) as server:

        def handshake() -> bytes:
            made = actor_pb2.Handshake(
                version=1,
                peer=server.peer,
                max_pending=10,
                pickle=True,
                pickle_created=True,
                proof=proof,
            )
            return packed(actor_pb2.Frame(handshake=made))

        server.handshake = handshake
        for settings in (
            ConnectionSettings(),
            ConnectionSettings(secret=b"s" * 32),
            ConnectionSettings(secret=b"s" * 32, allow_pickle=True),
        ):
            handle = FixedResolver(server.address, settings=settings).handle("echo")
            with pytest.raises(DeniedError, match="pickle is refused"):
                handle.one(1)
            with pytest.raises(ApplicationError, match="it failed"):
                handle.fail()
            assert handle.one.remote((1, 2)).exception(300) is not None
            assert server.calls[-1].codec == actor_pb2.CODEC_MSGPACK, "nor is anything pickled for it"
    assert not ran.exists()


def test_proofs() -> None:
    secret, at = b"s" * 32, "('127.0.0.1', 1) ('127.0.0.1', 2)"
    began = monotonic_ns()
    proof = _proof.make(secret, at)
    assert _proof.check(secret, proof, at, began)
    assert not _proof.check(secret, proof, at, monotonic_ns() + 1), "it was made for an earlier server"
    assert not _proof.check(secret, proof, at.replace("2", "3"), began)
    assert not _proof.check(b"t" * 32, proof, at, began)
    assert not _proof.check(b"", _proof.make(b"", at), at, began)
    assert not _proof.check(b"", proof, at, began)
    assert not _proof.check(secret, proof[:-1], at, began)
    assert not _proof.check(secret, b"", at, 0)
    assert _proof.check_answer(secret, proof, _proof.answer(secret, proof))
    assert not _proof.check_answer(secret, proof, proof[8:])
    assert not _proof.check_answer(b"", b"", _proof.answer(b"", b""))


def test_a_server_that_closes_at_once(created: ActorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: PlainStream, client: bool) -> str:
        raise OSError(f"not connected, as {client}")  # of getpeername

    monkeypatch.setattr(PlainStream, "addresses", closed)
    connection = Connection.open(created.address, Settings(secret=b"s" * 32))  # no OSError
    assert not connection.pickles
    connection.close()
