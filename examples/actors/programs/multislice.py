"""Training on slices that come and go: the programs of multislice.hcl.

A coordinator has the weights. In each step every member computes the gradient on data of its own, the
coordinator averages what they send, and all get the new weights. A member that is lost is waited for only
for a while; one that comes, or comes back, takes part from the next step on.

`python multislice.py` runs all of it on this machine.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from spirals import Adam, Network, spirals

from fray.cluster import ClusterResolver, Entrypoint, current_cluster
from fray.v2 import JobRequest, ResourceConfig, current_client


class SliceCoordinator:
    """Members, weights and steps. Its methods wait for each other, which async methods may at no cost."""

    def __init__(self, min_slices: int, steps: int, patience: float = 5.0, result: str = "") -> None:
        """Begin at step 0. `patience` is how many seconds a step waits for a member that says nothing."""
        self.min_slices, self.steps, self.patience, self.result = min_slices, steps, patience, result
        self.network, self.adam = Network(), Adam()
        self.step = 0
        self.members: dict[str, float] = {}  # when each was heard of last
        self.gradients: dict[str, list[np.ndarray]] = {}  # of this step
        self.changed = asyncio.Condition()
        self.lost, self.sizes = 0, set[int]()

    async def join(self, slice_id: str) -> dict[str, Any]:
        """Become a member, and return the step and the weights to begin with."""
        async with self.changed:
            self.members[slice_id] = time.monotonic()
            self.changed.notify_all()
            await self.changed.wait_for(lambda: len(self.members) >= self.min_slices)
            self.members[slice_id] = time.monotonic()
            return self._now()

    async def contribute(self, slice_id: str, step: int, gradient: list[np.ndarray]) -> dict[str, Any]:
        """Give this member's gradient of a step, and return the next one with its weights."""
        async with self.changed:
            self.members[slice_id] = time.monotonic()
            if step == self.step:
                self.gradients[slice_id] = gradient
                self.changed.notify_all()
            while step == self.step:
                self._drop_silent()
                if len(self.members) >= self.min_slices and self.members.keys() <= self.gradients.keys():
                    self._advance()
                    self.changed.notify_all()
                    break
                try:
                    await asyncio.wait_for(self.changed.wait(), 0.2)
                except TimeoutError:
                    continue
            self.members[slice_id] = time.monotonic()
            return self._now()

    async def leave(self, slice_id: str) -> None:
        """Be no member any more."""
        async with self.changed:
            self.members.pop(slice_id, None)
            self.changed.notify_all()

    def _drop_silent(self) -> None:
        """Forget members that owe this step a gradient for too long."""
        late = time.monotonic() - self.patience
        for slice_id, heard in list(self.members.items()):
            if slice_id not in self.gradients and heard < late:
                del self.members[slice_id]
                self.lost += 1
                print(f"step {self.step}: goes on without {slice_id}", flush=True)

    def _advance(self) -> None:
        """Apply the mean of the gradients."""
        mean = [np.mean(parts, axis=0) for parts in zip(*self.gradients.values(), strict=True)]
        self.network.weights = self.adam.update(self.network.weights, mean)
        self.sizes.add(len(self.gradients))
        self.step, self.gradients = self.step + 1, {}
        if self.step == self.steps and self.result:
            Path(self.result).parent.mkdir(parents=True, exist_ok=True)
            Path(self.result).write_text(json.dumps(self.report()))

    def _now(self) -> dict[str, Any]:
        done = self.step >= self.steps
        return {"step": self.step, "weights": self.network.weights, "done": done, "slices": len(self.members)}

    def report(self) -> dict[str, Any]:
        """Return how training went so far."""
        points, labels = spirals(2000, seed=7)
        said = self.network.probabilities(points).argmax(axis=1)
        return {
            "steps": self.step,
            "loss": self.network.loss(points, labels),
            "untrained": Network().loss(points, labels),
            "accuracy": float((said == labels).mean()),
            "lost": self.lost,
            "slices": sorted(self.sizes),
        }


def slice_worker_main(slice_id: str, pause: float = 0) -> None:
    """Train on the data of one slice until all steps are done."""
    coordinator = ClusterResolver(current_cluster()).wait_for_actor("slice_coordinator")
    network = Network()
    rng = np.random.default_rng([int(slice_id.split("-")[1]), os.getpid()])
    now = coordinator.join(slice_id)
    print(f"{slice_id} begins at step {now['step']}", flush=True)
    while not now["done"]:
        network.weights = now["weights"]
        points, labels = spirals(256, seed=int(rng.integers(1 << 40)))
        time.sleep(pause)
        now = coordinator.contribute(slice_id, now["step"], network.gradient(points, labels))
    coordinator.leave(slice_id)
    print(f"{slice_id} is done")


def main() -> None:
    """Run on this machine: three slices, one of which joins late."""
    client = current_client()
    resources = ResourceConfig(preemptible=False)
    coordinator = client.create_actor(SliceCoordinator, 2, 300, name="slice_coordinator", resources=resources)
    jobs = []
    for i in range(3):
        call = Entrypoint.from_callable(slice_worker_main, args=(f"slice-{i}",))
        jobs.append(
            client.submit(JobRequest(f"slice-{i}", call, resources=ResourceConfig.with_tpu("v5litepod-4")))
        )
        time.sleep(0.2)
    for job in jobs:
        job.wait()
    print(coordinator.report())


if __name__ == "__main__":
    if sys.argv[1:] == ["slice"]:
        slice_worker_main(f"slice-{os.environ['SLICE']}", float(os.environ["PAUSE"]))
    else:
        main()
