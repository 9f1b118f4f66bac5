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

from chaos_server import say, used
from fray.cluster import current_cluster
from fray.rpc import ActorFuture, ActorHandle, ActorPool, ClusterResolver, ConnectionSettings
from fray.rpc.errors import ActorError, UnavailableError

TIMEOUT = 60.0
LARGE = 200 << 10
"""Bytes, so that connections are cut within frames."""
LONGEST = 20_000
"""Microseconds that a call takes, so that servers die within calls."""


class Caller:
    """Makes calls, one after the other or many at once, and numbers them."""

    def __init__(self, name: str, handles: list[ActorHandle], outcomes: int, seed: str) -> None:
        self._name, self._handles, self._outcomes = name, handles, outcomes
        self._random = random.Random(seed)
        self._seq = 0

    def calm(self) -> None:
        """Call each actor once."""
        for handle in self._handles:
            self._single(handle, None, TIMEOUT)

    def run(self, stop: threading.Event) -> None:
        """Call in all ways that there are."""
        while not stop.wait(self._random.random() * 0.04):
            handle = self._random.choice(self._handles)
            large = self._random.randrange(16) == 0
            payload = bytes(self._random.randrange(1, LARGE)) if large else None
            way = self._random.randrange(20)
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
            else:
                self._cancelled(handle)

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

    def _cancelled(self, handle: ActorHandle) -> None:
        """Give a call up after a moment."""
        self._seq += 1
        began = time.monotonic()
        future = handle.options(timeout=TIMEOUT).add.remote(self._name, self._seq, None, self._takes())
        time.sleep(self._random.random() * 0.02)
        future.cancel()
        self._note(self._seq, TIMEOUT, began, future.result)

    def _note(self, seq: int, timeout: float, began: float, result: Any, retries: int = 0) -> None:
        kind, code, life, count = "ok", "-", "-", 0
        try:
            text = result()
            life, number = text.split()[:2]
            count = int(number)
        except ActorError as err:
            kind, code = "maybe" if err.ran else "not", err.code.value
        except Exception as err:
            kind, code = "other", repr(err).replace(" ", "_")
        took = 1000 * (time.monotonic() - began)
        line = f"{self._name} {seq} {kind} {code} {life} {count} {took:.0f} {1000 * timeout:.0f} {retries}\n"
        os.write(self._outcomes, line.encode())


def main(orders: dict[str, Any]) -> None:
    faulthandler.register(signal.SIGQUIT)
    outcomes = os.open(orders["outcomes"], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    settings = ConnectionSettings(peer="", keepalive=orders["keepalive"], patience=orders["patience"])
    resolver = ClusterResolver(current_cluster(), settings=settings)
    handles = [resolver.wait_for_actor(name) for name in orders["actors"]]
    names = orders["callers"]
    calm = Caller(names[0] + ".calm", handles, outcomes, "")
    stop, threads = threading.Event(), []
    for name in names:
        caller = Caller(name, handles, outcomes, f"{orders['seed']} {name}")
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
