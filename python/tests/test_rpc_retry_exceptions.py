"""Calls that run again after their method raised: only if asked to, and exactly as often."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from fray._pb import actor_pb2
from fray.rpc import ActorHandle, ActorServer, FixedResolver, RpcClient, RpcOptions, method
from fray.rpc.errors import (
    ActorError,
    ApplicationError,
    BadArgumentsError,
    CancelledError,
    MaybeExecutedError,
)
from scripted import Break, Scripted
from waiting import eventually

LIMIT = 300


class WrongError(LookupError):
    pass


class Flaky:
    """Its methods raise as often as they are told to, and count their runs."""

    def __init__(self) -> None:
        self.n = 0
        self.order: list[Any] = []

    def fails(self, times: int, value: Any = None) -> int:
        self.n += 1
        self.order.append(value)
        if self.n <= times:
            raise WrongError(self.n)
        return self.n

    async def fails_async(self, times: int) -> int:
        return self.fails(times)

    @method(retries=2, retry_exceptions=[LookupError])
    def declared(self, times: int) -> int:
        return self.fails(times)

    @method(retry_exceptions=True)
    def declared_without_retries(self, times: int) -> int:
        return self.fails(times)

    @method(retries=2)
    def only_retries(self, times: int) -> int:
        return self.fails(times)

    def runs(self) -> int:
        """Return how many there were since the last time."""
        n, self.n = self.n, 0
        return n


@pytest.fixture
def flaky(server: ActorServer) -> ActorHandle:
    server.register("flaky", Flaky())
    return FixedResolver(server.address).handle("flaky")


@pytest.mark.parametrize(
    ("options", "method", "times", "runs"),
    [
        ({}, "fails", 1, 1),
        ({"retries": 3}, "fails", 1, 1),
        ({"retry_exceptions": True}, "fails", 1, 1),
        ({"idempotent": True, "retry_exceptions": True}, "fails", 1, 1),
        ({"retries": 3, "retry_exceptions": True}, "fails", 2, 3),
        ({"retries": 3, "retry_exceptions": True}, "fails", 3, 4),
        ({"retries": 3, "retry_exceptions": True}, "fails", 99, 4),
        ({"retries": 3, "retry_exceptions": True}, "fails_async", 99, 4),
        ({"retries": 3, "retry_exceptions": False}, "fails", 99, 1),
        ({"retries": 3, "retry_exceptions": []}, "fails", 99, 1),
        ({"retries": 3, "retry_exceptions": [WrongError]}, "fails", 99, 4),
        ({"retries": 3, "retry_exceptions": [KeyError, Exception]}, "fails", 99, 4),
        ({"retries": 3, "retry_exceptions": ["LookupError"]}, "fails", 99, 4),
        ({"retries": 3, "retry_exceptions": [f"{__name__}.WrongError"]}, "fails", 99, 4),
        ({"retries": 3, "retry_exceptions": [KeyError, ValueError]}, "fails", 99, 1),
        ({"retries": 3, "retry_exceptions": ["WrongError"]}, "fails", 99, 1),
        ({}, "declared", 2, 3),
        ({}, "declared", 99, 3),
        ({"retries": 0}, "declared", 99, 1),
        ({"retries": 4}, "declared", 99, 5),
        ({"retry_exceptions": [KeyError]}, "declared", 99, 1),
        ({"retry_exceptions": False}, "declared", 99, 1),
        ({}, "declared_without_retries", 99, 1),
        ({"retries": 1}, "declared_without_retries", 99, 2),
        ({}, "only_retries", 99, 1),
        ({"retry_exceptions": True}, "only_retries", 99, 3),
    ],
)
@pytest.mark.parametrize("waits", [True, False], ids=["called", "remote"])
def test_runs(
    flaky: ActorHandle, options: dict[str, Any], method: str, times: int, runs: int, waits: bool
) -> None:
    call = flaky.options(**options)[method]
    try:
        outcome: object = call(times) if waits else call.remote(times).result(LIMIT)
    except ApplicationError as err:
        outcome = err.message, err.ran
    assert outcome == (runs if times < runs else (f"WrongError: {runs}", True))
    assert flaky.runs() == runs


def test_of_a_client_a_handle_and_a_call(server: ActorServer) -> None:
    server.register("flaky", Flaky())
    options = RpcOptions(retries=1, retry_exceptions=[WrongError])
    resolver = FixedResolver(server.address, options=options)
    handle = resolver.handle("flaky")
    for each, runs in (
        (handle, 2),
        (handle.options(retries=2), 3),
        (handle.fails.options(retries=3), 4),
        (handle.options(retry_exceptions=None), 1),
        (pickle.loads(pickle.dumps(handle)), 2),
    ):
        call = each if not isinstance(each, ActorHandle) else each.fails
        with pytest.raises(ApplicationError):
            call(99)
        assert handle.runs() == runs
    client = RpcClient(FixedResolver(server.address), Flaky, options, name="flaky")
    with pytest.raises(ApplicationError):
        client.fails(99).result(LIMIT)
    assert handle.runs() == 2


def test_handles_carry_names_and_no_classes() -> None:
    """Their options go to processes that may not have the classes."""
    options = RpcOptions(retries=1, retry_exceptions=[WrongError, "other.Error"])
    assert options.retry_exceptions == frozenset({f"{__name__}.WrongError", "other.Error"})
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"retry_exceptions": ValueError}, TypeError, "give True, False or a list of exception classes"),
        ({"retry_exceptions": "ValueError"}, TypeError, "give True, False or a list of exception classes"),
        ({"retry_exceptions": [int]}, TypeError, "give exception classes, or their names"),
        ({"retry_exceptions": [ValueError("x")]}, TypeError, "give exception classes, or their names"),
        ({"retries": -1}, ValueError, "retries is -1; it must not be negative"),
    ],
)
def test_mistakes(flaky: ActorHandle, wrong: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        flaky.options(**wrong)
    with pytest.raises(kind, match=message):
        flaky.fails.options(**wrong)
    with pytest.raises(kind, match=message):
        method(**wrong)


def test_what_the_method_did_not_raise_is_not_retried(flaky: ActorHandle) -> None:
    again = flaky.options(retries=3, retry_exceptions=True)
    with pytest.raises(BadArgumentsError):
        again.fails()
    assert flaky.runs() == 0


def test_others_go_on_meanwhile_and_the_retry_comes_before_what_is_made_later(flaky: ActorHandle) -> None:
    again = flaky.options(retries=5, retry_exceptions=True)
    futures = [again.fails.remote(1, "first"), *(again.fails.remote(1, i) for i in range(20))]
    assert [future.result(LIMIT) for future in futures[1:]] == list(range(2, 22))
    assert futures[0].result(LIMIT) in range(2, 23)
    assert flaky.runs() == 22


class Script:
    """Raises, breaks the connection, or restarts the server at each call, as it is told; then answers."""

    def __init__(self, events: str) -> None:
        self.events = list(events)

    def __call__(self, server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply | None:
        reply = server.run(call)
        event = self.events.pop(0) if self.events else ""
        if event == "x":  # it raised
            error = ApplicationError("ValueError: x", ran=True, type="ValueError").to_wire()
            error.bases.extend(["Exception", "BaseException"])
            reply = actor_pb2.Reply(seq=call.seq, error=error, incarnation=server.incarnation)
            server.replies[server.local.caller, call.seq] = reply
            return reply
        if event == "c":  # the connection breaks before the reply
            raise Break
        if event == "r":  # so does the server
            server.restart()
            raise Break
        return reply


@pytest.mark.parametrize(
    ("events", "retries", "runs", "kind"),
    [
        ("xx", 2, 3, None),
        ("xx", 1, 2, ApplicationError),
        ("rx", 2, 3, None),
        ("xr", 2, 3, None),
        ("xr", 1, 2, MaybeExecutedError),
        ("rx", 1, 2, ApplicationError),
        ("rxrx", 4, 5, None),
        ("rxrx", 3, 4, ApplicationError),
        ("xrxr", 3, 4, MaybeExecutedError),
        ("cxcxc", 2, 3, None),
        ("cxcxc", 1, 2, ApplicationError),
    ],
)
def test_one_budget_for_losses_and_exceptions(
    events: str, retries: int, runs: int, kind: type[ActorError] | None
) -> None:
    """A connection that breaks costs none of it: the call is the same, and has its reply on the next one."""
    with Scripted(Script(events)) as server:
        handle = FixedResolver(server.address).handle("counter")
        call = handle.options(retries=retries, retry_exceptions=[Exception]).increment
        error = call.remote(5).exception(LIMIT)
        assert type(error) is (kind or type(None))
        assert error is None or error.ran
        assert len(server.runs) == runs


def test_a_retry_is_another_call_to_the_server() -> None:
    with Scripted(Script("x")) as server:
        handle = FixedResolver(server.address).handle("counter")
        assert handle.options(retries=1, retry_exceptions=True).increment(5) == 2
        assert [(call.seq, call.attempt) for call in server.calls] == [(1, 0), (2, 1)]
        assert server.runs == [[5], [5]]


def test_a_cancelled_call_does_not_run_again() -> None:
    def on_call(server: Scripted, call: actor_pb2.Call) -> None:
        server.run(call)

    with Scripted(on_call) as server:
        handle = FixedResolver(server.address).handle("counter").options(retries=9, retry_exceptions=True)
        future = handle.increment.remote(5)
        server.wait(lambda: server.runs)
        future.cancel()
        assert isinstance(future.exception(LIMIT), CancelledError)
        assert len(server.runs) == 1


def test_a_call_that_is_cancelled_between_two_runs() -> None:
    with Scripted() as server:
        handle = FixedResolver(server.address).handle("counter").options(retries=9, retry_exceptions=True)
        assert handle.first() == 1
        route = handle._route
        eventually(lambda: route._channel)
        server.on_call = Script("x")
        with route._delivering:  # no thread sends it again before that is released
            future = handle.increment.remote(5)
            eventually(lambda: route.returned)
            assert future.cancel()
        route.deliver()
        error = future.exception(LIMIT)
        assert isinstance(error, CancelledError)
        assert error.ran
        assert handle.last() == 3
        assert server.runs == [[], [5], []]


def test_the_declaration_is_listed(server: ActorServer) -> None:
    server.register("flaky", Flaky())
    listed = server._core.list_methods(actor_pb2.ListMethodsRequest(actor="flaky")).methods
    found = {m.name: (m.retries, list(m.retry_exceptions)) for m in listed if m.retries or m.retry_exceptions}
    assert found == {
        "declared": (2, ["LookupError"]),
        "declared_without_retries": (0, ["*"]),
        "only_retries": (2, []),
    }


def test_declared_retries_are_for_losses_too() -> None:
    with Scripted() as server:
        server.methods = [actor_pb2.Method(name="increment", retries=1)]
        handle = FixedResolver(server.address).handle("counter")
        handle.warm()
        eventually(lambda: handle._route.retries)
        for events, retries, runs, kind in (
            ("r", None, 2, None),
            ("rr", None, 2, MaybeExecutedError),
            ("r", 0, 1, MaybeExecutedError),
        ):
            server.runs.clear()
            server.on_call = Script(events)
            error = handle.increment.options(retries=retries).remote(5).exception(LIMIT)
            assert (len(server.runs), type(error)) == (runs, kind or type(None))
