"""fray's actors on the rows of Ray's microbenchmark; with `serve ADDRESS...` it is one of the servers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
from rows import BATCH, SERVERS, rate

from fray.cluster import FixedResolver, LocalCluster
from fray.rpc import ActorHandle, ActorServer


class Actor:
    def small(self) -> bytes:
        return b"ok"

    def take(self, _: object) -> bytes:
        return b"ok"

    def give(self, size: int) -> np.ndarray:
        return np.zeros(size, dtype=np.uint8)

    def stream(self, n: int) -> Iterator[int]:
        yield from range(n)


class Client:
    def __init__(self, addresses: list[str]) -> None:
        self.servers = [FixedResolver(a).lookup("actor") for a in addresses]

    def batch(self, n: int) -> None:
        for f in [s.small.remote() for s in self.servers for _ in range(n)]:
            f.result()

    def batch_with_argument(self, n: int) -> None:
        for f in [s.take.remote(0) for s in self.servers for _ in range(n)]:
            f.result()


def serve(addresses: list[str]) -> None:
    server = ActorServer(LocalCluster())
    server.register("actor", Actor())
    server.register("wide", Actor(), max_concurrency=16)
    server.register("client", Client(addresses))
    sys.stdout.write(server.address + "\n")
    sys.stdout.flush()
    server.serve()


class Process:
    """Another process that serves actors."""

    def __init__(self, *addresses: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "serve", *addresses], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout
        self.address = self._process.stdout.readline().strip()

    def actor(self, name: str) -> ActorHandle:
        return FixedResolver(self.address).lookup(name)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def main() -> None:
    started: list[Process] = []

    def process(*addresses: str) -> Process:
        started.append(Process(*addresses))
        return started[-1]

    try:
        one = process()
        actor, wide = one.actor("actor"), one.actor("wide")
        rate("1:1 sync", actor.small, 1)
        rate("1:1 async 1000", lambda: wait(actor.small.remote() for _ in range(BATCH)), BATCH)
        rate("1:1 concurrent", lambda: wait(wide.small.remote() for _ in range(BATCH)), BATCH)
        servers = [process().address for _ in range(SERVERS)]
        client = process(*servers).actor("client")
        rate("1:n", lambda: client.batch(BATCH), BATCH * SERVERS)
        clients = [process(s).actor("client") for s in servers]
        rate("n:n", lambda: wait(c.batch.remote(BATCH) for c in clients), BATCH * SERVERS)
        rate(
            "n:n with an argument",
            lambda: wait(c.batch_with_argument.remote(BATCH) for c in clients),
            BATCH * SERVERS,
        )
        array = np.zeros(1 << 20, dtype=np.uint8)
        rate("1 MiB argument", lambda: actor.take(array), 1)
        rate("100 MiB result", lambda: actor.give(100 << 20), 1)
        rate("items of a stream", lambda: list(actor.stream(BATCH)), BATCH)
    finally:
        for each in started:
            each.end()


def wait(futures: object) -> None:
    for f in list(futures):  # type: ignore[call-overload]
        f.result()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2:])
    else:
        main()
