"""Calls that are given up: deadlines, cancelling, peers that fall silent."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import pytest

from fray._pb import actor_pb2
from fray.cluster import Entrypoint, JobRequest, LocalCluster
from fray.rpc import ConnectionSettings, FixedResolver
from fray.rpc._transport.call_chain import call_deadline
from fray.rpc.errors import (
    CancelledError,
    DeadlineError,
    MaybeExecutedError,
    StoppingError,
)
from scripted import Break, Scripted, packed


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted() as server:
        yield server


def test_deadline(server: Scripted) -> None:
    resolver = FixedResolver(server.address)
    assert resolver.handle("counter").increment(1) is not None  # connected: what follows is sent in time
    server.calls.clear()
    server.on_call = lambda _server, _call: None
    handle = resolver.handle("counter").options(timeout=1)
    with pytest.raises(DeadlineError, match="the deadline passed") as caught:
        handle.increment(1)
    assert caught.value.ran
    late = handle.increment.remote(1).exception(300)
    assert isinstance(late, DeadlineError)
    assert isinstance(late, TimeoutError)
    left = [call.timeout_ns for call in server.calls]
    assert all(0 < ns <= 1e9 for ns in left), left
    server.wait(lambda: sorted(server.cancelled) == [2, 3])
    server.close()
    with pytest.raises(DeadlineError, match="the deadline passed") as caught:
        FixedResolver("127.0.0.1:1").handle("counter").options(timeout=0.2).increment(1)
    assert not caught.value.ran


def test_deadlines_are_inherited(server: Scripted) -> None:
    handle = FixedResolver(server.address).handle("counter")
    token = call_deadline.set(monotonic() + 1000)
    try:
        handle.increment(1)
        handle.options(timeout=5).increment(1)
        handle.options(timeout=5000).increment(1)
    finally:
        call_deadline.reset(token)
    handle.increment(1)
    left = [call.timeout_ns / 1e9 for call in server.calls]
    assert 900 < left[0] <= 1000
    assert 0 < left[1] <= 5
    assert 900 < left[2] <= 1000
    assert left[3] == 0


def test_cancel(server: Scripted) -> None:
    server.on_call = lambda _server, _call: None
    handle = FixedResolver(server.address).handle("counter")
    future = handle.increment.remote(1)
    server.wait(lambda: server.calls)
    assert future.cancel()
    server.wait(lambda: server.cancelled == [1])
    assert isinstance(future.exception(300), CancelledError)
    assert future.cancelled()
    assert not future.cancel()
    nowhere = FixedResolver("127.0.0.1:1").handle("counter").increment.remote(1)
    assert nowhere.cancel()
    with pytest.raises(CancelledError, match="before it was sent") as caught:
        nowhere.result(300)
    assert not caught.value.ran


def test_cancelled_calls_are_not_sent_again(server: Scripted) -> None:
    server.on_call, server.deaf = (lambda _server, _call: None), True
    future = FixedResolver(server.address).handle("counter").options(idempotent=True).increment.remote(1)
    server.wait(lambda: server.calls)
    assert future.cancel()
    server.wait(lambda: server.cancelled)
    server.restart()
    server.drop()
    with pytest.raises(CancelledError) as caught:
        future.result(300)
    assert caught.value.ran
    assert len(server.calls) == 1


def test_a_job_that_is_stopped_while_it_waits(server: Scripted) -> None:
    server.on_call = lambda _server, _call: None
    handle = FixedResolver(server.address).handle("counter")
    with LocalCluster() as cluster:
        job = cluster.launch(JobRequest("train", Entrypoint.from_callable(handle.increment, args=(1,))))
        server.wait(lambda: server.calls)
        cluster.terminate(job)
        server.wait(lambda: server.cancelled == [1])
        cluster.wait(job, timeout=300)


def test_server_that_falls_silent(server: Scripted) -> None:
    def on_call(server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply | None:
        server.silent = not server.silent
        return None if server.silent else server.run(call)

    server.on_call = on_call
    settings = ConnectionSettings(keepalive=0.1, patience=0.2)
    assert FixedResolver(server.address, settings=settings).handle("counter").increment(1) == 1
    assert len(server.connections) == 2


def test_few_writes(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    from fray.rpc._transport import wire as _wire

    handle = FixedResolver(server.address).handle("counter")
    assert handle.increment(0) == 1
    writes = []
    send = _wire.PlainStream.send

    def counted(self: _wire.PlainStream, parts: list[bytes], size: int) -> int:
        writes.append(size)
        return send(self, parts, size)

    monkeypatch.setattr(_wire.PlainStream, "send", counted)
    futures = [handle.increment.remote(i) for i in range(1000)]
    assert [future.result(300) for future in futures][-1] == 1001
    assert len(writes) < 200, writes


@pytest.mark.parametrize("before", [False, True])
def test_close_is_of_its_connection(server: Scripted, before: bool) -> None:  # 28
    def break_once(self: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply:
        self.run(call)
        self.on_call = leave
        raise Break

    def leave(self: Scripted, _call: actor_pb2.Call) -> actor_pb2.Reply:
        close = actor_pb2.Close(error=StoppingError("the server is shutting down").to_wire())
        self.connections[-1].sendall(packed(actor_pb2.Frame(close=close)))
        self.on_call = Scripted.run
        self.restart()
        raise Break

    server.on_call = break_once if before else leave
    if before:
        with pytest.raises(MaybeExecutedError):
            FixedResolver(server.address).lookup("counter").increment(1)
    else:
        assert FixedResolver(server.address).lookup("counter").increment(1) == 1
    assert len(server.runs) == 1
