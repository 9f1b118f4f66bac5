"""Counters, their callers and the oracle of test_ray_chaos: a driver of its own is `python chaos.py`."""

from __future__ import annotations

import collections
import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle

from fray.rpc import method
from fray.rpc.errors import ActorError

TIMEOUT = 120.0  # seconds that a call may take: longer than a node that died stays in Ray's table
LONGEST = 0.02  # seconds that a run takes, so that processes die within runs
REPEATED = "~"
"""The end of the name of a call that may run more than once."""
NAMES = ("first", "second", "third")


class Ledgered:
    """A counter that writes each run of a call to a file which outlives it."""

    def __init__(self, runs: str) -> None:
        self._runs = os.open(runs, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.value = 0

    def add(self, call: str, takes: float = 0.0) -> int:
        """Run once, and note that before all else."""
        os.write(self._runs, f"{call}\n".encode())
        time.sleep(takes)
        self.value += 1
        return self.value

    @method(idempotent=True)
    def repeat(self, call: str, takes: float = 0.0) -> int:
        """The same, as often as it takes."""
        return self.add(call, takes)

    def pid(self) -> int:
        return os.getpid()


cloudpickle.register_pickle_by_value(sys.modules[__name__])


@dataclass(frozen=True)
class Outcome:
    """How a call ended for its caller."""

    call: str
    error: str = ""
    """Of which kind, "" if it returned."""
    ran: bool = True
    """Whether it may have run, as its error tells."""


class Caller:
    """Makes calls until it is stopped, one after the other or many at once, and writes how each ended."""

    def __init__(self, name: str, handles: Sequence[Any], outcomes: str, seed: str) -> None:
        self._name, self._handles = name, [handle.options(timeout=TIMEOUT) for handle in handles]
        self._outcomes = os.open(outcomes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._random, self._made = random.Random(seed), 0

    def run(self, stop: threading.Event) -> None:
        """Call."""
        while not stop.wait(self._random.random() * 0.02):
            handle, many = self._random.choice(self._handles), self._random.choice((1, 1, 4, 16))
            repeated = self._random.random() < 0.2
            made = [self._begin(handle, repeated) for _ in range(many)]
            for call, future in made:
                self._note(call, future)

    def _begin(self, handle: Any, repeated: bool) -> tuple[str, Any]:
        self._made += 1
        call = f"{self._name}-{self._made}{REPEATED if repeated else ''}"
        takes = self._random.random() * LONGEST if self._random.random() < 0.3 else 0.0
        return call, (handle.repeat if repeated else handle.add).remote(call, takes)

    def _note(self, call: str, future: Any) -> None:
        try:
            future.result()
            end = Outcome(call)
        except ActorError as err:
            end = Outcome(call, type(err).__name__, err.ran)
        os.write(self._outcomes, (json.dumps(end.__dict__) + "\n").encode())


def problems_of(runs: Iterable[str], outcomes: Iterable[Outcome]) -> list[str]:
    """Return where runs contradict what callers were told; a call without an outcome may have run once."""
    count = collections.Counter(runs)
    found = []
    ended = {end.call: end for end in outcomes}
    for call, times in count.items():
        end = ended.get(call)
        if times > 1 and not call.endswith(REPEATED):
            found.append(f"{call} ran {times} times")
        if end is not None and end.error and not end.ran:
            found.append(f"{call} ran, and its caller was told that it had not: {end.error}")
    found += [
        f"{end.call} returned, and never ran"
        for end in ended.values()
        if not end.error and not count[end.call]
    ]
    return found


def read_outcomes(path: Path) -> list[Outcome]:
    """Return what callers wrote; a line that one was killed at does not count."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.endswith("}"):
            found.append(Outcome(**json.loads(line)))
    return found


def main(address: str, namespace: str, name: str, outcomes: str) -> None:
    """Be a driver with a caller, until it is killed."""
    from fray.cluster.ray import RayCluster
    from fray.rpc import ClusterResolver

    resolver = ClusterResolver(RayCluster(address, namespace=namespace))
    Caller(name, [resolver.existing(each) for each in NAMES], outcomes, name).run(threading.Event())


if __name__ == "__main__":
    main(*sys.argv[1:])
