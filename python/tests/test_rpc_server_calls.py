"""What becomes of a call: deadlines, cancelling, coroutines, its context, and what it carries."""

from __future__ import annotations

import time

import numpy as np
import pytest

from actors import PATIENCE, SOURCES, Caller
from fray._pb import actor_pb2
from fray.cluster import LocalCluster
from fray.rpc import ActorServer
from fray.rpc.errors import (
    ApplicationError,
    BadArgumentsError,
    CancelledError,
    DeadlineError,
    DeniedError,
    EncodingError,
    TooLargeError,
)
from test_rpc_server import Async, Counter
from waiting import eventually


def test_a_deadline_that_passes_before_the_call_begins(counter: Counter, caller: Caller) -> None:
    waits = caller.send("counter", "wait")
    assert counter.entered.acquire(timeout=PATIENCE)
    late = caller.send("counter", "add", 1, timeout_ns=1_000_000)
    time.sleep(0.01)
    counter.gate.set()
    with pytest.raises(DeadlineError, match="before the call began") as caught:
        late.result()
    assert not caught.value.ran
    assert waits.result() == "waited"
    assert counter.n == 0


@pytest.mark.usefixtures("counter")
def test_a_method_sees_its_deadline(caller: Caller) -> None:
    assert caller.call("counter", "left") is None
    left = caller.call("counter", "left", timeout_ns=int(PATIENCE * 1e9))
    assert 0 < left <= PATIENCE
    assert caller.call("counter", "left", timeout_ns=(1 << 64) - 1) > 1e9


def test_a_call_that_waits_is_cancelled(counter: Counter, caller: Caller) -> None:
    waits = caller.send("counter", "wait")
    assert counter.entered.acquire(timeout=PATIENCE)
    victim = caller.send("counter", "add", 1)
    last = caller.send("counter", "add", 10)
    caller.connection.cancel(victim.call.seq)
    with pytest.raises(CancelledError) as caught:
        victim.result()
    assert not caught.value.ran
    caller.connection.cancel(waits.call.seq)  # it runs, and cannot be stopped
    counter.gate.set()
    assert (waits.result(), last.result()) == ("waited", 10)


def test_a_coroutine_is_cancelled(server: ActorServer, caller: Caller) -> None:
    value = Async()
    server.register("async", value)
    sleeps = caller.send("async", "sleep")
    eventually(lambda: value.running == 1, PATIENCE)
    caller.connection.cancel(sleeps.call.seq)
    with pytest.raises(CancelledError) as caught:
        sleeps.result()
    assert caught.value.ran
    assert value.ended == ["cancelled"]


def test_a_coroutine_ends_at_its_deadline(server: ActorServer, caller: Caller) -> None:
    value = Async()
    server.register("async", value)
    with pytest.raises(DeadlineError) as caught:
        caller.call("async", "sleep", timeout_ns=50_000_000)
    assert value.ended == ["cancelled"] or not caught.value.ran


def test_coroutines_run_at_once(server: ActorServer, caller: Caller) -> None:
    server.register("async", Async())
    sent = [caller.send("async", "meet", 50) for _ in range(50)]
    assert max(one.result() for one in sent) == 50


def test_coroutines_run_one_at_a_time_where_that_was_said(server: ActorServer, caller: Caller) -> None:
    value = Async()
    server.register("async", value, max_concurrency=1)
    sent = [caller.send("async", "note" if n % 3 else "plain", n) for n in range(300)]
    for one in sent:
        one.result()
    assert value.seen == list(range(300))


def test_a_coroutine_that_fails(server: ActorServer, caller: Caller) -> None:
    server.register("async", Async())
    with pytest.raises(ApplicationError) as caught:
        caller.call("async", "fail")
    assert (caught.value.type, caught.value.message) == ("RuntimeError", "RuntimeError: no")
    assert "in fail\n" in caught.value.traceback
    assert SOURCES not in caught.value.traceback, "the server's own frames"
    assert caller.call("async", "plain", 4) == 4


@pytest.mark.usefixtures("counter")
def test_the_context(server: ActorServer, caller: Caller) -> None:
    incarnation = server._registry().lookup("counter").actor_id
    assert caller.call("counter", "about", 5) == [
        "counter",
        "about",
        incarnation,
        server.namespace,
        "",
        26,
        5,
        True,
    ]


@pytest.mark.usefixtures("counter")
def test_arrays_and_large_bytes(caller: Caller) -> None:
    array = np.arange(1 << 18, dtype=np.float32).reshape(512, 512)
    assert np.array_equal(caller.call("counter", "echo", array), array)
    assert caller.call("counter", "echo", b"z" * (3 << 20)) == b"z" * (3 << 20)
    assert caller.call("counter", "echo", "s" * (3 << 20)) == "s" * (3 << 20)


@pytest.mark.usefixtures("counter")
def test_a_result_that_no_codec_carries(caller: Caller) -> None:
    with pytest.raises(EncodingError) as caught:
        caller.call("counter", "unknown")
    assert (caught.value.argument, caught.value.ran) == ("result.lr[1]", True)
    assert caller.call("counter", "add", 1) == 1


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x92\x90", b"\x93\x90\x80\xc0", b"\x80", b"\x92\x91\xc7"])
def test_bytes_that_are_no_arguments(counter: Counter, caller: Caller, data: bytes) -> None:
    with pytest.raises(BadArgumentsError):
        caller.call("counter", "every", args=data)
    assert counter.n == 0
    assert caller.call("counter", "add", 1) == 1


@pytest.mark.usefixtures("counter")
def test_pickles_are_rejected_before_they_are_read(caller: Caller) -> None:
    with pytest.raises(DeniedError, match="pickle is refused"):
        caller.call("counter", "echo", args=b"cposix\nsystem\n(S'false'\ntR.", codec=actor_pb2.CODEC_PICKLE)


def test_sizes_over_the_limit() -> None:
    with LocalCluster() as cluster, ActorServer(cluster, max_message_bytes=1 << 20) as server:
        server.register("counter", Counter())
        with Caller(server.address) as caller:
            assert caller.connection.peer.max_message_bytes == 1 << 20
            with pytest.raises(
                TooLargeError,
                match=r"the arguments are 2\.1 MiB; at most 1 MiB are taken \(max_message_bytes\)",
            ):
                caller.call("counter", "echo", b"x" * (2 << 20))
            caller.connection._limit = 1 << 30  # a client that sends it all the same
            with pytest.raises(TooLargeError, match=r"the arguments are 2\.1 MiB"):
                caller.call("counter", "echo", b"x" * (2 << 20))
            assert caller.call("counter", "add", 1) == 1
        with Caller(server.address, max_message_bytes=1000) as caller:
            with pytest.raises(
                TooLargeError, match=r"the result is \d+ bytes; at most 1000 bytes are taken"
            ) as caught:
                caller.call("counter", "twice", "x" * 500)
            assert caught.value.ran
            assert caller.call("counter", "add", 1) == 2
