"""Calls that are given up by one thread while another is sending them."""

from __future__ import annotations

from _thread import LockType, allocate_lock
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actors import PATIENCE
from fray._pb.actor_pb2 import Call
from fray.rpc import ActorFuture, RpcOptions
from fray.rpc._calling.channel import Channel
from fray.rpc._calling.connection import Connection
from fray.rpc._calling.route import Route
from fray.rpc._transport.settings import Settings
from fray.rpc.errors import ActorError, CancelledError, DeadlineError

GIVING_UP = [
    pytest.param(lambda future: future.cancel(), CancelledError, id="cancelled"),
    pytest.param(lambda future: future.expire(), DeadlineError, id="expired"),
]


class Stage:
    """A connection that lets something happen while it is handed a call."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.meanwhile = meanwhile
        self.sent: list[int] = []
        self.cancelled: list[int] = []
        self.stopping = self.closed = self.silent = self.pickles = False
        self.peer: object = None

    def call(self, call: Call, *_: object) -> object:
        self.sent.append(call.seq)
        self.meanwhile()
        return SimpleNamespace(may_have_arrived=True)

    def cancel(self, seq: int) -> None:
        self.cancelled.append(seq)

    def close(self) -> None:
        self.closed = True

    def flush(self) -> None:
        pass


def future_of() -> ActorFuture[Any]:
    return ActorFuture(
        cast("Route", SimpleNamespace(name="counter", returned=())), Call(method="add"), (), RpcOptions()
    )


def channel_on(stage: Stage) -> Channel:
    channel = Channel("127.0.0.1:1", Settings(peer=""))
    channel._connection = cast("Connection", stage)
    return channel


@pytest.mark.parametrize(("give_up", "kind"), GIVING_UP)
def test_what_is_being_sent_may_run(
    give_up: Callable[[ActorFuture[Any]], object], kind: type[ActorError]
) -> None:
    future = future_of()
    stage = Stage(lambda: give_up(future))
    assert channel_on(stage).send(future, False)
    assert stage.sent == [1]
    assert stage.cancelled == [1]
    if future.done():  # else the server's answer is to come
        error = future.exception(0)
        assert isinstance(error, kind)
        assert error.ran


@pytest.mark.parametrize(("give_up", "kind"), GIVING_UP)
def test_what_was_given_up_is_not_sent(
    give_up: Callable[[ActorFuture[Any]], object], kind: type[ActorError]
) -> None:
    future, stage = future_of(), Stage()
    channel = channel_on(stage)
    give_up(future)
    assert channel.send(future, False)
    error = future.exception(0)
    assert isinstance(error, kind)
    assert not error.ran
    assert stage.sent == []
    after = future_of()
    assert channel.send(after, False)
    assert stage.sent == [1]  # there are no gaps between numbers


class Intruder:
    """A lock of a channel that lets something happen while its next holder has it."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.lock, self.meanwhile = allocate_lock(), [meanwhile]

    def __enter__(self) -> bool:
        self.lock.acquire()
        if self.meanwhile:
            self.meanwhile.pop()()
        return True

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def test_what_is_lost_while_others_connect_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    future, stage, second = future_of(), Stage(), Stage()
    channel = channel_on(stage)
    assert channel.send(future, False)

    def broken() -> None:
        stage.closed = future.lost = True
        channel.lost()

    def opened(*_: object) -> Connection:
        second.peer = SimpleNamespace(peer="")
        return cast("Connection", second)

    monkeypatch.setattr(Connection, "open", opened)
    channel._opening = cast("LockType", Intruder(broken))
    assert channel.connect(PATIENCE) is cast("Connection", second)
    assert second.sent == [1]
