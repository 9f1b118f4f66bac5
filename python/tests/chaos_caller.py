"""Callers of counters for actorrpc/chaos, whose caller_test.go is the same in Go."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import random
import signal
import sys
import threading
import time
from typing import Any

from chaos_server import appending, say, used
from chaos_streams import Asked, Files, Outcome, follow
from chaos_values import Blob, Receipt, Ticket
from fray.cluster import current_cluster
from fray.rpc import ActorFuture, ActorHandle, ActorPool, ClusterResolver, ConnectionSettings
from fray.rpc.errors import ActorError, UnavailableError

TIMEOUT = 60.0
LARGE = 200 << 10
"""Bytes, so that connections are cut within frames."""
LONGEST = 20_000
"""Microseconds that a call takes, so that servers die within calls."""


class OwnTicket(Ticket):
    """Is of the main program, so that its code goes with it."""


class Caller:
    """Makes calls, one after the other or many at once, and numbers them."""

    def __init__(self, name: str, handles: list[ActorHandle], files: Files, seed: str) -> None:
        self._name, self._handles, self._files = name, handles, files
        self._random = random.Random(seed)
        self._seq = 0

    def calm(self) -> None:
        """Call each actor once."""
        for handle in self._handles:
            self._single(handle, None, TIMEOUT)

    def run(self, stop: threading.Event) -> None:
        """Call in all ways that there are."""
        while not stop.wait(self._random.random() * 0.04):
            actor = self._random.randrange(len(self._handles))
            handle = self._handles[actor]
            large = self._random.randrange(16) == 0
            payload = bytes(self._random.randrange(1, LARGE)) if large else None
            way = self._random.randrange(28)
            if way < 9:
                self._single(handle, payload, TIMEOUT)
            elif way < 11:
                self._retried(handle)
            elif way < 12:
                self._pool(self._random.randrange(2, 24))
            elif way < 17:
                timeout = TIMEOUT if way < 16 else self._random.uniform(0.001, 0.3)
                self._pipeline(handle, self._random.randrange(2, 32), timeout)
            elif way < 19:
                self._single(handle, payload, self._random.uniform(0.001, 0.3))
            elif way < 20:
                self._cancelled(handle)
            elif way < 22:
                self._pickled(handle)
            elif way < 27:
                self._stream(actor)
            else:
                self._streams()

    def _takes(self) -> int:
        """Return how long a call is to take, in microseconds: most no time, so that many are made."""
        return self._random.randrange(LONGEST) if self._random.randrange(8) == 0 else 0

    def _single(self, handle: ActorHandle, payload: bytes | None, timeout: float) -> None:
        self._seq += 1
        began = time.monotonic()
        method, takes = handle.options(timeout=timeout).add, self._takes()
        self._note(self._seq, timeout, began, lambda: method(self._name, self._seq, payload, takes))

    def _pipeline(self, handle: ActorHandle, n: int, timeout: float) -> None:
        began = time.monotonic()
        method = handle.options(timeout=timeout).add
        futures = []
        for _ in range(n):
            self._seq += 1
            # It waits for another actor, with all calls behind it.
            after = self._random.choice(self._handles).options(timeout=timeout).nothing
            argument = after.remote() if self._random.randrange(4) == 0 else None
            futures.append((self._seq, method.remote(self._name, self._seq, argument, self._takes())))
        for seq, future in futures:
            self._note(seq, timeout, began, future.result)

    def _retried(self, handle: ActorHandle) -> None:
        """Make a call that may fail, and run again as often as its retries allow."""
        self._seq += 1
        began, retries = time.monotonic(), self._random.randrange(1, 5)
        kinds = ["chaos.flakyError", "__main__.FlakyError"] if self._random.randrange(2) else True
        flaky = handle.options(timeout=TIMEOUT, retries=retries, retry_exceptions=kinds).flaky
        takes, times = self._takes(), self._random.randrange(retries + 2)
        self._note(self._seq, TIMEOUT, began, lambda: flaky(self._name, self._seq, takes, times), retries)

    def _pool(self, n: int) -> None:
        """Have a pool of all actors make calls, and note each as soon as it has ended."""
        made: dict[int, tuple[float, ActorFuture[str]]] = {}
        first = self._seq + 1

        def add(actor: ActorHandle, seq: int) -> ActorFuture[str]:
            made[seq] = time.monotonic(), actor.add.remote(self._name, seq, None, self._takes())
            return made[seq][1]

        pool = ActorPool([handle.options(timeout=TIMEOUT) for handle in self._handles])
        for _ in range(n):
            self._seq += 1
            pool.submit(add, self._seq)
        left = set(range(first, self._seq + 1))
        while pool.has_next():
            with contextlib.suppress(ActorError):
                pool.get_next_unordered()
            for seq in [seq for seq in left if seq in made and made[seq][1].done()]:
                left.discard(seq)
                self._note(seq, TIMEOUT, made[seq][0], made[seq][1].result)
        for seq in left:  # no actor was left for them

            def unmade() -> str:
                raise UnavailableError("the call was not made")

            self._note(seq, TIMEOUT, time.monotonic(), unmade)

    def _pickled(self, handle: ActorHandle) -> None:
        """Send a value of an own class, and have one returned. Actors in Go and unknown peers take none."""
        self._seq += 1
        began = time.monotonic()
        data = Blob(bytes(self._random.randrange(LARGE))) if self._random.randrange(4) == 0 else None
        kind = self._random.choice([Ticket, OwnTicket])
        ticket = kind(self._name, self._seq, data)
        keep = handle.options(timeout=TIMEOUT).keep

        def result() -> str:
            receipt = keep(ticket)
            if type(receipt) is not Receipt or type(receipt.ticket) is not kind or receipt.ticket != ticket:
                raise TypeError(f"{ticket} came back as {receipt}")
            return f"{receipt.life} {receipt.count}"

        self._note(self._seq, TIMEOUT, began, result, pickled=True)

    def _stream(self, actor: int) -> None:
        """Have an actor make a stream."""
        asked = self._ask(actor)
        later = self._handles[actor + 1 :]  # two loops that call each other's actors would wait for ever

        def meanwhile(taken: int) -> None:
            if asked.between and later and taken % 8 == 0:
                self._single(self._random.choice(later), None, TIMEOUT)

        follow(self._files, self._name, asked, asked.start(self._name), meanwhile)

    def _streams(self) -> None:
        """Have two actors make several streams at once, of which each runs when its turn has come."""
        asked = []
        for actor in self._random.choices(range(len(self._handles)), k=self._random.randrange(2, 6)):
            asked.append(self._ask(actor))
        began = [each.start(self._name) for each in asked]
        for each, stream in zip(asked, began, strict=True):
            follow(self._files, self._name, each, stream, lambda _: None)

    def _ask(self, actor: int) -> Asked:
        """Draw a stream."""
        self._seq += 1
        return Asked.drawn(self._random, self._handles[actor], self._seq)

    def _cancelled(self, handle: ActorHandle) -> None:
        """Give a call up after a moment."""
        self._seq += 1
        began = time.monotonic()
        future = handle.options(timeout=TIMEOUT).add.remote(self._name, self._seq, None, self._takes())
        time.sleep(self._random.random() * 0.02)
        future.cancel()
        self._note(self._seq, TIMEOUT, began, future.result)

    def _note(
        self, seq: int, timeout: float, began: float, result: Any, retries: int = 0, pickled: bool = False
    ) -> None:
        outcome = Outcome(self._name, seq, timeout, retries, pickled=pickled, began=began)
        with outcome.failures():
            outcome.life, number = result().split()[:2]
            outcome.count = int(number)
        outcome.write(self._files)


def main(orders: dict[str, Any]) -> None:
    faulthandler.register(signal.SIGQUIT)
    files = Files(appending(orders["outcomes"]), appending(orders["received"]))
    settings = ConnectionSettings(
        peer="", keepalive=orders["keepalive"], patience=orders["patience"], allow_pickle=True
    )
    resolver = ClusterResolver(current_cluster(), settings=settings)
    handles = [resolver.wait_for_actor(name) for name in orders["actors"]]
    names = orders["callers"]
    calm = Caller(names[0] + ".calm", handles, files, "")
    stop, threads = threading.Event(), []
    for name in names:
        caller = Caller(name, handles, files, f"{orders['seed']} {name}")
        threads.append(threading.Thread(target=caller.run, args=[stop]))
    for line in sys.stdin:
        match line.strip():
            case "calm":
                calm.calm()
                say(f"calm {used()}")
            case "go":
                for thread in threads:
                    thread.start()
                say("going")
            case "stop":
                stop.set()
                for thread in threads:
                    thread.join()
                say("stopped")
            case "usage":
                say(f"usage {used()}")
            case "quit":
                return


if __name__ == "__main__":
    main(json.loads(os.environ["FRAY_CHAOS_ORDERS"]))
