"""What a client does with calls whose connection breaks, at every point, and how often they run."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

import scripted
from fray._pb import actor_pb2
from fray.rpc import FixedResolver, RpcOptions
from fray.rpc.errors import (
    ActorError,
    BusyError,
    Code,
    MaybeExecutedError,
    StoppingError,
    UnavailableError,
    UnknownActorError,
    UnknownMethodError,
)
from fray.rpc.options import MAX_BREAKS
from scripted import Break, Scripted
from waiting import ended, eventually


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted() as server:
        yield server


class Breaks:
    """Breaks the connection at a point of the first `times` calls, and restarts the server if asked to."""

    def __init__(self, point: str, restarts: bool = False, times: int = 1) -> None:
        self.point, self.restarts, self.left = point, restarts, times

    def __call__(self, server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply | None:
        if self.left == 0:
            return server.run(call)
        self.left -= 1
        if self.point != "before it runs":
            server.run(call)
        if self.restarts:
            server.restart()
        raise Break


@pytest.mark.parametrize("options", [RpcOptions(), RpcOptions(idempotent=True), RpcOptions(retries=100)])
def test_a_call_that_breaks_every_connection_ends(server: Scripted, options: RpcOptions) -> None:
    """It is sent again as often as by callers in Go, and may have run; others go on."""

    def on_call(server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply:
        if call.method == "poison":
            raise Break
        return server.run(call)

    server.on_call = on_call
    actor = FixedResolver(server.address).handle("counter").with_options(options)
    with pytest.raises(MaybeExecutedError, match=r"counter.poison: .*it may have run") as caught:
        actor.poison.remote(1).result(300)
    assert caught.value.ran
    assert len(server.calls) == 1 + MAX_BREAKS
    assert actor.increment(5) == 1


def test_a_call_of_which_all_connections_take_a_part_ends(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts = 0

    def receive(sock: socket.socket) -> tuple[actor_pb2.Frame, bytes]:
        nonlocal cuts
        head, body = struct.unpack(">II", scripted.exactly(sock, 8))
        if head + body > 1 << 20 and cuts < 3 * MAX_BREAKS:
            cuts += 1
            raise Break
        return actor_pb2.Frame.FromString(scripted.exactly(sock, head)), scripted.exactly(sock, body)

    monkeypatch.setattr(scripted, "receive", receive)
    actor = FixedResolver(server.address).handle("counter")
    with pytest.raises(UnavailableError, match=r"counter.increment: .*17 connections broke") as caught:
        actor.increment.remote(bytes(24 << 20)).result(300)
    assert not caught.value.ran
    assert cuts == 1 + MAX_BREAKS
    assert actor.increment(5) == 1


MAYBE = MaybeExecutedError
POINTS = ["before it runs", "before its reply"]
RUN_BEFORE = {"before it runs": 0, "before its reply": 1}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("times", [1, 3])
def test_same_incarnation_runs_it_once(server: Scripted, point: str, times: int) -> None:
    server.on_call = Breaks(point, times=times)
    assert FixedResolver(server.address).lookup("counter").increment(5) == 1
    assert server.runs == [[5]]
    assert [call.attempt for call in server.calls] == list(range(times + 1))
    assert {call.seq for call in server.calls} == {1}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(
    ("name", "options", "by_server", "again"),
    [
        ("no option", RpcOptions(), False, 0),
        ("idempotent", RpcOptions(idempotent=True), False, 1),
        ("retries", RpcOptions(retries=1), False, 1),
        ("the method is idempotent", RpcOptions(), True, 1),
    ],
)
def test_another_incarnation(
    server: Scripted, point: str, name: str, options: RpcOptions, by_server: bool, again: int
) -> None:
    if by_server:
        server.idempotent = ("increment",)
    handle = FixedResolver(server.address).handle("counter").with_options(options)
    handle.warm()
    server.wait(lambda: server.asked)
    server.runs.clear()
    server.on_call = Breaks(point, restarts=True)
    outcome: object
    try:
        outcome = handle.increment(5)
    except MAYBE as err:
        outcome = err.ran, str(err)
    want = "counter.increment: the connection broke after the call was sent: it may have run"
    assert outcome == (RUN_BEFORE[point] + 1 if again else (True, want)), name
    assert len(server.runs) == RUN_BEFORE[point] + again
    assert handle.increment(6) == len(server.runs), "the next call resolves afresh"


def test_retries_are_counted(server: Scripted) -> None:
    server.on_call = Breaks("before its reply", restarts=True, times=3)
    handle = FixedResolver(server.address).handle("counter")
    with pytest.raises(MAYBE):
        handle.options(retries=2).increment(1)
    assert len(server.runs) == 3
    assert handle.options(retries=0).increment(1) == 4


def test_a_retry_that_is_rejected_does_not_hide_that_the_call_may_have_run(server: Scripted) -> None:  # 28
    breaks = Breaks("before its reply", restarts=True)

    def then_refused(server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply | None:
        if breaks.left:
            return breaks(server, call)
        error = UnknownMethodError('no method "increment"')
        return actor_pb2.Reply(seq=call.seq, incarnation=call.incarnation, error=error.to_wire())

    server.on_call = then_refused
    with pytest.raises(UnknownMethodError) as caught:
        FixedResolver(server.address).handle("counter").options(idempotent=True).increment(1)
    assert caught.value.ran


def test_calls_behind_a_broken_one_keep_their_order(server: Scripted) -> None:
    # The first 50 may have run on the server that is lost; what comes after them did not arrive anywhere.
    seen = threading.Event()

    def on_call(server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply | None:
        if call.seq == 50 and not seen.is_set():
            seen.set()
            server.restart()
            raise Break
        return server.run(call)

    server.on_call = on_call
    handle = FixedResolver(server.address).handle("counter")
    futures = [handle.increment.remote(i) for i in range(200)]
    outcomes = [type(future.exception(300)) for future in futures]
    assert set(outcomes) <= {type(None), MAYBE}
    ran = [args[0] for args in server.runs]
    assert ran == sorted(ran)
    assert len(ran) == len(set(ran))
    returned = [i for i, kind in enumerate(outcomes) if kind is type(None)]
    assert set(returned) <= set(ran)


@pytest.mark.parametrize("at", range(1, 200, 10))
def test_calls_made_meanwhile_do_not_overtake_those_of_a_lost_server(server: Scripted, at: int) -> None:
    """The client knows of no incarnation that could be stale."""

    def on_call(server: Scripted, _call: actor_pb2.Call) -> actor_pb2.Reply | None:
        if len(server.calls) < at:
            return None
        server.on_call = Scripted.run
        server.restart()
        raise Break

    server.on_call = on_call
    handle = FixedResolver(server.address).handle("counter").options(idempotent=True)
    for future in [handle.increment.remote(i) for i in range(2 * at + 100)]:
        future.result(300)
    assert server.runs == [[i] for i in range(2 * at + 100)]


@pytest.mark.parametrize("seed", range(4))
def test_exactly_once_however_often_it_breaks(server: Scripted, seed: int) -> None:
    rng = random.Random(seed)

    def on_call(server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply | None:
        if rng.random() < 0.02:
            raise Break
        reply = server.run(call)
        if rng.random() < 0.02:
            raise Break
        return reply

    server.on_call = on_call
    handle = FixedResolver(server.address).handle("counter")
    futures = [handle.increment.remote(i) for i in range(400)]
    assert [future.result(300) for future in futures] == list(range(1, 401))
    assert server.runs == [[i] for i in range(400)]


@pytest.mark.parametrize("seed", range(4))
def test_never_twice_however_often_it_restarts(server: Scripted, seed: int) -> None:
    rng = random.Random(seed)

    def on_call(server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply | None:
        breaks, restarts, before = rng.random() < 0.02, rng.random() < 0.5, rng.random() < 0.5
        if breaks and before:
            server.restart() if restarts else None
            raise Break
        reply = server.run(call)
        if breaks:
            server.restart() if restarts else None
            raise Break
        return reply

    server.on_call = on_call
    handle = FixedResolver(server.address).handle("counter")
    futures = []
    for i in range(400):
        futures.append(handle.increment.remote(i))
        if i % 40 == 0:
            futures[-1].exception(300)
    outcomes = [future.exception(300) for future in futures]
    ran = [args[0] for args in server.runs]
    assert len(ran) == len(set(ran)), "a call ran twice"
    assert ran == sorted(ran), "calls overtook each other"
    for i, outcome in enumerate(outcomes):
        assert outcome is None or isinstance(outcome, MAYBE), outcome
        assert outcome is not None or i in ran


def test_one_reconnect_for_many_callers(server: Scripted) -> None:  # 31
    handle = FixedResolver(server.address).handle("counter")
    assert handle.increment(0) == 1
    held = threading.Event()

    def on_call(server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply | None:
        return server.run(call) if held.is_set() else None

    server.on_call = on_call
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(handle.increment(1))) for _ in range(20)]
    for thread in threads:
        thread.start()
    server.wait(lambda: len(server.calls) == 21)
    held.set()
    server.drop()
    for thread in threads:
        ended(thread)
    assert sorted(results) == list(range(2, 22))
    assert len(server.connections) == 2


@pytest.mark.parametrize(
    ("name", "error", "options", "want"),
    [
        ("busy", BusyError("too many calls wait"), RpcOptions(), None),
        ("stopping", StoppingError("the server is shutting down"), RpcOptions(), None),
        ("unavailable", UnavailableError("not yet"), RpcOptions(), None),
        ("stale", ActorError("another incarnation is here"), RpcOptions(), None),
        ("unknown actor", UnknownActorError('no actor "counter" is here'), RpcOptions(), UnknownActorError),
        ("it may have run", MAYBE("it may have run", ran=True), RpcOptions(), MAYBE),
        (
            "it may have run, idempotent",
            MAYBE("it may have run", ran=True),
            RpcOptions(idempotent=True),
            None,
        ),
        (
            "stopped while it ran",
            StoppingError("stopped", ran=True),
            RpcOptions(idempotent=True),
            StoppingError,
        ),
    ],
)
def test_rejections(
    server: Scripted, name: str, error: ActorError, options: RpcOptions, want: type[ActorError] | None
) -> None:
    refused: list[actor_pb2.Call] = []

    def on_call(server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply | None:
        if refused:
            return server.run(call)
        refused.append(call)
        wire = error.to_wire()
        if name == "stale":
            wire.code = Code.STALE.number
        return actor_pb2.Reply(seq=call.seq, error=wire)

    server.on_call = on_call
    handle = FixedResolver(server.address).handle("counter").with_options(options)
    if want is None:
        assert handle.increment(1) == 1
        return
    with pytest.raises(want) as caught:
        handle.increment(1)
    assert caught.value.actor == "counter"
    assert caught.value.method == "increment"
    assert server.runs == []


def test_rejected_calls_keep_their_order(server: Scripted) -> None:
    def on_call(server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply | None:
        if call.seq > 100 and call.attempt == 0:
            return server.rejection(call, StoppingError("the server is shutting down"))
        return server.run(call)

    server.on_call = on_call
    handle = FixedResolver(server.address).handle("counter")
    futures = [handle.increment.remote(i) for i in range(300)]
    last = [handle.increment.remote(i) for i in range(300, 310) if not futures[-1].exception(300)]
    assert [future.result(300) for future in futures + last] == list(range(1, 311))
    assert server.runs == [[i] for i in range(310)]


def test_server_that_is_not_there_yet_and_one_that_comes_back(server: Scripted) -> None:  # 30
    port = server.port
    server.close()
    handle = FixedResolver(server.address).handle("counter")
    future = handle.increment.remote(7)
    assert not future.done()
    with Scripted(port=port) as second:
        assert future.result(300) == 1
        assert second.runs == [[7]]
        second.close()
        with Scripted(port=port, incarnation="actor-" + 26 * "b") as third:
            eventually(lambda: handle.options(idempotent=True).increment(8), 300)
            assert third.runs[0] == [8]
            assert handle.actor_id == third.incarnation


def test_final_failure_then_afresh(server: Scripted) -> None:  # 30
    port = server.port
    server.close()
    handle = FixedResolver(server.address).handle("counter")
    with pytest.raises(UnavailableError, match=r"counter.increment: no server answers at") as caught:
        handle.options(resolve_timeout=0.2).increment(1)
    assert not caught.value.ran
    with Scripted(port=port):
        assert handle.increment(1) == 1
