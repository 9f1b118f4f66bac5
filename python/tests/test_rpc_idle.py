"""Threads of actors that have nothing to do, of which a process keeps a few."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fray.cluster import LocalCluster
from fray.rpc import ActorServer, ClusterResolver
from fray.rpc._serving import idle as _idle
from fray.rpc._serving import mailbox as _mailbox
from fray.rpc._serving import serial_queue as _serial_queue
from fray.rpc._serving.idle import IdleThreads
from fray.rpc._serving.mailbox import _ThreadQueue
from fray.rpc._serving.serial_queue import SerialQueue
from waiting import eventually

PATIENCE = 300.0  # seconds


class Counter:
    def __init__(self) -> None:
        self.n = 0

    def increment(self) -> int:
        self.n += 1
        return self.n

    def thread(self) -> int:
        return threading.get_ident()


def named(prefix: str) -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(prefix)]


@pytest.fixture
def server() -> Iterator[tuple[ActorServer, ClusterResolver]]:
    with LocalCluster() as cluster, ActorServer(cluster) as server:
        yield server, ClusterResolver(cluster)


def test_idle_actors_share_threads(server: tuple[ActorServer, ClusterResolver]) -> None:
    serves, resolver = server
    count = 2000
    for i in range(count):
        serves.register(f"counter-{i}", Counter())
    handles = [resolver.handle(f"counter-{i}") for i in range(count)]
    for turn in (1, 2):
        calls = [handle.increment.remote() for handle in handles]
        assert {call.result(PATIENCE) for call in calls} == {turn}
        eventually(lambda: len(named("fray-actor-counter-")) <= _idle.MOST_IDLE, PATIENCE)
    assert threading.active_count() < 100


def test_few_actors_keep_their_threads(server: tuple[ActorServer, ClusterResolver]) -> None:
    serves, resolver = server
    for i in range(8):
        serves.register(f"counter-{i}", Counter())
    handles = [resolver.handle(f"counter-{i}") for i in range(8)]
    threads = [[handle.thread() for handle in handles] for _ in range(5)]
    assert all(each == threads[0] for each in threads)
    assert len(set(threads[0])) == 8


class Call:
    """Notes that it ran, and whether others of its queue ran then."""

    connection: Any = None

    def __init__(self, number: int, ran: list[int], running: list[int]) -> None:
        self.number, self.ran, self.running = number, ran, running

    def run(self) -> None:
        self.running.append(self.number)
        self.ran.append(self.number)
        assert len(self.running) <= 3
        self.running.remove(self.number)


@pytest.mark.parametrize("limit", [1, 3])
def test_each_call_runs_once_though_threads_come_and_go(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    idle = IdleThreads(1)
    monkeypatch.setattr(_serial_queue, "idle_threads", idle)
    monkeypatch.setattr(_mailbox, "idle_threads", idle)
    queues: list[Any] = [SerialQueue(f"q{i}") if limit == 1 else _ThreadQueue(3, f"q{i}") for i in range(4)]
    ran: list[list[int]] = [[] for _ in queues]
    turns = [threading.Lock() for _ in queues]
    count = 4000

    def feed(seed: int) -> None:
        choose = random.Random(seed)
        for _ in range(count // 4):
            i = choose.randrange(4)
            with turns[i]:
                number = next_number[i]
                next_number[i] += 1
                queues[i].put(Call(number, ran[i], running[i]))

    next_number, running = [0] * 4, [list[int]() for _ in queues]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(feed, range(4)))
    eventually(lambda: sum(map(len, ran)) == count, PATIENCE)
    for i, numbers in enumerate(ran):
        assert sorted(numbers) == list(range(next_number[i]))
        if limit == 1:
            assert numbers == sorted(numbers), "calls of one queue changed their order"
    eventually(lambda: len(idle) <= 1, PATIENCE)
    for queue in queues:
        queue.stop()
    eventually(lambda: not named("q"), PATIENCE)


class Raced:
    """The calls of a queue whose thread leaves just before a call is put, or just before it looks for one."""

    def __init__(self, queue: SerialQueue) -> None:
        self.queue, self.calls = queue, queue._queue
        self.before_check: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.calls, name)

    def put(self, call: Any) -> None:
        if isinstance(call, Call) and self.queue._thread is not None:
            self.calls.put(_idle.LEAVE)
            eventually(lambda: self.queue._thread is None, PATIENCE)
        self.calls.put(call)

    def empty(self) -> bool:
        before, self.before_check = self.before_check, None
        if before is not None:
            before()
        return self.calls.empty()


def test_a_call_that_meets_a_leaving_thread_runs() -> None:
    ran: list[int] = []
    queue = SerialQueue("q")
    queue._queue = raced = Raced(queue)  # type: ignore[assignment]
    for number in range(5):
        queue.put(Call(number, ran, []))  # type: ignore[arg-type]
        eventually(lambda number=number: number in ran, PATIENCE)  # type: ignore[misc]
    # As above, but the thread has left already, and has not looked for calls.
    raced.before_check = lambda: raced.calls.put(Call(5, ran, []))  # type: ignore[arg-type]
    queue.dismiss()
    eventually(lambda: 5 in ran, PATIENCE)
    assert ran == list(range(6))
    queue.stop()
    eventually(lambda: not named("q"), PATIENCE)


def test_a_thread_that_cannot_start_loses_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    queue = SerialQueue("q")
    start = threading.Thread.start

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError):
        queue.put(Call(0, ran, []))  # type: ignore[arg-type]
    monkeypatch.setattr(threading.Thread, "start", start)
    queue.put(Call(1, ran, []))  # type: ignore[arg-type]
    eventually(lambda: 1 in ran, PATIENCE)
    queue.stop()
