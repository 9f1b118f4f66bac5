"""Reinforcement learning: a trainer and rollout workers as one group, which share a directory.

Run it with `python examples/cluster/rl.py`.

Rollout workers read the latest checkpoint and write rollouts; the trainer reads these and writes
checkpoints. On a cluster the directory is in storage that all hosts share.
"""

import json
import math
import os
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from fray.cluster import (
    Entrypoint,
    EnvironmentConfig,
    JobGroupConfig,
    JobId,
    JobInfo,
    JobRequest,
    JobStatus,
    ResourceConfig,
    current_cluster,
)

ARMS = (0.2, 0.8, 0.5)  # how often each arm of the bandit pays


@dataclass
class RLConfig:
    """What is trained, on what."""

    checkpoint_path: str
    train_tpu_type: str = "v5litepod-16"
    inference_tpu_type: str = "v5litepod-4"
    num_rollout_workers: int = 4
    steps: int = 5


def write_json(path: Path, content: object) -> None:
    """Write a file that readers see whole or not at all."""
    part = path.with_suffix(f".{os.getpid()}-{random.random()}.part")
    part.write_text(json.dumps(content))
    part.rename(path)


def train_worker_main(config: RLConfig) -> None:
    """Learn which arm pays most, from the rollouts of others."""
    directory = Path(config.checkpoint_path)
    weights = [0.0] * len(ARMS)
    seen: set[Path] = set()
    for step in range(config.steps):
        write_json(directory / "weights.json", {"step": step, "weights": weights})
        fresh: list[Path] = []
        while len(fresh) < config.num_rollout_workers:
            fresh = [path for path in directory.glob("rollout-*.json") if path not in seen]
            time.sleep(0.01)
        seen.update(fresh)
        for path in fresh:
            for arm, reward in json.loads(path.read_text()):
                weights[arm] += 0.1 * (reward - 0.5)
        print(f"step {step}: weights {[round(weight, 2) for weight in weights]}")
    write_json(directory / "final.json", weights)


def rollout_worker_main(config: RLConfig, worker_id: int) -> None:
    """Play with the latest weights until the job is terminated."""
    directory = Path(config.checkpoint_path)
    chance = random.Random(worker_id)
    rollout = 0
    while True:
        checkpoint = directory / "weights.json"
        if not checkpoint.exists():
            time.sleep(0.01)
            continue
        weights = json.loads(checkpoint.read_text())["weights"]
        arms = chance.choices(range(len(ARMS)), [math.exp(weight) for weight in weights], k=20)
        plays = [(arm, 1 if chance.random() < ARMS[arm] else 0) for arm in arms]
        write_json(directory / f"rollout-{worker_id}-{rollout}.json", plays)
        rollout += 1
        time.sleep(0.02)


class RLJob:
    """Orchestrates an RL training job."""

    def __init__(self, config: RLConfig) -> None:
        self.config = config
        self.cluster = current_cluster()
        self.run_id = f"rl-{os.urandom(4).hex()}"
        self.job_ids: list[JobId] = []

    def run(self) -> JobInfo:
        """Launch trainer and rollout workers together, and follow the trainer to its end."""
        group = JobGroupConfig(name=f"rl-{self.run_id}", same_region=True)
        requests = [
            JobRequest(
                name=f"rl-train-{self.run_id}",
                resources=ResourceConfig.with_tpu(self.config.train_tpu_type),
                entrypoint=Entrypoint.from_callable(train_worker_main, args=(self.config,)),
                environment=EnvironmentConfig.create(extras=["tpu"]),
            ),
            *(
                JobRequest(
                    name=f"rl-rollout-{self.run_id}-{i}",
                    resources=ResourceConfig.with_tpu(self.config.inference_tpu_type),
                    entrypoint=Entrypoint.from_callable(rollout_worker_main, args=(self.config, i)),
                    environment=EnvironmentConfig.create(extras=["tpu"]),
                )
                for i in range(self.config.num_rollout_workers)
            ),
        ]
        self.job_ids = self.cluster.launch_group(requests, group=group)
        return self.cluster.monitor(self.job_ids[0])

    def shutdown(self) -> None:
        """End all jobs."""
        for job_id in self.job_ids:
            self.cluster.terminate(job_id)


def main() -> list[float]:
    """Train for a few steps and return the weights."""
    directory = tempfile.mkdtemp(prefix="fray-rl-")
    config = RLConfig(checkpoint_path=directory, train_tpu_type="v5litepod-4", num_rollout_workers=2)
    job = RLJob(config)
    try:
        info = job.run()
    finally:
        job.shutdown()
    if info.status is not JobStatus.SUCCEEDED:
        raise RuntimeError(f"training {info.status}: {info.reason}")
    weights: list[float] = json.loads(Path(directory, "final.json").read_text())
    print(f"arm {weights.index(max(weights))} pays most")
    return weights


if __name__ == "__main__":
    main()
