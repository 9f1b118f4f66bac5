"""What a server does with calls. Numbers are those of the facts that users of such systems rely on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from actors import PATIENCE, Caller, Pending
from fray._pb import actor_pb2
from fray.cluster import AlreadyExistsError, LocalCluster, RefusedError
from fray.rpc import ActorContext, ActorServer, method
from fray.rpc._connection import Connection
from fray.rpc.codec import encode_args
from fray.rpc.errors import (
    ApplicationError,
    BadArgumentsError,
    CancelledError,
    DeadlineError,
    DeniedError,
    EncodingError,
    MaybeExecutedError,
    StaleError,
    StoppingError,
    TooLargeError,
    UnknownActorError,
    UnknownMethodError,
)
from waiting import eventually


class Counter:
    """Counts."""

    kind = "counter"

    def __init__(self) -> None:
        self.n = 0
        self.seen: list[Any] = []
        self.gate = threading.Event()
        self.entered = threading.Semaphore(0)
        self.running = self.most = 0
        self._lock = threading.Lock()

    def add(self, n: int, by: int = 1) -> int:
        """Add to the count.

        And more text.
        """
        self.n += n * by
        return self.n

    def note(self, value: Any) -> None:
        self.seen.append(value)

    def echo(self, value: Any) -> Any:
        return value

    def twice(self, text: str) -> str:
        return text * 2

    def only(self, a: Any, /, *, key: Any) -> Any:
        return [a, key]

    def every(self, *args: Any, **kwargs: Any) -> Any:
        return [list(args), kwargs]

    @staticmethod
    def static(x: int) -> int:
        return -x

    @classmethod
    def known_as(cls, x: int) -> str:
        return f"{cls.kind} {x}"

    @property
    def size(self) -> int:
        return self.n

    @method(idempotent=True)
    def wait(self) -> str:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.entered.release()
        assert self.gate.wait(PATIENCE)
        with self._lock:
            self.running -= 1
        return "waited"

    def fail(self, text: str) -> None:
        try:
            raise KeyError("inner")
        except KeyError as err:
            raise ValueError(text) from err

    def leave(self) -> None:
        raise SystemExit(3)

    def about(self, ctx: ActorContext, x: int = 0) -> list[Any]:
        return [
            ctx.actor,
            ctx.method,
            ctx.incarnation,
            ctx.namespace,
            ctx.job_id,
            len(ctx.caller),
            x,
            ctx.remaining() is None,
        ]

    def left(self, where: ActorContext) -> float | None:
        return where.remaining()

    def thing(self) -> Any:
        return {"lr": [1, object()]}

    def _secret(self) -> str:
        raise AssertionError("an underscore method ran")


class Async:
    """Has coroutines."""

    def __init__(self) -> None:
        self.running = self.most = 0
        self.ended: list[str] = []
        self.open = False
        self.seen: list[int] = []

    async def meet(self, count: int) -> int:
        self.running += 1
        self.most = max(self.most, self.running)
        while self.running < count and not self.open:
            await asyncio.sleep(0.001)
        self.open = True
        return self.most

    async def sleep(self) -> str:
        self.running += 1
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        return "slept"

    async def note(self, n: int) -> None:
        self.seen.append(n)
        await asyncio.sleep(0)

    def plain(self, n: int) -> int:
        self.seen.append(n)
        return n

    async def fail(self) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("no")


class Grouped:
    def __init__(self) -> None:
        self.gate = threading.Event()
        self.entered = threading.Semaphore(0)

    @method(concurrency_group="io")
    def read(self) -> str:
        self.entered.release()
        assert self.gate.wait(PATIENCE)
        return "read"

    def quick(self) -> str:
        return "quick"


@pytest.fixture
def server() -> Iterator[ActorServer]:
    with LocalCluster() as cluster, ActorServer(cluster) as server:
        yield server


@pytest.fixture
def counter(server: ActorServer) -> Counter:
    value = Counter()
    server.register("counter", value)
    return value


@pytest.fixture
def caller(server: ActorServer) -> Iterator[Caller]:
    with Caller(server.address) as one:
        yield one


def test_fact22_endpoints_are_there_while_the_actor_is(server: ActorServer, counter: Counter) -> None:
    metadata = server._cluster.metadata
    assert isinstance(counter, Counter)
    found = metadata.lookup("counter")
    assert (found.address, found.metadata["protocol"], found.metadata["language"]) == (
        server.address,
        "fray-actor/1",
        "python",
    )
    incarnation = server.register("second", counter, {"zone": "a"})
    second = metadata.lookup("second")
    assert (second.actor_id, second.metadata["zone"]) == (incarnation, "a")
    server.unregister("second")
    assert [e.name for e in metadata.list_actors()] == ["counter"]
    server.shutdown()
    assert metadata.list_actors() == []


def test_fact23_peers_of_another_namespace_are_not_served() -> None:
    with LocalCluster() as cluster, ActorServer(cluster, namespace="one") as server:
        with pytest.raises(DeniedError, match="another namespace"):
            Caller(server.address, namespace="two")
        Caller(server.address, namespace="one").close()


def test_fact23_a_name_is_once_in_a_server(server: ActorServer, counter: Counter, caller: Caller) -> None:
    with pytest.raises(AlreadyExistsError, match='"counter"'):
        server.register("counter", Counter())
    assert caller.call("counter", "add", 2) == 2
    assert counter.n == 2
    assert len(server._cluster.metadata.lookup_all("counter")) == 1


@pytest.mark.usefixtures("counter")
def test_fact24_state_persists_and_a_restart_resets_it(server: ActorServer, caller: Caller) -> None:
    assert [caller.call("counter", "add", 1) for _ in range(3)] == [1, 2, 3]
    server.unregister("counter")
    with pytest.raises(UnknownActorError):
        caller.call("counter", "add", 1)
    server.register("counter", Counter())
    assert caller.call("counter", "add", 1) == 1


def test_fact25_calls_of_one_caller_run_in_order(counter: Counter, caller: Caller) -> None:
    sent = [caller.send("counter", "note", n) for n in range(2000)]
    for one in sent:
        one.result()
    assert counter.seen == list(range(2000))


def test_fact25_order_holds_for_each_of_many_callers(server: ActorServer, counter: Counter) -> None:
    def run(number: int) -> None:
        with Caller(server.address) as one:
            for sent in [one.send("counter", "note", [number, i]) for i in range(200)]:
                sent.result()

    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(8):
        assert [i for number, i in counter.seen if number == n] == list(range(200))


def test_fact25_one_call_runs_at_a_time(counter: Counter, caller: Caller) -> None:
    sent = [caller.send("counter", "wait") for _ in range(5)]
    assert counter.entered.acquire(timeout=PATIENCE)
    counter.gate.set()
    assert [one.result() for one in sent] == ["waited"] * 5
    assert counter.most == 1


@pytest.mark.parametrize("limit", [2, 5])
def test_as_many_run_at_once_as_was_said(server: ActorServer, caller: Caller, limit: int) -> None:
    wide = Counter()
    server.register("wide", wide, max_concurrency=limit)
    sent = [caller.send("wide", "wait") for _ in range(20)]
    for _ in range(limit):
        assert wide.entered.acquire(timeout=PATIENCE)
    assert not wide.entered.acquire(blocking=False)
    wide.gate.set()
    assert [one.result() for one in sent] == ["waited"] * 20
    assert wide.most == limit


def test_groups_have_limits_of_their_own(server: ActorServer, caller: Caller) -> None:
    grouped = Grouped()
    server.register("grouped", grouped, concurrency_groups={"io": 2})
    sent = [caller.send("grouped", "read") for _ in range(3)]
    for _ in range(2):
        assert grouped.entered.acquire(timeout=PATIENCE)
    assert caller.call("grouped", "quick") == "quick"
    grouped.gate.set()
    assert [one.result() for one in sent] == ["read"] * 3


def test_a_group_that_is_not_given(server: ActorServer) -> None:
    with pytest.raises(ValueError, match='group "io"'):
        server.register("grouped", Grouped())
    with pytest.raises(ValueError, match="at least"):
        server.register("grouped", Grouped(), concurrency_groups={"io": 0})


@pytest.mark.parametrize(
    ("method", "args", "kwargs", "problem", "argument"),
    [
        ("add", (), {}, "takes 1 to 2 arguments, got 0", ""),
        ("add", (1, 2, 3), {}, "takes 1 to 2 arguments, got 3", ""),
        ("add", (), {"by": 2}, 'missing argument "n"', ""),
        ("add", (1,), {"bye": 2}, 'unexpected argument "bye"', "kwargs.bye"),
        ("add", (1,), {"n": 2}, 'unexpected argument "n"', "kwargs.n"),
        ("note", (), {}, "takes 1 argument, got 0", ""),
        ("only", (1,), {}, 'missing argument "key"', ""),
        ("only", (), {"a": 1, "key": 1}, 'unexpected argument "a"', "kwargs.a"),
        ("only", (1, 2), {"key": 1}, "takes 1 argument, got 2", ""),
        ("known_as", (1, 2), {}, "takes 1 argument, got 2", ""),
        ("about", (1, 2), {}, "takes 0 to 1 argument, got 2", ""),
        ("about", (1,), {"ctx": 2}, 'unexpected argument "ctx"', "kwargs.ctx"),
    ],
)
def test_fact26_arguments_that_do_not_fit(
    counter: Counter,
    caller: Caller,
    method: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    problem: str,
    argument: str,
) -> None:
    with pytest.raises(BadArgumentsError) as caught:
        caller.call("counter", method, *args, kwargs=kwargs)
    err = caught.value
    assert (err.message, err.argument, err.ran) == (problem, argument, False)
    assert (err.actor, err.method) == ("counter", method)
    assert (counter.n, counter.seen) == (0, [])


@pytest.mark.parametrize(
    ("method", "args", "kwargs", "want"),
    [
        ("add", (2,), {"by": 3}, 6),
        ("add", (), {"n": 2}, 2),
        ("only", (1,), {"key": 2}, [1, 2]),
        ("every", (1, 2), {"self_": 3}, [[1, 2], {"self_": 3}]),
        ("every", (), {}, [[], {}]),
        ("static", (4,), {}, -4),
        ("known_as", (4,), {}, "counter 4"),
    ],
)
@pytest.mark.usefixtures("counter")
def test_arguments_that_fit(
    caller: Caller, method: str, args: tuple[Any, ...], kwargs: dict[str, Any], want: Any
) -> None:
    assert caller.call("counter", method, *args, kwargs=kwargs) == want


@pytest.mark.parametrize(
    ("name", "message", "near"),
    [
        ("adds", 'no method "adds"', ("add",)),
        ("_secret", 'no method "_secret"; underscore names are not callable', ()),
        ("__init__", 'no method "__init__"; underscore names are not callable', ()),
        ("__class__", 'no method "__class__"; underscore names are not callable', ()),
        ("size", 'no method "size"', ()),
        ("kind", 'no method "kind"', ()),
        ("", 'no method ""', ()),
        ("x" * 500, 'no method "' + "x" * 200 + '…"', ()),
    ],
)
@pytest.mark.usefixtures("counter")
def test_fact26_methods_that_are_not_callable(
    caller: Caller, name: str, message: str, near: tuple[str, ...]
) -> None:
    with pytest.raises(UnknownMethodError) as caught:
        caller.call("counter", name)
    assert (caught.value.message, caught.value.near, caught.value.ran) == (message, near, False)


@pytest.mark.usefixtures("counter")
def test_an_actor_that_is_not_here(caller: Caller) -> None:
    with pytest.raises(UnknownActorError) as caught:
        caller.call("countr", "add", 1)
    err = caught.value
    assert (err.message, err.near, err.ran) == ('no actor "countr" is here', ("counter",), False)


def test_fact27_an_exception_reaches_the_caller(counter: Counter, caller: Caller) -> None:
    with pytest.raises(ApplicationError) as caught:
        caller.call("counter", "fail", "no such lesson")
    err = caught.value
    assert (err.type, err.message, err.ran) == ("ValueError", "ValueError: no such lesson", True)
    assert (err.actor, err.method) == ("counter", "fail")
    assert "in fail\n" in err.traceback
    assert "_call.py" not in err.traceback, f"the server's own frames are in {err.traceback}"
    assert err.cause is not None
    assert (err.cause.type, err.cause.message) == ("KeyError", "KeyError: 'inner'")
    assert caller.call("counter", "add", 1) == 1
    assert counter.n == 1


@pytest.mark.usefixtures("counter")
def test_fact27_a_method_that_exits(caller: Caller) -> None:
    with pytest.raises(ApplicationError) as caught:
        caller.call("counter", "leave")
    assert caught.value.type == "SystemExit"
    assert caller.call("counter", "add", 1) == 1


def test_fact28_a_call_that_is_sent_again_runs_once(
    server: ActorServer, counter: Counter, caller: Caller
) -> None:
    first = caller.send("counter", "add", 1)
    assert first.result() == 1
    waits = caller.send("counter", "wait")
    behind = caller.send("counter", "add", 10)
    assert counter.entered.acquire(timeout=PATIENCE)
    caller.reconnect()
    again = [Pending(caller.connection, call.call, ()) for call in (first, waits, behind)]
    counter.gate.set()
    assert [one.result() for one in again] == [1, "waited", 11]
    assert (counter.n, counter.most) == (11, 1)
    assert server._core.ledger.kept_bytes > 0


def test_fact28_what_is_acknowledged_is_forgotten(
    server: ActorServer, counter: Counter, caller: Caller
) -> None:
    first = caller.send("counter", "add", 1)
    first.result()
    caller.call("counter", "add", 1, acked=1)
    caller.reconnect()
    with pytest.raises(MaybeExecutedError) as caught:
        Pending(caller.connection, first.call, first.buffers).result()
    assert caught.value.ran
    assert counter.n == 2
    kept = server._core.ledger.kept_bytes
    caller.call("counter", "add", 1, acked=2)
    assert server._core.ledger.kept_bytes <= kept


def test_fact28_old_answers_go_when_there_are_too_many(
    server: ActorServer, counter: Counter, caller: Caller
) -> None:
    server._core.ledger._limit = 1 << 20
    first = caller.send("counter", "echo", b"x" * (600 << 10))
    first.result()
    second = caller.send("counter", "echo", b"y" * (600 << 10))
    second.result()
    assert server._core.ledger.kept_bytes < 1 << 20
    caller.reconnect()
    with pytest.raises(MaybeExecutedError):
        Pending(caller.connection, first.call, first.buffers).result()
    assert Pending(caller.connection, second.call, second.buffers).result() == b"y" * (600 << 10)
    assert counter.n == 0


def test_what_a_broken_connection_still_has_is_ignored(counter: Counter, caller: Caller) -> None:
    broken = caller.connection
    later = Connection.open(caller.address, caller.settings)
    try:
        data, _ = encode_args(1, (), {})
        fields: dict[str, Any] = {"actor": "counter", "method": "wait", "codec": 1, "args": data, "seq": 1}
        waits = Pending(later, actor_pb2.Call(attempt=1, **fields), ())
        assert counter.entered.acquire(timeout=PATIENCE)
        Pending(broken, actor_pb2.Call(**fields), ())
        broken.list_actors(timeout=PATIENCE)  # it has arrived
        counter.gate.set()
        assert waits.result() == "waited"
    finally:
        later.close()


@pytest.mark.usefixtures("counter")
def test_an_old_copy_of_a_refused_call_does_not_run(caller: Caller) -> None:
    later = Connection.open(caller.address, caller.settings)
    try:
        data, _ = encode_args(1, (1,), {})
        fields: dict[str, Any] = {"actor": "counter", "method": "add", "codec": 1, "seq": 1}
        refused = Pending(later, actor_pb2.Call(attempt=1, incarnation="another", args=data, **fields), ())
        with pytest.raises(StaleError):
            refused.result()
        other, _ = encode_args(1, (100,), {})
        old = Pending(caller.connection, actor_pb2.Call(args=other, **fields), ())
        caller.connection.list_actors(timeout=PATIENCE)
        assert not old.answered.is_set()
        again = Pending(later, actor_pb2.Call(attempt=2, args=data, **fields), ())
        assert again.result() == 1
    finally:
        later.close()


@pytest.mark.usefixtures("counter")
def test_a_refused_call_may_be_sent_again(server: ActorServer, caller: Caller) -> None:
    refused = caller.send("later", "add", 5)
    with pytest.raises(UnknownActorError):
        refused.result()
    server.register("later", Counter())
    assert Pending(caller.connection, refused.call, ()).result() == 5


def test_another_incarnation(server: ActorServer, counter: Counter, caller: Caller) -> None:
    mine = server._cluster.metadata.lookup("counter").actor_id
    assert caller.call("counter", "add", 1, incarnation=mine) == 1
    with pytest.raises(StaleError, match="another incarnation"):
        caller.call("counter", "add", 1, incarnation="actor-" + "a" * 26)
    assert counter.n == 1
    assert caller.send("counter", "add", 1).reply().incarnation == mine


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
    assert "_call.py" not in caught.value.traceback
    assert caller.call("async", "plain", 4) == 4


@pytest.mark.usefixtures("counter")
def test_the_context(server: ActorServer, caller: Caller) -> None:
    incarnation = server._cluster.metadata.lookup("counter").actor_id
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
        caller.call("counter", "thing")
    assert (caught.value.argument, caught.value.ran) == ("result.lr[1]", True)
    assert caller.call("counter", "add", 1) == 1


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x92\x90", b"\x93\x90\x80\xc0", b"\x80", b"\x92\x91\xc7"])
def test_bytes_that_are_no_arguments(counter: Counter, caller: Caller, data: bytes) -> None:
    with pytest.raises(BadArgumentsError):
        caller.call("counter", "every", args=data)
    assert counter.n == 0
    assert caller.call("counter", "add", 1) == 1


@pytest.mark.usefixtures("counter")
def test_pickles_are_refused_before_they_are_read(caller: Caller) -> None:
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


def test_the_same_object_under_two_names_has_one_mailbox(
    server: ActorServer, counter: Counter, caller: Caller
) -> None:
    server.register("alias", counter)
    waits = caller.send("counter", "wait")
    assert counter.entered.acquire(timeout=PATIENCE)
    behind = caller.send("alias", "add", 1)
    assert not behind.answered.wait(0.05)
    server.unregister("counter")
    counter.gate.set()
    assert (waits.result(), behind.result()) == ("waited", 1)
    assert caller.call("alias", "add", 1) == 2


def test_unregistering_refuses_what_waits(server: ActorServer, counter: Counter, caller: Caller) -> None:
    runs = caller.send("counter", "wait")
    assert counter.entered.acquire(timeout=PATIENCE)
    waits = caller.send("counter", "add", 1)
    caller.connection.list_actors(timeout=PATIENCE)  # what was sent before has arrived
    server.unregister("counter")
    with pytest.raises(StoppingError) as caught:
        waits.result()
    assert not caught.value.ran
    counter.gate.set()
    assert runs.result() == "waited"
    assert counter.n == 0


def test_shutting_down_finishes_what_is_there(server: ActorServer, counter: Counter, caller: Caller) -> None:
    runs = caller.send("counter", "wait")
    waits = caller.send("counter", "add", 1)
    assert counter.entered.acquire(timeout=PATIENCE)
    caller.connection.list_actors(timeout=PATIENCE)
    ending = threading.Thread(target=server.shutdown, args=(PATIENCE,))
    ending.start()
    eventually(lambda: server._core.draining, PATIENCE)
    with pytest.raises(StoppingError) as caught:
        caller.call("counter", "add", 100)
    assert not caught.value.ran
    # Goodbye means that calls without an answer did not run, and this one does.
    assert not caller.connection.stopping
    counter.gate.set()
    assert (runs.result(), waits.result()) == ("waited", 1)
    eventually(lambda: caller.connection.stopping, PATIENCE)
    ending.join(PATIENCE)
    assert not ending.is_alive()
    with pytest.raises(RefusedError, match="shutting down"):
        server.register("late", Counter())
    eventually(lambda: caller.connection.closed, PATIENCE)


def test_shutting_down_gives_up_on_what_does_not_end(
    server: ActorServer, counter: Counter, caller: Caller
) -> None:
    runs = caller.send("counter", "wait")
    waits = caller.send("counter", "add", 1)
    assert counter.entered.acquire(timeout=PATIENCE)
    caller.connection.list_actors(timeout=PATIENCE)
    server.shutdown(0.05)
    for one, ran in ((runs, True), (waits, False)):
        with pytest.raises(StoppingError) as caught:
            one.result()
        assert caught.value.ran is ran
    counter.gate.set()


def test_lists(server: ActorServer, counter: Counter, caller: Caller) -> None:
    incarnation = server._cluster.metadata.lookup("counter").actor_id
    server.register("other", Async())
    caller.call("counter", "add", 1)
    with pytest.raises(ApplicationError):
        caller.call("counter", "fail", "x")
    waits = caller.send("counter", "wait")
    assert counter.entered.acquire(timeout=PATIENCE)
    (found,) = caller.connection.list_actors("coun", PATIENCE).actors
    assert (found.name, found.incarnation, found.pending, found.calls, found.errors) == (
        "counter",
        incarnation,
        1,
        2,
        1,
    )
    assert getattr(found, "class") == "test_rpc_server.Counter"
    assert [a.name for a in caller.connection.list_actors(timeout=PATIENCE).actors] == ["counter", "other"]
    counter.gate.set()
    waits.result()
    listed = caller.connection.list_methods("counter", PATIENCE)
    methods = {m.name: m for m in listed.methods}
    assert list(methods) == sorted(methods)
    assert listed.incarnation == incarnation
    assert (methods["add"].signature, methods["add"].doc) == (
        "add(n: int, by: int = 1) -> int",
        "Add to the count.",
    )
    assert list(methods["add"].params) == ["n", "by"]
    assert methods["wait"].idempotent
    assert not methods["add"].idempotent
    assert list(methods["about"].params) == ["x"], "the context is no argument"
    assert not {"_secret", "size", "kind"} & methods.keys()
    with pytest.raises(UnknownActorError) as caught:
        caller.connection.list_methods("countr", PATIENCE)
    assert caught.value.near == ("counter",)


def test_a_hundred_actors_in_one_process(server: ActorServer, caller: Caller) -> None:
    before = threading.active_count()
    for n in range(150):
        server.register(f"counter-{n}", Counter())
    assert threading.active_count() == before, "an actor that nobody calls has a thread"
    sent = [caller.send(f"counter-{n}", "add", n) for n in range(150)]
    assert [one.result() for one in sent] == list(range(150))


def test_what_the_cluster_refuses_is_not_served(
    server: ActorServer, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RefusedError("the job has ended")

    with monkeypatch.context() as patch:
        patch.setattr(type(server._cluster.metadata), "register", refuse)
        with pytest.raises(RefusedError, match="has ended"):
            server.register("counter", Counter())
    with pytest.raises(UnknownActorError):
        caller.call("counter", "add", 1)
    server.register("counter", Counter())
    assert caller.call("counter", "add", 1) == 1


def test_objects_that_cannot_be_actors(server: ActorServer) -> None:
    class Empty:
        pass

    for value in (object(), Empty()):
        with pytest.raises(ValueError, match="has no method"):
            server.register("x", value)
    with pytest.raises(ValueError, match="name"):
        server.register("", Counter())


def test_without_an_identity_only_this_machine_is_served() -> None:
    with LocalCluster() as cluster:
        with pytest.raises(ValueError, match="FRAY_ACTOR_IDENTITY"):
            ActorServer(cluster, "192.0.2.1")
        with ActorServer(cluster) as server:
            assert server._listener._socket.getsockname()[0] == "127.0.0.1"
        with ActorServer(cluster, insecure=True) as server:
            assert server._listener._socket.getsockname()[0] == "0.0.0.0"
