# marin/rl/fray_rl_job.py
from dataclasses import dataclass
import os

from fray.cluster import (
    current_cluster,
    ClusterResolver,
    Entrypoint,
    EnvironmentConfig,
    JobGroupConfig,
    JobRequest,
    ResourceConfig,
)
from fray.rpc import ActorContext, ActorServer


@dataclass
class RLConfig:
    model_path: str
    train_tpu_type: str = "v5litepod-16"
    inference_tpu_type: str = "v5litepod-4"
    num_rollout_workers: int = 4
    checkpoint_path: str = "gs://bucket/checkpoints"


# === Shared Actors ===

class CurriculumActor:
    """Manages training curriculum - shared across all workers."""

    def __init__(self, lessons: dict):
        self.lessons = lessons
        self.step = 0

    def get_lesson(self, ctx: ActorContext) -> dict:
        lesson_name = list(self.lessons.keys())[self.step % len(self.lessons)]
        return self.lessons[lesson_name]

    def report_result(self, ctx: ActorContext, lesson_name: str, reward: float):
        self.step += 1


class WeightCoordinator:
    """Coordinates weight sync between train and rollout workers."""

    def __init__(self):
        self.current_step = 0
        self.checkpoint_path: str | None = None

    def publish_checkpoint(self, ctx: ActorContext, step: int, path: str):
        self.current_step = step
        self.checkpoint_path = path

    def get_latest_checkpoint(self, ctx: ActorContext) -> tuple[int, str | None]:
        return self.current_step, self.checkpoint_path


# === Worker Entrypoints ===

def coordinator_main(config: RLConfig):
    """Coordinator job hosting shared actors."""
    cluster = current_cluster()
    server = ActorServer(cluster)

    server.register("curriculum", CurriculumActor({"math": {}, "code": {}}))
    server.register("weight_coordinator", WeightCoordinator())
    server.serve()


def train_worker_main(config: RLConfig):
    """Training worker - connects to shared actors."""
    cluster = current_cluster()
    resolver = ClusterResolver(cluster)

    curriculum = resolver.wait_for_actor("curriculum")
    weight_coord = resolver.wait_for_actor("weight_coordinator")

    # Training loop
    from marin.rl.train_worker import TrainWorker
    worker = TrainWorker(config)

    for step in worker.train_loop():
        if step % 100 == 0:
            ckpt_path = f"{config.checkpoint_path}/step-{step}"
            worker.save_checkpoint(ckpt_path)
            weight_coord.publish_checkpoint(step, ckpt_path)


def rollout_worker_main(config: RLConfig, worker_id: int):
    """Rollout worker - generates training data."""
    cluster = current_cluster()
    resolver = ClusterResolver(cluster)

    curriculum = resolver.wait_for_actor("curriculum")
    weight_coord = resolver.wait_for_actor("weight_coordinator")

    from marin.rl.rollout_worker import RolloutWorker
    worker = RolloutWorker(config, worker_id)

    while True:
        step, ckpt = weight_coord.get_latest_checkpoint()
        if ckpt:
            worker.load_checkpoint(ckpt)

        lesson = curriculum.get_lesson()
        rollouts, reward = worker.generate_rollout(lesson)
        curriculum.report_result(lesson["name"], reward)
        worker.write_rollouts(rollouts)


# === Job Orchestration ===

class RLJob:
    """Orchestrates an RL training job."""

    def __init__(self, config: RLConfig):
        self.config = config
        self.cluster = current_cluster()
        self.resolver = ClusterResolver(self.cluster)
        self.run_id = f"rl-{os.urandom(4).hex()}"

    def run(self) -> dict:
        group = JobGroupConfig(name=f"rl-{self.run_id}", same_region=True)

        requests = [
            # Coordinator
            JobRequest(
                name=f"rl-coordinator-{self.run_id}",
                resources=ResourceConfig.with_cpu(cpu=4, ram="8g"),
                entrypoint=Entrypoint.from_callable(coordinator_main, args=(self.config,)),
            ),
            # Training worker
            JobRequest(
                name=f"rl-train-{self.run_id}",
                resources=ResourceConfig.with_tpu(self.config.train_tpu_type),
                entrypoint=Entrypoint.from_callable(train_worker_main, args=(self.config,)),
                environment=EnvironmentConfig.create(extras=["tpu"]),
            ),
        ]

        # Rollout workers
        for i in range(self.config.num_rollout_workers):
            requests.append(
                JobRequest(
                    name=f"rl-rollout-{self.run_id}-{i}",
                    resources=ResourceConfig.with_tpu(self.config.inference_tpu_type),
                    entrypoint=Entrypoint.from_callable(rollout_worker_main, args=(self.config, i)),
                    environment=EnvironmentConfig.create(extras=["tpu"]),
                )
            )

        self.job_ids = self.cluster.launch_group(requests, group=group)

        # Wait for coordinator actors
        self.resolver.wait_for_actor("curriculum")
        self.resolver.wait_for_actor("weight_coordinator")

        # Monitor training worker
        return self.cluster.monitor(self.job_ids[1])

    def shutdown(self):
        for job_id in self.job_ids:
            self.cluster.terminate(job_id)
