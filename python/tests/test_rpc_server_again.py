"""Calls that are sent again: each runs once, and what is not known is said."""

from __future__ import annotations

from typing import Any

import pytest

from actors import PATIENCE, Caller, Pending
from fray._pb import actor_pb2
from fray.rpc import ActorServer
from fray.rpc._calling.connection import Connection
from fray.rpc.codec import encode_args
from fray.rpc.errors import (
    MaybeExecutedError,
    StaleError,
    UnknownActorError,
)
from test_rpc_server import Counter


def test_fact28_a_call_that_is_sent_again_runs_once(
    server: ActorServer, counter: Counter, caller: Caller
) -> None:
    first = caller.send("counter", "add", 1)
    assert first.result() == 1
    waits = caller.send("counter", "wait")
    behind = caller.send("counter", "add", 10)
    assert counter.entered.acquire(timeout=PATIENCE)
    caller.reconnect()
    again = [caller.send_again(call) for call in (first, waits, behind)]
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
        caller.send_again(first).result()
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
        caller.send_again(first).result()
    assert caller.send_again(second).result() == b"y" * (600 << 10)
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
def test_an_old_copy_of_a_rejected_call_does_not_run(caller: Caller) -> None:
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
def test_a_rejected_call_may_be_sent_again(server: ActorServer, caller: Caller) -> None:
    refused = caller.send("later", "add", 5)
    with pytest.raises(UnknownActorError):
        refused.result()
    server.register("later", Counter())
    assert caller.send_again(refused).result() == 5


def test_another_incarnation(server: ActorServer, counter: Counter, caller: Caller) -> None:
    mine = server._registry().lookup("counter").actor_id
    assert caller.call("counter", "add", 1, incarnation=mine) == 1
    with pytest.raises(StaleError, match="another incarnation"):
        caller.call("counter", "add", 1, incarnation="actor-" + "a" * 26)
    assert counter.n == 1
    assert caller.send("counter", "add", 1).reply().incarnation == mine
