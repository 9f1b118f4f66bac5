"""Flexible multi-slice training: workers come and go with the slices of an elastic reservation.

Run it with `python examples/cluster/multislice.py`.

Each worker has a slice. The leader starts more workers when the reservation has more slices, and starts
those again whose slice was lost. Workers know each other through the registry, and share a directory.
"""

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from fray.cluster import (
    Entrypoint,
    EnvironmentConfig,
    JobId,
    JobRequest,
    JobStatus,
    ReservationConfig,
    ReservationId,
    ResourceConfig,
    current_cluster,
    job_context,
)


@dataclass
class MultiSliceConfig:
    """What is trained, on how much."""

    checkpoint_path: str
    tpu_type: str = "v5litepod-16"
    min_slices: int = 2
    max_slices: int = 8
    steps: int = 30


def steps_done(config: MultiSliceConfig) -> int:
    """Return how many steps all workers have done together."""
    return sum(path.stat().st_size for path in Path(config.checkpoint_path).glob("*.steps"))


def slice_worker_main(config: MultiSliceConfig, slice_id: str) -> None:
    """Train on one slice, as long as there are enough of them."""
    context = job_context()
    assert context is not None
    metadata = current_cluster().metadata
    address = f"{os.environ.get('FRAY_HOST_ADDRESS', '127.0.0.1')}:1"
    metadata.register(f"multislice/{slice_id}", address, context.job_id)
    while steps_done(config) < config.steps:
        peers = metadata.list_actors("multislice/")
        if len(peers) >= config.min_slices:
            with Path(config.checkpoint_path, f"{slice_id}.steps").open("a") as steps:
                steps.write(".")
        time.sleep(0.05)
    print(f"{slice_id}: done")


class MultiSliceJob:
    """Manages elastic multi-slice training."""

    def __init__(self, config: MultiSliceConfig) -> None:
        self.config = config
        self.cluster = current_cluster()
        self.slice_jobs: dict[str, JobId] = {}

    def run(self) -> int:
        """Train, and return how many slices took part."""
        tpu = self.config.tpu_type
        reservation = self.cluster.create_reservation(
            ReservationConfig(
                min_resources=ResourceConfig.with_tpu(tpu, slice_count=self.config.min_slices),
                max_resources=ResourceConfig.with_tpu(tpu, slice_count=self.config.max_slices),
                preemptible=True,
            )
        )
        try:
            for i in range(self.config.min_slices):
                self._launch_slice(i)
            while steps_done(self.config) < self.config.steps:
                self._check_health_and_scale(reservation)
                time.sleep(0.1)
            self.cluster.wait(list(self.slice_jobs.values()))
        finally:
            self.cluster.release_reservation(reservation)
        return len(self.slice_jobs)

    def _launch_slice(self, idx: int) -> None:
        job_id = self.cluster.launch(
            JobRequest(
                name=f"multislice-worker-{idx}",
                resources=ResourceConfig.with_tpu(self.config.tpu_type),
                entrypoint=Entrypoint.from_callable(slice_worker_main, args=(self.config, f"slice-{idx}")),
                environment=EnvironmentConfig.create(extras=["tpu"]),
            )
        )
        self.slice_jobs[f"slice-{idx}"] = job_id

    def _check_health_and_scale(self, reservation: ReservationId) -> None:
        # Start failed workers again, and more of them if there are slices.
        for slice_id, job_id in list(self.slice_jobs.items()):
            if self.cluster.poll(job_id).status in (JobStatus.FAILED, JobStatus.STOPPED):
                self._launch_slice(int(slice_id.split("-")[1]))

        reservation_info = self.cluster.get_reservation(reservation)
        available = reservation_info.allocated_resources.replicas
        if available > len(self.slice_jobs) < self.config.max_slices:
            for i in range(len(self.slice_jobs), available):
                self._launch_slice(i)


def main() -> int:
    """Train for a few steps on as many slices as there are."""
    directory = tempfile.mkdtemp(prefix="fray-multislice-")
    config = MultiSliceConfig(directory, tpu_type="v5litepod-4", min_slices=2, max_slices=3)
    slices = MultiSliceJob(config).run()
    print(f"{steps_done(config)} steps on {slices} slices")
    return slices


if __name__ == "__main__":
    main()
