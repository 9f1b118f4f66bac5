"""Actors, and who receives their calls and answers."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from actors import PATIENCE, Caller
from fray.cluster import LocalCluster
from fray.rpc import ActorServer
from fray.rpc._transport.reader import FrameReader
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


@contextmanager
def receivers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yield the names of threads that borrowed the turn to receive."""
    seen: list[str] = []
    receive, comes = FrameReader.receive, FrameReader.comes
    borrowers = threading.local()

    def came(self: FrameReader, *args: Any) -> bool:
        borrowers.here = comes(self, *args)
        return bool(borrowers.here)

    def received(self: FrameReader) -> Any:
        if getattr(borrowers, "here", False):
            seen.append(threading.current_thread().name)
        return receive(self)

    with monkeypatch.context() as patch:
        patch.setattr(FrameReader, "comes", came)
        patch.setattr(FrameReader, "receive", received)
        yield seen


def visited(caller: Caller, what: Callable[[], object]) -> None:
    """Make calls one after the other until a thread borrows the turn."""

    def called() -> object:
        caller.call("actor", "note", 0)
        return what()

    eventually(called, PATIENCE)
