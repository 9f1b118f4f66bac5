"""The life of actors on a fray cluster: `life.py host` is a job of it, `life.py client` measures.

The client prints seconds: to create an actor in a process that runs, and one with a process of its own;
from a kill -9 to the first answered call; from a move to the first call that is answered at the new place.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import time

from rows import tell

from fray.cluster import ClusterResolver, current_cluster
from fray.rpc import ActorHandle, ActorServer
from fray.v2 import ActorOptions, current_client

MOVES = 20
CREATED = 100
LAUNCHED = 5


class Counter:
    def pid(self) -> int:
        return os.getpid()


class Here:
    """An actor that says where it is."""

    def __init__(self, place: int) -> None:
        self.place = place

    def where(self) -> int:
        return self.place


class Mover:
    """Registers actors in its own process, and moves one between two servers."""

    def __init__(self) -> None:
        self.servers = [ActorServer(current_cluster()) for _ in range(2)]
        for server in self.servers:
            server.serve_background()
        self.place = 0
        self.servers[0].register("here", Here(0))

    def move(self) -> float:
        self.servers[self.place].unregister("here")
        self.place = 1 - self.place
        self.servers[self.place].register("here", Here(self.place))
        return time.time()

    def create(self, count: int) -> list[float]:
        times = []
        for i in range(count):
            began = time.perf_counter()
            self.servers[0].register(f"made-{i}", Counter())
            times.append(time.perf_counter() - began)
        return times


def host() -> None:
    server = ActorServer(current_cluster())
    server.register("mover", Mover())
    server.serve()


def restart(counter: ActorHandle) -> float:
    counter = counter.options(idempotent=True)
    old = counter.pid()
    os.kill(old, signal.SIGKILL)
    began = time.perf_counter()
    while counter.pid() == old:
        pass
    return time.perf_counter() - began


def move(resolver: ClusterResolver) -> float:
    mover, here = resolver.lookup("mover"), resolver.lookup("here").options(idempotent=True)
    place = here.where()
    began = mover.move()
    while here.where() == place:
        pass
    return time.time() - began


def launched(i: int) -> tuple[float, ActorHandle]:
    began = time.perf_counter()
    handle = current_client().create_actor(
        Counter, name=f"launched-{i}", options=ActorOptions(lifetime="detached")
    )
    handle.pid()
    return time.perf_counter() - began, handle


def client() -> None:
    resolver = ClusterResolver(current_cluster())
    created = resolver.wait_for_actor("mover").create(CREATED)
    tell("created p50", statistics.median(created))
    tell("created p95", sorted(created)[CREATED * 95 // 100])
    moves = [move(resolver) for _ in range(MOVES)]
    tell("moved p50", statistics.median(moves))
    tell("moved longest", max(moves))
    made = [launched(i) for i in range(LAUNCHED)]
    tell("launched p50", statistics.median(took for took, _ in made))
    # Each is killed once: who dies again soon is restarted more slowly, as a crash loop.
    restarts = [restart(handle) for _, handle in made]
    tell("restarted p50", statistics.median(restarts))
    tell("restarted longest", max(restarts))
    for _, handle in made:
        current_client().delete_actor(handle)


if __name__ == "__main__":
    {"host": host, "client": client}[sys.argv[1]]()
