"""Futures as arguments of calls: the method gets their results, and calls keep their order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy
import pytest

from fray._pb import actor_pb2
from fray.cluster import LocalCluster
from fray.rpc import ActorHandle, ActorServer, FixedResolver, LeastLoaded, RpcOptions
from fray.rpc.codec import Codec
from fray.rpc.errors import (
    ApplicationError,
    CancelledError,
    DeadlineError,
    EncodingError,
    MaybeExecutedError,
    TooLargeError,
    UnavailableError,
)
from fray.v2 import LocalClient
from gates import Flaky, Gate, Log
from ports import listen
from scripted import Break, Scripted

LIMIT = 300


@pytest.fixture
def gate(server: ActorServer) -> ActorHandle:
    server.register("gate", Gate())
    return FixedResolver(server.address).handle("gate")


@pytest.fixture
def log(server: ActorServer) -> ActorHandle:
    server.register("log", Log())
    return FixedResolver(server.address).handle("log")


def test_the_method_gets_the_result(gate: ActorHandle, log: ActorHandle) -> None:
    futures = [gate.passes.remote(i) for i in range(2)]
    call = log.note.remote(futures[0], other=futures[1])
    assert not call.done()
    gate.open(1)
    futures[1].result(LIMIT)
    assert not call.done()
    gate.open(0)
    assert call.result(LIMIT) == 0
    assert log.noted() == [[0, 1]]


def test_of_a_call_that_has_ended(gate: ActorHandle, log: ActorHandle) -> None:
    gate.open("a")
    future = gate.passes.remote("a")
    future.result(LIMIT)
    assert log.note(future) == "a"
    assert log.note.remote(future, future).result(LIMIT) == "a"
    assert log.noted() == ["a", ["a", "a"]]


def test_a_call_that_waits_for_its_result_waits_for_the_argument(gate: ActorHandle, log: ActorHandle) -> None:
    future = gate.passes.remote("a")
    opening = threading.Thread(target=lambda: gate.open("a"))
    opening.start()
    assert log.note(future) == "a"
    opening.join()


def test_calls_to_one_actor_keep_their_order(gate: ActorHandle, log: ActorHandle) -> None:
    """As in Ray: what is made later is not sent before."""
    log.note("before")
    futures = [log.note.remote(gate.passes.remote(1)), log.note.remote("second")]
    futures += [log.note.remote(gate.passes.remote(3)), log.note.remote("fourth")]
    gate.open(3)
    assert not any(future.done() for future in futures)
    gate.open(1)
    assert [future.result(LIMIT) for future in futures] == [1, "second", 3, "fourth"]
    assert log.noted() == ["before", 1, "second", 3, "fourth"]


def test_other_actors_are_not_held_up(gate: ActorHandle, log: ActorHandle, server: ActorServer) -> None:
    server.register("other", Log())
    other = FixedResolver(server.address).handle("other")
    held = log.note.remote(gate.passes.remote(1))
    assert other.note("at once") == "at once"
    assert not held.done()
    gate.open(1)
    assert held.result(LIMIT) == 1


def test_a_chain_of_calls(log: ActorHandle, gate: ActorHandle) -> None:
    future = gate.passes.remote(7)
    for _ in range(50):
        future = log.note.remote(future)
    gate.open(7)
    assert future.result(LIMIT) == 7
    assert log.noted() == [7] * 50


def test_a_call_whose_argument_fails_fails_so(gate: ActorHandle, log: ActorHandle) -> None:
    failing = gate.fails.remote("why")
    by_position, by_name = log.note.remote(failing), log.note.remote(1, other=failing)
    after = log.note.remote("after")
    gate.open("why")
    for call, path in ((by_position, r"args[0]"), (by_name, "kwargs.other")):
        error = call.exception(LIMIT)
        assert isinstance(error, ApplicationError)
        assert str(error) == "gate.fails: ValueError: why"
        assert not error.ran
        assert error.__notes__[-1] == f"It was to be {path} of another call, which did not run."
    error = failing.exception()
    assert error is not None
    assert error.ran, "the error of the call that failed is left as it is"
    assert after.result(LIMIT) == "after"
    with pytest.raises(ApplicationError, match="why") as caught:
        log.note(failing)
    assert not caught.value.ran
    assert log.noted() == ["after"]


def test_what_cannot_be_encoded(gate: ActorHandle, log: ActorHandle) -> None:
    """Is an error of the call at once, or of the future where it is the result of one."""
    future, ended = log.note.remote({1: 2}, gate.passes.remote(1)), log.note.remote({1: 2})
    by_json = log.with_options(RpcOptions(codec=Codec.JSON)).note
    held, after = by_json.remote(future), log.note.remote("after")
    with pytest.raises(EncodingError, match=r"log.note: args\[1\]: a set is carried by no codec"):
        log.note.remote(future, {1})
    gate.open(1)
    assert ended.result(LIMIT) == {1: 2}
    with pytest.raises(EncodingError, match=r"log.note: args\[1\]: a set is carried by no codec"):
        log.note.remote(ended, {1})
    with pytest.raises(EncodingError, match=r"log.note: args\[0\]: a map key that is no string"):
        by_json.remote(ended)
    with pytest.raises(EncodingError, match=r"log.note: args\[0\]: a map key that is no string"):
        held.result(LIMIT)
    assert after.result(LIMIT) == "after"
    assert log.noted() == [[{1: 2}, 1], {1: 2}, "after"]


def test_a_fault_while_encoding_ends_the_call_alone(gate: ActorHandle, log: ActorHandle) -> None:
    future = gate.passes.remote(1)
    held, after = log.note.remote(future), log.note.remote("after")

    def fails() -> None:
        raise LookupError("no such value")

    held.encode = fails
    gate.open(1)
    with pytest.raises(EncodingError, match="the arguments cannot be encoded: LookupError: no such value"):
        held.result(LIMIT)
    assert after.result(LIMIT) == "after"
    assert log.noted() == ["after"]


def test_arguments_are_those_of_the_time_of_the_call(gate: ActorHandle, log: ActorHandle) -> None:
    values: list[Any] = [1, {"a": [2]}]
    held = log.note.remote(gate.passes.remote(1), other=values)
    values[1]["a"].append(3)
    values.clear()
    gate.open(1)
    held.result(LIMIT)
    assert log.noted() == [[1, [1, {"a": [2]}]]]


class Relay:
    def call(self, value: Any, other: ActorHandle) -> Any:
        return other.note(value)


def test_handles_beside_futures(gate: ActorHandle, log: ActorHandle, server: ActorServer) -> None:
    server.register("relay", Relay())
    held = FixedResolver(server.address).handle("relay").call.remote(gate.passes.remote(1), log)
    gate.open(1)
    assert held.result(LIMIT) == 1
    assert log.noted() == [1]


def test_large_results(log: ActorHandle) -> None:
    array = numpy.arange(1 << 18)
    future = log.note.remote(array)
    assert (log.note.remote(future).result(LIMIT) == array).all()


def test_too_large_arguments(gate: ActorHandle) -> None:
    gate.open(1)
    with LocalCluster() as cluster, ActorServer(cluster, max_message_bytes=2 << 20) as server:
        server.register("log", Log())
        log = FixedResolver(server.address).handle("log")
        held = log.note.remote(gate.passes.remote(1), bytes(3 << 20))
        with pytest.raises(TooLargeError, match=r"log.note: the arguments are 3.* MiB; at most 2 MiB"):
            held.result(LIMIT)
        assert log.note("after") == "after"


@pytest.mark.parametrize(
    "arguments",
    [lambda f: [f], lambda f: {"a": [1, f]}],
    ids=["in a list", "in a map"],
)
def test_futures_within_values_are_rejected(
    gate: ActorHandle, log: ActorHandle, arguments: Callable[[Any], Any]
) -> None:
    future = gate.open.remote(1)
    with pytest.raises(EncodingError, match=r"an ActorFuture is carried by no codec; pass it as an argument"):
        log.note(arguments(future))
    future.result(LIMIT)


def test_cancelling_a_call_that_is_held(gate: ActorHandle, log: ActorHandle) -> None:
    future = gate.passes.remote(1)
    held, after = log.note.remote(future), log.note.remote("after")
    assert held.cancel()
    with pytest.raises(CancelledError, match="cancelled before it was sent") as caught:
        held.result(LIMIT)
    assert not caught.value.ran
    assert after.result(LIMIT) == "after", "it is not held up any more"
    assert not future.done(), "what it waited for goes on"
    gate.open(1)
    assert future.result(LIMIT) == 1
    assert log.noted() == ["after"]


@pytest.mark.parametrize("waits", [True, False], ids=["called", "remote"])
def test_the_time_of_a_call_includes_that_of_its_arguments(
    gate: ActorHandle, log: ActorHandle, waits: bool
) -> None:
    note = log.note.options(timeout=0.05)
    future = gate.passes.remote(1)
    with pytest.raises(DeadlineError) as caught:
        note(future) if waits else note.remote(future).result(LIMIT)
    assert not caught.value.ran
    gate.open(1)
    assert log.noted() == []


def test_the_time_for_finding_the_actor_begins_with_the_arguments(gate: ActorHandle) -> None:
    nowhere = listen()
    address = f"127.0.0.1:{nowhere.getsockname()[1]}"
    nowhere.close()
    future = gate.passes.remote(1)
    actor = FixedResolver(address).handle("counter").options(resolve_timeout=0.05)
    held = actor.increment.remote(future)
    behind = actor.increment.remote(2)
    with pytest.raises(TimeoutError):
        behind.result(0.3)
    gate.open(1)
    for call in (held, behind):
        with pytest.raises(UnavailableError, match="no server answers"):
            call.result(LIMIT)


@pytest.mark.parametrize("restarts", [False, True], ids=["the connection breaks", "the server dies"])
def test_a_held_call_runs_at_most_once(gate: ActorHandle, restarts: bool) -> None:
    with Scripted() as server:

        def on_call(server: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply | None:
            reply = server.run(call)
            if len(server.calls) == 1:
                server.restart() if restarts else None
                raise Break
            return reply

        server.on_call = on_call
        counter = FixedResolver(server.address).handle("counter")
        calls = [counter.increment.remote(gate.passes.remote(1)), counter.increment.remote("behind")]
        gate.open(1)
        if restarts:
            assert isinstance(calls[0].exception(LIMIT), MaybeExecutedError)
        else:
            assert calls[0].result(LIMIT) == 1
        behind = calls[1].exception(LIMIT)  # it may have been sent to the server that died
        assert behind is None or isinstance(behind, MaybeExecutedError)
        assert server.runs in ([[1], ["behind"]], [[1]] if behind else None)


def test_held_calls_of_a_pool_count_as_load(gate: ActorHandle, server: ActorServer) -> None:
    for name in ("a", "b"):
        server.register(name, Log())
    resolver = FixedResolver(server.address)
    pool = LeastLoaded([resolver.handle("a"), resolver.handle("b")])
    held = pool.note.remote(gate.passes.remote(1))
    assert [pool.note(i) for i in range(3)] == [0, 1, 2]  # or these would wait behind it
    gate.open(1)
    assert held.result(LIMIT) == 1


def test_arguments_of_constructors() -> None:
    """`create_actor` waits for them, as it waits for the actor."""
    with LocalClient() as client:
        log = client.create_actor(Log, name="log")
        flaky = client.create_actor(Flaky, log.note.remote(1), name="flaky")
        with pytest.raises(ApplicationError, match=r"flaky.fails: ValueError: 2"):
            flaky.fails(99)
        with pytest.raises(ApplicationError, match=r"log.fail: ValueError: why"):
            client.create_actor(Flaky, runs=log.fail.remote("why"), name="other")
        group = client.create_actor_group(Flaky, runs=log.note.remote(2), name="group", count=2)
        assert [actor.runs() for actor in group.handles] == [2, 2]


def test_order_of_many_threads(gate: ActorHandle, log: ActorHandle) -> None:
    """Each thread's calls keep their order, with futures among their arguments or not."""
    futures: list[Any] = []

    def call(thread: int) -> None:
        for i in range(50):
            argument = gate.passes.remote(i % 5) if i % 3 == 0 else i % 5
            futures.append(log.note.remote(f"{thread} {i}", argument))

    threads = [threading.Thread(target=call, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for i in (3, 0, 4, 2, 1):
        gate.open(i)
    for thread in threads:
        thread.join()
    for future in futures:
        future.result(LIMIT)
    noted = [value[0] for value in log.noted()]
    for n in range(4):
        assert [value for value in noted if value.startswith(f"{n} ")] == [f"{n} {i}" for i in range(50)]
