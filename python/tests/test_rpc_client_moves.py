"""Calls of an actor that moves while its former server is being lost."""

from __future__ import annotations

import socket
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actors import PATIENCE
from fray._pb.actor_pb2 import Call
from fray.cluster import LocalCluster
from fray.rpc import ActorServer, FixedResolver
from fray.rpc._calling.channel import Channel, channels
from fray.rpc._calling.connection import Connection
from fray.rpc._calling.outcome import Answer
from fray.rpc._calling.resolve import FixedDirectory
from fray.rpc.errors import UnavailableError
from waiting import eventually


class Log:
    def __init__(self, noted: threading.Event) -> None:
        self.seen: list[int] = []
        self._noted = noted

    def note(self, n: int) -> None:
        self.seen.append(n)
        self._noted.set()


class Jammed:
    """A connection to a server that reads nothing: what it is handed does not leave."""

    def __init__(self) -> None:
        self.stopping = self.closed = self.silent = self.pickles = self.amid = False
        self.peer = SimpleNamespace(peer="former")

    def call(self, _: Call, *_rest: object) -> object:
        if self.closed:
            raise UnavailableError("the connection broke")
        return SimpleNamespace(may_have_arrived=False, answered=False, attended=False)

    def list_methods(self, *_: object) -> Any:
        raise UnavailableError("nothing is read")

    def attend(self, *_: object) -> None:
        pass

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def test_calls_that_never_left_run_before_later_ones_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    held_or_run = threading.Event()
    log, unsent = Log(held_or_run), Channel.has_unsent_calls_of

    def noted(channel: Channel, route: object) -> bool:
        if channel.address == former:
            held_or_run.set()
        return unsent(channel, route)

    monkeypatch.setattr(Channel, "has_unsent_calls_of", noted)
    with LocalCluster() as cluster, ActorServer(cluster) as server, socket.socket() as refusing:
        server.register("log", log)
        refusing.bind(("127.0.0.1", 0))
        former = f"127.0.0.1:{refusing.getsockname()[1]}"
        resolver = FixedResolver(former)
        directory = cast("FixedDirectory", resolver.directory)
        handle = resolver.lookup("log")
        settings = directory.settings(handle._route.settings)
        jammed = Jammed()
        channel = channels().at(former, settings)
        channel._connection = cast("Connection", jammed)
        channel._peer = "former"
        first = [handle.note.remote(n) for n in range(2)]
        eventually(lambda: len(channel._outstanding) == 2)  # another thread sends them
        jammed.closed = True
        directory.address = server.address
        last = handle.note.remote(2)
        assert held_or_run.wait(PATIENCE)
        for future in first:
            future.answered(Answer(None, (), ConnectionResetError("the connection broke")))
        for future in (*first, last):
            future.result(PATIENCE)
        assert log.seen == [0, 1, 2]
