"""The thread of an actor, which receives its calls where that saves time."""

from __future__ import annotations

import os
import select
import stat
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from actors import PATIENCE, Caller, RawPeer, head
from fray._pb import actor_pb2
from fray.rpc._serving.serial_queue import SerialQueue
from fray.rpc._transport import wire as _wire
from fray.rpc.errors import CancelledError
from receiving import Served, receivers, visited
from waiting import ended, eventually


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.close()


def test_the_thread_of_an_actor_receives_its_calls(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with receivers(monkeypatch) as seen, Caller(served.server.address) as caller:
        visited(caller, lambda: "fray-actor-actor-0" in seen)


def test_an_actor_keeps_its_thread(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    address = served.server.address
    with receivers(monkeypatch) as seen, Caller(address) as one, Caller(address) as other:
        visited(one, lambda: seen)
        threads = {caller.call("actor", "thread") for _ in range(50) for caller in (one, one, other)}
        assert len(threads) == 1


def test_a_slow_method_does_not_hold_up_its_connection(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receivers(monkeypatch) as seen, Caller(served.server.address) as caller:
        for n in range(5):
            seen.clear()
            visited(caller, lambda: seen)
            slow = caller.send("actor", "wait", f"{n}")
            waits = caller.send("actor", "note", 1)
            caller.connection.cancel(waits.call.seq)
            with pytest.raises(CancelledError):
                waits.result()
            assert caller.call("gate", "open", f"{n}"), "another actor was called meanwhile"
            assert slow.result()


def test_a_malformed_frame_is_rejected_by_an_actors_thread(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receivers(monkeypatch) as seen, RawPeer(served.server.address) as peer:
        seq = 0

        def received() -> bool:
            nonlocal seq
            seq += 1
            peer.send(
                _wire.CALL, actor_pb2.Call(actor="actor", method="thread", seq=seq, args=b"\x92\x90\x80")
            )
            assert peer.receive().reply.seq == seq
            return "fray-actor-actor-0" in seen

        eventually(received, PATIENCE)
        peer.socket.sendall(head(3) + b"\xff\xff\xff")
        assert peer.receive().close.error.message == "its head is no Frame message"


def test_order_is_kept_between_calls_alone_and_many(served: Served) -> None:
    with Caller(served.server.address) as caller:
        sent = []
        for n in range(0, 300, 3):
            assert caller.call("actor", "note", n) == n
            sent += [caller.send("actor", "note", n + 1), caller.send("actor", "note", n + 2)]
        for pending in sent:
            pending.result()
        assert caller.call("actor", "seen") == list(range(300))


def test_calls_of_other_connections_reach_an_actor_whose_thread_receives(served: Served) -> None:
    address = served.server.address
    with Caller(address) as one, Caller(address) as other:
        for n in range(100):
            assert one.call("actor", "note", n) == n
            assert other.call("actor", "note", n) == n


def test_receiving_leaves_no_descriptors(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    pipe = os.pipe

    def counted() -> tuple[int, int]:
        ends = pipe()
        made.extend(ends)
        return ends

    monkeypatch.setattr("fray.rpc._serving.serial_queue.os.pipe", counted)
    with Caller(served.server.address) as caller:
        visited(caller, lambda: made)
    eventually(lambda: not any(is_pipe(end) for end in made), PATIENCE)


def is_pipe(descriptor: int) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def test_calls_are_served_without_descriptors(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[bool] = []

    def none() -> tuple[int, int]:
        tried.append(True)
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("fray.rpc._serving.serial_queue.os.pipe", none)
    with Caller(served.server.address) as caller:
        visited(caller, lambda: tried)
        assert [caller.call("actor", "note", n) for n in range(50)] == list(range(50))


def test_a_server_shuts_down_while_the_thread_of_an_actor_receives(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        made = Served()
        with receivers(monkeypatch) as seen, Caller(made.server.address) as caller:
            visited(caller, partial(bool, seen))
            made.close()
        eventually(lambda: "fray-actor-actor-0" not in {t.name for t in threading.enumerate()}, PATIENCE)


class Idle:
    """A connection that receives nothing until its thread is notified."""

    def __init__(self) -> None:
        self.notified: list[bool] = []
        self.waits, self.given_back = threading.Event(), threading.Event()

    def receive_one(self, wake: int) -> bool:
        self.waits.set()
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        self.notified.append(bool(poll.poll(PATIENCE * 1000)))
        return False

    def give_back(self, shared: bool) -> None:
        assert not shared
        self.given_back.set()


class Quick:
    """A call."""

    def __init__(self, connection: Idle | None) -> None:
        self.connection = connection
        self.answered = threading.Event()

    def run(self) -> Any:
        return ()

    def answer(self, reply: Any, later: bool) -> None:
        assert (reply, later) == ((), False)
        self.answered.set()


def ends(queue: SerialQueue) -> None:
    queue.stop()
    queue.join(PATIENCE)


def another(queue: Any) -> None:
    queue.put(Quick(None))


@pytest.mark.parametrize("disturb", [another, ends])
def test_a_thread_that_receives_is_notified(disturb: Callable[[Any], object]) -> None:
    queue: Any = SerialQueue("test")
    connection = Idle()
    first, second = Quick(connection), Quick(connection)
    assert not queue.put(first), "it is not known whether calls are quick"
    assert first.answered.wait(PATIENCE)
    assert queue.put(second)
    assert connection.waits.wait(PATIENCE)
    disturb(queue)
    assert connection.given_back.wait(PATIENCE)
    assert connection.notified == [True]
    ends(queue)


class Busy(Idle):
    """A connection that receives a call, before which another one came to the actor."""

    def __init__(self, queue: Any, other: Quick, received: Quick) -> None:
        super().__init__()
        self._queue, self._other, self._received = queue, other, received

    def receive_one(self, wake: int) -> bool:  # noqa: ARG002
        elsewhere = threading.Thread(target=self._queue.put, args=[self._other])
        elsewhere.start()
        ended(elsewhere)
        return bool(self._queue.put(self._received))

    def give_back(self, shared: bool) -> None:  # noqa: ARG002
        self.given_back.set()


def test_a_received_call_comes_after_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fray.rpc._serving.serial_queue._QUICK", PATIENCE)
    queue: Any = SerialQueue("test")
    began: list[str] = []
    first, other, received = (Noted(began, name) for name in ("first", "other", "received"))
    quick = Quick(None)
    quick.connection = Busy(queue, other, received)
    queue.put(first)
    assert first.answered.wait(PATIENCE)
    assert queue.put(quick)
    assert received.answered.wait(PATIENCE)
    assert began == ["first", "other", "received"]
    ends(queue)


class Noted(Quick):
    """A call that notes when it runs. Its thread receives on no connection."""

    def __init__(self, began: list[str], name: str) -> None:
        super().__init__(None)
        self._began, self._name = began, name

    def run(self) -> Any:
        self._began.append(self._name)
        return ()

    def answer(self, reply: Any, later: bool) -> None:  # noqa: ARG002
        self.answered.set()
