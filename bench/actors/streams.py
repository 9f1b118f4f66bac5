"""Rates of streams between two Python programs, in items a second; with `serve` it is the server."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator

from rows import tell

from fray.cluster import FixedResolver, LocalCluster
from fray.rpc import ActorServer

ITEMS = 10_000
TURNS = 9


class Echo:
    def count(self, n: int) -> Iterator[int]:
        yield from range(n)


class AsyncEcho:
    async def count(self, n: int) -> AsyncIterator[int]:
        for i in range(n):
            yield i


def serve() -> None:
    server = ActorServer(LocalCluster())
    server.register("echo", Echo())
    server.register("async", AsyncEcho())
    sys.stdout.write(server.address + "\n")
    sys.stdout.flush()
    server.serve()


def main() -> None:
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
    assert server.stdout
    try:
        resolver = FixedResolver(server.stdout.readline().strip())
        for row, name in (("generator", "echo"), ("async generator", "async")):
            actor = resolver.lookup(name)
            rates = []
            for _ in range(TURNS):
                began = time.perf_counter()
                assert sum(1 for _ in actor.count(ITEMS)) == ITEMS
                rates.append(ITEMS / (time.perf_counter() - began))
            tell(row, statistics.median(rates))
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        main()
