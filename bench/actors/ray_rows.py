"""Ray's actors, on the rows of its own microbenchmark."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
import ray
from rows import BATCH, SERVERS, rate


@ray.remote(num_cpus=0)
class Actor:
    def small(self) -> bytes:
        return b"ok"

    def take(self, _: object) -> bytes:
        return b"ok"

    def give(self, size: int) -> np.ndarray:
        return np.zeros(size, dtype=np.uint8)

    def stream(self, n: int) -> Iterator[int]:
        yield from (i for i in range(n))  # Ray sends to what it iterates over, which a range does not take


@ray.remote(num_cpus=0)
class Client:
    def __init__(self, servers: list) -> None:
        self.servers = servers

    def batch(self, n: int) -> None:
        ray.get([s.small.remote() for s in self.servers for _ in range(n)])

    def batch_with_argument(self, n: int) -> None:
        x = ray.put(0)
        ray.get([s.take.remote(x) for s in self.servers for _ in range(n)])


def main() -> None:
    ray.init(num_cpus=2 * SERVERS, logging_level=logging.ERROR, include_dashboard=False)
    actor = Actor.remote()
    rate("1:1 sync", lambda: ray.get(actor.small.remote()), 1)
    rate("1:1 async 1000", lambda: ray.get([actor.small.remote() for _ in range(BATCH)]), BATCH)
    wide = Actor.options(max_concurrency=16).remote()
    rate("1:1 concurrent", lambda: ray.get([wide.small.remote() for _ in range(BATCH)]), BATCH)
    servers = [Actor.remote() for _ in range(SERVERS)]
    client = Client.remote(servers)
    rate("1:n", lambda: ray.get(client.batch.remote(BATCH)), BATCH * SERVERS)
    clients = [Client.remote([s]) for s in servers]
    rate("n:n", lambda: ray.get([c.batch.remote(BATCH) for c in clients]), BATCH * SERVERS)
    rate(
        "n:n with an argument",
        lambda: ray.get([c.batch_with_argument.remote(BATCH) for c in clients]),
        BATCH * SERVERS,
    )
    array = np.zeros(1 << 20, dtype=np.uint8)
    rate("1 MiB argument", lambda: ray.get(actor.take.remote(array)), 1)
    rate("100 MiB result", lambda: ray.get(actor.give.remote(100 << 20)), 1)
    streaming = actor.stream.options(num_returns="streaming")
    rate("items of a stream", lambda: [ray.get(each) for each in streaming.remote(BATCH)], BATCH)
    ray.shutdown()  # with its workers


main()
