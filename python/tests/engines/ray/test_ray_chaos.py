"""A storm over actors on Ray: processes, nodes, drivers and the registry die or stand still, at random.

Each call runs as often as its caller is told. FRAY_CHAOS_EVENTS (8) is how many faults there are, and
FRAY_CHAOS_SEED (1) which. A long storm is for a person: FRAY_CHAOS_EVENTS=300 FRAY_CHAOS_SEED=$RANDOM.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engines.ray import chaos
from engines.ray.helpers import until
from engines.ray.ray_actors import PATIENCE
from engines.ray.test_ray_actors import hosts_of, process_at
from fray.cluster import ResourceConfig
from fray.cluster.ray import RayCluster
from fray.rpc.errors import ActorError
from fray.v2 import ActorOptions
from fray.v2.client import _ClusterClient

EVENTS = int(os.environ.get("FRAY_CHAOS_EVENTS", "8"))
SEED = os.environ.get("FRAY_CHAOS_SEED", "1")
FAULTS = ("kill actor", "stop actor", "kill registry", "stop registry", "kill node", "kill driver")
CALM = 1.0  # seconds between two faults, at most


class Storm:
    """Faults, drawn by a seed."""

    def __init__(self, cluster: RayCluster, nodes: Any, directory: Path) -> None:
        self._cluster, self._nodes, self._directory = cluster, nodes, directory
        self._random = random.Random(SEED)
        self._drivers = 0
        self._driver: subprocess.Popen[bytes] | None = None
        self.workers = [nodes.add(num_cpus=4, resources={"worker": 1}) for _ in range(2)]
        self.faults: Counter[str] = Counter()

    def blow(self) -> None:
        """Let all faults happen."""
        self._kill_driver()
        order = [*FAULTS, *(self._random.choice(FAULTS) for _ in range(EVENTS - len(FAULTS)))][:EVENTS]
        self._random.shuffle(order)
        for fault in order:
            time.sleep(self._random.random() * CALM)
            print("storm:", fault, flush=True)
            self.faults[fault] += 1
            with contextlib.suppress(ProcessLookupError):
                getattr(self, "_" + fault.replace(" ", "_"))()

    def _kill_actor(self) -> None:
        os.kill(self._actor(), signal.SIGKILL)

    def _stop_actor(self) -> None:
        self._stand_still(self._actor())

    def _actor(self) -> int:
        """Return the process of an actor that there is."""
        while True:
            name = self._random.choice(chaos.NAMES)
            for endpoint in self._cluster.metadata.lookup_all(name):
                with contextlib.suppress(AssertionError):  # it is gone just now
                    return process_at(int(endpoint.address.rpartition(":")[2]))
            time.sleep(0.05)

    def _kill_registry(self) -> None:
        os.kill(self._registry(), signal.SIGKILL)

    def _stop_registry(self) -> None:
        self._stand_still(self._registry())

    def _registry(self) -> int:
        return process_at(until(self._cluster.reach).port)

    def _stand_still(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(self._random.uniform(0.1, 4), self._go_on, [pid]).start()

    def _go_on(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    def _kill_node(self) -> None:
        worker = self.workers.pop(self._random.randrange(len(self.workers)))
        self._nodes.remove(worker)
        self.workers.append(self._nodes.add(num_cpus=4, resources={"worker": 1}))

    def _kill_driver(self) -> None:
        """Kill the other driver amid its calls, and start the next."""
        if self._driver is not None:
            self._driver.kill()
            self._driver.wait()
        self._drivers += 1
        words = [self._nodes.address, self._cluster.namespace, f"driver{self._drivers}", str(self.outcomes)]
        self._driver = subprocess.Popen([sys.executable, chaos.__file__, *words])

    @property
    def outcomes(self) -> Path:
        """Where all callers write how their calls ended."""
        return self._directory / "outcomes"

    def end(self) -> None:
        """Kill the other driver, and the nodes that were added."""
        if self._driver is not None:
            self._driver.kill()
            self._driver.wait()
        for worker in self.workers:
            self._nodes.remove(worker)


@pytest.fixture
def storm(cluster: RayCluster, nodes: Any, tmp_path: Path) -> Iterator[Storm]:
    storm = Storm(cluster, nodes, tmp_path)
    yield storm
    storm.end()


def test_each_call_runs_as_often_as_its_caller_is_told(
    cluster: RayCluster, storm: Storm, tmp_path: Path
) -> None:
    print(f"FRAY_CHAOS_EVENTS={EVENTS} FRAY_CHAOS_SEED={SEED}")
    runs, stop = tmp_path / "runs", threading.Event()
    with _ClusterClient(cluster) as client:
        handles = [
            client.create_actor(
                chaos.Ledgered,
                str(runs),
                name=name,
                resources=ResourceConfig(cpu=1.5, ram="8m"),  # the head has room for one
                options=ActorOptions(max_restarts=-1, max_concurrency=4),
            )
            for name in chaos.NAMES
        ]
        callers = [chaos.Caller(f"caller{n}", handles, str(storm.outcomes), f"{SEED}/{n}") for n in range(3)]
        threads = [threading.Thread(target=caller.run, args=[stop]) for caller in callers]
        for thread in threads:
            thread.start()
        try:
            storm.blow()
            for handle in handles:
                assert until(lambda: answers(handle)), "an actor did not come back"  # noqa: B023
        finally:
            stop.set()
            for thread in threads:
                thread.join(PATIENCE)
    outcomes = chaos.read_outcomes(storm.outcomes)
    ends = Counter(end.error or "returned" for end in outcomes)
    print(dict(storm.faults), dict(ends))
    assert chaos.problems_of(runs.read_text().splitlines(), outcomes) == []
    assert ends["returned"] > 100, "the storm had nothing to hit"
    until(lambda: hosts_of(cluster) == [])


def answers(handle: Any) -> bool:
    try:
        return bool(handle.options(timeout=chaos.TIMEOUT).pid())
    except ActorError:
        return False


@pytest.mark.parametrize(
    ("runs", "end", "problems"),
    [
        (["a-1"], chaos.Outcome("a-1"), 0),
        (["a-1", "a-1"], chaos.Outcome("a-1"), 1),
        (["a-1~", "a-1~"], chaos.Outcome("a-1~"), 0),
        ([], chaos.Outcome("a-1"), 1),
        (["a-1"], chaos.Outcome("a-1", "UnavailableError", False), 1),
        ([], chaos.Outcome("a-1", "UnavailableError", False), 0),
        (["a-1"], chaos.Outcome("a-1", "MaybeExecutedError", True), 0),
        (["a-1", "a-1"], chaos.Outcome("a-1", "MaybeExecutedError", True), 1),
        (["b-1", "b-1"], chaos.Outcome("a-1", "MaybeExecutedError", True), 1),
    ],
)
def test_the_oracle(runs: list[str], end: chaos.Outcome, problems: int) -> None:
    assert len(chaos.problems_of(runs, [end])) == problems
