"""Servers that end, and clients that are left."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors import PATIENCE, Caller, Program, RawPeer, head
from fray._pb import actor_pb2
from fray.cluster import LocalCluster
from fray.rpc import ActorServer
from fray.rpc._calling.connection import Connection
from fray.rpc._transport import wire as _wire
from fray.rpc._transport.settings import Settings
from fray.rpc.errors import (
    MalformedError,
    UnavailableError,
    VersionError,
)
from identities import make_identity
from test_rpc_server_faults import Echo, reply_frame, serving
from waiting import ended, eventually


@pytest.fixture
def server() -> Iterator[ActorServer]:
    with serving() as one:
        yield one


@pytest.fixture
def identity(tmp_path: Path) -> str:
    return make_identity(tmp_path, "mine")


def test_no_server_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    for wrong in (address, "nonsense", "127.0.0.1:99999", "127.0.0.1:x"):
        with pytest.raises(UnavailableError):
            Connection.open(wrong, Settings(connect_timeout=PATIENCE))


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n" * 5, MalformedError),
        (b"", UnavailableError),
        (_wire.frame_bytes(_wire.HANDSHAKE, actor_pb2.Handshake(version=2, peer="s"), 0), VersionError),
        (reply_frame(), MalformedError),
        (head(3) + b"\xff\xff\xff", MalformedError),
    ],
    ids=["http", "nothing", "version", "reply", "garbage"],
)
def test_servers_of_other_protocols(said: bytes, error: type[Exception]) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        sock, _ = listener.accept()
        sock.sendall(said)
        sock.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while sock.recv(1000):
                pass
        sock.close()

    thread = threading.Thread(target=serve)
    thread.start()
    with listener, pytest.raises(error):
        Connection.open(f"127.0.0.1:{listener.getsockname()[1]}", Settings(connect_timeout=PATIENCE))
    ended(thread)


SERVER = """
import os, threading, time
from fray.cluster import LocalCluster
from fray.rpc import ActorServer
class Slow:
    def sleep(self, seconds):
        time.sleep(seconds)
        return "slept"
server = ActorServer(LocalCluster())
server.register("slow", Slow())
server._job_id = os.environ.get("JOB", "")
print(server.address, flush=True)
server.serve()
print("served", threading.active_count(), flush=True)
"""


@pytest.mark.parametrize("seconds", [1.0, 7.0], ids=["short", "longer than grace, in a job"])
def test_sigterm_drains(seconds: float) -> None:
    job = {"JOB": "job-1"} if seconds > 5 else {}
    with Program(SERVER, job) as program, Caller(program.address) as caller:
        caller.call("slow", "sleep", 0)
        slow = caller.send("slow", "sleep", seconds)
        behind = caller.send("slow", "sleep", 0)
        caller.connection.list_actors(timeout=PATIENCE)
        program.process.send_signal(signal.SIGTERM)
        assert (slow.result(), behind.result()) == ("slept", "slept")
        out, err = program.process.communicate(timeout=PATIENCE)
        assert (program.process.returncode, err) == (0, "")
        assert out.splitlines()[0].startswith("served")


def test_a_killed_server_loses_what_was_sent() -> None:
    with Program(SERVER) as program, Caller(program.address) as caller:
        slow = caller.send("slow", "sleep", PATIENCE)
        caller.connection.list_actors(timeout=PATIENCE)
        program.process.kill()
        answer = slow.answer()
        assert isinstance(answer.lost, UnavailableError)
        assert slow.sent.may_have_arrived
        eventually(lambda: caller.connection.closed, PATIENCE)
        with pytest.raises(UnavailableError):
            caller.send("slow", "sleep", 0)


RECORDER = """
import os, sys
from fray.cluster import LocalCluster
from fray.rpc import ActorServer
class Recorder:
    def __init__(self):
        self.file = os.open(os.environ["RECORD"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    def note(self, n, data):
        os.write(self.file, b"%d\\n" % n)
server = ActorServer(LocalCluster())
server.register("recorder", Recorder())
print(server.address, flush=True)
server.serve()
"""


@pytest.mark.parametrize("size", [10, 20_000, 2 << 20])
@pytest.mark.parametrize("answered", [0, 5])
def test_fact28_what_cannot_have_arrived_did_not_run(tmp_path: Path, size: int, answered: int) -> None:
    record = tmp_path / "record"
    with Program(RECORDER, {"RECORD": str(record)}) as program, Caller(program.address) as caller:
        sent = []
        for n in range(100):
            try:
                sent.append(caller.send("recorder", "note", n, b"x" * size))
            except UnavailableError:
                break
            if n == 20:
                for one in sent[:answered]:
                    one.result()
                program.process.kill()
        lost = {n for n, one in enumerate(sent) if one.answer().reply is None}
        ran = {int(line) for line in record.read_text().split()} if record.exists() else set()
        never = {n for n in lost if not sent[n].sent.may_have_arrived}
        assert not ran & never, f"calls ran that cannot have arrived: {ran & never}"
        assert set(range(len(sent))) - lost <= ran


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 # as a path it would have one more


def test_nothing_is_left_over(identity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def round_trip(tls: bool) -> None:
        with monkeypatch.context() as patch:
            if tls:
                patch.setenv("FRAY_ACTOR_IDENTITY", identity)
            with serving() as server:
                callers = [Caller(server.address, identity=identity if tls else "") for _ in range(10)]
                for caller in callers:
                    assert caller.call("echo", "echo", 1) == 1
                for caller in callers[::2]:
                    caller.close()
                with RawPeer(server.address, handshake=False) as peer:
                    peer.socket.sendall(b"x")
            for caller in callers:
                caller.close()

    round_trip(False)
    round_trip(True)
    gc.collect()
    threads, files = threading.active_count(), descriptors()
    for n in range(4):
        round_trip(bool(n % 2))
    eventually(lambda: threading.active_count() <= threads, PATIENCE)
    gc.collect()
    eventually(lambda: descriptors() <= files, PATIENCE)


class DeafMetadata:
    """A registry whose server does not answer any more: calls of it wait."""

    def __init__(self, registry: Any) -> None:
        self._registry, self.answers = registry, threading.Event()

    def register(self, *args: Any, **named: Any) -> Any:
        return self._registry.register(*args, **named)

    def unregister(self, _actor_id: str) -> None:
        self.answers.wait()


def test_a_server_ends_though_its_names_cannot_be_unregistered() -> None:
    with LocalCluster() as cluster:
        metadata = DeafMetadata(cluster.metadata)
        deaf: Any = type("Deaf", (), {"metadata": metadata, "namespace": cluster.namespace})()
        server = ActorServer(deaf)
        server.register("echo", Echo())
        server.serve_background()
        ending = threading.Thread(target=server.shutdown, args=[1e6], daemon=True)
        ending.start()
        ending.join(PATIENCE)
        assert not ending.is_alive()
        metadata.answers.set()
