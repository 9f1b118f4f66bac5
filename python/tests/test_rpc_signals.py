"""Handlers of signals that make calls, or raise, while their thread receives or sends."""

from __future__ import annotations

import contextlib
import dis
import faulthandler
import multiprocessing
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest

from actors import PATIENCE
from fray.cluster import ClusterError, ClusterResolver, FixedResolver, WaitTimeoutError
from fray.rpc import ActorHandle, Resolver
from fray.rpc._calling import backlog as _backlog
from fray.rpc._calling import channel as _channel
from fray.rpc._calling import connection as _connection
from fray.rpc._calling import pending as _pending
from fray.rpc._calling import questions as _questions
from fray.rpc._calling import resolve as _resolve
from fray.rpc._calling import resolve_cluster as _resolve_cluster
from fray.rpc._calling import route as _route
from fray.rpc._calling import target as _target
from fray.rpc._transport import background as _background
from fray.rpc._transport import receive_turn as _receive_turn
from fray.rpc._transport import writer as _writer
from fray.rpc._transport.reader import FrameReader
from fray.rpc._transport.wire import PlainStream
from fray.rpc._transport.writer import FrameWriter
from fray.rpc.errors import ActorError
from receiving import Served
from waiting import eventually

MODULES = (_backlog, _channel, _connection, _pending, _receive_turn, _route, _target, _writer)
FILES = tuple(module.__file__ for module in MODULES)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(_receive_turn, "TICK", 0.1)  # on a busy machine, too, a borrower comes within that
    made = Served()
    yield made
    made.close()


def while_waiting(monkeypatch: pytest.MonkeyPatch, handler: Callable[[], object]) -> None:
    """Have something happen once while this thread borrows the turn to receive, as handlers of signals do."""
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
    raise AssertionError("this thread never received or sent")


def within(module: ModuleType, then: Callable[[], bool]) -> bool:
    """Return what a function returns that a function of this module calls."""

    def calls(then: Callable[[], bool]) -> bool:
        return then()

    called: bool = FunctionType(calls.__code__, vars(module))(then)
    return called


@pytest.mark.parametrize(
    ("module", "interrupted"),
    [(_route, True), (_channel, True), (_connection, True), (_writer, True), (_pending, False)],
    ids=["route", "channel", "connection", "writer", "another"],
)
def test_a_call_amid_what_sends_or_receives(module: ModuleType, interrupted: bool) -> None:
    def submit() -> bool:
        return _route._interrupts()

    def handler() -> bool:
        return submit()

    assert within(module, handler) == interrupted


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


@pytest.mark.parametrize("size", [1, 1 << 20], ids=["small", "large"])
def test_a_handler_waits_for_what_takes_its_time(
    served: Served, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """It holds the turn to receive: until it returns no other thread can."""
    resolver = FixedResolver(served.server.address)
    actor = resolver.lookup("actor")
    gate = resolver.lookup("gate").options(timeout=PATIENCE)
    waited: list[int] = []

    def waits() -> None:
        threading.Timer(20 * _receive_turn.TICK, served.gate.open, ["slow"]).start()
        assert gate.wait("slow")
        waited.append(len(actor.options(timeout=PATIENCE).note(bytes(size))))

    while_waiting(monkeypatch, waits)
    eventually(lambda: actor.note(0) == 0 and waited, PATIENCE)
    assert waited == [size]


def test_a_handler_goes_on_over_another_connection(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = FixedResolver(served.server.address)
    actor = resolver.lookup("actor")
    gate = resolver.lookup("gate").options(timeout=PATIENCE)
    broken: list[Any] = []

    def breaks() -> None:
        broken.extend(served.server._listener.sessions)
        threading.Timer(20 * _receive_turn.TICK, broken[0].close).start()
        threading.Timer(60 * _receive_turn.TICK, served.gate.open, ["late"]).start()
        assert gate.wait("late")

    while_waiting(monkeypatch, breaks)
    eventually(lambda: actor.note(0) == 0 and broken, PATIENCE)
    assert actor.note(1) == 1
    assert broken[0] not in served.server._listener.sessions


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


RECEIVING = ("attend", "borrow_for", "borrow", "give_back", "_receive_for")
SENDING = (
    "submit",
    "send",
    "_acked",
    "call",
    "_pack",
    "add",
    "flush",
    "_drain",
    "_write",
    "_next_batch",
    "_start_delivery",
)


class Interrupter:
    """Interrupts functions of calls, in each call at another place where Python looks for signals."""

    def __init__(self, functions: Sequence[str]) -> None:
        self.functions = functions
        self.places: set[tuple[str, str, int]] = set()
        self.last: object = None

    def trace(self, frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if code.co_filename not in FILES or code.co_name not in self.functions:
            return None
        frame.f_trace_opcodes = True
        if event == "call" or (event == "opcode" and frame.f_lasti in after_calls(code)):
            place = code.co_filename, code.co_name, -1 if event == "call" else frame.f_lasti
            if place not in self.places:
                self.places.add(place)
                self.last = place, frame.f_lineno
                raise KeyboardInterrupt
        return self.trace


@cache
def after_calls(code: CodeType) -> frozenset[int]:
    """Return where a function of C has returned just now."""
    steps = [i for i in dis.get_instructions(code) if i.opname != "CACHE"]
    return frozenset(after.offset for step, after in pairwise(steps) if step.opname.startswith("CALL"))


def interrupted_everywhere(functions: Sequence[str], broken: bool) -> None:
    """Interrupt these functions of calls at each of their places; the next call is answered each time.

    With `broken` the connection breaks before and after.
    """
    pytest.MonkeyPatch().setattr(_receive_turn, "TICK", 0.1)  # traced borrowers are slow
    served = Served()
    resolver = FixedResolver(served.server.address)
    actor, gate = resolver.lookup("actor").options(timeout=PATIENCE), resolver.lookup("gate")
    interrupter = Interrupter(functions)
    for n in range(150):  # more than there are places
        actor.note(0)  # so that the next one is received by its caller
        if functions == SENDING:
            waiting = gate.wait.remote(f"{n}")
        if broken and n % 2:
            break_connections(served)
        sys.settrace(interrupter.trace)
        try:
            actor.note(1)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        if broken:
            break_connections(served)
        print(interrupter.last, flush=True)  # which shows when the test fails
        assert actor.note(2) == 2
        assert gate.open(f"{n}")
        if functions == SENDING:
            assert waiting.result(PATIENCE), "others' calls are not lost"
    assert len(interrupter.places) > 10, interrupter.places
    served.close()


def break_connections(served: Served) -> None:
    for session in served.server._listener.sessions:
        session.close()


@pytest.mark.parametrize("broken", [False, True], ids=["", "broken"])
@pytest.mark.parametrize("functions", [RECEIVING, SENDING], ids=["receiving", "sending"])
def test_an_interruption_leaves_the_role_to_others(functions: Sequence[str], broken: bool) -> None:
    """A process of its own, as CPython up to 3.12 cannot trace where another thread is being stopped."""
    carried_out(interrupted_everywhere, functions, broken)


def carried_out(what: Callable[..., None], *args: object) -> None:
    """Carry something out in another process."""
    child = multiprocessing.get_context("spawn").Process(target=what, args=args)
    child.start()
    child.join(4 * PATIENCE)  # on a machine that is busy
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
    n = noted_until_interrupted(actor)  # other threads may send for this one
    assert actor.note("after") == "after"
    assert actor.seen() in ([*range(n + 1), "after"], [*range(n), "after"])
    served.gate.open("it")
    assert waiting.result(PATIENCE), "others' calls are not lost"


PARTS = (*MODULES, _background, _questions, _resolve, _resolve_cluster)
CONDITIONS = (
    "__enter__",
    "__exit__",
    "wait",
    "wait_for",
    "notify",
    "notify_all",
    "_is_owned",
    "set",
    "is_set",
)


class Everywhere:
    """Interrupts each function of the parts in turn at each place where CPython looks for signals.

    What a profiler raises comes where what a handler raises does: where a function begins, and out of a call
    into C that has returned. A tracer would raise a step later, where a `with` statement may be over.
    """

    def __init__(self) -> None:
        self.files = {part.__file__ for part in PARTS}
        self.places: set[tuple[str, str, int]] = set()
        self.last: object = None

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        mine = code.co_filename in self.files
        if event not in ("call", "c_return") or not (
            mine or (code.co_filename == threading.__file__ and code.co_name in CONDITIONS)
        ):
            return
        place = code.co_filename, code.co_qualname, -1 if event == "call" else frame.f_lasti
        if place not in self.places:
            self.places.add(place)
            self.last = place, frame.f_lineno
            raise KeyboardInterrupt


def answered(*resolvers: Resolver) -> None:
    """Call an actor from this thread and another one, each in time."""
    for resolver in resolvers:
        done: list[object] = []

        def calls(resolver: Resolver = resolver, done: list[object] = done) -> None:
            done.append(resolver.handle("actor").options(timeout=PATIENCE).note(0))

        other = threading.Thread(target=calls, daemon=True)
        other.start()
        calls()
        other.join(PATIENCE)
        assert done == [0, 0], "the other thread waits for a lock"


def interrupted_in_all(kind: str) -> None:
    """Interrupt all that a main thread does for a call, connecting too, at each place once."""
    pytest.MonkeyPatch().setattr(_receive_turn, "TICK", 0.1)
    faulthandler.dump_traceback_later(4 * PATIENCE, exit=True)
    served = Served()
    fixed, watched = FixedResolver(served.server.address), ClusterResolver(served.cluster)
    resolver: Resolver = fixed if kind == "fixed" else watched
    interrupter = Everywhere()
    unseen = 0
    while unseen < 3:
        before = len(interrupter.places)
        break_connections(served)
        print(interrupter.last, flush=True)  # which shows when the test fails
        sys.setprofile(interrupter.profile)
        try:
            with contextlib.suppress(WaitTimeoutError):  # the broken connection may not show yet
                resolver.wait_for_actor("actor", 0.1)
            resolver.handle("actor").options(timeout=1).note(bytes(70_000))
        except (KeyboardInterrupt, RuntimeError, ActorError, ClusterError):
            pass
        finally:
            sys.setprofile(None)
        answered(resolver)
        unseen = 0 if len(interrupter.places) > before else unseen + 1
    assert len(interrupter.places) > 50, interrupter.places
    print(len(interrupter.places), "places")
    served.close()


@pytest.mark.parametrize("kind", ["fixed", "watched"])
def test_an_interruption_anywhere_leaves_no_lock_held(kind: str) -> None:
    carried_out(interrupted_in_all, kind)


ROUNDS = 100


class Echo:
    def echo(self, what: Any) -> Any:
        return what


def calls_amid_calls() -> None:
    """Send large calls while a handler of a real signal makes calls on the same connection and of others."""
    served = Served()
    served.server.register("echo", Echo())
    resolver = FixedResolver(served.server.address)
    echo, gate = resolver.lookup("echo"), resolver.lookup("gate")
    data, made = b"x" * (1 << 20), [0]

    def handler(*_: object) -> None:
        assert echo.echo("amid") == "amid"
        assert gate.open("it")
        assert echo.echo.remote("later").result(PATIENCE) == "later"
        made[0] += 1
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0001, 0.003))

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    while made[0] < ROUNDS or echo._route._handler_route is None:
        assert echo.echo(data) == data
        assert echo.echo(1) == 1
        assert echo.echo.remote(data).result(PATIENCE) == data
    signal.signal(signal.SIGALRM, signal.SIG_IGN)  # a handler that is due yet would start the timer again
    served.close()


def test_a_handler_makes_calls_while_its_thread_sends() -> None:
    carried_out(calls_amid_calls)
