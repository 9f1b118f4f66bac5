"""A server of counters for actorrpc/chaos, whose server_test.go is the same in Go."""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple, NoReturn

from chaos_values import Blob, Receipt, Ticket
from fray.cluster import current_cluster
from fray.rpc import ActorServer

GRACE = 30.0
TICK = 0.5
"""Seconds."""


logging.getLogger("fray.actor").setLevel(logging.CRITICAL)  # methods are to fail


class FlakyError(Exception):
    """Of a call that is to fail."""


class Records(NamedTuple):
    """Descriptors of the files in which servers write what they do."""

    executed: int
    produced: int


class Counter:
    """Must not run a call twice. It writes each into a file before it returns."""

    def __init__(self, records: Records, life: str) -> None:
        self._records, self._life = records, life
        self._n = 0
        self._failed: dict[str, tuple[int, int]] = {}  # by caller: the last call that failed, and how often

    def add(self, caller: str, seq: int, data: bytes | None, takes: int) -> str:
        """Take so many microseconds, half of them before the call counts."""
        time.sleep(takes / 2e6)
        self._count(caller, seq)
        answer = f"{self._life} {self._n} {'x' * len(data or b'')}"
        time.sleep(takes / 2e6)
        return answer

    def _count(self, caller: str, seq: int) -> int:
        """Record a call, and return its number in this life."""
        self._n += 1
        os.write(self._records.executed, f"{caller} {seq} {self._life} {self._n}\n".encode())
        return self._n

    def numbers(
        self, caller: str, seq: int, items: int, padding: int, takes: int, fails: bool
    ) -> Iterator[str]:
        """Yield so many items with so much padding. Each is recorded before its caller can have it.

        It counts as a call when it begins. One that fails does so after all items.
        """
        count = self._count(caller, seq)
        for number in range(1, items + 1):
            self._make(caller, seq, count, number, takes)
            yield f"{self._life} {count} {number} {'x' * padding}"
        if fails:
            raise FlakyError("it was to fail")

    def _make(self, caller: str, seq: int, count: int, number: int, takes: int) -> None:
        if takes:
            time.sleep(takes / 1e6)
        os.write(self._records.produced, f"{caller} {seq} {self._life} {count} {number}\n".encode())

    async def later(
        self, caller: str, seq: int, items: int, padding: int, takes: int, fails: bool
    ) -> AsyncIterator[str]:
        """Do as `numbers`, on an event loop."""
        for item in self.numbers(caller, seq, items, padding, takes, fails):
            yield item

    def keep(self, ticket: Ticket) -> Receipt:
        """Count a call that has values of own classes."""
        return Receipt(self._life, self._count(ticket.caller, ticket.seq), 0, ticket)

    def receipts(
        self, ticket: Ticket, items: int, padding: int, takes: int, fails: bool
    ) -> Iterator[Receipt]:
        """Do as `numbers`, with items of an own class."""
        count = self._count(ticket.caller, ticket.seq)
        ticket.data = Blob(b"x" * padding)
        for number in range(1, items + 1):
            self._make(ticket.caller, ticket.seq, count, number, takes)
            yield Receipt(self._life, count, number, ticket)
        if fails:
            raise FlakyError("it was to fail")

    def flaky(self, caller: str, seq: int, takes: int, times: int) -> str:
        """Do as `add`, and fail so often in this life after the call counts."""
        answer = self.add(caller, seq, None, takes)
        last, failed = self._failed.get(caller, (seq, 0))
        failed = failed + 1 if last == seq else 1
        if failed > times:
            return answer
        self._failed[caller] = (seq, failed)
        raise FlakyError("it was to fail")

    def nothing(self) -> None:
        """Be called for a result that is an argument of others."""


def used() -> str:
    """Return how many threads and descriptors this process has."""
    return f"{threading.active_count()} {len(os.listdir('/proc/self/fd'))}"  # noqa: PTH208


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def appending(path: str) -> int:
    """Open a file to which several processes write."""
    return os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)


def obey(server: ActorServer, records: Records, order: list[str]) -> str:
    match order:
        case ["host", name, life]:
            server.register(name, Counter(records, life), max_concurrency=1)
            return "hosted"
        case ["drop", name]:
            server.unregister(name)
            return "dropped"
        case ["usage"]:
            return f"usage {used()}"
    return "failed: no such order"


def leave(*_: object) -> NoReturn:
    raise SystemExit(0)


def orders_given() -> Iterator[str]:
    """Yield lines of standard input, one at a time.

    A signal that arrives while a thread is about to read, as it waits for others to take the interpreter's
    lock, is handled after that read only: one without an end would make SIGTERM be missed.
    """
    while True:
        if not select.select([sys.stdin], [], [], TICK)[0]:
            continue
        line = sys.stdin.readline()
        if not line:
            return
        yield line


def main(orders: dict[str, Any]) -> None:
    faulthandler.register(signal.SIGQUIT)
    records = Records(appending(orders["executed"]), appending(orders["produced"]))
    server = ActorServer(
        current_cluster(),
        "127.0.0.1",
        keepalive=orders["keepalive"],
        patience=orders["patience"],
        allow_pickle=True,
    )
    server.serve_background()
    signal.signal(signal.SIGTERM, leave)
    try:
        say(f"ready {server.address} {used()}")
        for line in orders_given():
            try:
                say(obey(server, records, line.split()))
            except Exception as err:
                say(f"failed {err!r}")
    finally:
        server.shutdown(GRACE)


if __name__ == "__main__":
    main(json.loads(os.environ["FRAY_CHAOS_ORDERS"]))
