"""Callers of counters for actorrpc/chaos, whose caller_test.go is the same in Go."""

from __future__ import annotations

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
from fray.rpc import ActorHandle, ClusterResolver, ConnectionSettings
from fray.rpc.errors import ActorError

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
            if way < 12:
                self._single(handle, payload, TIMEOUT)
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
            futures.append((self._seq, method.remote(self._name, self._seq, None, self._takes())))
        for seq, future in futures:
            self._note(seq, timeout, began, future.result)

    def _cancelled(self, handle: ActorHandle) -> None:
        """Give a call up after a moment."""
        self._seq += 1
        began = time.monotonic()
        future = handle.options(timeout=TIMEOUT).add.remote(self._name, self._seq, None, self._takes())
        time.sleep(self._random.random() * 0.02)
        future.cancel()
        self._note(self._seq, TIMEOUT, began, future.result)

    def _note(self, seq: int, timeout: float, began: float, result: Any) -> None:
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
        line = f"{self._name} {seq} {kind} {code} {life} {count} {took:.0f} {1000 * timeout:.0f}\n"
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
