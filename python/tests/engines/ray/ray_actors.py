"""Actors of the tests against Ray, which travel by value, and what these tests have in common."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import cloudpickle

from fray.rpc import method

PATIENCE = 300.0  # seconds


def travel_by_value(*names: str) -> None:
    """Have the classes of modules sent with their code, as nodes have no tests."""
    for name in names:
        cloudpickle.register_pickle_by_value(importlib.import_module(name))


class Counter:
    """Counts, and shows what happens to its process."""

    def __init__(self, start: int = 0, fail_if: str = "") -> None:
        if fail_if and Path(fail_if).exists():
            raise ValueError(f"no such lesson: {fail_if}")
        self.value = start

    def increment(self, by: int = 1) -> int:
        self.value += by
        return self.value

    def pid(self) -> int:
        return os.getpid()

    def variables(self, *names: str) -> list[str]:
        return [os.environ.get(name, "") for name in names]

    def node(self) -> str:
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def write(self, path: str) -> int:
        """Add a line to a file at each run."""
        with Path(path).open("a") as file:
            file.write("ran\n")
        return self.increment()

    def hold(self, path: str) -> None:
        """Add a line to a file, and run on."""
        self.write(path)
        time.sleep(PATIENCE)

    @method(idempotent=True)
    def hold_once(self, path: str) -> int:
        """Run on in the first process that runs it, and return in the next one."""
        ran = Path(path).exists()
        self.write(path)
        if not ran:
            time.sleep(PATIENCE)
        return self.value

    def fail(self) -> None:
        raise KeyError("no such lesson")

    def exit(self, status: int) -> None:
        os._exit(status)

    def meet(self, barrier: str, count: int) -> bool:
        """Return once so many calls run at a time."""
        Path(barrier, str(threading.get_ident())).touch()
        until = time.monotonic() + PATIENCE
        while len(list(Path(barrier).iterdir())) < count and time.monotonic() < until:
            time.sleep(0.01)
        return len(list(Path(barrier).iterdir())) >= count


def use(counter: Any, by: int) -> None:
    """Call an actor from a job."""
    assert counter.increment(by) == by


class Devices:
    """An actor that reports which GPUs it sees."""

    def visible(self) -> str:
        return os.environ["CUDA_VISIBLE_DEVICES"]


cloudpickle.register_pickle_by_value(sys.modules[__name__])
