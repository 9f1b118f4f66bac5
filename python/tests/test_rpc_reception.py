"""Who receives on a connection: callers and actors' threads instead of its own, where that saves time."""

from __future__ import annotations

import os
import select
import stat
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from actors import PATIENCE, Caller, RawPeer, head
from fray._pb import actor_pb2
from fray.cluster import FixedResolver, LocalCluster
from fray.rpc import ActorHandle, ActorServer, _wire
from fray.rpc._lane import SingleLane
from fray.rpc._reader import FrameReader
from fray.rpc._reception import Reception
from fray.rpc._wire import PlainStream
from fray.rpc.errors import CancelledError, DeadlineError
from waiting import eventually


class Gate:
    """Methods that wait for others."""

    def __init__(self) -> None:
        self.events: defaultdict[str, threading.Event] = defaultdict(threading.Event)

    def wait(self, key: str) -> bool:
        return self.events[key].wait(PATIENCE)

    def open(self, key: str) -> bool:
        self.events[key].set()
        return True


class Actor:
    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.log: list[object] = []

    def note(self, n: Any) -> Any:
        self.log.append(n)
        return n

    def thread(self) -> int:
        return threading.get_ident()

    def wait(self, key: str) -> bool:
        return self.gate.wait(key)

    def seen(self) -> list[object]:
        return self.log


class Served:
    def __init__(self) -> None:
        self.cluster = LocalCluster()
        self.server = ActorServer(self.cluster)
        self.gate = Gate()
        self.actor = Actor(self.gate)
        self.server.register("actor", self.actor)
        self.server.register("gate", self.gate, max_concurrency=8)
        self.server.serve_background()

    def close(self) -> None:
        self.server.shutdown(0)
        self.cluster.shutdown()


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.close()


@contextmanager
def receivers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yield the names of threads that received as guests."""
    seen: list[str] = []
    receive, comes = FrameReader.receive, FrameReader.comes
    guests = threading.local()

    def came(self: FrameReader, *args: Any) -> bool:
        guests.here = comes(self, *args)
        return bool(guests.here)

    def received(self: FrameReader) -> Any:
        if getattr(guests, "here", False):
            seen.append(threading.current_thread().name)
        return receive(self)

    with monkeypatch.context() as patch:
        patch.setattr(FrameReader, "comes", came)
        patch.setattr(FrameReader, "receive", received)
        yield seen


def visited(caller: Caller, what: Callable[[], object]) -> None:
    """Make calls one after the other until somebody receives as a guest."""

    def called() -> object:
        caller.call("actor", "note", 0)
        return what()

    eventually(called, PATIENCE)


# The turn


def test_one_receives_at_a_time() -> None:
    reception = Reception()
    assert not reception.enter(), "the host receives"
    reception.open()
    assert reception.enter()
    assert not reception.enter(), "a guest does"
    back = threading.Thread(target=reception.close, args=(lambda: True,))
    back.start()
    reception.leave()
    back.join(PATIENCE)
    assert not back.is_alive()
    assert not reception.enter(), "the host does again"


@pytest.mark.parametrize("recalled", [True, False], ids=["recalled", "by itself"])
def test_the_host_comes_back(recalled: bool) -> None:
    reception = Reception()
    reception.open()
    assert reception.enter()
    back = threading.Thread(target=reception.close, args=(lambda: False,))
    back.start()
    reception.leave()
    if recalled:
        reception.recall()
    back.join(PATIENCE)
    assert not back.is_alive()
    assert not reception.enter()


def test_what_a_guest_came_upon_is_the_hosts() -> None:
    reception = Reception()
    reception.open()
    assert reception.enter()
    reception.failure = EOFError()
    reception.leave()
    assert not reception.enter(), "nothing can be received any more"
    with pytest.raises(EOFError):
        reception.close(lambda: False)


def test_no_guests_for_a_while() -> None:
    reception = Reception()
    assert reception.welcoming
    reception.pause()
    assert not reception.welcoming
    eventually(lambda: reception.welcoming)


# Callers


def test_who_waits_for_a_call_receives_its_answer(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    actor = FixedResolver(served.server.address).lookup("actor")
    me = threading.current_thread().name
    with receivers(monkeypatch) as seen:
        eventually(lambda: actor.note(1) == 1 and me in seen, PATIENCE)


def test_who_receives_hands_out_what_is_others(served: Served) -> None:
    resolver = FixedResolver(served.server.address)
    actor, gate = resolver.lookup("actor"), resolver.lookup("gate")
    for n in range(20):
        actor.note(n)  # so that the next one is received by its caller
        results: list[bool] = []
        waits = threading.Thread(target=lambda into=results, n=n: into.append(gate.wait(f"{n}")))
        waits.start()
        assert [f.result(PATIENCE) for f in [actor.note.remote(i) for i in range(10)]] == list(range(10))
        assert gate.open.remote(f"{n}").result(PATIENCE)
        waits.join(PATIENCE)
        assert results == [True]


def test_who_receives_has_a_deadline(served: Served) -> None:
    resolver = FixedResolver(served.server.address)
    actor, gate = resolver.lookup("actor"), resolver.lookup("gate")
    for timeout in (0.0, 0.001, 0.03):
        actor.note(1)
        with pytest.raises(DeadlineError):
            gate.options(timeout=timeout).wait("late")
    assert gate.open("late")
    assert actor.note(2) == 2


def test_large_results_of_calls_one_after_the_other(served: Served) -> None:
    actor = FixedResolver(served.server.address).lookup("actor")
    for size in (1, 1 << 20, 1, 300 << 10, 5 << 20, 1):
        actor.note(1)
        assert len(actor.note(b"x" * size)) == size  # more than the read buffer holds


def test_a_lost_connection_is_noticed_by_who_receives(served: Served) -> None:
    actor = FixedResolver(served.server.address).lookup("actor")
    for n in range(10):
        assert actor.note(n) == n
        for session in served.server._listener.sessions:
            session.close()
    assert actor.seen() == list(range(10)), "each ran once, in order"


def while_waiting(monkeypatch: pytest.MonkeyPatch, handler: Callable[[], object]) -> None:
    """Have something happen once while this thread receives as a guest, as handlers of signals do."""
    me, wait_readable = threading.get_ident(), PlainStream.wait_readable
    handlers = [handler]

    def interrupted(self: PlainStream, seconds: float, other: int) -> bool:
        if threading.get_ident() == me and handlers:
            handlers.pop()()
        return wait_readable(self, seconds, other)

    monkeypatch.setattr(PlainStream, "wait_readable", interrupted)


def interrupt() -> None:
    raise KeyboardInterrupt


def noted_until_interrupted(actor: ActorHandle) -> int:
    """Make calls after the first one; return the number of that which was interrupted."""
    for n in range(1, 10_000):
        try:
            actor.note(n)
        except KeyboardInterrupt:
            return n
    raise AssertionError("this thread never received")


def test_a_handler_of_a_signal_makes_calls(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = FixedResolver(served.server.address)
    actor, gate = resolver.lookup("actor"), resolver.lookup("gate")
    opened: list[int] = []

    def opens() -> None:
        assert gate.open("it")
        opened.append(1)

    while_waiting(monkeypatch, opens)
    eventually(lambda: actor.note(0) == 0 and opened, PATIENCE)
    assert gate.wait("it")


def test_a_handler_receives_for_who_was_interrupted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = FixedResolver(served.server.address)
    actor, gate = resolver.lookup("actor"), resolver.lookup("gate")
    gate.open("first")

    def opens() -> None:
        assert gate.open("it")
        for _ in range(100):
            assert gate.wait("first"), "by then the other is answered"

    actor.note(0)
    while_waiting(monkeypatch, opens)
    otherwise = threading.Timer(1, served.gate.open, ["it"])  # where another thread receives
    otherwise.start()
    assert gate.wait("it")
    otherwise.cancel()


def test_a_handler_of_a_signal_raises(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    actor = FixedResolver(served.server.address).lookup("actor")
    actor.note(0)
    while_waiting(monkeypatch, interrupt)
    n = noted_until_interrupted(actor)
    session = served.server._listener.sessions
    assert actor.note("after") == "after"
    assert served.server._listener.sessions == session, "the connection is as it was"
    assert actor.seen() in ([*range(n), "after"], [*range(n + 1), "after"]), "it was cancelled or not"


def test_an_interruption_amid_a_frame_ends_the_connection(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a frame was taken, so nothing can be received there; calls go on over another one."""
    actor = FixedResolver(served.server.address).lookup("actor")
    receive, me, interrupted = FrameReader.receive, threading.get_ident(), [True]

    def receives(self: FrameReader) -> Any:
        got = receive(self)
        if threading.get_ident() == me and interrupted:
            interrupted.pop()
            raise KeyboardInterrupt
        return got

    actor.note(0)
    session = served.server._listener.sessions
    monkeypatch.setattr(FrameReader, "receive", receives)
    n = noted_until_interrupted(actor)
    assert actor.note("after") == "after"
    assert actor.seen() == [*range(n + 1), "after"], "each ran once"
    assert served.server._listener.sessions != session


# Actors


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


def test_what_is_no_frame_is_refused_by_who_visits(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with receivers(monkeypatch) as seen, RawPeer(served.server.address) as peer:
        seq = 0

        def visits() -> bool:
            nonlocal seq
            seq += 1
            peer.send(
                _wire.CALL, actor_pb2.Call(actor="actor", method="thread", seq=seq, args=b"\x92\x90\x80")
            )
            assert peer.receive().reply.seq == seq
            return "fray-actor-actor-0" in seen

        eventually(visits, PATIENCE)
        peer.socket.sendall(head(3) + b"\xff\xff\xff")
        assert peer.receive().goodbye.error.message == "its head is no Frame message"


def test_order_is_kept_between_calls_alone_and_many(served: Served) -> None:
    with Caller(served.server.address) as caller:
        sent = []
        for n in range(0, 300, 3):
            assert caller.call("actor", "note", n) == n
            sent += [caller.send("actor", "note", n + 1), caller.send("actor", "note", n + 2)]
        for pending in sent:
            pending.result()
        assert caller.call("actor", "seen") == list(range(300))


def test_calls_of_other_connections_reach_an_actor_that_visits(served: Served) -> None:
    address = served.server.address
    with Caller(address) as one, Caller(address) as other:
        for n in range(100):
            assert one.call("actor", "note", n) == n
            assert other.call("actor", "note", n) == n


def test_visits_leave_no_descriptors(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    pipe = os.pipe

    def counted() -> tuple[int, int]:
        ends = pipe()
        made.extend(ends)
        return ends

    monkeypatch.setattr("fray.rpc._lane.os.pipe", counted)
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

    monkeypatch.setattr("fray.rpc._lane.os.pipe", none)
    with Caller(served.server.address) as caller:
        visited(caller, lambda: tried)
        assert [caller.call("actor", "note", n) for n in range(50)] == list(range(50))


def test_a_server_shuts_down_while_an_actor_visits(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        made = Served()
        with receivers(monkeypatch) as seen, Caller(made.server.address) as caller:
            visited(caller, partial(bool, seen))
            made.close()
        eventually(lambda: "fray-actor-actor-0" not in {t.name for t in threading.enumerate()}, PATIENCE)


class Visited:
    """A connection that brings nothing until somebody knocks."""

    def __init__(self) -> None:
        self.visits: list[bool] = []
        self.waits, self.parted = threading.Event(), threading.Event()

    def visit(self, wake: int) -> bool:
        self.waits.set()
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        self.visits.append(bool(poll.poll(PATIENCE * 1000)))
        return False

    def part(self, shared: bool) -> None:
        assert not shared
        self.parted.set()


class Quick:
    """A call."""

    def __init__(self, host: Visited | None) -> None:
        self.host = host
        self.answered = threading.Event()

    def run(self) -> Any:
        return ()

    def answer(self, reply: Any, later: bool) -> None:
        assert (reply, later) == ((), False)
        self.answered.set()


def ends(lane: SingleLane) -> None:
    lane.stop()
    lane.join(PATIENCE)


def another(lane: Any) -> None:
    lane.put(Quick(None))


@pytest.mark.parametrize("disturb", [another, ends])
def test_a_thread_that_visits_is_called_home(disturb: Callable[[Any], object]) -> None:
    lane: Any = SingleLane("test")
    host = Visited()
    first, second = Quick(host), Quick(host)
    assert not lane.put(first), "it is not known whether calls are quick"
    assert first.answered.wait(PATIENCE)
    assert lane.put(second)
    assert host.waits.wait(PATIENCE)
    disturb(lane)
    assert host.parted.wait(PATIENCE)
    assert host.visits == [True]
    ends(lane)
