"""Actors and jobs that tests of fray.v2 create. Processes import this, but not pytest, which is slower."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from fray.rpc import ActorContext, method
from fray.v2 import ActorHandle, ActorOptions, Entrypoint, JobHandle, JobRequest, current_client
from jobs import succeed

PATIENCE = 300.0  # seconds


class Counter:
    def __init__(self, start: int = 0, gate: str = "", fail_if: str = "") -> None:
        while gate and not Path(gate).exists():
            time.sleep(0.01)
        if fail_if and Path(fail_if).exists():
            raise ValueError(f"no such lesson: {fail_if}")
        self.value = start

    def increment(self, by: int = 1) -> int:
        self.value += by
        return self.value

    def pid(self) -> int:
        return os.getpid()

    def hold(self, begun: str) -> None:
        Path(begun).touch()
        time.sleep(PATIENCE)

    def exit(self, status: int) -> None:
        os._exit(status)

    def meet(self, barrier: str, count: int) -> bool:
        Path(barrier, str(threading.get_ident())).touch()
        until = time.monotonic() + PATIENCE
        while len(list(Path(barrier).iterdir())) < count and time.monotonic() < until:
            time.sleep(0.01)
        return len(list(Path(barrier).iterdir())) >= count


class Grouped:
    """Waits in one group and answers in the other."""

    def meet(self, barrier: str, count: int) -> bool:
        return Counter().meet(barrier, count)

    @method(concurrency_group="io")
    def meet_within(self, barrier: str, count: int) -> bool:
        return Counter().meet(barrier, count)


def make_grouped() -> Grouped:
    return Grouped()


class Informed:
    def __init__(self, ctx: ActorContext, greeting: str) -> None:
        self.said = f"{greeting} {ctx.namespace}"

    def say(self) -> str:
        return self.said


class Fleeting:
    def __init__(self, name: str) -> None:
        self.name = name

    def delete(self) -> str:
        current_client().delete_actor(self.name)
        return "deleted"


class Pretender:
    """Ends its process for another reason than the one that it prints."""

    def __init__(self) -> None:
        print("fray: the actor could not be constructed: ValueError: not true", flush=True)
        print("fray: the callable cannot be run: nor is this", flush=True)
        os._exit(3)


def use(counter: ActorHandle, by: int) -> None:
    counter.increment(by)
    assert counter.increment.remote(by).result(PATIENCE) >= 2 * by


def create_two(report: str) -> None:
    client = current_client()
    for name, options in (("stays", ActorOptions(lifetime="detached")), ("goes", ActorOptions())):
        handle = client.create_actor(Counter, name=name, options=options)
        assert handle.increment() == 1
    Path(report).touch()


class Leader:
    def __init__(self) -> None:
        self.counter = current_client().create_actor(Counter, 40, name="counter")

    def lead(self) -> int:
        more = current_client().create_actor(Counter, name="more")
        job = current_client().submit(JobRequest("user", Entrypoint.from_callable(use, args=(more, 1))))
        job.wait(PATIENCE)
        total: int = self.counter.increment(more.increment(0))
        return total


def submit_a_child() -> None:
    current_client().submit(request(succeed, name="child")).wait()


def request(function: Callable[[], None], name: str = "train") -> JobRequest:
    return JobRequest(name, Entrypoint.from_callable(function))


def wait_for(job: JobHandle) -> None:
    job.wait(240)
