"""General gRPC clients, which know nothing of fray but what reflection tells them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import msgpack
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from grpc_health.v1 import health_pb2, health_pb2_grpc

from actors import PATIENCE, Caller
from fray.cluster import LocalCluster
from fray.rpc import ActorServer
from fray.rpc.errors import Code
from general import General, secure_channel
from identities import make_identity
from waiting import eventually


class Echo:
    def __init__(self) -> None:
        self.entered, self.gate = threading.Event(), threading.Event()
        self.ran = 0

    def echo(self, value: Any) -> Any:
        self.ran += 1
        return value

    def wait(self) -> None:
        self.entered.set()
        assert self.gate.wait(PATIENCE)


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def server(echo: Echo) -> Iterator[ActorServer]:
    with LocalCluster() as cluster, ActorServer(cluster) as one:
        one.register("echo", echo)
        yield one


@pytest.fixture
def general(server: ActorServer) -> Iterator[General]:
    with grpc.insecure_channel(server.address) as channel:
        yield General(channel)


def args(*values: Any) -> bytes:
    return bytes(msgpack.packb([list(values), {}]))


def test_a_general_client_calls(server: ActorServer, general: General) -> None:
    assert {"fray.actor.v1.Actors", "grpc.health.v1.Health"} <= set(general.services)
    reply = general("Invoke", actor="echo", method="echo", args=args(5))
    assert msgpack.unpackb(reply.result) == 5
    assert reply.incarnation == server._registry().lookup("echo").actor_id
    reply = general("Invoke", actor="echo", method="echo", codec=2, args=b'[[{"a": [1, 2.5]}], {}]')
    assert reply.result.replace(b" ", b"") == b'{"a":[1,2.5]}'


@pytest.mark.usefixtures("server")
def test_large_values_out_of_band(general: General) -> None:
    data = bytes([0x91, 0xC7, 1, 3, 0])  # args: a list of one, extension 3: buffer 0
    payload = bytes([0x92]) + data + bytes([0x80])
    reply = general("Invoke", actor="echo", method="echo", args=payload, buffers=[b"x" * (3 << 20)])
    assert not reply.HasField("error"), reply.error
    assert list(reply.buffers) == [b"x" * (3 << 20)]


def test_errors_are_in_the_reply(general: General, echo: Echo) -> None:
    for fields, code in (
        ({"actor": "ech", "method": "echo"}, Code.UNKNOWN_ACTOR),
        ({"actor": "echo", "method": "ech"}, Code.UNKNOWN_METHOD),
        ({"actor": "echo", "method": "echo", "args": args()}, Code.BAD_ARGUMENTS),
        ({"actor": "echo", "method": "echo", "args": b"\xc1"}, Code.BAD_ARGUMENTS),
        ({"actor": "echo", "method": "echo", "args": args(1), "incarnation": "x"}, Code.STALE),
        ({"actor": "echo", "method": "echo", "args": b"x", "codec": 3}, Code.DENIED),
    ):
        reply = general("Invoke", **fields)
        assert (reply.error.code, reply.error.ran) == (code.number, False), reply
    assert echo.ran == 0


def test_the_deadline_of_grpc_is_that_of_the_call(server: ActorServer, general: General, echo: Echo) -> None:
    blocks = general.begin("Invoke", actor="echo", method="wait", args=args())
    assert echo.entered.wait(PATIENCE)
    late = general.begin("Invoke", 0.05, actor="echo", method="echo", args=args(1))
    with pytest.raises(grpc.RpcError) as caught:
        late.result()
    assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    eventually(lambda: len(server._core._active) == 1)  # by the server's clock it is over a little later
    echo.gate.set()
    assert not blocks.result().HasField("error")
    general("Invoke", actor="echo", method="echo", args=args(1))
    assert echo.ran == 1, "a call ran after its deadline"


def test_lists(server: ActorServer, general: General) -> None:
    (actor,) = general("ListActors", prefix="e").actors
    assert actor.name == "echo"
    found = general("ListMethods", actor="echo")
    assert [m.name for m in found.methods] == ["echo", "wait"]
    assert found.incarnation == server._registry().lookup("echo").actor_id
    with pytest.raises(grpc.RpcError) as caught:
        general("ListMethods", actor="ech")
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    assert "did you mean echo?" in str(caught.value.details())


def test_health(server: ActorServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = stub.Check(health_pb2.HealthCheckRequest(service="fray.actor.v1.Actors"), timeout=PATIENCE)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_grpc_within_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, echo: Echo) -> None:
    path = make_identity(tmp_path, "mine", ec.generate_private_key(ec.SECP256R1()))  # grpcio knows no Ed25519
    monkeypatch.setenv("FRAY_ACTOR_IDENTITY", path)
    pem = Path(path).read_bytes()
    start = pem.index(b"-----BEGIN PRIVATE KEY")
    options = [("grpc.ssl_target_name_override", "fray-actors")]
    with LocalCluster() as cluster, ActorServer(cluster) as server:
        server.register("echo", echo)
        with secure_channel(server.address, path) as channel:
            assert (
                msgpack.unpackb(General(channel)("Invoke", actor="echo", method="echo", args=args(5)).result)
                == 5
            )
        for stranger in (
            grpc.insecure_channel(server.address),
            grpc.secure_channel(server.address, grpc.ssl_channel_credentials(pem[:start]), options),
        ):
            with stranger as channel, pytest.raises(grpc.RpcError):
                health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=300)


def test_frames_do_without_grpcio() -> None:
    code = """
import sys
from fray.cluster import LocalCluster
from fray.rpc import ActorServer
from actors import Caller
class Echo:
    def echo(self, value): return value
with LocalCluster() as cluster, ActorServer(cluster) as server:
    server.register("echo", Echo())
    with Caller(server.address) as caller:
        assert caller.call("echo", "echo", 5) == 5
print(sorted(m for m in sys.modules if m.partition(".")[0] in ("grpc", "numpy")))
"""
    root = Path(__file__).parents[1]
    environ = {"PYTHONPATH": f"{root / 'src'}:{root / 'tests'}"}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environ, timeout=PATIENCE
    )
    assert (ran.stdout.strip(), ran.stderr) == ("[]", "")


def test_shutting_down_ends_grpc(server: ActorServer, general: General, echo: Echo) -> None:
    with Caller(server.address) as caller:
        caller.call("echo", "echo", 1)
    blocks = general.begin("Invoke", actor="echo", method="wait", args=args())
    assert echo.entered.wait(PATIENCE)
    server.shutdown(0.05)
    assert blocks.result().error.code == Code.STOPPING.number
    echo.gate.set()
    assert not Path(server._listener._grpc._folder).exists() if server._listener._grpc else False
