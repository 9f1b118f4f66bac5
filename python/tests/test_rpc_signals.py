"""Handlers of signals that make calls, or raise, while their thread receives or sends."""

from __future__ import annotations

import dis
import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

import pytest

from actors import PATIENCE
from fray.cluster import FixedResolver
from fray.rpc import ActorHandle, _connection, _reception
from fray.rpc._reader import FrameReader
from fray.rpc._wire import PlainStream
from fray.rpc._writer import FrameWriter
from receiving import Served
from waiting import eventually


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.close()


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


class Interrupter:
    """Interrupts the guest's part of calls, in each at another place where Python looks for signals."""

    def __init__(self) -> None:
        self.places: set[tuple[str, int]] = set()

    def trace(self, frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if code.co_filename not in (_reception.__file__, _connection.__file__):
            return None
        if code.co_name not in ("attend", "visit", "enter", "leave", "_receive_for"):
            return None
        frame.f_trace_opcodes = True
        if event == "call" or (event == "opcode" and frame.f_lasti in after_calls(code)):
            place = code.co_name, -1 if event == "call" else frame.f_lasti
            if place not in self.places:
                self.places.add(place)
                raise KeyboardInterrupt
        return self.trace


@cache
def after_calls(code: CodeType) -> frozenset[int]:
    """Return where a function of C has returned just now."""
    steps = [i for i in dis.get_instructions(code) if i.opname != "CACHE"]
    return frozenset(after.offset for step, after in pairwise(steps) if step.opname.startswith("CALL"))


def interrupted_everywhere() -> None:
    """Interrupt the guest's part of calls at each of its places; one more call is answered."""
    pytest.MonkeyPatch().setattr(_reception, "TICK", 0.1)  # the host leaves time for guests that are traced
    served = Served()
    actor = FixedResolver(served.server.address).lookup("actor").options(timeout=PATIENCE)
    interrupter = Interrupter()
    for _ in range(80):  # more than there are places
        actor.note(0)  # so that the next one is received by its caller
        sys.settrace(interrupter.trace)
        try:
            actor.note(1)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
    assert len(interrupter.places) > 10, interrupter.places
    assert actor.note(2) == 2
    served.close()


def test_an_interruption_leaves_the_role_to_others() -> None:
    """A process of its own, as CPython up to 3.12 cannot trace where another thread is being stopped."""
    child = multiprocessing.get_context("spawn").Process(target=interrupted_everywhere)
    child.start()
    child.join(PATIENCE)
    child.kill()
    child.join()
    assert child.exitcode == 0


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("where", [PlainStream, FrameWriter])
def test_an_interruption_of_who_sends(
    served: Served, monkeypatch: pytest.MonkeyPatch, where: Any, after: bool
) -> None:
    """It is not known how much was sent; the next call is another one for the server, and reaches it."""
    actor = FixedResolver(served.server.address).lookup("actor").options(timeout=PATIENCE)
    waiting = FixedResolver(served.server.address).lookup("gate").wait.remote("it")
    send, me, interrupted = where.send, threading.get_ident(), [True]

    def sends(self: Any, *args: Any) -> Any:
        now = threading.get_ident() == me and bool(interrupted)
        if now:
            interrupted.pop()
        if now and not after:
            raise KeyboardInterrupt
        sent = send(self, *args)
        if now:
            raise KeyboardInterrupt
        return sent

    assert actor.note(0) == 0
    monkeypatch.setattr(where, "send", sends)
    with pytest.raises(KeyboardInterrupt):
        actor.note(1)
    assert actor.note(2) == 2
    assert actor.seen() in ([0, 1, 2], [0, 2])
    served.gate.open("it")
    assert waiting.result(PATIENCE), "others' calls are not lost"
