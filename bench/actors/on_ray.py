"""Actors on a Ray cluster, ours beside Ray's own on the same nodes in the same run: `python on_ray.py`.

The rows are those of Ray's own microbenchmark, and the time to create an actor with its first call. Each row
is measured in turns; told is the median of each, and a ratio: above 1 ours is faster, or takes less time.
Both libraries' actors that are created have a name and outlive their creator.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import cloudpickle
import ray
from one_node import start as start_cluster
from rows import quartiles, tell

from fray.v2 import ActorHandle, ActorOptions, ResourceConfig
from fray.v2.ray_backend import RayClient

BATCH = 1000
CPUS = 64  # more than there are, so that every actor has its place
SERVERS = int(os.environ.get("FRAY_BENCH_SERVERS", "4"))
TURNS = int(os.environ.get("FRAY_BENCH_TURNS", "5"))
CREATIONS = int(os.environ.get("FRAY_BENCH_CREATIONS", "25"))
SECONDS = 1.0  # of a row, each time
NOTHING = ResourceConfig(cpu=0.01, ram="8m")
DETACHED = ActorOptions(lifetime="detached")


class Server:
    def small(self) -> bytes:
        return b"ok"


class OurClient:
    def __init__(self, servers: list[ActorHandle]) -> None:
        self.servers = servers

    def batch(self, n: int) -> None:
        for future in [s.small.remote() for s in self.servers for _ in range(n)]:
            future.result()


class TheirClient:
    def __init__(self, servers: list[Any]) -> None:
        self.servers = servers

    def batch(self, n: int) -> None:
        ray.get([s.small.remote() for s in self.servers for _ in range(n)])


cloudpickle.register_pickle_by_value(sys.modules[__name__])


def rate(call: Callable[[], object], count: int) -> float:
    """Return how many calls a second there are, of which `call` makes `count`."""
    call()
    began, made = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        call()
        made += count
    return made / (time.perf_counter() - began)


def row(
    name: str,
    ours: Callable[[], float],
    theirs: Callable[[], float],
    less: bool = False,
    turns: int = TURNS,
) -> None:
    """Measure in turns, and print the medians; `less` of what is measured is better."""
    pairs = [(ours(), theirs()) for _ in range(turns)]
    mine, its = zip(*pairs, strict=True)
    quartiles(name, "fray", mine)
    quartiles(name, "ray", its)
    ratio = statistics.median(mine) / statistics.median(its)
    tell(f"{name}, ratio", 1 / ratio if less else ratio)


def main() -> None:
    start_cluster(CPUS)
    client = RayClient()
    native = ray.remote(num_cpus=0)(Server)
    names = iter(range(10**6))

    def create() -> float:
        began = time.perf_counter()
        made = client.create_actor(Server, name=f"made{next(names)}", resources=NOTHING, options=DETACHED)
        made.small()
        took = time.perf_counter() - began
        client.delete_actor(made)
        return took

    def create_native() -> float:
        named = native.options(name=f"made{next(names)}", namespace="native", lifetime="detached")
        began = time.perf_counter()
        made = named.remote()
        ray.get(made.small.remote())
        took = time.perf_counter() - began
        ray.kill(made)
        return took

    create()
    row("create and first call", create, create_native, less=True, turns=CREATIONS)
    ours = [client.create_actor(Server, name=f"server{n}", resources=NOTHING) for n in range(SERVERS)]
    theirs = [native.remote() for _ in range(SERVERS)]
    mine, its = ours[0], theirs[0]
    row("1:1 sync", lambda: rate(mine.small, 1), lambda: rate(lambda: ray.get(its.small.remote()), 1))

    def batch() -> None:
        for future in [mine.small.remote() for _ in range(BATCH)]:
            future.result()

    row(
        "1:1 async",
        lambda: rate(batch, BATCH),
        lambda: rate(lambda: ray.get([its.small.remote() for _ in range(BATCH)]), BATCH),
    )
    our_clients = [
        client.create_actor(OurClient, ours, name=f"client{n}", resources=NOTHING) for n in range(SERVERS)
    ]
    their_clients = [ray.remote(num_cpus=0)(TheirClient).remote(theirs) for _ in range(SERVERS)]
    calls = BATCH * SERVERS * SERVERS

    def all_batches() -> None:
        for future in [each.batch.remote(BATCH) for each in our_clients]:
            future.result()

    row(
        "n:n async",
        lambda: rate(all_batches, calls),
        lambda: rate(lambda: ray.get([each.batch.remote(BATCH) for each in their_clients]), calls),
    )
    client.shutdown()
    ray.shutdown()


main()
