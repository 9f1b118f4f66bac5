"""What a server does with calls. Numbers are those of the facts that users of such systems rely on."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from actors import PATIENCE, SOURCES, Caller
from fray.cluster import AlreadyExistsError, LocalCluster
from fray.rpc import ActorContext, ActorServer, method
from fray.rpc.errors import (
    ApplicationError,
    BadArgumentsError,
    DeniedError,
    UnknownActorError,
    UnknownMethodError,
)
from waiting import ended


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

    def unknown(self) -> Any:
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


def test_fact22_endpoints_are_there_while_the_actor_is(server: ActorServer, counter: Counter) -> None:
    metadata = server._registry()
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
    assert len(server._registry().lookup_all("counter")) == 1


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
        ended(thread)
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
    assert SOURCES not in err.traceback, f"the server's own frames are in {err.traceback}"
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
