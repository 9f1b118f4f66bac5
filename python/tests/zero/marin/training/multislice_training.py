# marin/training/multislice_training.py
from dataclasses import dataclass

from fray.cluster import (
    current_cluster,
    ClusterResolver,
    Entrypoint,
    EnvironmentConfig,
    JobId,
    JobRequest,
    JobStatus,
    ReservationConfig,
    ResourceConfig,
)
from fray.rpc import ActorContext, ActorServer


@dataclass
class MultiSliceConfig:
    model_path: str
    tpu_type: str = "v5litepod-16"
    min_slices: int = 2
    max_slices: int = 8
    checkpoint_path: str = "gs://bucket/checkpoints"


class SliceCoordinator:
    """Coordinates slice membership and synchronization barriers."""

    def __init__(self, min_slices: int):
        self.min_slices = min_slices
        self.slices: dict[str, str] = {}  # slice_id -> address
        self.current_step = 0
        self.barrier_count = 0

    def register_slice(self, ctx: ActorContext, slice_id: str, address: str) -> dict:
        self.slices[slice_id] = address
        return {"step": self.current_step, "peers": list(self.slices.keys())}

    def unregister_slice(self, ctx: ActorContext, slice_id: str):
        self.slices.pop(slice_id, None)

    def heartbeat(self, ctx: ActorContext, slice_id: str) -> dict:
        return {"step": self.current_step, "slice_count": len(self.slices)}

    def barrier_enter(self, ctx: ActorContext, slice_id: str, step: int) -> bool:
        if step != self.current_step:
            return False
        self.barrier_count += 1
        return self.barrier_count >= len(self.slices)

    def barrier_exit(self, ctx: ActorContext, slice_id: str, step: int):
        if self.barrier_count >= len(self.slices):
            self.current_step += 1
            self.barrier_count = 0


def coordinator_main(config: MultiSliceConfig):
    """Coordinator hosting the SliceCoordinator actor."""
    cluster = current_cluster()
    server = ActorServer(cluster)

    server.register("slice_coordinator", SliceCoordinator(config.min_slices))
    server.serve()


def slice_worker_main(config: MultiSliceConfig, slice_id: str):
    """Training worker for a single slice."""
    cluster = current_cluster()
    resolver = ClusterResolver(cluster)

    coordinator = resolver.wait_for_actor("slice_coordinator")

    import jax
    address = f"{jax.process_index()}@{jax.local_devices()[0]}"
    coordinator.register_slice(slice_id, address)

    from marin.training.trainer import Trainer
    trainer = Trainer(config.model_path)

    try:
        while True:
            state = coordinator.heartbeat(slice_id)
            if state["slice_count"] < config.min_slices:
                continue  # Wait for more slices

            step = state["step"]
            coordinator.barrier_enter(slice_id, step)
            trainer.train_step()
            coordinator.barrier_exit(slice_id, step)

            if step % 100 == 0:
                trainer.save_checkpoint(f"{config.checkpoint_path}/step-{step}")
    finally:
        coordinator.unregister_slice(slice_id)


class MultiSliceJob:
    """Manages elastic multi-slice training."""

    def __init__(self, config: MultiSliceConfig):
        self.config = config
        self.cluster = current_cluster()
        self.resolver = ClusterResolver(self.cluster)
        self.slice_jobs: dict[str, JobId] = {}

    def run(self):
        # Create elastic reservation
        reservation = self.cluster.create_reservation(
            ReservationConfig(
                min_resources=ResourceConfig.with_tpu(self.config.tpu_type, slice_count=self.config.min_slices),
                max_resources=ResourceConfig.with_tpu(self.config.tpu_type, slice_count=self.config.max_slices),
                preemptible=True,
            )
        )

        try:
            # Launch coordinator
            self.cluster.launch(
                JobRequest(
                    name="multislice-coordinator",
                    resources=ResourceConfig.with_cpu(cpu=4, ram="8g"),
                    entrypoint=Entrypoint.from_callable(coordinator_main, args=(self.config,)),
                )
            )
            self.resolver.wait_for_actor("slice_coordinator")

            # Launch initial slices
            for i in range(self.config.min_slices):
                self._launch_slice(i)

            # Monitor and scale
            while True:
                self._check_health_and_scale(reservation)
        finally:
            self.cluster.release_reservation(reservation)

    def _launch_slice(self, idx: int):
        job_id = self.cluster.launch(
            JobRequest(
                name=f"multislice-worker-{idx}",
                resources=ResourceConfig.with_tpu(self.config.tpu_type),
                entrypoint=Entrypoint.from_callable(slice_worker_main, args=(self.config, f"slice-{idx}")),
                environment=EnvironmentConfig.create(extras=["tpu"]),
            )
        )
        self.slice_jobs[f"slice-{idx}"] = job_id

    def _check_health_and_scale(self, reservation):
        # Restart failed slices, scale up if resources available
        for slice_id, job_id in list(self.slice_jobs.items()):
            if self.cluster.poll(job_id).status in (JobStatus.FAILED, JobStatus.STOPPED):
                self._launch_slice(int(slice_id.split("-")[1]))

        # Scale based on reservation
        reservation_info = self.cluster.get_reservation(reservation)
        available = reservation_info.allocated_resources.replicas
        if available > len(self.slice_jobs) < self.config.max_slices:
            for i in range(len(self.slice_jobs), available):
                self._launch_slice(i)


if __name__ == "__main__":
    config = MultiSliceConfig(
        model_path="gs://bucket/models/llama-70b",
        tpu_type="v5litepod-64",
        min_slices=2,
        max_slices=8,
    )

    job = MultiSliceJob(config)
    job.run()
